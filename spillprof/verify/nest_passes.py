"""Recount of a tiling with many tiles: operand by operand, axis by axis, without a walk over all of them.

The tiles of an operand are products of spans along its axes, one span for each tile of an axis. Along the loops over
tiles of other axes that lie outside of the innermost loop of its own, all its tiles come again. ``nest`` walks the
tiles one by one, and a property test compares both.
"""

from itertools import pairwise
from math import prod

from spillprof.ir.loop_nest import LoopNest, NestOperand, Tiling, Window
from spillprof.verify.nest import NestCount

_Spans = tuple[tuple[int, int], ...]  # positions [first, end) of each window of one axis, for one tile


def recount_by_passes(
    nest: LoopNest, tiling: Tiling, *, accumulator_bits: int = 0, alignment_bytes: int = 1
) -> NestCount:
    """Footprint and traffic of a legal tiling, as ``recount_nest`` counts them with double-buffered inputs."""
    room = 0
    read, written = [0] * len(nest.operands), [0] * len(nest.operands)
    for position, operand in enumerate(nest.operands):
        if position in tiling.held:
            continue
        own = [axis for axis in tiling.order if axis in operand.axes]
        last = own[-1] if own else None
        again = 1
        for axis in tiling.order:
            if axis == last:
                break
            again *= 1 if axis in operand.axes or last is None else _tiles(nest, tiling, axis)
        lines = last if position in tiling.line_buffered else None
        along = {axis: _tile_spans(nest, operand, axis, tiling) for axis in operand.axes}
        fixed = prod(window.size for window in operand.windows if window.axis is None)
        whole = fixed * prod(_new(spans) if axis == lines else sum(map(_size, spans)) for axis, spans in along.items())
        largest = fixed * prod(max(map(_size, spans)) for spans in along.values())
        wide = accumulator_bits or operand.element_bits
        if operand.is_output:
            partly = (again - 1) * -(-whole * wide // 8)
            read[position], written[position] = partly, partly + operand.bytes_of(whole)
            room += _rounded(-(-largest * wide // 8), alignment_bytes)
            continue
        read[position] = again * operand.bytes_of(whole)
        room += _rounded(operand.bytes_of(largest), alignment_bytes)
        if last is not None and last == tiling.order[-1]:
            if lines is not None:
                largest = fixed * prod(
                    max(_news(spans)[1:], default=0) if axis == lines else max(map(_size, spans))
                    for axis, spans in along.items()
                )
            room += _rounded(operand.bytes_of(largest), alignment_bytes)
    return NestCount(
        footprint_bytes=room,
        read_bytes=tuple(read),
        written_bytes=tuple(written),
        tiles=prod(_tiles(nest, tiling, axis) for axis in tiling.order),
    )


def _tiles(nest: LoopNest, tiling: Tiling, axis: int) -> int:
    return -(-nest.axes[axis].size // tiling.tile[axis])


def _tile_spans(nest: LoopNest, operand: NestOperand, axis: int, tiling: Tiling) -> list[_Spans]:
    """What each tile of an axis touches of the operand's windows on it."""
    windows: list[Window] = [window for window in operand.windows if window.axis == axis]
    size, tile = nest.axes[axis].size, tiling.tile[axis]
    return [tuple(window.span(start, min(start + tile, size)) for window in windows) for start in range(0, size, tile)]


def _size(spans: _Spans) -> int:
    return prod(end - first for first, end in spans)


def _news(tiles: list[_Spans]) -> list[int]:
    """Positions of each tile that the tile before lacks."""
    found = [_size(tiles[0])]
    for before, spans in pairwise(tiles):
        shared = prod(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(before, spans, strict=True))
        found.append(_size(spans) - shared)
    return found


def _new(tiles: list[_Spans]) -> int:
    return sum(_news(tiles))


def _rounded(nbytes: int, unit: int) -> int:
    return -(-nbytes // unit) * unit
