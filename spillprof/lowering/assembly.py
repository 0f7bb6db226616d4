"""The last pass of lowering: tasks over tensors become steps over buffers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from spillprof.ir.dtypes import is_float
from spillprof.ir.graph import Assumption
from spillprof.ir.program import Buffer, BufferKind, Program, Step, Update
from spillprof.ir.target import Target
from spillprof.lowering.algorithms import RunTime, with_algorithms
from spillprof.lowering.aliasing import overwritable
from spillprof.lowering.convolution import convolution_notes
from spillprof.lowering.draft import Draft, LoweringTask
from spillprof.lowering.operand_reads import WeightReads, part_of, parts_read, weight_reads
from spillprof.lowering.operators.table import (
    MacCount,
    count_macs,
    count_vector_ops,
    facts_of,
    is_known,
    is_type,
    stated_assumptions,
)
from spillprof.lowering.operators.vector_ops import CLAMPS, is_quantised
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.lowering.step_nests import with_nests
from spillprof.lowering.storing import buffers_of
from spillprof.lowering.transforms import Touched, updates_of

WEIGHT, CACHED = BufferKind.WEIGHT, WeightsPolicy.CACHED  # module names are looked up faster than enum members
UNCOSTED = "operators of unknown cost are timed by bytes alone"


def assemble(draft: Draft, target: Target, options: LoweringOptions, run_s: RunTime | None = None) -> Program:
    """Steps and buffers of a draft, buffers numbered in the order of first touch. ``run_s``: see ``lower``."""
    parts = [parts_read(task, draft.graph) for task in draft.tasks]
    weights = [weight_reads(task, draft, part) for task, part in zip(draft.tasks, parts, strict=True)]
    counts = [_task_macs(task, draft) for task in draft.tasks]
    buffers = buffers_of(draft, weights, target, options)
    by_name = {buffer.name: buffer for buffer in buffers}
    operands = [
        _operands(task, draft, read, part, by_name, options)
        for task, read, part in zip(draft.tasks, weights, parts, strict=True)
    ]
    updates = updates_of([touched for touched, _ in operands], buffers)
    steps = [
        _step(task, draft, weights[i], counts[i], *operands[i], updates[i], buffers, options)
        for i, task in enumerate(draft.tasks)
    ]
    program = Program(
        name=draft.graph.name,
        steps=with_nests(steps, buffers, draft, target, options),
        buffers=buffers,
        alignment_bytes=target.alignment_bytes,
        weight_bytes=sum(_distinct_weights(weights, draft).values()),
        weights_persist=options.weights is WeightsPolicy.CACHED,
        removed_operators=draft.removed_operators,
        folded_operators=draft.folded_operators,
        assumptions=_assumptions(draft, counts),
        control_flow=draft.control_flow,
        notes=draft.notes,
    )
    if draft.control_steps or any(task.facts.leads for task in draft.tasks):
        program = with_algorithms(program, draft, target, options, run_s)
    notes = convolution_notes(program)
    return replace(program, notes=(*program.notes, *notes)) if notes else program


def _distinct_weights(weights: Iterable[WeightReads], draft: Draft) -> dict[str, int]:
    distinct: dict[str, int] = {}
    for whole, in_part in weights:
        if whole:
            distinct |= whole
        if in_part:
            distinct |= {name: draft.weights[name] for name in in_part}
    return distinct


def _operands(
    task: LoweringTask,
    draft: Draft,
    weights: WeightReads,
    parts: Mapping[str, Fraction],
    by_name: Mapping[str, Buffer],
    options: LoweringOptions,
) -> tuple[Touched, int]:
    """The buffers that a task touches, and the payload bytes that it reads, without weights."""
    views, known = draft.views, draft.weights
    read: dict[str, Buffer] = {}  # by storage, in operand order
    for name in task.operands:
        storage = views.get(name, name)
        buffer = by_name.get(storage)
        if buffer is not None and (storage not in known or storage in weights.whole):
            read[storage] = buffer
    if parts or (views and not views.keys().isdisjoint(task.inputs)):
        read_bytes = _bytes_read_of(read, task, draft, parts)
    else:
        read_bytes = sum([buffer.payload_bytes for buffer in read.values() if buffer.kind is not WEIGHT])
    written = [by_name[views.get(name, name)] for name in task.outputs]
    is_in_place = len(written) == 1 and (options.inplace or task.facts.stacks)
    may_overwrite = overwritable(task, read.values(), written[0], draft) if is_in_place else ()
    if options.weights is CACHED:
        read |= {name: by_name[name] for name in weights.whole}
    indices = tuple([buffer.index for buffer in read.values()])
    touched = Touched(indices, tuple([buffer.index for buffer in written]), may_overwrite, _holds(task, draft, by_name))
    return touched, read_bytes


def _holds(task: LoweringTask, draft: Draft, by_name: Mapping[str, Buffer]) -> tuple[int, ...]:
    """Buffers that must stay until the task has run although it does not read them."""
    if not task.lead.holds:
        return ()
    storages = dict.fromkeys(map(draft.storage, task.lead.holds))
    read = set(map(draft.storage, task.operands))
    return tuple(by_name[s].index for s in storages if s not in draft.weights and s not in read)


def _bytes_read_of(read: Mapping[str, Buffer], task: LoweringTask, draft: Draft, parts: Mapping[str, Fraction]) -> int:
    """Payload bytes of the distinct tensors read, without weights, each buffer at most once whole."""
    by_storage: dict[str, int] = {}
    for name in dict.fromkeys(task.operands):
        storage = draft.storage(name)
        if storage in read and read[storage].kind is not WEIGHT:
            most = read[storage].payload_bytes
            whole = most if name == storage else draft.graph.tensors[name].nbytes
            by_storage[storage] = min(by_storage.get(storage, 0) + part_of(whole, parts.get(name)), most)
    return sum(by_storage.values())


def _step(
    task: LoweringTask,
    draft: Draft,
    weights: WeightReads,
    count: MacCount,
    touched: Touched,
    read_bytes: int,
    updates: tuple[Update, ...],
    buffers: Sequence[Buffer],
    options: LoweringOptions,
) -> Step:
    lead, weight_bytes = task.lead, weights.read_bytes
    control = draft.control_steps.get(lead.name)
    if control is not None:
        read_bytes = max(read_bytes, control.touched_bytes)
    dtype = _mac_dtype(task, draft, options)
    return Step(
        name=lead.name,
        op_type=lead.op_type,
        operators=tuple([op.name for op in task.members]),
        reads=touched.reads,
        writes=touched.writes,
        may_overwrite=touched.may_overwrite,
        holds=touched.holds,
        updates=updates,
        weight_stream_bytes=weights.streamed_bytes(options.weights) if weight_bytes else 0,
        macs=count.macs,
        mac_dtype=dtype,
        product_kind=count.kind,
        vector_ops=_vector_ops(task, draft, dtype),
        touched_bytes=read_bytes + _written_bytes(task, touched, buffers, draft) + weight_bytes,
        repeatable=_is_repeatable(task, draft),
    )


def _is_repeatable(task: LoweringTask, draft: Draft) -> bool:
    """Whether it can be recomputed: no randomness, no side effects, no operand overwritten, no control flow inside."""
    for op in task.members:
        facts = facts_of(op)
        if op.name in draft.control_steps or facts.stacks or facts.random is not None or not is_known(op):
            return False
    return True


def _written_bytes(task: LoweringTask, touched: Touched, buffers: Sequence[Buffer], draft: Draft) -> int:
    """Payload bytes written by a task; one that stacks slices writes only the new slice."""
    if task.facts.stacks:
        return draft.graph.tensors[task.inputs[-1]].nbytes if task.inputs else 0
    return sum([buffers[b].payload_bytes for b in touched.writes])


def _task_macs(task: LoweringTask, draft: Draft) -> MacCount:
    if task.lead.name in draft.control_steps:
        control = draft.control_steps[task.lead.name]
        return MacCount(macs=control.macs, uncosted=control.uncosted)
    if len(task.members) == 1:
        return count_macs(task.lead, draft.graph)
    counts = [count_macs(op, draft.graph) for op in task.members]
    return MacCount(
        macs=sum(c.macs for c in counts),
        uncosted=sum(c.uncosted for c in counts),
        kind=max(counts, key=lambda c: c.macs).kind,
    )


def _vector_ops(task: LoweringTask, draft: Draft, dtype: str) -> int:
    """Operations of the vector unit, those of fused operators too.

    A QuantizeLinear or DequantizeLinear that was absorbed has none: the operator works on what is stored. Nor has a
    clamp behind a quantised operator.
    """
    if task.lead.name in draft.control_steps:
        return draft.control_steps[task.lead.name].vector_ops
    if len(task.members) == 1:
        return count_vector_ops(task.lead, draft.graph, dtype)
    free = {"QuantizeLinear", "DequantizeLinear"} | (CLAMPS if is_quantised(dtype) else set())
    counted = [op for op in task.members if op is task.lead or not is_type(op, *free)]
    return sum(count_vector_ops(op, draft.graph, dtype) for op in counted)


def _mac_dtype(task: LoweringTask, draft: Draft, options: LoweringOptions) -> str:
    """Element type of the first input; for control flow in one step, that of the first floating-point operand."""
    tensors, is_control = draft.graph.tensors, task.lead.name in draft.control_steps
    for names in (task.inputs, task.outputs):
        for name in names:
            dtype = tensors[name].dtype
            if not is_control or is_float(dtype):
                return dtype
    return options.act_dtype or "float32"


def _assumptions(draft: Draft, counts: Iterable[MacCount]) -> tuple[Assumption, ...]:
    """Assumptions of the graph and of the operators' costs, one entry per text."""
    total: Counter[str] = Counter()
    for assumption in draft.graph.assumptions:
        total[assumption.what] += assumption.count
    total[UNCOSTED] += sum([count.uncosted for count in counts])
    members = [op for task in draft.tasks for op in task.members]
    total.update(text for op in members for text in stated_assumptions(op))
    if draft.control_steps:
        inside = (draft.control_steps[op.name] for op in members if op.name in draft.control_steps)
        total.update(text for step in inside for text in step.stated)
    return tuple(Assumption(what=what, count=count) for what, count in total.items() if count > 0)
