"""All tile sizes of the loops in one order at once: what moves, and the footprint, as arrays over the sizes.

Figures are floats: exact below 2**53, which is what any nest of less than petabytes moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from spillprof.ir.loop_nest import LoopNest
from spillprof.planning.tiling.cost import TileBuffers
from spillprof.planning.tiling.loops import LARGEST, LARGEST_NEW, TOTAL, TOTAL_NEW, Course, Figures, TileLoop


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGrid:
    """One order of loops. Points differ in the tiles of all but the innermost loop, whose tile changes no traffic."""

    nest: LoopNest
    buffers: TileBuffers
    fixed: Mapping[int, float]  # by operand that is not held: its elements on axes that are not cut
    order: tuple[int, ...]  # numbers of the loops, outermost first
    loops: tuple[TileLoop, ...]  # in this order
    courses: tuple[Course, ...]  # by operand that is not held

    def improve(self, requests: list[Request]) -> None:
        """Replaces the points of requests that some point here serves better."""
        moved = self._moved()
        least = float(moved.min())
        footprints: dict[int, Figures] = {}
        for request in requests:
            if least >= request.score:
                continue
            inner = self._inner_column(request.inner_iterations)
            if inner not in footprints:
                footprints[inner] = self.footprint(inner)
            score = np.where(footprints[inner] <= request.limit_bytes, moved, inf)
            if request.tile_price_bytes:
                score = score + request.tile_price_bytes * float(self.loops[-1].trips[inner]) * self._outer_trips()
            best = float(score.min())
            if best < request.score:
                ties = np.flatnonzero(score == best)
                place = int(ties[np.broadcast_to(self._outer_trips(), score.shape).ravel()[ties].argmin()])
                request.score, request.point = best, self._point(place, inner)

    def smallest(self) -> tuple[float, GridPoint]:
        """The smallest footprint, and its point: the smallest tile of every loop."""
        elements = TileGrid(
            nest=self.nest,
            buffers=self.buffers,
            fixed=self.fixed,
            order=self.order,
            loops=tuple(loop.pick(np.array([0])) for loop in self.loops),
            courses=self.courses,
        )
        return float(elements.footprint(0).item()), self._point(0, 0)

    def grown(self, limit_bytes: int) -> "GridPoint | None":
        """Of the first size of all but the innermost loop: with the largest innermost tile that fits."""
        fitting = np.flatnonzero(self.footprint(None).ravel() <= limit_bytes)
        return self._point(0, int(fitting[-1])) if len(fitting) else None

    def footprint(self, inner: int | None) -> Figures:
        """Footprints, with one size of the innermost loop, or (None) with each, which is then the last dimension."""
        total: Figures = np.zeros((1,) * len(self.order))
        for (p, _), course in zip(self.fixed.items(), self.courses, strict=True):
            operand = self.nest.operands[p]
            bits = operand.element_bits
            twice = course.streams and self.buffers.double_buffered
            if operand.is_output:
                bits = self.buffers.accumulator_bits or bits
                twice = course.cut and self.buffers.double_buffer_outputs
            tile = self._aligned(self._elements(p, LARGEST, course.line, LARGEST, inner) * bits)
            if twice and course.line is not None:
                tile = tile + self._aligned(self._elements(p, LARGEST, course.line, LARGEST_NEW, inner) * bits)
            elif twice:
                tile = 2 * tile
            total = total + tile
        return total

    def _moved(self) -> Figures:
        """Bytes that move."""
        total: Figures = np.zeros([*(len(loop.tiles) for loop in self.loops[:-1]), 1])
        for (p, _), course in zip(self.fixed.items(), self.courses, strict=True):
            operand = self.nest.operands[p]
            elements = self._elements(p, TOTAL, course.line, TOTAL_NEW, 0)
            times: Figures = np.ones((1,) * len(self.order))
            for place, (number, loop) in enumerate(zip(self.order, self.loops, strict=True)):
                if number in course.outside:
                    times = times * self._along(place, loop.trips)
            own = np.ceil(elements * operand.element_bits / 8)
            if operand.is_output:
                partial = np.ceil(elements * (self.buffers.accumulator_bits or operand.element_bits) / 8)
                total = total + own + 2 * (times - 1) * partial
            else:
                total = total + times * own
        return total

    def _elements(self, p: int, row: int, line: int | None, line_row: int, inner: int | None) -> Figures:
        """Product of one row of an operand's figures over the loops; along its line, of another row."""
        result: Figures = np.full((1,) * len(self.order), self.fixed[p])
        for place, (number, loop) in enumerate(zip(self.order, self.loops, strict=True)):
            rows = loop.figures[p]
            if rows is not None:
                values = rows[line_row if number == line else row]
                if place == len(self.order) - 1 and inner is not None:
                    values = values[inner : inner + 1]
                result = result * self._along(place, values)
        return result

    def _along(self, place: int, values: Figures) -> Figures:
        return values.reshape((1,) * place + (-1,) + (1,) * (len(self.order) - 1 - place))

    def _aligned(self, bits: Figures) -> Figures:
        sizes = np.ceil(bits / 8)
        unit = self.buffers.alignment_bytes
        return sizes if unit == 1 else np.ceil(sizes / unit) * unit

    def _outer_trips(self) -> Figures:
        result: Figures = np.ones((1,) * len(self.order))
        for place, loop in enumerate(self.loops[:-1]):
            result = result * self._along(place, loop.trips)
        return result

    def _inner_column(self, iterations: int) -> int:
        """The smallest innermost tile of so many iterations, or the largest."""
        tiles = self.loops[-1].tiles
        return next((i for i, tile in enumerate(tiles) if prod(tile) >= iterations), len(tiles) - 1)

    def _point(self, place: int, inner: int) -> GridPoint:
        columns = np.unravel_index(place, tuple(len(loop.tiles) for loop in self.loops[:-1])) if self.loops[:-1] else ()
        return GridPoint(
            self.loops,
            (*map(int, columns), inner),
            frozenset(p for p, course in zip(self.fixed, self.courses, strict=True) if course.line is not None),
        )
