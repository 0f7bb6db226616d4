"""Recount of a tiling: walks its tiles one by one and counts what enters, leaves and lies on-chip.

Time is proportional to the number of tiles. Nothing here is a closed formula: an operand's tile is a box of
positions, it is read when the loops come to it and it does not lie there yet, and an output's tile is finished when
all of its iterations have run. A tile that was left is gone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from spillprof.ir.loop_nest import LoopNest, NestOperand, Tiling

_Box = tuple[tuple[int, int], ...]  # positions [first, end) of each dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class NestCount:
    """What a tiling moves between DRAM and SRAM, and needs on-chip. Held operands count nothing."""

    footprint_bytes: int
    read_bytes: tuple[int, ...]  # by operand; of an output: partial sums that come back
    written_bytes: tuple[int, ...]  # by operand; of an output: partial sums that leave, and the result
    tiles: int  # iterations of all loops over tiles

    @property
    def moved_bytes(self) -> int:
        """Bytes of all operands, in both directions."""
        return sum(self.read_bytes) + sum(self.written_bytes)


def tiling_faults(nest: LoopNest, tiling: Tiling) -> tuple[str, ...]:
    """What makes the tiling meaningless for the nest; empty if it is one of its tilings."""
    return tuple(_faults(nest, tiling))


def _faults(nest: LoopNest, tiling: Tiling) -> Iterator[str]:
    if len(tiling.tile) != len(nest.axes):
        yield f"{len(tiling.tile)} tile sizes for {len(nest.axes)} axes"
        return
    for axis, size in zip(nest.axes, tiling.tile, strict=True):
        if not 1 <= size <= max(axis.size, 1):
            yield f"a tile of {size} iterations on axis '{axis.name}' of {axis.size}"
    cut = {a for a, size in enumerate(tiling.tile) if size < nest.axes[a].size}
    if sorted(tiling.order) != sorted(cut):
        yield "the loop order does not list each cut axis once"
    if cut & nest.whole:
        yield f"axis '{nest.axes[min(cut & nest.whole)].name}' may not be cut"
    inputs = {i for i, operand in enumerate(nest.operands) if not operand.is_output}
    if not tiling.held <= set(range(len(nest.operands))):
        yield "it holds operands that the nest does not have"
    if not tiling.line_buffered <= inputs - tiling.held:
        yield "only operands that are read in tiles can be line-buffered"


def recount_nest(
    nest: LoopNest,
    tiling: Tiling,
    *,
    accumulator_bits: int = 0,
    double_buffered: bool = True,
    double_buffer_outputs: bool = False,
    alignment_bytes: int = 1,
) -> NestCount:
    """Footprint and traffic of a tiling, by walking all of its tiles. ``ValueError`` if it is none of the nest.

    Where ``accumulator_bits`` is positive, tiles of outputs lie on-chip at this width, and so partial sums move. With
    ``double_buffered``, an input's tile that changes with the innermost loop has room for the next one beside it: for
    its new positions if it is line-buffered, for all of it otherwise. An output's tile has that room only with
    ``double_buffer_outputs``. The room of each tile rounds up to ``alignment_bytes``. Element types narrower than a
    byte round up once a pass: all first reads of an operand's tiles together, all second reads, and so on.
    """
    faults = tiling_faults(nest, tiling)
    if faults:
        raise ValueError("; ".join(faults))
    trips = tiling.trips(nest)
    passing = [i for i in range(len(nest.operands)) if i not in tiling.held]
    walks = {i: _walk_of(nest, tiling, i, accumulator_bits) for i in passing}
    for where in product(*(range(trips[axis]) for axis in tiling.order)):  # the last of them runs fastest
        at = dict(zip(tiling.order, where, strict=True))
        for walk in walks.values():
            walk.visit(at)
    for walk in walks.values():
        walk.leave()
    return NestCount(
        footprint_bytes=sum(
            -(-room // alignment_bytes) * alignment_bytes
            for walk in walks.values()
            for room in walk.rooms(double_buffered, double_buffer_outputs)
        ),
        read_bytes=tuple(walks[i].bytes_read() if i in walks else 0 for i in range(len(nest.operands))),
        written_bytes=tuple(walks[i].bytes_written() if i in walks else 0 for i in range(len(nest.operands))),
        tiles=prod(trips),
    )


@dataclass(slots=True, kw_only=True)
class _Walk:
    """One operand while the loops run: where its tiles lie, which of them is on-chip, what was read and written."""

    nest: LoopNest
    operand: NestOperand
    tile: Sequence[int]
    own: tuple[int, ...]  # cut axes that it depends on, outermost loop first
    innermost: bool  # whether it depends on the innermost loop
    line_buffered: bool
    bits: int  # width of an element on-chip, and of a partial sum
    iterations: int  # iterations of the loops over tiles in which each of its tiles is used
    here: tuple[int, ...] | None = None  # the tile that is on-chip
    done: Counter[tuple[int, ...]] = field(default_factory=Counter)  # iterations so far, by tile
    visits: Counter[tuple[int, ...]] = field(default_factory=Counter)  # how often each tile came on-chip
    read: Counter[int] = field(default_factory=Counter)  # elements, by visit of their tile: the first, the second ...
    partly_written: Counter[int] = field(default_factory=Counter)
    written: int = 0  # elements of finished tiles
    largest: int = 0  # elements of the largest tile
    largest_new: int = 0  # elements of the largest part that a line buffer does not hold

    def visit(self, at: dict[int, int]) -> None:
        """One iteration of the loops over tiles."""
        index = tuple(at[axis] for axis in self.own)
        if index != self.here:
            self.leave()
            self.enter(index)
        self.here = index
        self.done[index] += 1

    def enter(self, index: tuple[int, ...]) -> None:
        """The tile gets on-chip: an input's is read, an output's too if it was left with partial sums."""
        elements = _elements(self.box(index))
        self.largest = max(self.largest, elements)
        if self.line_buffered and index and index[-1] > 0:  # the tile before along its innermost loop lies there
            before = self.box((*index[:-1], index[-1] - 1))
            elements -= _elements(_overlap(self.box(index), before))
            self.largest_new = max(self.largest_new, elements)
        if not self.operand.is_output or self.visits[index] > 0:
            self.read[self.visits[index]] += elements
        self.visits[index] += 1

    def leave(self) -> None:
        """Another tile takes the place: an output's is written, whole or as partial sums."""
        if self.here is None or not self.operand.is_output:
            return
        elements = _elements(self.box(self.here))
        if self.done[self.here] == self.iterations:
            self.written += elements
        else:
            self.partly_written[self.visits[self.here]] += elements

    def box(self, index: tuple[int, ...]) -> _Box:
        """Positions of a tile, clipped to the operand."""
        ranges = {}
        for axis, trip in zip(self.own, index, strict=True):
            start = trip * self.tile[axis]
            ranges[axis] = (start, min(start + self.tile[axis], self.nest.axes[axis].size))
        spans = []
        for window in self.operand.windows:
            if window.axis is None:
                spans.append((0, window.size))
            else:
                spans.append(window.span(*ranges.get(window.axis, (0, self.nest.axes[window.axis].size))))
        return tuple(spans)

    def bytes_read(self) -> int:
        return sum(_bytes(elements, self.bits) for elements in self.read.values())

    def bytes_written(self) -> int:
        partly = sum(_bytes(elements, self.bits) for elements in self.partly_written.values())
        return partly + self.operand.bytes_of(self.written)

    def rooms(self, double_buffered: bool, double_buffer_outputs: bool) -> tuple[int, ...]:
        """Bytes of the tile, and of the next one beside it."""
        tile = _bytes(self.largest, self.bits)
        if self.operand.is_output:
            return (tile, tile) if double_buffer_outputs and len(self.done) > 1 else (tile,)
        if not double_buffered or not self.innermost:
            return (tile,)
        return (tile, _bytes(self.largest_new, self.bits) if self.line_buffered else tile)


def _walk_of(nest: LoopNest, tiling: Tiling, position: int, accumulator_bits: int) -> _Walk:
    operand, trips = nest.operands[position], tiling.trips(nest)
    own = tuple(axis for axis in tiling.order if axis in operand.axes)
    return _Walk(
        nest=nest,
        operand=operand,
        tile=tiling.tile,
        own=own,
        innermost=bool(own) and own[-1] == tiling.order[-1],
        line_buffered=position in tiling.line_buffered,
        bits=accumulator_bits or operand.element_bits if operand.is_output else operand.element_bits,
        iterations=prod(trips) // prod(trips[axis] for axis in own),
    )


def _elements(box: _Box) -> int:
    return prod(end - first for first, end in box)


def _overlap(one: _Box, other: _Box) -> _Box:
    pairs = zip(one, other, strict=True)
    return tuple((max(a[0], b[0]), max(min(a[1], b[1]), a[0], b[0])) for a, b in pairs)


def _bytes(elements: int, bits: int) -> int:
    return -(-elements * bits // 8)
