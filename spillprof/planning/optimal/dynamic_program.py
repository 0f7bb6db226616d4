"""The covering problem solved exactly by dynamic programming over the steps, pruned by a lower bound.

A state is a choice of gaps so far. Later steps see only which of the gaps still open it spends, and which buffers with
gaps to come it has written: of states that agree in that, the cheapest is kept. The weighted rows of a lower bound say
how much a state costs in the end at least: each decision and each needless byte adds what it wastes of that bound (its
reduced cost), and states that cannot beat the known cost are dropped. In most models few gaps are open at once, however
many there are in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Floats, Ints
from spillprof.planning.bounds.reduction import Reduced
from spillprof.planning.bounds.rows import SCALE, WeightedRow
from spillprof.planning.optimal.milp import Solved

_MOST_STATES = 16_384  # at one step,
_MOST_STATES_IN_ALL = 1_000_000  # at all steps: about a second
_MOST_OPEN = 62  # open gaps and written buffers, a bit each
_TOLERANCE = 1e-9  # of the known cost: above the rounding error of its sums


def solve_dynamic_program(reduced: Reduced, rows: Sequence[WeightedRow], known_cost: int) -> Solved | None:
    """The least cost, and its columns if it is below the known cost; None if there are too many states.

    ``rows``: those of a lower bound on the same problem. Any are valid; better ones leave fewer states.
    """
    search = _Search(reduced, rows, known_cost)
    history: list[_States] = []
    states, in_all = search.start(), 0
    for row in range(len(reduced.steps)):
        following = search.followed(states, row)
        if following is None:
            return None
        states, in_all = following, in_all + len(following.costs)
        if in_all > _MOST_STATES_IN_ALL:
            return None
        history.append(states)
    if not len(states.costs):
        return Solved(columns=None, lower_cost=known_cost, stopped="")
    return Solved(columns=search.columns(history), lower_cost=int(states.costs[0]), stopped="")


@dataclass(frozen=True, slots=True)
class _States:
    """States after one step. Shape (n_states,) each."""

    open: Ints  # bits of open gaps that are spent and of buffers that are written
    costs: Ints  # so far
    least: Floats  # lower bound on the final cost
    before: Ints  # predecessor: its index among the states of the step before
    spent: Ints  # bits of the columns spent at this step, by their position among those that begin

    def only(self, index: Ints | npt.NDArray[np.bool_]) -> "_States":
        return _States(self.open[index], self.costs[index], self.least[index], self.before[index], self.spent[index])


class _Search:
    def __init__(self, reduced: Reduced, rows: Sequence[WeightedRow], known_cost: int) -> None:
        self._reduced = reduced
        self._rows = _by_row(reduced, rows)
        unit = gcd(*reduced.costs.tolist(), *reduced.write_costs.values()) or 1
        self._most = known_cost - unit + _TOLERANCE * known_cost
        self._begin: list[list[int]] = [[] for _ in reduced.steps]
        self._end: list[list[int]] = [[] for _ in reduced.steps]
        for c, ranges in enumerate(reduced.ranges):
            self._begin[ranges[0][0]].append(c)
            self._end[ranges[-1][1] - 1].append(c)
        pays = np.zeros(len(reduced.gaps))
        for weighted in self._rows:
            for weight, _, members, counted in weighted:
                pays[members] += weight * counted
        self._reduced_costs: list[float] = (reduced.costs - pays).tolist()
        self._to_come = dict.fromkeys(reduced.buffers, 0)  # columns of each buffer,
        self._hoped = dict.fromkeys(reduced.buffers, 0.0)  # and the most they may still save of the bound: 0 or less
        for b, wasted in zip(reduced.buffers, self._reduced_costs, strict=True):
            self._to_come[b] += 1
            self._hoped[b] += min(0.0, wasted)
        self._unused = [1 << k for k in range(_MOST_OPEN)]
        self._bit: dict[int, int] = {}  # of each open column,
        self._written: dict[int, int] = {}  # and of each buffer that more than one column may write

    def start(self) -> _States:
        """The one state that has decided nothing."""
        bound = sum(weight * need for weighted in self._rows for weight, need, *_ in weighted)
        bound += sum(min(0.0, self._write_cost(b) + hoped) for b, hoped in self._hoped.items())
        nothing = np.zeros(1, dtype=np.int64)
        return _States(nothing, nothing, np.array([bound], dtype=np.float64), nothing, nothing)

    def followed(self, states: _States, row: int) -> _States | None:
        """The states after a row, which they cover; None if there are too many."""
        n = len(states.costs)
        states = _States(states.open, states.costs, states.least, np.arange(n), np.zeros(n, dtype=np.int64))
        for position, c in enumerate(self._begin[row]):
            if len(self._unused) < 2:
                return None
            states = self._decided(states, c, position)
            if len(states.costs) > _MOST_STATES:
                return None
        return self._cheapest(self._covering(states, row), row)

    def columns(self, history: Sequence[_States]) -> tuple[int, ...]:
        """The columns that the one final state spends."""
        found, at = [], 0
        for states, begin in zip(reversed(history), reversed(self._begin), strict=True):
            spent = int(states.spent[at])
            found += [c for position, c in enumerate(begin) if spent >> position & 1]
            at = int(states.before[at])
        return tuple(sorted(found))

    def _decided(self, states: _States, c: int, position: int) -> _States:
        """Each state branched: the column kept, and the column spent."""
        b = self._reduced.buffers[c]
        write, wasted = self._write_cost(b), self._reduced_costs[c]
        before = self._hoped[b]
        after = self._hoped[b] = before - min(0.0, wasted)
        self._to_come[b] -= 1
        if write and self._to_come[b] and b not in self._written:
            self._written[b] = self._unused.pop()
        bit = self._bit[c] = self._unused.pop()
        write_bit = self._written.get(b, 0)
        is_written = (states.open & write_bit) != 0
        hoped = np.where(is_written, before, min(0.0, write + before))  # a buffer may never be written
        if_kept = np.where(is_written, after, min(0.0, write + after)) - hoped
        if_spent = np.where(is_written, 0, write) + wasted + after - hoped
        least = np.concatenate([states.least + if_kept, states.least + if_spent])
        chosen = np.flatnonzero(least <= self._most)
        of = chosen % len(states.costs)
        is_spent = chosen >= len(states.costs)
        price = self._reduced.costs[c] + np.where(is_written, 0, write)
        return _States(
            states.open[of] | np.where(is_spent, bit | write_bit, 0),
            states.costs[of] + np.where(is_spent, price[of], 0),
            least[chosen],
            states.before[of],
            states.spent[of] | np.where(is_spent, 1 << position, 0),
        )

    def _covering(self, states: _States, row: int) -> _States:
        """States that cover a row. Bytes beyond the need of a weighted row are wasted of its bound."""
        reduced = self._reduced
        bits = np.array([self._bit[c] for c in reduced.members[row].tolist()], dtype=np.int64)
        sizes, need = reduced.sizes[reduced.members[row]], reduced.needs[row]
        states = states.only(((states.open[:, None] & bits) != 0) @ sizes >= need)
        least = states.least
        for weight, enough, members, counted in self._rows[row]:
            bits = np.array([self._bit[c] for c in members.tolist()], dtype=np.int64)
            least = least + weight * (((states.open[:, None] & bits) != 0) @ counted - enough)
        states = _States(states.open, states.costs, least, states.before, states.spent)
        return states.only(least <= self._most)

    def _cheapest(self, states: _States, row: int) -> _States:
        """States without the bits that end at the row: of equal ones, the cheapest."""
        ended = [self._bit.pop(c) for c in self._end[row]]
        ended += [self._written.pop(b) for b in list(self._written) if not self._to_come[b]]
        self._unused += ended
        still_open = states.open & ~sum(ended)
        order = np.lexsort((states.costs, still_open))
        still_open = still_open[order]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = still_open[1:] != still_open[:-1]
        states = states.only(order[is_first])
        return _States(still_open[is_first], states.costs, states.least, states.before, states.spent)

    def _write_cost(self, buffer: int) -> int:
        return self._reduced.write_costs.get(buffer, 0)


_Weighted = tuple[float, int, Ints, Ints]
"""(weight, need, columns, what each counts for)."""


def _by_row(reduced: Reduced, rows: Sequence[WeightedRow]) -> list[list[_Weighted]]:
    """Weighted rows by row of the reduced problem; those of steps that it left out are dropped."""
    row_of = {step: r for r, step in enumerate(reduced.steps)}
    column_of = {g: c for c, g in enumerate(reduced.gaps)}
    found: list[list[_Weighted]] = [[] for _ in reduced.steps]
    for row in rows:
        r = row_of.get(row.step)
        if r is not None:
            apart = np.array([column_of[g] for g in row.apart if g in column_of], dtype=np.int64)
            members = np.setdiff1d(reduced.members[r], apart, assume_unique=True)
            need = int(reduced.needs[r] - reduced.sizes[apart].sum())
            if need > 0:
                found[r].append((row.weight / SCALE, need, members, np.minimum(reduced.sizes[members], need)))
    return found
