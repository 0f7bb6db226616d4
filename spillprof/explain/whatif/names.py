"""What a name on the command line means: buffers, steps, or nothing."""

from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Graph
from spillprof.ir.nearest import nearest
from spillprof.ir.program import Program


def resolve(name: str, graph: Graph, program: Program) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(buffers, steps) that a name of a tensor or an operator stands for; ``#12`` is step 12.

    A view means the buffer that it is stored in. A fused operator, and a tensor that exists only inside of one, mean
    the step. ``UsageError`` if the model has no such name.
    """
    buffers = tuple(b.index for b in program.buffers if name in b.tensors)
    steps = tuple(i for i, step in enumerate(program.steps) if name == step.name or name in step.operators)
    if not buffers and not steps:
        writers = {op.name for op in graph.operators if name and name in op.outputs}
        steps = tuple(i for i, step in enumerate(program.steps) if writers & {step.name, *step.operators})
    if not buffers and not steps and name.startswith("#") and name[1:].isascii() and name[1:].isdigit():
        steps = (int(name[1:]),) if len(name) < 19 and int(name[1:]) < len(program.steps) else ()
    if buffers or steps:
        return buffers, steps
    if name in graph.tensors or any(name == op.name for op in graph.operators):
        raise UsageError(
            f"there is no story of '{name}': it is not in the run",
            hint="a weight that streams, or something that was folded, removed, or lies inside of another operator",
        )
    known = dict.fromkeys(
        each
        for each in (
            *(tensor for buffer in program.buffers for tensor in buffer.tensors),
            *(operator for step in program.steps for operator in (step.name, *step.operators)),
        )
        if each
    )
    near = nearest(name, known, most=3)
    hint = f"did you mean {', '.join(near)}?" if near else "spillprof inspect lists tensors and operators"
    raise UsageError(f"the model has no tensor or operator '{name}'", hint=hint)
