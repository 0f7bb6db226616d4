"""Loops of operators that read each element once: elementwise ones, copies into other places, transposes, look-ups."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from spillprof.ir.graph import Operator
from spillprof.ir.loop_nest import Window
from spillprof.lowering.channels import holds_channels_last
from spillprof.lowering.loops.loop_map import LoopMap, Unmapped, Windows, aligned, along, fixed, uncut
from spillprof.lowering.operators.facts import OperandShapes, TensorShape

_PAIRED = ("RotaryEmbedding",)


def elementwise_loops(o: OperandShapes) -> LoopMap:
    """Each axis of the output. Broadcast operands depend on some of them."""
    shape, op_type = o.output(), o.op.op_type
    rank = len(shape)
    paired = op_type in _PAIRED  # elements of the last axis are computed two by two, from tables
    whole: Sequence[int] = (rank - 1,) if paired else ()
    if op_type == "BatchNormalization" and any(map(o.has_output, range(1, len(o.op.outputs)))):
        whole = [i for i in range(rank) if i != parameter_axis(o.op, rank)]  # training: it needs the batch's mean
    loops = LoopMap()
    loops.two_passes = op_type == "BatchNormalization"
    result = loops.dimensions(shape, whole=whole)
    for index in range(len(o.op.outputs)):
        if o.has_output(index):
            written = pointwise_windows(o.op, index, o.output(index), shape, result)
            if prod(window.size for window in written if window.axis is not None) != prod(o.output(index)):
                raise Unmapped(op_type)
            loops.write(index, *written)
    for index in range(len(o.op.inputs)):
        if o.has_input(index) and not (paired and index > 0):
            loops.read(index, *pointwise_windows(o.op, index, o.input(index), shape, result))
    first = loops.inputs.get(0, ())
    if any(window.size > 1 and window.axis is None for window in first):
        raise Unmapped(op_type)
    return loops


def pointwise_windows(op: Operator, index: int, shape: TensorShape, result: TensorShape, windows: Windows) -> Windows:
    """Windows of an operand of an elementwise operator, from those of its result.

    Parameters of a normalisation lie on its channels, those of a quantisation on its ``axis``, one for each position
    or for each block of positions; all other operands are broadcast.
    """
    axis = parameter_axis(op, len(result))
    if index == 0 or axis is None or prod(shape) == 1:
        return aligned(shape, result, windows)
    return scale_windows(shape, result, windows, axis)


def parameter_axis(op: Operator, rank: int) -> int | None:
    """The axis of an elementwise operator's image that its other operands lie on; None where they are broadcast."""
    if op.op_type == "BatchNormalization":
        return rank - 1 if holds_channels_last(op) else min(1, rank - 1)
    if op.op_type in ("QuantizeLinear", "DequantizeLinear"):
        axis = op.attributes.get("axis", 1)
        return axis % rank if isinstance(axis, int) and -rank <= axis < rank else None
    return None


def scale_windows(shape: TensorShape, result: TensorShape, windows: Windows, axis: int) -> Windows:
    """Windows of one parameter for each position of an axis, or for each block of positions."""
    of_result = along(result, windows)
    if len(shape) == 1:
        return of_result[axis] if shape[0] == result[axis] else uncut(shape)
    if len(shape) != len(result):
        return uncut(shape)
    found: list[Window] = []
    for i, size in enumerate(shape):
        if size == result[i] > 1:
            found += of_result[i]
        elif i == axis and len(of_result[i]) == 1 and result[i] % max(size, 1) == 0:
            found.append(_by_block(of_result[i][0], size))
        else:
            found.append(Window(size=size))
    return tuple(found)


def _by_block(window: Window, blocks: int) -> Window:
    """The window of one value for each block of a dimension."""
    is_plain = replace(window, size=1, axis=None) == Window(size=1)
    if window.axis is None or blocks <= 1 or not is_plain:
        return Window(size=blocks)
    return Window(size=blocks, axis=window.axis, per=window.size // blocks)


def concatenation_loops(o: OperandShapes) -> LoopMap:
    """Each axis of the larger side. An operand is a window on one of them, and touched only by tiles that reach it."""
    op = o.op
    match op.op_type:
        case "Concat" | "QLinearConcat" | "FeatureVectorizer":
            first, apart = (2, 3) if op.op_type == "QLinearConcat" else (0, 1)
            blocks = [i for i in range(first, len(op.inputs), apart) if o.has_input(i)]
            shape = o.output()
            axis = fixed(o.integer("axis", 1), len(shape))
            loops = LoopMap()
            loops.write(0, *loops.dimensions(shape))
            shapes = [o.input(i) for i in blocks]
            for index, windows in zip(blocks, _blocks(loops.outputs[0], axis, shapes), strict=True):
                loops.read(index, *windows)
            return loops
        case "Split":
            loops = LoopMap()
            loops.read(0, *loops.dimensions(o.input(0)))
            axis = fixed(o.integer("axis", 0), len(o.input(0)))
            parts = [i for i in range(len(op.outputs)) if o.has_output(i)]
            shapes = [o.output(i) for i in parts]
            for index, windows in zip(parts, _blocks(loops.inputs[0], axis, shapes), strict=True):
                loops.write(index, *windows)
            return loops
        case "Slice":
            return _rows_read(o, o.output())
        case "Tile":
            return _tile_loops(o)
        case _:
            return _padded_loops(o)


def _blocks(windows: Windows, axis: int, shapes: Sequence[TensorShape]) -> list[Windows]:
    """Windows of tensors side by side along an axis of a whole."""
    found, start = [], 0
    for shape in shapes:
        if len(shape) != len(windows) or any(
            size != window.size for i, (size, window) in enumerate(zip(shape, windows, strict=True)) if i != axis
        ):
            raise Unmapped(shape)
        block = Window(size=shape[axis], axis=windows[axis].axis, offset=-start)
        found.append((*windows[:axis], block, *windows[axis + 1 :]))
        start += shape[axis]
    if start != windows[axis].size:
        raise Unmapped(shapes)
    return found


def _rows_read(o: OperandShapes, shape: TensorShape) -> LoopMap:
    """Of the first input, one element for each of the output: which ones does not matter."""
    loops = LoopMap()
    result = loops.dimensions(shape)
    loops.write(0, *result)
    loops.read_part(0, *result)
    return loops


def _tile_loops(o: OperandShapes) -> LoopMap:
    """An axis for each repeated dimension, and one for its repetitions, on which the input does not depend."""
    before, after = o.input(0), o.output()
    if len(before) != len(after):
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    written: list[Window] = []
    read: list[Window] = []
    for i, (size, out) in enumerate(zip(before, after, strict=True)):
        if not size or out % size:
            raise Unmapped(o.op.op_type)
        written.append(loops.dimension(f"repeats {i}", out // size))
        read.append(loops.dimension(f"axis {i}", size))
        written.append(read[-1])
    loops.read(0, *read)
    loops.write(0, *written)
    return loops


def _padded_loops(o: OperandShapes) -> LoopMap:
    """Pads are not in a Graph where they are an input. Sums over tiles do not depend on how they are shared between
    the two ends; they are taken to be halves.

    Reflected elements lie at most twice the padding away, repeated ones once.
    """
    before, after = o.input(0), o.output()
    if len(before) != len(after):
        raise Unmapped(o.op.op_type)
    mode = o.text("mode") or "constant"
    pads = o.op.attributes.get("pads", o.op.attributes.get("paddings"))
    loops = LoopMap()
    result = loops.dimensions(after)
    read = []
    for i, (size, out) in enumerate(zip(before, result, strict=True)):
        total = out.size - size
        start = (
            int(pads[i])
            if isinstance(pads, tuple) and len(pads) == 2 * len(before)
            else (abs(total) // 2) * (1 if total > 0 else -1)
        )
        offset, extent = -start, 1
        if total > 0 and mode == "edge":
            offset, extent = -total, total + 1
        elif total > 0 and mode == "reflect":
            offset, extent = -2 * total, 3 * total + 1
        is_far = total > 0 and mode == "wrap"
        read.append(Window(size=size, axis=None if is_far else out.axis, offset=offset, extent=extent))
    loops.read(0, *read)
    loops.write(0, *result)
    return loops


def transpose_loops(o: OperandShapes) -> LoopMap:
    """Each axis; input and output have them in different orders."""
    before, after = o.input(0), o.output()
    rank, op_type = len(before), o.op.op_type
    loops = LoopMap()
    if op_type in ("DepthToSpace", "SpaceToDepth"):
        return _blocks_of_space(o)
    perm = o.op.attributes.get("perm")
    order = tuple(range(rank))
    if op_type == "Transpose":
        order = tuple(map(int, perm)) if isinstance(perm, tuple) else order[::-1]
    elif holds_channels_last(o.op) and rank > 2:  # ReorderInput, ReorderOutput: channels come last on one side
        order = (0, *order[2:], 1) if op_type == "ReorderOutput" else (0, rank - 1, *order[1:-1])
    if sorted(order) != list(range(rank)) or len(after) != rank:
        raise Unmapped(op_type)
    result = loops.dimensions(after)
    read = dict(zip(order, result, strict=True))
    loops.read(0, *(replace(read[i], size=size) for i, size in enumerate(before)))
    loops.write(0, *result)
    return loops


def _blocks_of_space(o: OperandShapes) -> LoopMap:
    deep, flat = o.input(0), o.output()
    to_space = o.op.op_type == "DepthToSpace"
    if not to_space:
        deep, flat = flat, deep
    block = o.integer("blocksize", 1)
    batch, channels, height, width = deep
    if flat != (batch, channels // block**2, height * block, width * block):
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    n, c = loops.dimension("batch", batch), loops.dimension("channels", channels // block**2)
    h, w = loops.dimension("rows", height), loops.dimension("columns", width)
    down, right = loops.dimension("block rows", block), loops.dimension("block columns", block)
    by_channel = o.text("mode") == "CRD"
    blocked = (n, c, down, right, h, w) if by_channel else (n, down, right, c, h, w)
    plain = (n, c, h, down, w, right)
    loops.read(0, *(blocked if to_space else plain))
    loops.write(0, *(plain if to_space else blocked))
    return loops
