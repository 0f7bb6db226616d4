"""Beam search for a layout within a given peak, restarted with weights learnt from its failures.

A state is a partial layout: some buffers are placed, and the *floor* of every other is the highest top among its placed
conflicts. Buffers are placed as active schedules are generated in a job shop (Giffler and Thompson 1960): take a buffer
whose top would be lowest among all near it; in a layout that cannot be lowered, either it or one of its conflicts whose
floor is under that top comes next, at its floor. Of all such buffers the one with the fewest alternatives is branched
on, so that forced moves come first.

A section is *dead* when its lowest floor plus the bytes still to be placed in it pass the peak. States are ranked by
how close their sections are to that. Sections in which a run failed weigh more in the next (as in "squeaky wheel"
optimization and weighted-degree search). The bound of a section from its lowest floor is the spatial inference of
Moffitt, MiniMalloc (ASPLOS 2023), doi 10.1145/3623278.3624752.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Ints
from spillprof.planning.budget import Budget
from spillprof.planning.layout.instance import Instance

_POWERS = (20.0, 50.0, 8.0)  # how much more a nearly full section counts than an empty one, run by run
_NOISE = 0.02  # of the rank of a state, from the fourth run on
_CHILDREN = 3  # times the width: children that are ranked exactly
_WORK_A_BUFFER, _CELLS_A_UNIT = 3, 7  # of the instance, when one more buffer is placed in all states: units of work
_MEMORY = 0.95  # of a section's weight from one run to the next

Columns = npt.NDArray[Any]
"""Values by buffer or by section, one column a state."""


@dataclass(slots=True)
class _States:
    floors: Columns  # shape (n, width); _placed where the buffer is placed
    rest: Columns  # to be placed in each section, shape (n_sections, width)
    keys: Ints  # which buffers are placed, hashed; shape (width,)
    fullness: npt.NDArray[np.float64]  # lowest floor + rest, share of the peak; shape (n_sections, width)


class BeamSearch:
    """Beam searches on one instance and peak; each run learns from the failures of those before."""

    def __init__(self, instance: Instance, peak: int) -> None:
        self._n, self._n_sections = len(instance), instance.n_sections
        small = 2 * (peak + int(instance.sizes.max(initial=0))) < np.iinfo(np.int16).max
        self._type: type[np.int16] | type[np.int64] = np.int16 if small else np.int64
        self._placed = int(np.iinfo(self._type).max) // 2
        self.peak, self._sizes = peak, instance.sizes.astype(self._type)
        self._first, self._stop, self._loads = instance.first, instance.stop, instance.loads
        section = np.arange(self._n_sections)[:, None]
        covers = (instance.first <= section) & (section < instance.stop)
        self._covers = covers
        self._live = np.nonzero(covers)[1]  # buffers of each section, section by section
        self._live_from = np.concatenate([[0], np.cumsum(covers.sum(axis=1))[:-1]])
        self._conflicts = (instance.first[:, None] < instance.stop) & (instance.first < instance.stop[:, None])
        self._spans = _Spans(instance)
        self._names = np.random.default_rng(1).integers(1, 2**62, self._n)
        self._weights = np.ones(self._n_sections)
        self._work_a_level = _WORK_A_BUFFER * self._n + instance.cells // _CELLS_A_UNIT
        self.runs = 0

    def run(self, width: int, budget: Budget) -> Ints | None:
        """Offsets of a layout within the peak; None if this run found none, or the budget ended it."""
        rng = np.random.default_rng(self.runs)
        power, noise = _POWERS[self.runs % len(_POWERS)], _NOISE if self.runs >= len(_POWERS) else 0.0
        self.runs += 1
        if self._loads.max(initial=0) > self.peak:
            return None
        states = self._root()
        history: list[tuple[Ints, Ints, Ints]] = []
        for _ in range(self._n):
            if budget.is_spent:
                return None
            budget.spend(self._work_a_level)
            parents, buffers = self._moves(states)
            if len(parents) > _CHILDREN * width:
                keep = self._most_promising(states, parents, buffers, power, _CHILDREN * width)
                parents, buffers = parents[keep], buffers[keep]
            if not len(parents):
                return None
            offsets = states.floors[buffers, parents].astype(np.int64)
            children = self._place(states, parents, buffers)
            dead = children.fullness > 1
            alive = np.flatnonzero(~dead.any(axis=0))
            if not len(alive):
                self._weights = _MEMORY * self._weights + (1 - _MEMORY) + dead.mean(axis=1)
                return None
            rank = self._weights @ children.fullness[:, alive] ** power
            if noise:
                rank *= 1 + noise * rng.random(len(rank))
            order = alive[np.argsort(rank, kind="stable")]
            _, unlike = np.unique(children.keys[order], return_index=True)  # one state for each set of placed buffers
            kept = order[np.sort(unlike)[:width]]
            states = _States(
                children.floors[:, kept], children.rest[:, kept], children.keys[kept], children.fullness[:, kept]
            )
            history.append((parents[kept], buffers[kept], offsets[kept]))
        return _offsets(history, self._n)

    def _root(self) -> _States:
        rest = self._loads.astype(self._type)[:, None]
        return _States(
            floors=np.zeros((self._n, 1), dtype=self._type),
            rest=rest,
            keys=np.zeros(1, dtype=np.int64),
            fullness=rest.astype(np.float64) / self.peak,
        )

    def _moves(self, states: _States) -> tuple[Ints, Ints]:
        """(state, buffer placed next) of every branch from each state."""
        floors = states.floors
        open_ = floors < self._placed
        tops = np.where(open_, floors + self._sizes[:, None], self._placed)
        fits = open_ & (floors + self._spans.highest(states.rest) <= self.peak)
        near = np.where(open_, self._lowest_near(tops), self._placed)
        state, leader = np.nonzero(((tops == self._lowest_near(near)) & open_).T)
        ways = self._conflicts[leader] & fits.T[state] & (floors.T[state] < tops[leader, state][:, None])
        n_ways = ways.sum(axis=1)
        urgency = self._spans.highest(self._weights[:, None])[leader, 0]
        order = np.lexsort((tops[leader, state], np.where(n_ways < 2, n_ways, n_ways / urgency), state))
        sorted_states = state[order]
        best = order[np.concatenate([[True], sorted_states[1:] != sorted_states[:-1]])]
        chosen, buffers = np.nonzero(ways[best])
        return state[best][chosen], buffers

    def _lowest_near(self, values: Columns) -> Columns:
        """The lowest value among a buffer and its conflicts, for each buffer. Shape as given."""
        lowest: Columns = -self._spans.highest(-self._lowest_in_section(values))
        return lowest

    def _lowest_in_section(self, values: Columns) -> Columns:
        lowest: Columns = np.minimum.reduceat(values[self._live], self._live_from, axis=0)
        return lowest

    def _most_promising(self, states: _States, parents: Ints, buffers: Ints, power: float, count: int) -> Ints:
        """The ``count`` moves that waste least where sections are nearly full, to a first approximation."""
        dearness = self._weights[:, None] * states.fullness ** (power - 1)
        lowest = states.fullness * self.peak - states.rest
        zero = np.zeros((1, dearness.shape[1]))
        dear = np.concatenate([zero, dearness.cumsum(axis=0)])
        paid = np.concatenate([zero, (dearness * lowest).cumsum(axis=0)])
        first, stop = self._first[buffers], self._stop[buffers]
        waste = states.floors[buffers, parents] * (dear[stop, parents] - dear[first, parents])
        waste -= paid[stop, parents] - paid[first, parents]
        rank = (self._weights @ states.fullness**power)[parents] + power / self.peak * waste
        return np.sort(np.argpartition(rank, count)[:count])

    def _place(self, states: _States, parents: Ints, buffers: Ints) -> _States:
        tops = states.floors[buffers, parents] + self._sizes[buffers]
        floors = np.maximum(states.floors[:, parents], np.where(self._conflicts[:, buffers], tops, 0))
        floors[buffers, np.arange(len(buffers))] = self._placed
        rest = states.rest[:, parents] - self._covers[:, buffers] * self._sizes[buffers]
        fullness = np.where(rest > 0, (self._lowest_in_section(floors) + rest) / self.peak, 0.0)
        return _States(floors=floors, rest=rest, keys=states.keys[parents] ^ self._names[buffers], fullness=fullness)


class _Spans:
    """Sparse table: the largest value among each buffer's sections, for many columns at once."""

    def __init__(self, instance: Instance) -> None:
        lengths = instance.stop - instance.first
        level = np.frexp(lengths)[1] - 1  # whole part of the binary logarithm
        self._by_level = [
            (np.flatnonzero(level == k), instance.first[level == k], (instance.stop - (1 << level))[level == k])
            for k in range(int(level.max(initial=0)) + 1)
        ]
        self._n = len(instance)

    def highest(self, values: Columns) -> Columns:
        """The largest of ``values`` among each buffer's sections. (n_sections, width) to (n, width)."""
        result = np.empty((self._n, values.shape[1]), dtype=values.dtype)
        table, width = values, 1
        for buffers, left, right in self._by_level:
            if len(buffers):
                result[buffers] = np.maximum(table[left], table[right])
            if 2 * width <= len(table):
                table = np.maximum(table[:-width], table[width:])
                width *= 2
        return result


def _offsets(history: list[tuple[Ints, Ints, Ints]], n: int) -> Ints:
    """Offsets of the best final state, traced back to the root."""
    offsets = np.zeros(n, dtype=np.int64)
    state = 0
    for parents, buffers, placed_at in reversed(history):
        offsets[buffers[state]] = placed_at[state]
        state = int(parents[state])
    return offsets
