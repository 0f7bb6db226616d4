"""The last pass of lowering: tasks over tensors become steps over buffers."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from spillprof.lowering.access import parts_read
from spillprof.lowering.aliasing import overwritable
from spillprof.lowering.convolution import Form, Matrix, asked_form, conv_forms, conv_time_factor, fastest_form
from spillprof.lowering.convolution_notes import convolution_notes
from spillprof.lowering.costs import attribute_bytes, stated_assumptions
from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import DROPPING, STACKS, is_one_of
from spillprof.lowering.folding import folds_where_inputs_do
from spillprof.lowering.im2col import with_matrices
from spillprof.lowering.layout import align, stored_bytes
from spillprof.lowering.macs import MacCount, count_macs
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions, WeightsPolicy
from spillprof.lowering.pinning import pinned_storages
from spillprof.lowering.reordering import Touched, updates_of
from spillprof.lowering.workspace import workspaces
from spillprof.model.dtypes import is_float
from spillprof.model.graph import Assumption, Operator
from spillprof.model.program import (
    Buffer,
    BufferKind,
    Convolution,
    Phase,
    Program,
    Step,
    Update,
    Workspace,
    largest_phase_bytes,
)
from spillprof.model.target import Target

_NOT_TWICE = DROPPING | STACKS
UNCOSTED = "operators of unknown cost are timed by bytes alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class _WeightRead:
    """A weight that a task reads: payload bytes as it lies in DRAM, and how many of them the task moves."""

    stored_bytes: int
    read_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether it is an operand; a weight that is read in part (rows of a table) only passes through."""
        return self.read_bytes == self.stored_bytes


_WeightReads = Mapping[str, _WeightRead]


class _Operands(NamedTuple):
    """The buffers that a task touches."""

    read: list[tuple[str, Buffer]]  # tensors, each with its buffer, in operand order
    written: list[Buffer]
    touched: Touched


def assemble(draft: Draft, target: Target, options: LoweringOptions) -> Program:
    """Steps and buffers of a draft. Buffers are numbered in the order in which the steps first touch them."""
    parts = [parts_read(task, draft.graph) for task in draft.tasks]
    weights = [_weights(task, draft, part) for task, part in zip(draft.tasks, parts, strict=True)]
    counts = [_task_macs(task, draft) for task in draft.tasks]
    buffers = _buffers(draft, weights, target, options)
    by_name = {buffer.name: buffer for buffer in buffers}
    operands = [_operands(task, draft, read, by_name, options) for task, read in zip(draft.tasks, weights, strict=True)]
    updates = updates_of([own.touched for own in operands], buffers)
    steps: list[Step] = []
    matrices: dict[int, Matrix] = {}
    for i in range(len(draft.tasks)):
        step = _step(i, draft, weights[i], parts[i], counts[i], operands[i], updates[i], options)
        step, matrix = _with_workspaces(step, draft.tasks[i], draft, target, options)
        steps.append(step)
        if matrix is not None:
            matrices[i] = matrix
    distinct = {name: weight.stored_bytes for read in weights for name, weight in read.items()}
    program = Program(
        name=draft.graph.name,
        steps=tuple(steps),
        buffers=buffers,
        alignment_bytes=target.alignment_bytes,
        weight_bytes=sum(distinct.values()),
        weights_persist=options.weights is WeightsPolicy.CACHED,
        removed_operators=draft.removed_operators,
        folded_operators=draft.folded_operators,
        assumptions=_assumptions(draft, counts),
        control_flow=draft.control_flow,
        notes=draft.notes,
    )
    program = with_matrices(program, matrices, target, options)
    return replace(program, notes=(*program.notes, *convolution_notes(program)))


def _with_workspaces(
    step: Step, task: Task, draft: Draft, target: Target, options: LoweringOptions
) -> tuple[Step, Matrix | None]:
    """A step with the workspaces of its operator and, of a convolution, its algorithm; and the matrix of im2col."""
    body = _body_workspace(task, draft, target)
    forms = conv_forms(task, draft)
    if not forms:
        needed = (*workspaces(task, draft, target, None), *body)
        return replace(step, workspaces=needed) if needed else step, None
    form, fastest = _chosen(forms, step, target, options)
    spaces = workspaces(task, draft, target, form)
    convolution = Convolution(
        algorithm=str(form.algorithm), fastest=str(fastest.algorithm), workspace_bytes=largest_phase_bytes(spaces)
    )
    formed = replace(
        step,
        workspaces=(*spaces, *body),
        macs_time_factor=conv_time_factor(target, form.algorithm),
        convolution=convolution,
        touched_bytes=step.touched_bytes + form.passing_bytes,
    )
    return formed, form.matrix


def _chosen(forms: Sequence[Form], step: Step, target: Target, options: LoweringOptions) -> tuple[Form, Form]:
    """How a convolution runs, and how it would if memory did not matter.

    ``auto``: the fastest whose workspace stays under half of the SRAM.
    """
    if options.conv is not ConvAlgorithm.AUTO:
        form = asked_form(forms, options.conv)
        return form, form
    macs_s = step.macs / target.macs_rate(step.mac_dtype)
    form, fastest = (
        fastest_form(forms, target, macs_s=macs_s, touched_bytes=step.touched_bytes, limit_bytes=limit)
        for limit in (target.sram_bytes // 2, None)
    )
    return form, fastest


def _buffers(
    draft: Draft, weights: Sequence[_WeightReads], target: Target, options: LoweringOptions
) -> tuple[Buffer, ...]:
    graph = draft.graph
    inputs, outputs = frozenset(graph.inputs), frozenset(map(draft.storage, graph.outputs))
    views: dict[str, list[str]] = defaultdict(list)
    for view, storage in draft.views.items():
        views[storage].append(view)
    payload: dict[str, int] = {}  # of each storage, in order of first touch
    constant: set[str] = set()
    for i, task in enumerate(draft.tasks):
        if options.weights is WeightsPolicy.CACHED:
            whole = {name: weight.stored_bytes for name, weight in weights[i].items() if weight.is_whole}
            constant.update(whole)
            payload |= whole
        for storage in map(draft.storage, (*task.inputs, *task.outputs)):
            if storage not in draft.weights and storage not in payload:
                payload[storage] = graph.tensors[storage].nbytes
    pinned = pinned_storages(draft, options, payload)
    buffers: list[Buffer] = []
    for index, (name, nbytes) in enumerate(payload.items()):
        if name in constant:
            kind, size_bytes = BufferKind.WEIGHT, align(nbytes, target.alignment_bytes)
        else:
            size_bytes = stored_bytes(graph.tensors[name], target)
            if name in inputs:
                kind = BufferKind.INPUT
            else:
                kind = BufferKind.OUTPUT if name in outputs else BufferKind.ACTIVATION
        buffers.append(
            Buffer(
                index=index,
                name=name,
                tensors=(name, *views[name]) if name in views else (name,),
                kind=kind,
                payload_bytes=nbytes,
                size_bytes=size_bytes,
                dedicated=name in pinned,
            )
        )
    return tuple(buffers)


def _operands(
    task: Task, draft: Draft, weights: _WeightReads, by_name: Mapping[str, Buffer], options: LoweringOptions
) -> _Operands:
    whole = {name for name, weight in weights.items() if weight.is_whole}
    storages = ((name, draft.storage(name)) for name in task.inputs)
    read = [(n, by_name[s]) for n, s in storages if s in by_name and (s in whole or s not in draft.weights)]
    reads = dict.fromkeys(buffer.index for _, buffer in read)
    if options.weights is WeightsPolicy.CACHED:
        reads |= dict.fromkeys(by_name[name].index for name in weights if name in whole)
    written = [by_name[draft.storage(name)] for name in task.outputs]
    is_in_place = len(written) == 1 and (options.inplace or is_one_of(task.lead, STACKS))
    touched = Touched(
        reads=tuple(reads),
        writes=tuple(buffer.index for buffer in written),
        may_overwrite=overwritable(task, read, written[0], draft) if is_in_place else (),
    )
    return _Operands(read=read, written=written, touched=touched)


def _step(
    i: int,
    draft: Draft,
    weights: _WeightReads,
    parts: Mapping[str, Fraction],
    count: MacCount,
    operands: _Operands,
    updates: tuple[Update, ...],
    options: LoweringOptions,
) -> Step:
    task = draft.tasks[i]
    block = draft.blocks.get(task.lead.name)
    return Step(
        name=task.lead.name,
        op_type=task.lead.op_type,
        operators=tuple(op.name for op in task.members),
        reads=operands.touched.reads,
        writes=operands.touched.writes,
        may_overwrite=operands.touched.may_overwrite,
        updates=updates,
        weight_stream_bytes=_streamed_bytes(weights, options.weights),
        macs=count.macs,
        mac_dtype=_mac_dtype(task, draft, options),
        touched_bytes=(
            max(_read_bytes(operands.read, parts, draft), 0 if block is None else block.touched_bytes)
            + _written_bytes(task, operands.written, draft)
            + sum(weight.read_bytes for weight in weights.values())
        ),
        repeatable=all(_is_repeatable(op, draft) for op in task.members),
    )


def _is_repeatable(op: Operator, draft: Draft) -> bool:
    """Whether it gives the same result again: no chance, no effects, nothing written over, no control flow inside."""
    return folds_where_inputs_do(op) and not is_one_of(op, _NOT_TWICE) and op.name not in draft.blocks


def _streamed_bytes(weights: _WeightReads, policy: WeightsPolicy) -> int:
    """What passes through the weight staging area: all under ``stream``, under ``cached`` what is read in part."""
    if policy is WeightsPolicy.RESIDENT:
        return 0
    return sum(w.read_bytes for w in weights.values() if policy is WeightsPolicy.STREAM or not w.is_whole)


def _weights(task: Task, draft: Draft, parts: Mapping[str, Fraction]) -> dict[str, _WeightRead]:
    """Distinct weights that a task reads; of control flow in one step those of its bodies too."""
    read: dict[str, int] = {}
    for name in dict.fromkeys(task.inputs):
        storage = draft.storage(name)
        if storage in draft.weights:
            nbytes = read.get(storage, 0) + _part(draft.weights[storage], parts.get(name))
            read[storage] = min(nbytes, draft.weights[storage])
    found = {name: _WeightRead(stored_bytes=draft.weights[name], read_bytes=nbytes) for name, nbytes in read.items()}
    block = draft.blocks.get(task.lead.name)
    inner = {} if block is None else dict(block.weights)
    for op in task.members:
        if nbytes := attribute_bytes(op):
            inner[f"{op.name}/attributes"] = nbytes
    for name, nbytes in inner.items():
        found[name] = _WeightRead(stored_bytes=nbytes, read_bytes=nbytes)
    return found


def _part(nbytes: int, share: Fraction | None) -> int:
    """A share of so many bytes, rounded up; all of them if no share is given."""
    return nbytes if share is None else -(-nbytes * share.numerator // share.denominator)


def _body_workspace(task: Task, draft: Draft, target: Target) -> tuple[Workspace, ...]:
    block = draft.blocks.get(task.lead.name)
    nbytes = 0 if block is None else align(block.workspace_bytes, target.alignment_bytes)
    return (Workspace(purpose="body", size_bytes=nbytes, first=Phase.READ, last=Phase.WRITE),) if nbytes else ()


def _written_bytes(task: Task, written: Iterable[Buffer], draft: Draft) -> int:
    """Payload written by a task: of a stack of slices only the new one."""
    if is_one_of(task.lead, STACKS):
        return draft.graph.tensors[task.inputs[-1]].nbytes if task.inputs else 0
    return sum(buffer.payload_bytes for buffer in written)


def _read_bytes(operands: Iterable[tuple[str, Buffer]], parts: Mapping[str, Fraction], draft: Draft) -> int:
    """Payload of the distinct tensors read, weights left out, no buffer counted for more than it holds."""
    by_buffer: dict[int, int] = {}
    for name, buffer in dict(operands).items():
        if buffer.kind is not BufferKind.WEIGHT:
            whole = buffer.payload_bytes if name == buffer.name else draft.graph.tensors[name].nbytes
            nbytes = by_buffer.get(buffer.index, 0) + _part(whole, parts.get(name))
            by_buffer[buffer.index] = min(nbytes, buffer.payload_bytes)
    return sum(by_buffer.values())


def _task_macs(task: Task, draft: Draft) -> MacCount:
    if (block := draft.blocks.get(task.lead.name)) is not None:
        return MacCount(macs=block.macs, uncosted=block.uncosted)
    counts = [count_macs(op, draft.graph) for op in task.members]
    if len(counts) == 1:
        return counts[0]
    return MacCount(macs=sum(c.macs for c in counts), uncosted=sum(c.uncosted for c in counts))


def _mac_dtype(task: Task, draft: Draft, options: LoweringOptions) -> str:
    """Element type of the first input; of control flow in one step that of the first that holds numbers to multiply."""
    types = (draft.graph.tensors[name].dtype for name in (*task.inputs, *task.outputs))
    return next((d for d in types if is_float(d) or task.lead.name not in draft.blocks), options.act_dtype or "float32")


def _assumptions(draft: Draft, counts: Iterable[MacCount]) -> tuple[Assumption, ...]:
    """Those of the graph and those of the costs, one entry a text."""
    total: Counter[str] = Counter()
    for assumption in draft.graph.assumptions:
        total[assumption.what] += assumption.count
    for count in counts:
        total[UNCOSTED] += count.uncosted
    members = [op for task in draft.tasks for op in task.members]
    total.update(text for op in members for text in stated_assumptions(op))
    total.update(text for op in members if op.name in draft.blocks for text in draft.blocks[op.name].stated)
    return tuple(Assumption(what=what, count=count) for what, count in total.items() if count > 0)
