"""Tensors that share storage: views, and results written in place."""

from collections.abc import Iterable
from dataclasses import replace

from spillprof.ir.program import Buffer, BufferKind
from spillprof.ir.target import Target
from spillprof.lowering.draft import Draft, LoweringTask
from spillprof.lowering.operators.facts import ViewKind
from spillprof.lowering.operators.table import is_type

_REPLACEABLE = frozenset({BufferKind.ACTIVATION, BufferKind.INPUT})


def share_views(draft: Draft, target: Target) -> Draft:
    """The draft without the tasks that only rename storage: their results become views of their first operands.

    Reshape, Squeeze, Unsqueeze, Flatten, Identity, Dropout at inference and Cast to the same type; Slice, Split and
    Transpose too on a target that reads strided views. Concat always copies. Chains of views resolve to the tensor that
    was written first. A Dropout whose mask is read writes only the mask, and reads nothing.
    """
    if all(task.facts.view is None for task in draft.tasks):
        return draft
    views: dict[str, str] = dict(draft.views)
    strided: set[str] = set(draft.strided)
    used = {name for task in draft.tasks for name in task.inputs} | set(draft.graph.outputs)
    tasks: list[LoweringTask] = []
    for task in draft.tasks:
        if not _is_view(task, draft, target):
            tasks.append(task)
            continue
        source, kind = task.inputs[0], task.facts.view
        renamed = task.outputs if kind is ViewKind.STRIDED else task.outputs[:1]
        written = tuple(name for name in task.outputs[len(renamed) :] if name in used)
        if written:
            tasks.append(replace(task, inputs=(), outputs=written))
        for name in renamed:
            views[name] = views.get(source, source)
            if source in strided or kind is not ViewKind.WHOLE:
                strided.add(name)
    return replace(draft, tasks=tuple(tasks), views=views, strided=frozenset(strided))


def overwritable(task: LoweringTask, operands: Iterable[Buffer], written: Buffer, draft: Draft) -> tuple[int, ...]:
    """Buffers that a task may overwrite with its result if their live range ends there; in operand order.

    Only elementwise tasks and those that stack slices write in place.

    ``operands`` are the distinct buffers that it reads. Graph outputs, weights, dedicated buffers and buffers of
    another size are never overwritten, nor is one that the task reads through a strided view.
    """
    facts = task.facts
    if not (facts.in_place or facts.stacks) or written.dedicated or written.payload_bytes == 0:
        return ()
    takes = (written.size_bytes, written.moved_bytes, written.payload_bytes)
    found = [
        buffer
        for buffer in operands
        if (buffer.size_bytes, buffer.moved_bytes, buffer.payload_bytes) == takes
        and buffer.kind in _REPLACEABLE
        and not buffer.dedicated
    ]
    if found and draft.strided:
        through_strides = {draft.storage(name) for name in draft.strided.intersection(task.inputs)}
        found = [buffer for buffer in found if buffer.name not in through_strides]
    return tuple([buffer.index for buffer in found])


def _is_view(task: LoweringTask, draft: Draft, target: Target) -> bool:
    kind = task.facts.view
    if kind is None or not task.inputs or not task.outputs:
        return False
    is_dropout = is_type(task.lead, "Dropout")
    if is_dropout and task.outputs[0] in task.lead.outputs[1:]:
        return False  # it writes only the mask
    tensors = draft.graph.tensors
    source, result = tensors[task.inputs[0]], tensors[task.outputs[0]]
    if kind is ViewKind.PART:
        return True
    if kind is ViewKind.STRIDED:
        return target.strided_views and all(tensors[name].dtype == source.dtype for name in task.outputs)
    if (source.dtype, source.nbytes) != (result.dtype, result.nbytes):
        return False
    # A Graph holds no values, so a Dropout with a training_mode input may train.
    return not (is_dropout and len(task.lead.inputs) > 2 and task.lead.inputs[2])
