"""The layout with the lowest peak that a given effort finds.

The problem splits into pieces that share no time; a buffer that lives through a whole piece lies at its bottom without
loss, and the rest may split again. Each piece is laid out by every greedy method, and where the best is above the goal,
beam search looks for a layout at the goal, and at peaks on the way to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.layout_problem import Layout, LayoutProblem
from spillprof.ir.plan import COMPLETE
from spillprof.planning.budget import Budget
from spillprof.planning.free_list import Fit
from spillprof.planning.layout.beam import BeamSearch
from spillprof.planning.layout.greedy import LAYOUT_ORDERS, colored, in_order, in_time_order, peak, skyline
from spillprof.planning.layout.instance import Instance, instance

_MANY = 3_000  # buffers of a piece: larger ones only get the methods near O(n log n)
_MANY_SEARCHED = 1_500  # buffers of a piece: larger ones are not searched
_MOST_CELLS = 50_000  # of a piece that is searched: memory is in proportion to them
LAYOUT_WORK = 60_000_000
"""Work of a search for the lowest peak where no time is given."""
_WIDTH = 40  # of the beam
_ROUND = ("halfway",) * 3 + ("goal",) * 12
"""Peaks that successive runs of the beam aim at: half-way from the best peak known to the goal, or the goal itself.

The round restarts with each layout found, so the peak comes down by halves while that is easy.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutEffort:
    """When a search ends: after ``runs`` of the beam or ``work`` on each piece, or with the budget of all pieces."""

    runs: int | None = None
    work: int | None = None  # runs x buffers x cells of a piece
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of an instance, above ``base`` units of buffers that live throughout."""

    instance: Instance
    base: int


def lay_out(problem: LayoutProblem, capacity_bytes: int | None, effort: LayoutEffort) -> Layout:
    """Offsets of all buffers. Stops as soon as the peak is within the capacity; without one, at the lower bound."""
    whole = instance(problem)
    offsets = np.zeros(len(problem.buffers), dtype=np.int64)
    bound = whole.lower_bound
    goal = bound if capacity_bytes is None else max(bound, capacity_bytes // whole.unit_bytes)
    pieces = list(_pieces(whole, 0, offsets))
    found_by, highest, cut_off = "stacking", 0, False
    for piece in sorted(pieces, key=lambda piece: len(piece.instance)):
        target = max(goal, highest) - piece.base  # no lower than the highest piece so far
        name, placed = _best_greedy(piece.instance, target)
        if peak(piece.instance, placed) > target and _is_searched(piece.instance):
            lower = _Search(piece.instance, target, effort)
            improved = lower.than(placed)
            cut_off |= lower.cut_off
            name, placed = ("beam search", improved) if improved is not placed else (name, placed)
        if piece.base + peak(piece.instance, placed) > highest:
            highest, found_by = piece.base + peak(piece.instance, placed), name
        offsets[piece.instance.members] = piece.base + placed
    ends = offsets[whole.members] + whole.sizes
    return Layout(
        offsets=tuple((offsets * whole.unit_bytes).tolist()),
        peak_bytes=int(ends.max(initial=0)) * whole.unit_bytes,
        lower_bound_bytes=bound * whole.unit_bytes,
        found_by=found_by,
        search=effort.budget.end("--seconds") if cut_off else COMPLETE,
    )


def most_live_bytes(problem: LayoutProblem) -> int:
    """The most bytes live at once, sizes rounded up to the alignment: no layout has a lower peak."""
    whole = instance(problem)
    return whole.lower_bound * whole.unit_bytes


def greedy_peaks(problem: LayoutProblem) -> dict[str, int]:
    """The peak of each greedy method on the whole problem, bytes, by name. Empty if there is nothing to place."""
    whole = instance(problem)
    return {name: peak(whole, offsets) * whole.unit_bytes for name, offsets in _greedy_layouts(whole)}


def _pieces(whole: Instance, base: int, offsets: Ints) -> Iterator[_Piece]:
    """Components without the buffers that live throughout one: those get their ``offsets`` here, at its bottom."""
    waiting = [_Piece(whole, base)]
    while waiting:
        piece = waiting.pop()
        for part in piece.instance.components():
            through = (part.first == 0) & (part.stop == part.n_sections)
            if not through.any():
                yield _Piece(part, piece.base)
                continue
            tops = piece.base + np.cumsum(part.sizes[through])
            offsets[part.members[through]] = tops - part.sizes[through]
            waiting.append(_Piece(part.part(np.flatnonzero(~through)), int(tops[-1])))


def _is_searched(piece: Instance) -> bool:
    return len(piece) <= _MANY_SEARCHED and piece.cells <= _MOST_CELLS


def _best_greedy(piece: Instance, target: int) -> tuple[str, Ints]:
    """Name and offsets of the lowest greedy layout; stops at the first within the target."""
    best: tuple[int, str, Ints] | None = None
    for name, offsets in _greedy_layouts(piece):
        height = peak(piece, offsets)
        if best is None or height < best[0]:
            best = (height, name, offsets)
        if height <= target:
            break
    if best is None:
        raise AssertionError("there are greedy layouts of everything")
    return best[1:]


def _greedy_layouts(piece: Instance) -> Iterator[tuple[str, Ints]]:
    for fit in Fit:
        yield f"start, {fit} fit", in_time_order(piece, fit)
    if len(piece) > _MANY:
        return
    yield "colouring", colored(piece)
    yield "skyline", skyline(piece)
    for name, order in LAYOUT_ORDERS.items():
        for fit in Fit:
            yield f"{name}, {fit} fit", in_order(piece, order(piece).tolist(), fit)


class _Search:
    """Beam search on one piece, at the goal and half-way to it."""

    def __init__(self, piece: Instance, goal: int, effort: LayoutEffort) -> None:
        self._piece, self._effort = piece, effort
        self._goal = max(goal, piece.lower_bound)
        self._at_goal = BeamSearch(piece, self._goal)
        self.cut_off = False

    def than(self, known: Ints) -> Ints:
        """A layout that is lower than the known one; the known one if none was found."""
        best, height = known, peak(self._piece, known)
        beside: BeamSearch | None = None
        runs = turn = 0
        while height > self._goal and not self._ended(runs):
            halfway = (self._goal + height) // 2
            search = self._at_goal
            if _ROUND[turn % len(_ROUND)] == "halfway" and halfway > self._goal:
                if beside is None or beside.peak != halfway:
                    beside = BeamSearch(self._piece, halfway)
                search = beside
            found = search.run(_WIDTH, self._effort.budget)
            runs, turn = runs + 1, turn + 1
            if found is not None:
                turn = 0
                best, height = found, peak(self._piece, found)
        return best

    def _ended(self, runs: int) -> bool:
        self.cut_off = self._effort.budget.is_spent
        work = (runs + 1) * len(self._piece) * self._piece.cells  # with the next
        return self.cut_off or runs == self._effort.runs or (self._effort.work is not None and work > self._effort.work)
