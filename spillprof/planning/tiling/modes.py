"""Modes of a nest: the tilings worth choosing from in a given memory.

The family of tilings that is searched, the same at every memory size:

- *Loops.* Axes longer than 1 that may be cut, if an operand that is not held depends on them. Axes that the same
  operands depend on, without overlap, stride or padding, join into one loop. Of more than ``MOST_LOOPS`` loops the
  shortest stay whole.
- *Sizes.* A loop cut into t tiles has the smallest size that gives t, ``ceil(size / t)``, for every t; a loop of
  several axes has those blocks of which no other has both fewer positions and fewer tiles. The list of a loop is
  thinned evenly to ``MOST_TILE_SIZES`` (to fewer where it joins or splits dozens of operands), and the longest lists
  where they make more than ``GRID_POINTS`` points. A loop that all operands depend on, without overlap, moves the same
  bytes whatever its tile: if others are cut beside it, its tiles have 1 (or about 4, 16, 64) iterations.
- *Orders.* All, without those that are for each operand no better than another: in repeated passes, in tiles kept
  twice, in line buffers. Among them: the output stationary, each input stationary, stripes of rows with line buffers,
  blocks of columns and channels, partial sums.
- *Line buffers* wherever an input's tiles overlap along the innermost of its loops: it moves less in no more room.

The size of the innermost loop adds nothing to what moves. So the search gives it the smallest (and larger ones that
padding clips to less), finds exactly what moves the fewest bytes in the family, which therefore never grows with the
memory, and then takes the largest size that fits, for fewer tiles. Not searched: loops that no operand depends on, and
sizes chosen so that padding lies in the largest tile.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf, prod

import numpy as np

from spillprof.ir.errors import CapacityError
from spillprof.ir.loop_nest import LoopNest, Tiling
from spillprof.ir.units import format_size
from spillprof.planning.tiling.cost import TileBuffers, TilingCost, fixed_elements, tiling_cost
from spillprof.planning.tiling.grid import GridPoint, Request, TileGrid
from spillprof.planning.tiling.loops import Course, Dependence, TileLoop, loop_orders, tile_loops, whole_elements

MOST_MODES = 20
"""Modes of a nest in one memory."""

GRID_POINTS = 16384
"""Combinations of tile sizes of the loops outside of the innermost one."""

_HALVINGS = 6  # of the memory: the fewest bytes within each are a mode
_FEW_HALVINGS = (2, 4)
_INNER_ITERATIONS = (4, 32, 256)  # of the innermost loop's tile, for modes of fewer tiles
_TILE_PRICE_BYTES = 4096  # that such a mode moves to have a tile less: 100 ns at 40 GB/s


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One way to run a nest, and what it needs and moves."""

    tiling: Tiling
    cost: TilingCost


@lru_cache(maxsize=4096)
def modes(
    nest: LoopNest, sram_bytes: int, buffers: TileBuffers, held: frozenset[int] = frozenset(), *, few: bool = False
) -> tuple[Mode, ...]:
    """Tilings whose footprint fits, fewest bytes first; none is worse than another in footprint, bytes and tiles.

    ``few``: about a third of them, in a third of the time.
    At most ``MOST_MODES``: the fewest bytes of the family within the memory, and within halves of it, quarters, ...;
    those with deeper tiles, and so fewer; the smallest footprint. Empty if no tile fits.
    """
    search = _Search(nest, buffers, held)
    uncut = search.mode(GridPoint())
    top = min(sram_bytes, uncut.cost.footprint_bytes)
    requests = [
        Request(limit_bytes=sram_bytes),
        *(Request(limit_bytes=top >> halvings) for halvings in (_FEW_HALVINGS if few else range(1, _HALVINGS + 1))),
        *(
            Request(limit_bytes=sram_bytes, inner_iterations=least, tile_price_bytes=_TILE_PRICE_BYTES)
            for least in (_INNER_ITERATIONS[1:2] if few else _INNER_ITERATIONS)
        ),
    ]
    found = [uncut, search.mode(search.run(requests))]
    for request in requests:
        if request.point is not None:
            found.append(search.mode(search.grown(request.point, request.limit_bytes)))
            if not request.tile_price_bytes and found[-1].cost.moved_bytes > request.score:  # it skips less
                found.append(search.mode(request.point))
    return _not_worse([mode for mode in found if mode.cost.footprint_bytes <= sram_bytes])


def modes_or_error(name: str, nest: LoopNest, sram_bytes: int, buffers: TileBuffers) -> tuple[Mode, ...]:
    """As ``modes`` of the operator of that name. ``CapacityError`` if not even its smallest tiles fit."""
    found = modes(nest, sram_bytes, buffers)
    if found:
        return found
    smallest = smallest_mode(nest, buffers)
    tile = ", ".join(
        f"{axis.name} {size}" for axis, size in zip(nest.axes, smallest.tiling.tile, strict=True) if axis.size > 1
    )
    least = smallest.cost.footprint_bytes
    raise CapacityError(
        f"operator '{name}' does not fit into {format_size(sram_bytes)} of SRAM, however it is tiled",
        where=(f"its smallest tile ({tile or 'one element'}) needs {format_size(least)}",),
        hint=f"the smallest SRAM for it is {least} bytes",
    )


def smallest_mode(nest: LoopNest, buffers: TileBuffers, held: frozenset[int] = frozenset()) -> Mode:
    """The mode of the smallest footprint in the family."""
    search = _Search(nest, buffers, held)
    found = (search.mode(GridPoint()), search.mode(search.run([])))
    return min(found, key=lambda mode: (mode.cost.footprint_bytes, mode.cost.moved_bytes))


class _Search:
    """Search of one nest's family."""

    def __init__(self, nest: LoopNest, buffers: TileBuffers, held: frozenset[int]) -> None:
        self._nest, self._buffers, self._held = nest, buffers, held
        self._loops = tile_loops(nest, held)
        cut = {axis for loop in self._loops for axis in loop.axes}
        self._fixed = {
            p: float(fixed_elements(operand) * prod(whole_elements(nest, p, axis) for axis in operand.axes - cut))
            for p, operand in enumerate(nest.operands)
            if p not in held
        }
        self._dependences = tuple(
            Dependence(
                is_output=nest.operands[p].is_output,
                loops=frozenset(i for i, loop in enumerate(self._loops) if loop.figures[p] is not None),
                overlapping=frozenset(i for i, loop in enumerate(self._loops) if p in loop.overlapping),
            )
            for p in self._fixed
        )

    def run(self, requests: list[Request]) -> GridPoint:
        """Serves the requests from all grids; gives the point of the smallest footprint among them."""
        least, smallest = inf, GridPoint()
        for grid in self._grids():
            footprint, point = grid.improve(requests)
            if footprint < least:
                least, smallest = footprint, point
        return smallest

    def grown(self, point: GridPoint, limit_bytes: int) -> GridPoint:
        """With the largest tile of the innermost loop that fits."""
        numbers = tuple(next(i for i, own in enumerate(self._loops) if own.axes == loop.axes) for loop in point.loops)
        outer = (
            loop.pick(np.array([column])) for loop, column in zip(point.loops[:-1], point.columns[:-1], strict=True)
        )
        courses = tuple(dependence.course(numbers) for dependence in self._dependences)
        grid = self._grid(numbers, (*outer, self._loops[numbers[-1]]), courses)
        return grid.grown(limit_bytes) or point

    def mode(self, point: GridPoint) -> Mode:
        """The tiling at a point, counted."""
        tile = [axis.size for axis in self._nest.axes]
        for loop, column in zip(point.loops, point.columns, strict=True):
            for axis, size in zip(loop.axes, loop.tiles[column], strict=True):
                tile[axis] = size
        tiling = Tiling(
            tile=tuple(tile),
            order=tuple(a for loop in point.loops for a in loop.axes if tile[a] < self._nest.axes[a].size),
            held=self._held,
            line_buffered=point.line_buffered,
        )
        return Mode(tiling=tiling, cost=tiling_cost(self._nest, tiling, self._buffers))

    def _grids(self) -> Iterator[TileGrid]:
        for count in range(1, len(self._loops) + 1):
            for cut in combinations(range(len(self._loops)), count):
                loops = self._thinned(cut)
                for order, courses in loop_orders(self._dependences, cut):
                    yield self._grid(order, tuple(loops[number] for number in order), courses)

    def _grid(self, order: tuple[int, ...], loops: tuple[TileLoop, ...], courses: tuple[Course, ...]) -> TileGrid:
        uncut = [loop for number, loop in enumerate(self._loops) if number not in order]
        fixed = {p: elements * prod(loop.whole[p] for loop in uncut) for p, elements in self._fixed.items()}
        return TileGrid(nest=self._nest, buffers=self._buffers, fixed=fixed, order=order, loops=loops, courses=courses)

    def _thinned(self, cut: tuple[int, ...]) -> dict[int, TileLoop]:
        """The loops with as many sizes as the grids of any order of them may have."""
        loops = {number: self._loops[number] for number in cut}
        if len(cut) > 1:
            loops = {number: loop.few() if loop.free else loop for number, loop in loops.items()}
        most = max(len(loop.tiles) for loop in loops.values())
        while len(cut) > 2 and prod(sorted(min(len(loop.tiles), most) for loop in loops.values())[1:]) > GRID_POINTS:
            most -= max(most // 16, 1)
        return {number: loop.at_most(most) for number, loop in loops.items()}


def _not_worse(found: list[Mode]) -> tuple[Mode, ...]:
    """Fewest bytes first, without those that are no better than another in anything."""
    kept: list[Mode] = []
    for mode in sorted(found, key=lambda m: (m.cost.moved_bytes, m.cost.tiles, m.cost.footprint_bytes)):
        if not any(
            k.cost.footprint_bytes <= mode.cost.footprint_bytes and k.cost.tiles <= mode.cost.tiles for k in kept
        ):
            kept.append(mode)
    return tuple(kept)
