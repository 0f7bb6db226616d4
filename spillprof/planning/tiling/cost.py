"""Cost of a tiling of a loop nest: its footprint, its traffic by operand, its tiles.

**Passes.** Let p be the innermost loop over tiles that an input depends on. Its tiles are read again once for each
iteration of every loop that lies outside of p and that the input does not depend on. An input that depends on no loop
over tiles is read once, as its one tile stays.

**Bytes of a pass.** The sum of the input's tiles, each the product of its windows' spans. Where tiles overlap, the
overlap is read again; of a *line-buffered* input it stays on-chip along the innermost of its own loops over tiles, so
that along this loop each position is read once a pass. Element types narrower than a byte round up once a pass.

**Outputs.** The loops that an output does not depend on add up to it. Those inside of its p accumulate in its tile,
on-chip. With R iterations of those outside of p, each tile is written R times and read R - 1 times: R - 1 times each
way as partial sums, at last as the output.

**Footprint.** The sum of the largest tile of each operand that is not held. Tiles of inputs that change with the
innermost loop are there twice, the next one being read meanwhile; of a line-buffered input the next tile is only what
the last one lacks (the first tile of a new row of tiles is not read ahead). Tiles that stay over the innermost loop are
there once, and so are outputs, unless ``TileBuffers.double_buffer_outputs``: the last tile drains before the next one
begins. Held operands are buffers of their own: neither their bytes nor their transfers are counted here.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod

from spillprof.ir.loop_nest import LoopNest, NestOperand, Tiling, Window
from spillprof.ir.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class TileBuffers:
    """How the tiles of a nest lie in SRAM."""

    accumulator_bits: int = 0  # of output tiles and partial sums; 0: outputs have their own width everywhere
    double_buffered: bool = True  # inputs: the next tile is read while the step computes on this one
    double_buffer_outputs: bool = False  # outputs: a tile drains while the next one is computed
    alignment_bytes: int = 1  # to which the size of each tile rounds up

    @classmethod
    def of(cls, target: Target, nest: LoopNest) -> "TileBuffers":
        """Those of a machine. Accumulators exist where the nest multiplies and the target keeps them in SRAM."""
        return cls(
            accumulator_bits=8 * target.accumulator_bytes_per_output if nest.macs else 0,
            alignment_bytes=target.alignment_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TilingCost:
    """What a tiling needs and moves. Tuples are by operand; entries of held operands are 0."""

    footprint_bytes: int
    read_bytes: tuple[int, ...]  # of an output: its partial sums
    written_bytes: tuple[int, ...]
    passes: tuple[int, ...]  # how often an input is read, an output written
    tiles: int  # iterations of all loops over tiles together

    @property
    def moved_bytes(self) -> int:
        """Bytes between DRAM and SRAM, both ways."""
        return sum(self.read_bytes) + sum(self.written_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisSpans:
    """Positions of an operand that the tiles of one axis touch. *New* ones the tile before did not touch."""

    total: int  # sum over the tiles
    largest: int  # of a tile
    total_new: int
    largest_new: int  # of a tile after the first

    @property
    def overlaps(self) -> bool:
        """Whether some tiles touch the same positions."""
        return self.total_new < self.total


def tiling_cost(nest: LoopNest, tiling: Tiling, buffers: TileBuffers) -> TilingCost:
    """Counts a tiling. ``ValueError`` if it is none of this nest."""
    _check(nest, tiling)
    trips = tiling.trips(nest)
    footprint, read, written, passes = 0, [], [], []
    for position, operand in enumerate(nest.operands):
        if position in tiling.held:
            times, moved_in, moved_out = 0, 0, 0
        else:
            axes = operand.axes
            times = prod(trips[axis] for axis in loops_outside(axes, tiling.order))
            own = next((axis for axis in reversed(tiling.order) if axis in axes), None)
            line = own if position in tiling.line_buffered else None
            spans = {axis: operand_spans(operand, axis, nest.axes[axis].size, tiling.tile[axis]) for axis in axes}
            streams = own is not None and own == tiling.order[-1]
            footprint += _tile_bytes(operand, spans, own, line, streams, buffers)
            elements = prod(span.total_new if axis == line else span.total for axis, span in spans.items())
            elements *= fixed_elements(operand)
            if operand.is_output:
                partial = (times - 1) * _bytes(elements, buffers.accumulator_bits or operand.element_bits)
                moved_in, moved_out = partial, partial + operand.bytes_of(elements)
            else:
                moved_in, moved_out = times * operand.bytes_of(elements), 0
        read.append(moved_in)
        written.append(moved_out)
        passes.append(times)
    return TilingCost(
        footprint_bytes=footprint,
        read_bytes=tuple(read),
        written_bytes=tuple(written),
        passes=tuple(passes),
        tiles=prod(trips),
    )


def loops_outside(axes: frozenset[int], order: tuple[int, ...]) -> tuple[int, ...]:
    """Loops over tiles that repeat the passes of an operand of these axes."""
    own = [place for place, axis in enumerate(order) if axis in axes]
    return tuple(axis for axis in order[: own[-1]] if axis not in axes) if own else ()


def operand_spans(operand: NestOperand, axis: int, size: int, tile: int) -> AxisSpans:
    """Spans of an operand along one axis, in tiles of so many iterations."""
    windows = tuple([window for window in operand.windows if window.axis == axis])
    if len(windows) == 1 and is_plain(windows[0]):
        total = min(size, windows[0].size)
        return AxisSpans(
            total=total, largest=min(tile, total), total_new=total, largest_new=min(tile, max(total - tile, 0))
        )
    return _spans(windows, size, tile)


def is_plain(window: Window) -> bool:
    """Whether each iteration touches the position of its own number, as far as there are any."""
    return window.stride == window.per == window.extent == 1 and window.shift == window.offset == 0


@lru_cache(maxsize=65536)
def _spans(windows: tuple[Window, ...], size: int, tile: int) -> AxisSpans:
    """Of the windows on one axis: elements of their product."""
    trips = -(-size // tile)
    window = windows[0]
    if len(windows) == 1 and window.per == 1:
        return _single(window, size, tile, trips)
    boxes = [tuple(window.span(start, min(start + tile, size)) for window in windows) for start in range(0, size, tile)]
    whole = [prod(end - first for first, end in box) for box in boxes]
    common = [
        prod(max(min(a[1], b[1]) - max(a[0], b[0]), 0) for a, b in zip(*pair, strict=True)) for pair in pairwise(boxes)
    ]
    new = [elements - overlap for elements, overlap in zip(whole[1:], common, strict=True)]
    return AxisSpans(
        total=sum(whole), largest=max(whole), total_new=whole[0] + sum(new), largest_new=max(new, default=0)
    )


def _single(window: Window, size: int, tile: int, trips: int) -> AxisSpans:
    """As ``_spans``, of one window with ``per`` 1, without a walk over the tiles.

    All tiles but the last have the same length before the dimension clips them, so sums are arithmetic series, and
    lengths rise with the first tiles, stay, and fall with the last ones.
    """
    offset = window.offset + window.shift
    step = tile * window.stride
    reach = (tile - 1) * window.stride + window.extent

    def first(index: int) -> int:
        return min(max(index * step + offset, 0), window.size)

    def end(index: int) -> int:
        raw = index * step + reach if index < trips - 1 else (size - 1) * window.stride + window.extent
        return max(min(raw + offset, window.size), 0)

    def length(index: int) -> int:
        return end(index) - first(index)

    def new(index: int) -> int:
        return end(index) - max(first(index), end(index - 1))

    raw = (-offset, -reach - offset, window.size - offset, window.size - reach - offset)
    bends = [position // step for position in raw]  # where a tile's first or last position meets an end
    tiles = {i for bend in bends for i in range(bend - 1, bend + 3)} | {0, 1, trips - 2, trips - 1}
    inside = [i for i in tiles if 0 <= i < trips]
    total = (
        _clipped_sum(reach + offset, step, trips - 1, window.size)
        - _clipped_sum(offset, step, trips - 1, window.size)
        + length(trips - 1)
    )
    return AxisSpans(
        total=total,
        largest=max(map(length, inside)),
        total_new=end(trips - 1) - first(0) if window.extent >= window.stride else total,
        largest_new=max((new(i) for i in inside if i), default=0),
    )


def _clipped_sum(start: int, step: int, count: int, most: int) -> int:
    """Sum of ``start + i * step`` over i below ``count``, each clipped to [0, most]."""
    low = min(max(-(start // step), 0), count)  # from here on at least 0
    high = min(max(-((start - most) // step), low), count)  # from here on at least ``most``
    return (high - low) * start + step * (high - low) * (low + high - 1) // 2 + (count - high) * most


def fixed_elements(operand: NestOperand) -> int:
    """Positions of the dimensions that lie on no axis: every tile has all of them."""
    return prod(window.size for window in operand.windows if window.axis is None)


def _tile_bytes(
    operand: NestOperand,
    spans: dict[int, AxisSpans],
    own: int | None,
    line: int | None,
    streams: bool,
    buffers: TileBuffers,
) -> int:
    """Room of an operand's tiles."""
    if operand.is_output:
        bits = buffers.accumulator_bits or operand.element_bits
        twice = own is not None and buffers.double_buffer_outputs
    else:
        bits = operand.element_bits
        twice = streams and buffers.double_buffered
    fixed = fixed_elements(operand)
    tile = _aligned(_bytes(fixed * prod(span.largest for span in spans.values()), bits), buffers)
    if not twice:
        return tile
    if line is None:
        return 2 * tile
    new = prod(span.largest_new if axis == line else span.largest for axis, span in spans.items())
    return tile + _aligned(_bytes(fixed * new, bits), buffers)


def _bytes(elements: int, bits: int) -> int:
    return -(-elements * bits // 8)


def _aligned(size: int, buffers: TileBuffers) -> int:
    return -(-size // buffers.alignment_bytes) * buffers.alignment_bytes


def _check(nest: LoopNest, tiling: Tiling) -> None:
    if any(not 1 <= tile <= axis.size for axis, tile in zip(nest.axes, tiling.tile, strict=True)):
        raise ValueError(f"tiles {tiling.tile} outside of 1 to the size of their axes")
    cut = {position for position, axis in enumerate(nest.axes) if tiling.tile[position] < axis.size}
    if len(tiling.order) != len(cut) or set(tiling.order) != cut:
        raise ValueError(f"loops {tiling.order} are not the axes that are cut: {sorted(cut)}")
    if cut & nest.whole:
        raise ValueError(f"axes {sorted(cut & nest.whole)} cannot be cut")
    if any(not 0 <= p < len(nest.operands) for p in tiling.held | tiling.line_buffered):
        raise ValueError("held or line-buffered operands that the nest lacks")
