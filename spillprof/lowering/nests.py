"""Loop nests of a draft's tasks: the loops of the operator that leads a task, and all operands of the task on them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import NamedTuple

from spillprof.ir.dtypes import DTYPE_BITS
from spillprof.ir.graph import Graph, Operator
from spillprof.ir.loop_nest import LoopNest, NestOperand, Window
from spillprof.lowering.draft import Draft, LoweringTask
from spillprof.lowering.loops.copying import (
    concatenation_loops,
    elementwise_loops,
    parameter_axis,
    pointwise_windows,
    scale_windows,
    transpose_loops,
)
from spillprof.lowering.loops.lookups import lookup_loops
from spillprof.lowering.loops.loop_map import LoopMap, Windows, uncut
from spillprof.lowering.loops.matrix_loops import product_loops
from spillprof.lowering.loops.reducing import reduction_loops
from spillprof.lowering.loops.windowed import convolution_loops, pooling_loops
from spillprof.lowering.operand_reads import part_of
from spillprof.lowering.operators.classical import attribute_bytes
from spillprof.lowering.operators.facts import LoopKind, OperandShapes
from spillprof.lowering.operators.table import count_macs, facts_of, is_type

_RULES: Mapping[LoopKind, Callable[[OperandShapes], LoopMap]] = {
    LoopKind.CONVOLUTION: convolution_loops,
    LoopKind.PRODUCT: product_loops,
    LoopKind.POOLING: pooling_loops,
    LoopKind.ELEMENTWISE: elementwise_loops,
    LoopKind.CONCATENATION: concatenation_loops,
    LoopKind.REDUCTION: reduction_loops,
    LoopKind.LOOKUP: lookup_loops,
    LoopKind.TRANSPOSE: transpose_loops,
}
_WIDTHS = sorted({*DTYPE_BITS.values()})
_RULE_FAILS = (LookupError, ArithmeticError, ValueError, TypeError)
"""What a rule raises for operands that it does not foresee, among them ``Unmapped``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNest:
    """The loop nest of a task, and the stored tensor that each operand of it is, by position.

    Of a normalisation there is a second nest, ``in_two_passes``: the first pass collects statistics, the second
    normalises. Its axes may all be cut, and what lies along the axes that the first nest has whole is two operands,
    since it is read twice. Both count as on-chip at once, which is a tile too much; the statistics, a few numbers for
    each row that is normalised, are not counted.
    """

    nest: LoopNest
    storages: tuple[str, ...]
    in_two_passes: "TaskNest | None" = None


def loop_nests(draft: Draft) -> tuple[LoopNest | None, ...]:
    """The loop nest of each task; see ``task_nests``."""
    return tuple(None if found is None else found.nest for found in task_nests(draft))


def task_nests(draft: Draft) -> tuple[TaskNest | None, ...]:
    """The loop nest of each task. None for operators of no known loops, and where nothing is known to be cut.

    A fused task has the loops of its leader; what its other operators read besides are operands on the axes of the
    leader's result. A tensor that is read twice in the same way is one operand.
    """
    return tuple(_task_nest(task, draft) for task in draft.tasks)


class _Operand(NamedTuple):
    """A tensor on the loops of a task."""

    tensor: str
    role: str
    windows: Windows
    is_output: bool = False
    is_part: bool = False  # the windows span the part that is read
    bits: int | None = None  # of an element as it is stored; None: as its type says

    @property
    def elements(self) -> int:
        """Elements that are read or written."""
        return prod(window.size for window in self.windows)


def _task_nest(task: LoweringTask, draft: Draft) -> TaskNest | None:
    lead, graph = task.lead, draft.graph
    rule = _RULES.get(facts_of(lead).loop)
    if rule is None or lead.name in draft.control_steps or lead.captures or lead.holds:
        return None
    if any(graph.tensors[name].elements for name in (*task.inputs, *task.outputs)):
        return None
    given = [index for index, name in enumerate(lead.inputs) if name]
    if len(task.inputs) < len(given):
        return None  # a Dropout of which only the mask is read
    try:
        loops = rule(OperandShapes(op=lead, graph=graph))
        operands = [
            *_inputs_of_leader(task, graph, loops, given),
            *_other_inputs(task, draft, loops, len(given)),
            *_outputs(task, loops),
        ]
    except _RULE_FAILS:
        return None
    if not all(operand.is_part or operand.elements == _elements(operand.tensor, draft) for operand in operands):
        return None
    if any(axis.size == 0 for axis in loops.axes):  # nothing is computed
        loops = LoopMap()
        operands = [o._replace(windows=uncut([window.size for window in o.windows])) for o in operands]
    distinct: dict[object, _Operand] = {}
    for operand in operands:
        distinct.setdefault((draft.storage(operand.tensor), operand.windows, operand.is_output), operand)
    kept = [stored for operand in distinct.values() for stored in _as_stored(operand, draft)]
    kept += [
        _Operand(f"{op.name}/attributes", "parameters", uncut((nbytes,)), bits=8)
        for op in task.members
        if (nbytes := attribute_bytes(op))
    ]
    kept.sort(key=lambda operand: operand.is_output)
    found = TaskNest(
        nest=LoopNest(
            axes=tuple(loops.axes),
            operands=tuple(_nest_operands(kept, draft)),
            macs=sum(count_macs(op, graph).macs for op in task.members),
            whole=frozenset(loops.whole),
        ),
        storages=tuple(draft.storage(operand.tensor) for operand in kept),
    )
    return replace(found, in_two_passes=_in_two_passes(found)) if loops.two_passes and loops.whole else found


def _in_two_passes(found: TaskNest) -> TaskNest:
    nest = found.nest
    operands: list[tuple[NestOperand, str]] = []
    for operand, storage in zip(nest.operands, found.storages, strict=True):
        operands.append((operand, storage))
        if not operand.is_output and not operand.is_weight and not nest.whole.isdisjoint(operand.axes):
            operands.append((replace(operand, name=f"{operand.name}, second pass"), storage))
    return TaskNest(
        nest=replace(nest, operands=tuple(operand for operand, _ in operands), whole=frozenset()),
        storages=tuple(storage for _, storage in operands),
    )


def _elements(tensor: str, draft: Draft) -> int:
    return prod(draft.graph.tensors[tensor].shape)


def _as_stored(operand: _Operand, draft: Draft) -> Iterator[_Operand]:
    """The operand, and its scales where it is a weight that is stored together with them, in fewer bits."""
    stored = draft.weights.get(draft.storage(operand.tensor))
    elements = _elements(operand.tensor, draft)
    if stored is None or not elements or stored == draft.graph.tensors[operand.tensor].nbytes:
        yield operand
        return
    bits = max((width for width in _WIDTHS if elements * width <= stored * 8), default=0)
    part = part_of(stored, Fraction(operand.elements, elements)) if operand.is_part else stored
    yield operand._replace(bits=bits)
    if scales := part - -(-operand.elements * bits // 8):
        yield operand._replace(role=f"{operand.role} scales", windows=(_spread(scales, operand.windows),), bits=8)


def _spread(nbytes: int, windows: Windows) -> Window:
    """Bytes that lie evenly along the first dimension that divides them."""
    for window in windows:
        size = window.size
        if window.axis is not None and window == Window(size=size, axis=window.axis) and size > 1:
            if nbytes % size == 0:
                return replace(window, size=nbytes, stride=nbytes // size, extent=nbytes // size)
            if size % nbytes == 0:
                return replace(window, size=nbytes, per=size // nbytes)
    return Window(size=nbytes)


def _nest_operands(operands: Sequence[_Operand], draft: Draft) -> Iterator[NestOperand]:
    """The operands of a nest; roles that repeat are numbered."""
    seen: Counter[str] = Counter()
    for operand in operands:
        seen[operand.role] += 1
        times = seen[operand.role]
        tensor = draft.graph.tensors.get(operand.tensor)
        yield NestOperand(
            name=operand.role if times == 1 else f"{operand.role} ({times})",
            windows=operand.windows,
            element_bits=operand.bits or (0 if tensor is None else DTYPE_BITS.get(tensor.dtype, 0)),
            is_output=operand.is_output,
            is_weight=tensor is None or draft.is_weight(operand.tensor),
        )


def _inputs_of_leader(task: LoweringTask, graph: Graph, loops: LoopMap, given: Sequence[int]) -> Iterator[_Operand]:
    """Operands of the leader. ``given``: positions of the inputs that are present, in the order of ``task.inputs``."""
    for index, name in zip(given, task.inputs, strict=False):
        windows = loops.inputs.get(index, uncut(graph.tensors[task.lead.inputs[index]].shape))
        yield _Operand(name, loops.roles.get(index, f"input {index}"), windows, is_part=index in loops.parts)


def _outputs(task: LoweringTask, loops: LoopMap) -> Iterator[_Operand]:
    """Results, by name where the leader writes them, otherwise in its order: what follows keeps elements in order."""
    written = [index for index, name in enumerate(task.lead.outputs) if name]
    position = {task.lead.outputs[index]: index for index in written}
    for order, name in enumerate(task.outputs):
        index = position.get(name, written[order])
        yield _Operand(name, f"output {index}" if index else "output", loops.outputs[index], is_output=True)


def _other_inputs(task: LoweringTask, draft: Draft, loops: LoopMap, own: int) -> Iterator[_Operand]:
    """What operators beside the leader read: biases, scales and zero points."""
    others = task.inputs[own:]
    if not others:
        return
    found = _Members(task, draft.graph, loops)
    for name in others:
        role, windows = found.reads.get(name) or ("input", uncut(draft.graph.tensors[name].shape))
        yield _Operand(name, role, windows)


class _Members:
    """Windows of what the members of a task read, from the loops of its leader.

    Followers are elementwise: all their values have the windows of the leader's result. A DequantizeLinear that
    comes before a member has the windows of the tensor that it makes.
    """

    def __init__(self, task: LoweringTask, graph: Graph, loops: LoopMap) -> None:
        self._graph, self._result = graph, loops.outputs[0]
        self._values = {name: loops.outputs[index] for index, name in enumerate(task.lead.outputs) if name}
        self.reads: dict[str, tuple[str, Windows]] = {}  # role and windows, by tensor
        for index, name in enumerate(task.lead.inputs):
            if name:
                windows = loops.inputs.get(index, uncut(graph.tensors[name].shape))
                self.reads.setdefault(name, (loops.roles.get(index, f"input {index}"), windows))
        before = []
        for op in task.members:
            if is_type(op, "DequantizeLinear") and op.inputs[0] in task.inputs:
                before.append(op)
            elif op is not task.lead:
                self._follow(op)
        for op in before:
            self._dequantise(op)

    def _follow(self, op: Operator) -> None:
        windows = next((self._values[name] for name in op.inputs if name in self._values), self._result)
        result = self._graph.tensors[op.outputs[0]].shape
        for index, name in enumerate(op.inputs):
            if name and name not in self._values:
                shape = self._graph.tensors[name].shape
                self.reads.setdefault(name, (_role(op, index), pointwise_windows(op, index, shape, result, windows)))
        self._values |= dict.fromkeys(filter(None, op.outputs), windows)

    def _dequantise(self, op: Operator) -> None:
        tensors = self._graph.tensors
        made = op.outputs[0]
        role, windows = self.reads.get(made) or ("input", uncut(tensors[made].shape))
        result = tensors[made].shape
        axis = parameter_axis(op, len(result))
        self.reads.setdefault(op.inputs[0], (role, windows))
        for index, name in enumerate(op.inputs[1:], start=1):
            if name:
                shape = tensors[name].shape
                is_one = axis is None or prod(shape) == 1
                of_scale = uncut(shape) if is_one else scale_windows(shape, result, windows, axis or 0)
                self.reads.setdefault(name, (f"{role} {_role(op, index)}", of_scale))


def _role(op: Operator, index: int) -> str:
    if is_type(op, "QuantizeLinear", "DequantizeLinear") and index in (1, 2):
        return ("scale", "zero point")[index - 1]
    return f"{op.op_type} input {index}"
