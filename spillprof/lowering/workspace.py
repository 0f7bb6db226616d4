"""Memory that an operator needs besides its operands, and in which phases."""

from math import prod

from spillprof.ir.program import Phase, Workspace
from spillprof.ir.target import Target
from spillprof.lowering.convolution import Form
from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import LEADERS, is_one_of
from spillprof.lowering.layout import align


def workspaces(task: Task, draft: Draft, target: Target, form: Form | None) -> tuple[Workspace, ...]:
    """Workspaces of fixed size of a task, sizes aligned; those of size 0 left out.

    The accumulator of a convolution or matrix product, if the target keeps accumulators in SRAM, and what the
    algorithm of a convolution needs besides. (The matrix of im2col comes later: see ``im2col``.)
    """
    if not is_one_of(task.lead, LEADERS):
        return ()
    found = (*(() if form is None else form.spaces), *_accumulator(task, draft, target))
    return tuple(
        Workspace(purpose=purpose, size_bytes=align(nbytes, target.alignment_bytes), first=first, last=last)
        for purpose, nbytes, first, last in found
        if nbytes > 0
    )


def _accumulator(task: Task, draft: Draft, target: Target) -> tuple[tuple[str, int, Phase, Phase], ...]:
    if not task.outputs:
        return ()
    nbytes = target.accumulator_bytes_per_output * prod(draft.graph.tensors[task.outputs[0]].shape)
    return (("accumulator", nbytes, Phase.COMPUTE, Phase.WRITE),)
