"""Loops over tiles that a nest offers: axes that are cut as one, the sizes of their tiles, and orders of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import prod

import numpy as np
import numpy.typing as npt

from spillprof.ir.loop_nest import LoopNest
from spillprof.planning.tiling.cost import is_plain, loops_outside, operand_spans

MOST_LOOPS = 6
"""Loops that are cut; of more, the longest."""

MOST_TILE_SIZES = 160
"""Tile sizes of a loop."""

_MOST_SPANS = 1024  # of the sizes of one loop over all operands of which each position has not just its own iteration

TileFigures = npt.NDArray[np.float64]

TOTAL, LARGEST, TOTAL_NEW, LARGEST_NEW = range(4)
"""Rows of a loop's figures, for one operand."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TileLoop:
    """One or several axes that are cut together."""

    axes: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]  # tile sizes by axis, smallest block first; never the whole
    volumes: TileFigures  # iterations of each block
    trips: TileFigures  # blocks of each size
    figures: tuple[TileFigures | None, ...]  # by operand: its four rows, a column for each size; None: independent
    whole: tuple[float, ...]  # by operand: its elements along the loop where it is not cut
    overlapping: frozenset[int]  # operands whose tiles overlap
    free: bool  # all operands depend on it, and none overlaps

    def pick(self, columns: npt.NDArray[np.intp]) -> "TileLoop":
        """Only some of the sizes."""
        return TileLoop(
            axes=self.axes,
            tiles=tuple(self.tiles[column] for column in columns),
            volumes=self.volumes[columns],
            trips=self.trips[columns],
            figures=tuple(None if rows is None else rows[:, columns] for rows in self.figures),
            whole=self.whole,
            overlapping=self.overlapping,
            free=self.free,
        )

    @property
    def smallest(self) -> tuple[int, ...]:
        """The smallest size, and each that touches less of some operand: where padding clips tiles."""
        rows = [LARGEST, LARGEST_NEW, TOTAL_NEW]
        less = [(rows_of[rows] < rows_of[rows, :1]).any(axis=0) for rows_of in self.figures if rows_of is not None]
        return (0, *np.flatnonzero(np.logical_or.reduce(less)).tolist())

    def few(self) -> "TileLoop":
        """Tiles of 1, about 4, 16 and 64 iterations."""
        columns = np.searchsorted(self.volumes, (1, 4, 16, 64))
        return self.pick(np.unique(columns[columns < len(self.tiles)]))

    def at_most(self, count: int) -> "TileLoop":
        """Evenly thinned to so many sizes; the smallest and the largest stay."""
        return self if len(self.tiles) <= count else self.pick(_evenly(len(self.tiles), count))


def _evenly(count: int, most: int) -> npt.NDArray[np.intp]:
    """Places in a list of ``count`` entries: at most so many, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, max(most, 2))).round().astype(np.intp))


@lru_cache(maxsize=1024)
def tile_sizes(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Tiles of axes that are cut as one, smallest block first, without the whole.

    No other has both a smaller block and fewer tiles; equal ones leave inner axes whole.
    """
    front: list[tuple[int, ...]] = [()]
    volumes, trips = np.ones(1), np.ones(1)
    for size in sizes:
        own = sorted({-(-size // count) for count in _tile_counts(size)})
        counts = np.array([-(-size // tile) for tile in own], dtype=np.float64)
        block = np.multiply.outer(volumes, np.array(own, dtype=np.float64)).ravel()
        number = np.multiply.outer(trips, counts).ravel()
        inner = np.tile(np.array(own), len(front))
        order = np.lexsort((-inner, number, block))
        fewest = np.minimum.accumulate(number[order])
        kept = order[np.concatenate(([True], fewest[1:] < fewest[:-1]))]
        front = [(*front[place // len(own)], own[place % len(own)]) for place in kept]
        volumes, trips = block[kept], number[kept]
    return tuple(front[:-1])


def _tile_counts(size: int) -> Iterator[int]:
    """Numbers of tiles that give different tile sizes: all up to the root, and those that small tiles make."""
    root = int(size**0.5) + 1
    yield from range(1, min(root, size) + 1)
    yield from (-(-size // tile) for tile in range(1, min(root, size) + 1))


@lru_cache(maxsize=256)
def tile_loops(nest: LoopNest, held: frozenset[int]) -> tuple[TileLoop, ...]:
    """Loops of a nest, outermost first."""
    passing = [p for p in range(len(nest.operands)) if p not in held and nest.operands[p].axes]
    by_operands: dict[frozenset[int] | tuple[int], list[int]] = {}
    for position, axis in enumerate(nest.axes):
        users = frozenset(p for p in passing if position in nest.operands[p].axes)
        if axis.size > 1 and position not in nest.whole and users:
            plain = all(_is_plain(nest, p, position) for p in users)
            by_operands.setdefault(users if plain else (position,), []).append(position)
    longest = sorted(by_operands.values(), key=lambda axes: -prod(nest.axes[a].size for a in axes))[:MOST_LOOPS]
    return tuple(_loop(nest, tuple(axes), passing) for axes in sorted(longest))


def whole_elements(nest: LoopNest, operand: int, axis: int) -> int:
    """Positions of an operand that all iterations of an axis touch together."""
    size = nest.axes[axis].size
    return operand_spans(nest.operands[operand], axis, size, size).total


def _is_plain(nest: LoopNest, operand: int, axis: int) -> bool:
    windows = [w for w in nest.operands[operand].windows if w.axis == axis]
    return len(windows) == 1 and is_plain(windows[0]) and windows[0].size == nest.axes[axis].size


def _loop(nest: LoopNest, axes: tuple[int, ...], passing: list[int]) -> TileLoop:
    sizes = tuple(nest.axes[axis].size for axis in axes)
    figures: list[TileFigures | None] = [None] * len(nest.operands)
    overlapping = set()
    users = [p for p in passing if axes[0] in nest.operands[p].axes]
    others = sum(not _is_plain(nest, p, axes[0]) for p in users)
    every = tile_sizes(sizes)
    tiles = tuple(every[place] for place in _evenly(len(every), min(MOST_TILE_SIZES, _MOST_SPANS // max(others, 1))))
    volumes = np.array([prod(tile) for tile in tiles], dtype=np.float64)
    for p in users:
        if all(_is_plain(nest, p, axis) for axis in axes):
            total = np.full(len(tiles), float(prod(sizes)))
            figures[p] = np.stack((total, volumes, total, volumes))
        else:
            spans = [operand_spans(nest.operands[p], axes[0], sizes[0], tile[0]) for tile in tiles]
            rows = [(s.total, s.largest, s.total_new, s.largest_new) for s in spans]
            figures[p] = np.array(rows, dtype=np.float64).T
            if any(s.overlaps for s in spans):
                overlapping.add(p)
    trips = [prod(-(-size // t) for size, t in zip(sizes, tile, strict=True)) for tile in tiles]
    return TileLoop(
        axes=axes,
        tiles=tiles,
        volumes=volumes,
        trips=np.array(trips, dtype=np.float64),
        figures=tuple(figures),
        whole=tuple(
            float(prod(whole_elements(nest, p, axis) for axis in axes if axis in operand.axes))
            for p, operand in enumerate(nest.operands)
        ),
        overlapping=frozenset(overlapping),
        free=len(users) == len(passing) and not overlapping,
    )


# --- orders


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What an order of loops means to one operand."""

    outside: frozenset[int]  # loops that repeat its passes
    streams: bool  # an input that changes with the innermost loop
    cut: bool  # it depends on a loop
    line: int | None  # loop along which an input's overlap stays

    def no_worse(self, other: "Course") -> bool:
        """Whether it is as good as another in every respect."""
        return (
            self.outside <= other.outside
            and self.streams <= other.streams
            and (other.line is None or self.line == other.line)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """What an operand depends on."""

    is_output: bool
    loops: frozenset[int]
    overlapping: frozenset[int]

    def course(self, order: tuple[int, ...]) -> Course:
        """What an order means to it."""
        own = next((loop for loop in reversed(order) if loop in self.loops), None)
        return Course(
            outside=frozenset(loops_outside(self.loops, order)),
            streams=not self.is_output and own is not None and own == order[-1],
            cut=own is not None,
            line=own if own in self.overlapping and not self.is_output else None,
        )


@lru_cache(maxsize=1024)
def loop_orders(
    operands: tuple[Dependence, ...], cut: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], tuple[Course, ...]], ...]:
    """Orders of the loops that are cut, none of which is worse than another for every operand."""
    first: dict[tuple[Course, ...], tuple[int, ...]] = {}
    for order in permutations(reversed(cut)):  # of equal orders, the one that keeps tiles' inner dimensions long
        first.setdefault(tuple(operand.course(order) for operand in operands), order)
    return tuple(
        (order, courses)
        for courses, order in first.items()
        if not any(
            other != courses and all(a.no_worse(b) for a, b in zip(other, courses, strict=True)) for other in first
        )
    )
