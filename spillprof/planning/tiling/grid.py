"""All tile sizes of the loops in one order at once: what moves, and the footprint, as arrays over the sizes.

TileFigures are floats: exact below 2**53, which is what any nest of less than petabytes moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from spillprof.ir.loop_nest import LoopNest
from spillprof.planning.tiling.cost import TileBuffers
from spillprof.planning.tiling.loops import LARGEST, LARGEST_NEW, TOTAL, TOTAL_NEW, Course, TileFigures, TileLoop


@dataclass(frozen=True, slots=True)
class GridPoint:
    """The loops that are cut, outermost first, and their tiles."""

    loops: tuple[TileLoop, ...] = ()
    columns: tuple[int, ...] = ()  # by loop
    line_buffered: frozenset[int] = frozenset()  # operands


@dataclass(slots=True, kw_only=True)
class Request:
    """Asks for the point that moves the least within a footprint; and the best one so far."""

    limit_bytes: int
    inner_iterations: int = 1  # of the innermost loop's tile, at least, where it is that long
    tile_price_bytes: int = 0
    score: float = inf
    point: GridPoint | None = None


_ONE: TileFigures = np.ones(1)


def _whole_units(sizes: TileFigures, unit: int) -> TileFigures:
    """Bytes rounded up to multiples of a unit."""
    return np.ceil(sizes) if unit == 1 else np.ceil(sizes / unit) * unit


@dataclass(frozen=True, slots=True)
class _Room:
    """Footprints of a grid's points, but for the tile of the innermost loop."""

    fixed: TileFigures  # of operands that do not depend on the innermost loop
    parts: tuple[
        tuple[TileFigures, TileFigures, int], ...
    ]  # tile bytes, innermost loop's figures by its size, how often
    unit: int

    def footprint(self, inner: int | None) -> TileFigures:
        """Footprints, with one size of the innermost loop, or (None) with each, which is then the last dimension."""
        columns = slice(None) if inner is None else slice(inner, inner + 1)
        total = self.fixed
        for tile, figures, times in self.parts:
            total = total + times * _whole_units(tile * figures[columns], self.unit)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGrid:
    """One order of loops. Points differ in the tiles of all but the innermost loop, whose tile changes no traffic."""

    nest: LoopNest
    buffers: TileBuffers
    fixed: Mapping[int, float]  # by operand that is not held: its elements on axes that are not cut
    order: tuple[int, ...]  # numbers of the loops, outermost first
    loops: tuple[TileLoop, ...]  # in this order
    courses: tuple[Course, ...]  # by operand that is not held

    def improve(self, requests: list[Request]) -> tuple[float, GridPoint]:
        """Replaces the points of requests that some point here serves better; the smallest footprint, and its point."""
        outer = self._trips(frozenset(self.order[:-1]))
        fewest = float(outer.min())
        room = self._room()
        smallest, point = inf, None
        for base in self.loops[-1].smallest:
            moved = self._moved(base)
            least = float(moved.min())
            footprints = {base: room.footprint(base)}
            lowest = float(footprints[base].min())
            if lowest < smallest:
                smallest, point = lowest, self._point(int(footprints[base].argmin()), base)
            for request in requests:
                inner = max(self._inner_column(request.inner_iterations), base)
                price = request.tile_price_bytes * float(self.loops[-1].trips[inner])
                if least + price * fewest >= request.score or lowest > request.limit_bytes:
                    continue
                if inner not in footprints:
                    footprints[inner] = room.footprint(inner)
                fits = footprints[inner] <= request.limit_bytes
                score = np.where(fits, moved + price * outer if price else moved, inf)
                best = float(score.min())
                if best < request.score:
                    ties = np.flatnonzero(score == best)
                    place = int(ties[outer.ravel()[ties].argmin()])
                    request.score, request.point = best, self._point(place, inner)
        assert point is not None  # every loop has a size
        return smallest, point

    def grown(self, limit_bytes: int) -> "GridPoint | None":
        """Of the first size of all but the innermost loop: with the largest innermost tile that fits."""
        fitting = np.flatnonzero(self._room().footprint(None).ravel() <= limit_bytes)
        return self._point(0, int(fitting[-1])) if len(fitting) else None

    def _room(self) -> "_Room":
        """Tiles by operand, but for the innermost loop's share in them."""
        fixed: TileFigures = np.zeros(1)
        parts = []
        unit = self.buffers.alignment_bytes
        for p, course in zip(self.fixed, self.courses, strict=True):
            operand = self.nest.operands[p]
            bits = operand.element_bits
            times = 2 if course.streams and self.buffers.double_buffered else 1
            if operand.is_output:
                bits = self.buffers.accumulator_bits or bits
                times = 2 if course.cut and self.buffers.double_buffer_outputs else 1
            tile = self._elements(p, LARGEST, LARGEST, None) * (bits / 8)
            innermost = self.loops[-1].figures[p]
            if innermost is None:
                fixed = fixed + times * _whole_units(tile, unit)
            elif times == 2 and course.line is not None:
                parts += [(tile, innermost[LARGEST], 1), (tile, innermost[LARGEST_NEW], 1)]
            else:
                parts.append((tile, innermost[LARGEST], times))
        return _Room(fixed, tuple(parts), unit)

    def _moved(self, inner: int) -> TileFigures:
        """Bytes that move, with one size of the innermost loop."""
        total: TileFigures = np.zeros([*(len(loop.tiles) for loop in self.loops[:-1]), 1])
        for p, course in zip(self.fixed, self.courses, strict=True):
            operand = self.nest.operands[p]
            elements = self._elements(p, TOTAL, TOTAL_NEW, course.line)
            innermost = self.loops[-1].figures[p]
            if innermost is not None:
                elements = elements * innermost[TOTAL_NEW if course.line == self.order[-1] else TOTAL, inner]
            times = self._trips(course.outside)
            own = np.ceil(elements * (operand.element_bits / 8))
            if operand.is_output:
                partial = np.ceil(elements * ((self.buffers.accumulator_bits or operand.element_bits) / 8))
                total += own + 2 * (times - 1) * partial
            else:
                total += times * own
        return total

    def _elements(self, p: int, row: int, line_row: int, line: int | None) -> TileFigures:
        """Product of one row of an operand's figures over the outer loops; along its line, of another row."""
        result: TileFigures = np.array(self.fixed[p])
        for place, (number, loop) in enumerate(zip(self.order[:-1], self.loops, strict=False)):
            rows = loop.figures[p]
            if rows is not None:
                result = result * self._along(place, rows[line_row if number == line else row])
        return result

    def _trips(self, numbers: frozenset[int]) -> TileFigures:
        """Iterations of some outer loops together."""
        result = _ONE
        for place, (number, loop) in enumerate(zip(self.order, self.loops, strict=True)):
            if number in numbers:
                result = result * self._along(place, loop.trips)
        return result

    def _along(self, place: int, values: TileFigures) -> TileFigures:
        return values.reshape((-1,) + (1,) * (len(self.order) - 1 - place))

    def _inner_column(self, iterations: int) -> int:
        """The smallest innermost tile of so many iterations, or the largest."""
        volumes = self.loops[-1].volumes
        return min(int(volumes.searchsorted(iterations)), len(volumes) - 1)

    def _point(self, place: int, inner: int) -> GridPoint:
        columns = np.unravel_index(place, tuple(len(loop.tiles) for loop in self.loops[:-1])) if self.loops[:-1] else ()
        return GridPoint(
            self.loops,
            (*map(int, columns), inner),
            frozenset(p for p, course in zip(self.fixed, self.courses, strict=True) if course.line is not None),
        )
