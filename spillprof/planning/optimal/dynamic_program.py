"""The covering problem solved exactly, step by step: of all ways to come to a step, those that can still win.

A way is a choice of gaps so far. What it means to later steps is only which of the gaps still open it spends, and
which buffers with gaps to come it has written; of ways that agree in that, the cheapest is kept. The weighted rows of
a lower bound say what a way costs in the end at least: each decision and each needless byte adds what it wastes of
that bound (its reduced cost), and a way that cannot come below the cost that is known is dropped. Few gaps are open at
once in most models, however many there are in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Floats, Ints
from spillprof.planning.bounds.reduction import Reduced
from spillprof.planning.bounds.rows import SCALE, WeightedRow
from spillprof.planning.optimal.milp import Solved

_MOST_WAYS = 16_384  # to one step,
_MOST_WAYS_IN_ALL = 1_000_000  # to all: about a second
_MOST_OPEN = 62  # gaps and written buffers at once, a bit each
_TOLERANCE = 1e-9  # of the known cost: more than sums of floating-point numbers are off


def solve_dynamic_program(reduced: Reduced, rows: Sequence[WeightedRow], known_cost: int) -> Solved | None:
    """The least cost, and columns if it is below the known cost; None if there are too many ways.

    ``rows``: of a lower bound on the same problem. Any are right; the better they are, the fewer ways are left.
    """
    search = _Search(reduced, rows, known_cost)
    history: list[_Ways] = []
    ways, in_all = search.start(), 0
    for row in range(len(reduced.steps)):
        following = search.followed(ways, row)
        if following is None:
            return None
        ways, in_all = following, in_all + len(following.costs)
        if in_all > _MOST_WAYS_IN_ALL:
            return None
        history.append(ways)
    if not len(ways.costs):
        return Solved(columns=None, lower_cost=known_cost, stopped="")
    return Solved(columns=search.columns(history), lower_cost=int(ways.costs[0]), stopped="")


@dataclass(frozen=True, slots=True)
class _Ways:
    """Ways to one step. Shape (n_ways,) each."""

    open: Ints  # bits of what is spent or written, and still matters
    costs: Ints  # so far
    least: Floats  # cost in the end, at least
    before: Ints  # which way to the step before it continues
    spent: Ints  # bits of the columns spent at this step, by their position among those that begin

    def only(self, index: Ints | npt.NDArray[np.bool_]) -> "_Ways":
        return _Ways(self.open[index], self.costs[index], self.least[index], self.before[index], self.spent[index])


class _Search:
    def __init__(self, reduced: Reduced, rows: Sequence[WeightedRow], known_cost: int) -> None:
        self._reduced = reduced
        self._rows = _by_row(reduced, rows)
        unit = int(np.gcd.reduce([*reduced.costs.tolist(), *reduced.write_costs.values()])) or 1
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
        self._hoped = dict.fromkeys(reduced.buffers, 0.0)  # and what they save in the bound, at most: 0 or less
        for b, wasted in zip(reduced.buffers, self._reduced_costs, strict=True):
            self._to_come[b] += 1
            self._hoped[b] += min(0.0, wasted)
        self._unused = [1 << k for k in range(_MOST_OPEN)]
        self._bit: dict[int, int] = {}  # of each open column,
        self._written: dict[int, int] = {}  # and of each buffer that more than one column may write

    def start(self) -> _Ways:
        """The one way that has decided nothing."""
        bound = sum(weight * need for weighted in self._rows for weight, need, *_ in weighted)
        bound += sum(min(0.0, self._write_cost(b) + hoped) for b, hoped in self._hoped.items())
        nothing = np.zeros(1, dtype=np.int64)
        return _Ways(nothing, nothing, np.array([bound], dtype=np.float64), nothing, nothing)

    def followed(self, ways: _Ways, row: int) -> _Ways | None:
        """The ways that go on to a row and cover it; None if there are too many."""
        n = len(ways.costs)
        ways = _Ways(ways.open, ways.costs, ways.least, np.arange(n), np.zeros(n, dtype=np.int64))
        for position, c in enumerate(self._begin[row]):
            if len(self._unused) < 2:
                return None
            ways = self._decided(ways, c, position)
            if len(ways.costs) > _MOST_WAYS:
                return None
        return self._cheapest(self._covering(ways, row), row)

    def columns(self, history: Sequence[_Ways]) -> tuple[int, ...]:
        """What the one way that is left spends."""
        found, at = [], 0
        for ways, begin in zip(reversed(history), reversed(self._begin), strict=True):
            spent = int(ways.spent[at])
            found += [c for position, c in enumerate(begin) if spent >> position & 1]
            at = int(ways.before[at])
        return tuple(sorted(found))

    def _decided(self, ways: _Ways, c: int, position: int) -> _Ways:
        """Each way with the column kept, and each with it spent."""
        b = self._reduced.buffers[c]
        write, wasted = self._write_cost(b), self._reduced_costs[c]
        before = self._hoped[b]
        after = self._hoped[b] = before - min(0.0, wasted)
        self._to_come[b] -= 1
        if write and self._to_come[b] and b not in self._written:
            self._written[b] = self._unused.pop()
        bit = self._bit[c] = self._unused.pop()
        write_bit = self._written.get(b, 0)
        is_written = (ways.open & write_bit) != 0
        hoped = np.where(is_written, before, min(0.0, write + before))  # a buffer may never be written
        if_kept = np.where(is_written, after, min(0.0, write + after)) - hoped
        if_spent = np.where(is_written, 0, write) + wasted + after - hoped
        least = np.concatenate([ways.least + if_kept, ways.least + if_spent])
        chosen = np.flatnonzero(least <= self._most)
        of = chosen % len(ways.costs)
        is_spent = chosen >= len(ways.costs)
        price = self._reduced.costs[c] + np.where(is_written, 0, write)
        return _Ways(
            ways.open[of] | np.where(is_spent, bit | write_bit, 0),
            ways.costs[of] + np.where(is_spent, price[of], 0),
            least[chosen],
            ways.before[of],
            ways.spent[of] | np.where(is_spent, 1 << position, 0),
        )

    def _covering(self, ways: _Ways, row: int) -> _Ways:
        """Ways that spend enough at a row. More than a weighted row needs is wasted."""
        reduced = self._reduced
        bits = np.array([self._bit[c] for c in reduced.members[row].tolist()], dtype=np.int64)
        sizes, need = reduced.sizes[reduced.members[row]], reduced.needs[row]
        ways = ways.only(((ways.open[:, None] & bits) != 0) @ sizes >= need)
        least = ways.least
        for weight, enough, members, counted in self._rows[row]:
            bits = np.array([self._bit[c] for c in members.tolist()], dtype=np.int64)
            least = least + weight * (((ways.open[:, None] & bits) != 0) @ counted - enough)
        ways = _Ways(ways.open, ways.costs, least, ways.before, ways.spent)
        return ways.only(least <= self._most)

    def _cheapest(self, ways: _Ways, row: int) -> _Ways:
        """Without what ends at the row: of ways that are alike then, the cheapest."""
        ended = [self._bit.pop(c) for c in self._end[row]]
        ended += [self._written.pop(b) for b in list(self._written) if not self._to_come[b]]
        self._unused += ended
        still_open = ways.open & ~sum(ended)
        order = np.lexsort((ways.costs, still_open))
        still_open = still_open[order]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = still_open[1:] != still_open[:-1]
        ways = ways.only(order[is_first])
        return _Ways(still_open[is_first], ways.costs, ways.least, ways.before, ways.spent)

    def _write_cost(self, buffer: int) -> int:
        return self._reduced.write_costs.get(buffer, 0)


_Weighted = tuple[float, int, Ints, Ints]
"""(weight, need, columns, what each counts for)."""


def _by_row(reduced: Reduced, rows: Sequence[WeightedRow]) -> list[list[_Weighted]]:
    """Weighted rows by row of the reduced problem; those of steps that it left out are of no use."""
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
