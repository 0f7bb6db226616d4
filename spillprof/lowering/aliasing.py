"""Storage that tensors share: views, and results written in place."""

from collections.abc import Iterable
from dataclasses import replace

from spillprof.ir.program import Buffer, BufferKind
from spillprof.ir.target import Target
from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import ELEMENTWISE, PARTS, STACKS, STRIDED_VIEWS, VIEWS, is_one_of

_IN_PLACE = ELEMENTWISE | STACKS
_REPLACEABLE = frozenset({BufferKind.ACTIVATION, BufferKind.INPUT})
_ANY_VIEW = VIEWS | STRIDED_VIEWS | PARTS


def share_views(draft: Draft, target: Target) -> Draft:
    """The draft without the tasks that only rename storage; what they write becomes views of what they read.

    Reshape, Squeeze, Unsqueeze, Flatten, Identity, Dropout at inference and Cast to the same type; Slice, Split and
    Transpose too on a target that reads strided views. Concat always copies. Chains of views end at the tensor that
    was written first. Of a Dropout whose mask is read the mask alone is written, and nothing is read for it.
    """
    if not draft.has_some_of(_ANY_VIEW):
        return draft
    views: dict[str, str] = dict(draft.views)
    strided: set[str] = set(draft.strided)
    used = {name for task in draft.tasks for name in task.inputs} | set(draft.graph.outputs)
    tasks: list[Task] = []
    for task in draft.tasks:
        if not _is_view(task, draft, target):
            tasks.append(task)
            continue
        source = task.inputs[0]
        renamed = task.outputs if is_one_of(task.lead, STRIDED_VIEWS) else task.outputs[:1]
        written = tuple(name for name in task.outputs[len(renamed) :] if name in used)
        if written:
            tasks.append(replace(task, inputs=(), outputs=written))
        for name in renamed:
            views[name] = views.get(source, source)
            if source in strided or is_one_of(task.lead, STRIDED_VIEWS | PARTS):
                strided.add(name)
    return replace(draft, tasks=tuple(tasks), views=views, strided=frozenset(strided))


def overwritable(task: Task, operands: Iterable[Buffer], written: Buffer, draft: Draft) -> tuple[int, ...]:
    """Buffers that a task may overwrite with its result, should they die there; in operand order.

    Only elementwise tasks write in place, and those that stack slices.

    ``operands`` are the distinct buffers that it reads. Graph outputs, weights, dedicated buffers and buffers of
    another size are never overwritten, nor is one that the task reads through a strided view.
    """
    if not is_one_of(task.lead, _IN_PLACE) or written.dedicated or written.payload_bytes == 0:
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


def _is_view(task: Task, draft: Draft, target: Target) -> bool:
    if not is_one_of(task.lead, _ANY_VIEW) or not task.inputs or not task.outputs:
        return False
    if task.lead.op_type == "Dropout" and task.outputs[0] in task.lead.outputs[1:]:
        return False  # the mask alone
    tensors = draft.graph.tensors
    source, result = tensors[task.inputs[0]], tensors[task.outputs[0]]
    if is_one_of(task.lead, PARTS):
        return True
    if is_one_of(task.lead, STRIDED_VIEWS):
        return target.strided_views and all(tensors[name].dtype == source.dtype for name in task.outputs)
    if not is_one_of(task.lead, VIEWS) or (source.dtype, source.nbytes) != (result.dtype, result.nbytes):
        return False
    # A Graph holds no values: a Dropout that is told whether it trains might.
    return not (task.lead.op_type == "Dropout" and len(task.lead.inputs) > 2 and task.lead.inputs[2])
