"""Q/DQ fusion: an operator between DequantizeLinear and QuantizeLinear reads and writes quantised tensors."""

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import replace

from spillprof.lowering.draft import Draft, LoweringTask, Uses, uses_in
from spillprof.lowering.operators.facts import ViewKind
from spillprof.lowering.operators.table import is_known, is_type

_QUANTIZE, _DEQUANTIZE = _TYPES = "QuantizeLinear", "DequantizeLinear"


def absorb_quantisation(draft: Draft) -> Draft:
    """The draft with Q/DQ joined to the operators that they wrap.

    A DequantizeLinear is joined to each operator that reads it, and is no step of its own if all its readers absorb it;
    likewise that of a weight, which keeps its quantised size. A QuantizeLinear is joined to the operator
    before it if nothing else reads the float value. An operator that only moves data (Reshape, Transpose, ...)
    absorbs both or neither, so that it can stay a view. Scales and zero points become operands of the step.
    """
    if not any(task.lead.op_type in _TYPES and is_type(task.lead, *_TYPES) for task in draft.tasks):
        return draft
    uses, at_start = uses_in(draft), frozenset((*draft.weights, *draft.graph.inputs))
    absorbed: set[int] = set()  # QuantizeLinear tasks that ended in the task before them
    taken: dict[str, int] = defaultdict(int)  # float tensor: readers that read the quantised tensor instead
    tasks: list[LoweringTask | None] = list(draft.tasks)
    for i, task in enumerate(draft.tasks):
        if task.facts.keeps_float or not is_known(task.lead):
            continue
        before = {name: uses.writer[name] for name in task.inputs if _is_dequantised(name, uses)}
        after = {name: q for name in task.outputs if (q := _only_quantizer(name, uses, at_start)) is not None}
        if task.facts.view in (ViewKind.WHOLE, ViewKind.STRIDED) and not (
            task.inputs and task.inputs[0] in before and len(after) == len(task.outputs)
        ):
            continue
        absorbed.update(after.values())
        for name in before:
            taken[name] += 1
        tasks[i] = _joined(
            task, {n: draft.tasks[d] for n, d in before.items()}, {n: draft.tasks[q] for n, q in after.items()}
        )
    for i, task in enumerate(draft.tasks):
        if is_type(task.lead, _DEQUANTIZE):
            (name, *_) = task.outputs or ("",)
            if name in taken and taken[name] == len(uses.readers[name]) and name not in uses.outputs:
                absorbed.add(i)
    return replace(draft, tasks=tuple(t for i, t in enumerate(tasks) if t is not None and i not in absorbed))


def _is_dequantised(name: str, uses: Uses) -> bool:
    return name in uses.writer and is_type(uses.draft.tasks[uses.writer[name]].lead, _DEQUANTIZE)


def _only_quantizer(name: str, uses: Uses, at_start: Set[str]) -> int | None:
    """The QuantizeLinear that is the only reader of the tensor, if its scale is a weight or a graph input."""
    readers = uses.readers.get(name, ())
    if len(readers) != 1 or name in uses.outputs:
        return None
    quantizer = uses.draft.tasks[readers[0]]
    if not is_type(quantizer.lead, _QUANTIZE) or quantizer.inputs[0] != name or not quantizer.outputs:
        return None
    return readers[0] if all(scale in at_start for scale in quantizer.inputs[1:]) else None


def _joined(task: LoweringTask, before: Mapping[str, LoweringTask], after: Mapping[str, LoweringTask]) -> LoweringTask:
    if not before and not after:
        return task
    scales = [name for t in (*before.values(), *after.values()) for name in t.inputs[1:]]
    return LoweringTask(
        lead=task.lead,
        facts=task.facts,
        members=(
            *(op for t in before.values() for op in t.members),
            *task.members,
            *(op for t in after.values() for op in t.members),
        ),
        inputs=(*(before[name].inputs[0] if name in before else name for name in task.inputs), *dict.fromkeys(scales)),
        outputs=tuple(after[name].outputs[0] if name in after else name for name in task.outputs),
    )
