"""Loops of look-ups: rows of a table, chosen by indices."""

from math import prod

from spillprof.ir.loop_nest import Window
from spillprof.lowering.loops.loop_map import LoopMap, Unmapped, Windows, aligned, fixed, uncut
from spillprof.lowering.operators.facts import OperandShapes


def lookup_loops(o: OperandShapes) -> LoopMap:
    """Axes of the indices, and of a row.

    If fewer rows are chosen than the table has, each is read by itself: the table is a tensor of the output's shape,
    of which no element is read twice. Otherwise every tile may need every row.
    """
    match o.op.op_type:
        case "Gather":
            return _gather_loops(o, fixed(o.integer("axis", 0), len(o.input(0))))
        case "TorchEmbedding":
            return _gather_loops(o, 0)
        case "ArrayFeatureExtractor":
            return _features_loops(o)
        case "GatherElements":
            return _elements_loops(o)
        case "GatherND":
            return _slices_loops(o)
        case "GatherBlockQuantized":
            return _quantised_loops(o)
        case "EmbedLayerNormalization" | "QEmbedLayerNormalization":
            return _embedding_loops(o)
        case other:
            raise Unmapped(other)


def _read_table(loops: LoopMap, o: OperandShapes, rows: Windows) -> None:
    """The first input: one element for each of the output if those are fewer; otherwise ``rows``."""
    if prod(o.output()) < prod(o.input(0)):
        loops.read_part(0, *loops.outputs[0], role="table")
    else:
        loops.read(0, *rows, role="table")


def _gather_loops(o: OperandShapes, axis: int) -> LoopMap:
    table, indices = o.input(0), o.input(1)
    if o.output() != (*table[:axis], *indices, *table[axis + 1 :]):
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    result = loops.dimensions(o.output())
    inner = axis + len(indices)
    loops.write(0, *result)
    _read_table(loops, o, (*result[:axis], Window(size=table[axis]), *result[inner:]))
    loops.read(1, *result[axis:inner], role="indices")
    return loops


def _features_loops(o: OperandShapes) -> LoopMap:
    """Columns of a matrix."""
    result = o.output()
    loops = LoopMap()
    loops.write(0, *loops.dimensions(result))
    _read_table(loops, o, uncut(o.input(0)))
    if prod(o.input(1)) == result[-1]:
        loops.read(1, loops.outputs[0][-1], role="indices")
    return loops


def _elements_loops(o: OperandShapes) -> LoopMap:
    table, shape = o.input(0), o.output()
    axis = fixed(o.integer("axis", 0), len(table))
    loops = LoopMap()
    result = loops.dimensions(shape)
    loops.write(0, *result)
    rows = [
        Window(size=size, axis=None if i == axis else window.axis)
        for i, (size, window) in enumerate(zip(table, result, strict=True))
    ]
    _read_table(loops, o, tuple(rows))
    loops.read(1, *result, role="indices")
    return loops


def _slices_loops(o: OperandShapes) -> LoopMap:
    """GatherND: the last axis of the indices chooses a slice."""
    table, indices, shape = o.input(0), o.input(1), o.output()
    shared, chosen = o.integer("batch_dims", 0), indices[-1]
    if shape != (*indices[:-1], *table[shared + chosen :]):
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    result = loops.dimensions(shape)
    loops.write(0, *result)
    inner = len(indices) - 1
    _read_table(loops, o, (*result[:shared], *uncut(table[shared : shared + chosen]), *result[inner:]))
    loops.read(1, *result[:inner], Window(size=chosen), role="indices")
    return loops


def _quantised_loops(o: OperandShapes) -> LoopMap:
    """Rows of a table on its first axis, packed along the last; scales and zero points of the same rows."""
    table, indices, shape = o.input(0), o.input(1), o.output()
    if fixed(o.integer("gather_axis", 0), len(table)) != 0 or shape[: len(indices)] != indices:
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    result = loops.dimensions(shape)
    loops.write(0, *result)
    loops.read(1, *result[: len(indices)], role="indices")
    inner = result[len(indices) :]
    few = prod(indices) < table[0]
    for index, role in ((0, "table"), (2, "scales"), (3, "zero points")):
        if not o.has_input(index):
            continue
        packed = o.input(index)
        if len(packed) != len(table) or packed[0] != table[0]:
            raise Unmapped(o.op.op_type)
        row = [_packed(window, size) for window, size in zip(inner, packed[1:], strict=True)]
        if few:
            loops.read_part(index, *result[: len(indices)], *row, role=role)
        else:
            loops.read(index, Window(size=table[0]), *row, role=role)
    return loops


def _packed(window: Window, size: int) -> Window:
    """The window of a dimension of which one position stands for several of another."""
    if size == window.size or size <= 1 or window.size % size:
        return Window(size=size, axis=window.axis if size == window.size else None)
    return Window(size=size, axis=window.axis, per=window.size // size)


def _embedding_loops(o: OperandShapes) -> LoopMap:
    """Batch and sequence; the row of a token is normalised, so no tiling cuts it."""
    shape = o.output()
    loops = LoopMap()
    result = loops.dimensions(shape, whole=(len(shape) - 1,))
    for index in range(len(o.op.outputs)):
        if o.has_output(index):
            loops.write(index, *(result if o.output(index) == shape else uncut(o.output(index))))
    for index in range(len(o.op.inputs)):
        if not o.has_input(index):
            continue
        operand = o.input(index)
        if index in (2, 3, 4):
            if prod(shape) < prod(operand):
                loops.read_part(index, *result)
            else:
                loops.read(index, Window(size=operand[0]), result[-1])
        elif operand == shape[:-1]:
            loops.read(index, *result[:-1])
        else:
            loops.read(index, *aligned(operand, shape, result))
    return loops
