"""Loops of reductions, and of normalisations: operators that need a whole axis before they write an element."""

from collections.abc import Sequence

from spillprof.ir.loop_nest import Window
from spillprof.lowering.channels import holds_channels_last
from spillprof.lowering.loops.loop_map import LoopMap, Unmapped, fixed
from spillprof.lowering.operators.facts import OperandShapes

_POOLS = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "QLinearGlobalAveragePool")
_SUMS = ("QLinearReduceMean", "ArgMax", "ArgMin", "IsAllFinite")
_BY_LAST_AXIS = (
    "Normalizer", "SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
)  # fmt: skip
_BY_ONE_AXIS = ("LpNormalization", "QuickSoftmax")
_FROM_AXIS = ("LayerNormalization", "RMSNormalization", "QOrderedLayerNormalization")
_SOFTMAX = ("Softmax", "LogSoftmax", "Hardmax", "QLinearSoftmax")
_SCANS = ("CumSum", "CumProd")  # along an axis that a Graph does not name
_EVERYTHING = ("DynamicQuantizeLinear", *_SCANS)

_SOFTMAX_OF_ONE_AXIS = 13  # opset; before it, all axes from ``axis`` on


def reduction_loops(o: OperandShapes) -> LoopMap:
    """Each axis of the input. A reduction accumulates, so that its reduced axes may be cut.

    Normalisations need their axes whole, or read them twice: each element of the result depends on all others.
    """
    op_type, rank = o.op.op_type, len(o.input(0))
    if op_type in _POOLS or op_type in _SUMS or op_type.startswith("Reduce"):
        return _accumulating(o)
    if op_type == "TopK":
        return _largest(o)
    if op_type == "LRN":
        return _local_response(o)
    if op_type == "GroupNormalization":
        return _by_group(o, last=False)
    if op_type in ("GroupNorm", "SkipGroupNorm"):
        return _by_group(o, last=bool(o.integer("channels_last", 1)))
    if op_type == "InstanceNormalization":
        return _normalising(o, range(2, rank), parameters=1)
    if op_type in _BY_LAST_AXIS:
        return _normalising(o, (rank - 1,))
    if op_type in _BY_ONE_AXIS:
        return _normalising(o, (fixed(o.integer("axis", -1), rank),))
    if op_type in _FROM_AXIS:
        return _normalising(o, range(fixed(o.integer("axis", -1), rank), rank))
    if op_type == "BiasSoftmax":
        return _normalising(o, range(fixed(o.integer("axis", 1), rank), rank))
    if op_type in _SOFTMAX:
        return _softmax(o)
    if op_type == "MeanVarianceNormalization":
        axes = o.op.attributes.get("axes", (0, 2, 3))
        return _normalising(o, [fixed(int(a), rank) for a in axes] if isinstance(axes, tuple) else range(rank))
    if op_type in _EVERYTHING:
        return _normalising(o, range(rank))
    raise Unmapped(op_type)


def _softmax(o: OperandShapes) -> LoopMap:
    rank, opset = len(o.input(0)), o.integer("opset", o.graph.opset or _SOFTMAX_OF_ONE_AXIS)
    if opset >= _SOFTMAX_OF_ONE_AXIS:
        return _normalising(o, (fixed(o.integer("axis", -1), rank),))
    return _normalising(o, range(fixed(o.integer("axis", 1), rank), rank))


def _accumulating(o: OperandShapes) -> LoopMap:
    if sum(map(o.has_input, range(len(o.op.inputs)))) > 1 and o.op.op_type == "IsAllFinite":
        raise Unmapped(o.op.op_type)
    before, after = o.input(0), o.output()
    reduced = _reduced_axes(o)
    loops = LoopMap()
    read = [loops.dimension(f"axis {i}", size) for i, size in enumerate(before)]
    loops.read(0, *read)
    kept = [window for i, window in enumerate(read) if i not in reduced]
    stays = len(after) == len(before)
    written = [Window(size=1) if i in reduced else window for i, window in enumerate(read)] if stays else kept
    if tuple(window.size for window in written) != after:
        raise Unmapped(o.op.op_type)
    loops.write(0, *written)
    return loops


def _reduced_axes(o: OperandShapes) -> set[int]:
    """Reduced axes: from attributes, or by shapes. Among axes of one size, those are reduced that come last."""
    before, after = o.input(0), o.output()
    rank, attributes = len(before), o.op.attributes
    if o.op.op_type in _POOLS:
        return set(range(1, rank - 1) if holds_channels_last(o.op) else range(2, rank))
    if o.op.op_type in ("ArgMax", "ArgMin"):
        return {fixed(o.integer("axis", 0), rank)}
    axes = attributes.get("axes")
    if isinstance(axes, tuple) and axes:
        return {fixed(int(axis), rank) for axis in axes}
    if len(after) == rank:
        return {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
    found, position = set(), 0
    for i, size in enumerate(before):
        if position < len(after) and after[position] == size:
            position += 1
        else:
            found.add(i)
    return found


def _normalising(o: OperandShapes, whole: Sequence[int], parameters: int | None = None) -> LoopMap:
    """Axes of the input, those of ``whole`` uncut. ``parameters``: the axis that scale and bias lie on."""
    shape = o.input(0)
    if o.output() != shape:
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    loops.write(0, *loops.dimensions(shape, whole=whole))
    loops.two_passes = o.op.op_type not in _SCANS
    if parameters is not None:
        for index in range(1, len(o.op.inputs)):
            if o.has_input(index) and o.input(index) == (shape[parameters],):
                loops.read(index, loops.outputs[0][parameters])
    loops.align_others(o)
    return loops


def _by_group(o: OperandShapes, *, last: bool) -> LoopMap:
    """Batch and groups of channels; the channels of a group and all positions whole."""
    shape = o.input(0)
    groups = o.integer("num_groups", o.integer("groups", 1))
    channels = shape[-1] if last else shape[1]
    if o.output() != shape or channels % groups:
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    batch = loops.dimension("batch", shape[0])
    group = loops.dimension("groups", groups)
    channel = loops.dimension("channels of a group", channels // groups, whole=True)
    positions = shape[1:-1] if last else shape[2:]
    space = [loops.dimension(f"axis {i}", size, whole=True) for i, size in enumerate(positions, start=2 - last)]
    loops.two_passes = True
    result = (batch, *space, group, channel) if last else (batch, group, channel, *space)
    loops.write(0, *result)
    for index in range(1, len(o.op.inputs)):
        if o.has_input(index) and o.input(index) in ((channels,), (groups,)):
            loops.read(index, *((group, channel) if o.input(index) == (channels,) else (group,)))
    loops.align_others(o)
    return loops


def _largest(o: OperandShapes) -> LoopMap:
    """A row is sorted whole, and gives a row of another length."""
    before, after = o.input(0), o.output()
    axis = fixed(o.integer("axis", -1), len(before))
    loops = LoopMap()
    read = loops.dimensions(before, whole=(axis,))
    loops.read(0, *read)
    for index in range(len(o.op.outputs)):
        loops.write(index, *read[:axis], Window(size=after[axis]), *read[axis + 1 :])
    return loops


def _local_response(o: OperandShapes) -> LoopMap:
    """Each channel needs its neighbours."""
    shape, size = o.input(0), o.integer("size", 1)
    loops = LoopMap()
    result = loops.dimensions(shape)
    loops.write(0, *result)
    near = Window(size=shape[1], axis=result[1].axis, offset=-((size - 1) // 2), extent=size)
    loops.read(0, result[0], near, *result[2:])
    return loops
