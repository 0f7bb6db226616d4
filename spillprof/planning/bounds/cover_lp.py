"""The covering LP in flow form, and the separation of knapsack cover cuts that its fractional solutions violate.

One column for each row of the reduced problem counts the bytes off-chip at that step (at least its need); it changes
from row to row by what starts and ends there, so a gap takes two entries, however long it is. Sizes and costs are
divided by their medians to suit the solver's tolerances. The solver's answers only choose weights: nothing else of them
is trusted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spillprof.ir.arrays import Floats, Ints
from spillprof.planning.bounds.reduction import Reduced
from spillprof.planning.bounds.rows import SCALE, WeightedRow
from spillprof.planning.highs import quiet_solver

_Cut = tuple[int, tuple[int, ...]]
"""A knapsack cover cut: (row of the reduced problem, columns of its set A)."""

_MOST_VISITS = 400_000  # (column, row) pairs: with more, no cuts are separated
_ROUNDS = 30
_CUTS_A_ROUND = 400
_MOST_SETS = 40  # tried for a row
_VIOLATED_BY = 1e-4  # of the need
_GAINS = 1e-5  # of the bound, in three rounds: less is not worth further cuts
_MOST_ITERATIONS = 400_000


class CoverLp:
    """The linear program, its cuts so far, and its last solution."""

    def __init__(self, reduced: Reduced) -> None:
        self._reduced = reduced
        self._size_unit = float(np.median(reduced.sizes))
        costs = reduced.costs[reduced.costs > 0]
        self._cost_unit = float(np.median(costs)) if len(costs) else 1.0
        self._cuts: list[_Cut] = []
        self._solver = quiet_solver()
        self._solver.setOptionValue("simplex_iteration_limit", _MOST_ITERATIONS)
        self._solver.passModel(self._model())
        self.solved = False
        self.value = 0.0  # in cost
        self.shares: Floats = np.zeros(0)  # of each column, spent off-chip
        self._row_weights: Floats = np.zeros(len(reduced.steps))  # of each row of the reduced problem, in cost per byte
        self._cut_weights: Floats = np.zeros(0)

    def solve(self) -> None:
        """Solve, warm-started from the last basis."""
        import highspy

        self._solver.run()
        reduced, n = self._reduced, len(self._reduced.gaps)
        solution = self._solver.getSolution()
        column_duals = np.asarray(solution.col_dual)
        self.solved = self._solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        if not self.solved or not len(column_duals):
            self.solved = False
            return
        per_byte = self._cost_unit / self._size_unit
        self.value = float(self._solver.getObjectiveValue()) * self._cost_unit
        self.shares = np.clip(np.asarray(solution.col_value)[:n], 0.0, 1.0)
        self._row_weights = column_duals[-len(reduced.steps) :] * per_byte
        n_rows = self._solver.getNumRow() - len(self._cuts)
        self._cut_weights = np.asarray(solution.row_dual)[n_rows:] * per_byte

    def add(self, cuts: Sequence[_Cut]) -> None:
        """Add knapsack cover cuts."""
        import highspy

        reduced = self._reduced
        for row, apart in cuts:
            self._cuts.append((row, apart))
            members = np.setdiff1d(reduced.members[row], np.array(apart, dtype=np.int64), assume_unique=True)
            need = int(reduced.needs[row] - reduced.sizes[list(apart)].sum())
            values = np.minimum(reduced.sizes[members], need) / self._size_unit
            lower = need / self._size_unit
            self._solver.addRow(lower, highspy.kHighsInf, len(members), members.astype(np.int32), values)

    def weighted_rows(self) -> tuple[WeightedRow, ...]:
        """The duals of the last solution as rows of the covering problem."""
        reduced = self._reduced
        rows = [
            WeightedRow(step=step, apart=(), weight=int(weight * SCALE))
            for step, weight in zip(reduced.steps, self._row_weights.tolist(), strict=True)
        ]
        rows += [
            WeightedRow(step=reduced.steps[r], apart=tuple(reduced.gaps[c] for c in apart), weight=int(weight * SCALE))
            for (r, apart), weight in zip(self._cuts, self._cut_weights.tolist(), strict=True)
        ]
        return tuple(row for row in rows if row.weight > 0)

    def _model(self) -> Any:
        import highspy

        reduced = self._reduced
        n, n_steps = len(reduced.gaps), len(reduced.steps)
        write_column = {b: n + k for k, b in enumerate(reduced.write_costs)}
        first_off = n + len(write_column)
        sizes, costs = reduced.sizes / self._size_unit, reduced.costs / self._cost_unit
        rows, columns, values = _flow_entries(reduced, sizes, first_off)
        n_rows = n_steps
        for c, b in enumerate(reduced.buffers):
            if b in write_column:
                rows += [n_rows, n_rows]
                columns += [c, write_column[b]]
                values += [1.0, -1.0]
                n_rows += 1
        order = np.argsort(np.array(rows), kind="stable")
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = first_off + n_steps, n_rows
        infinity = highspy.kHighsInf
        writes = np.array(list(reduced.write_costs.values())) / self._cost_unit
        lp.col_cost_ = np.concatenate([costs, writes, np.zeros(n_steps)])
        lp.col_lower_ = np.concatenate([np.zeros(first_off), reduced.needs / self._size_unit])
        lp.col_upper_ = np.concatenate([np.ones(first_off), np.full(n_steps, infinity)])
        lp.row_lower_ = np.concatenate([np.zeros(n_steps), np.full(n_rows - n_steps, -infinity)])
        lp.row_upper_ = np.zeros(n_rows)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
        lp.a_matrix_.index_ = np.array(columns)[order]
        lp.a_matrix_.value_ = np.array(values)[order]
        return lp


def _flow_entries(reduced: Reduced, sizes: Floats | Ints, first_off: int) -> tuple[list[int], list[int], list[float]]:
    """Matrix entries (rows, columns, values): bytes off-chip at a step = those at the step before + starts - ends."""
    n_steps = len(reduced.steps)
    rows = [*range(n_steps), *range(1, n_steps)]
    columns = [*range(first_off, first_off + n_steps), *range(first_off, first_off + n_steps - 1)]
    values = [1.0] * n_steps + [-1.0] * (n_steps - 1)
    for c, (ranges, size) in enumerate(zip(reduced.ranges, sizes.tolist(), strict=True)):
        for start, end in ranges:
            rows.append(start)
            columns.append(c)
            values.append(-size)
            if end < n_steps:
                rows.append(end)
                columns.append(c)
                values.append(size)
    return rows, columns, values


def add_cuts(lp: CoverLp, reduced: Reduced) -> None:
    """Separation: add violated knapsack cover cuts to a solved program and re-solve, until they gain nothing.

    With a set A apart, the other gaps must cover need - size(A), and none of them counts for more than that. The sets
    tried for each step are its gaps of largest shares, from the empty set (which tightens coefficients) on.
    """
    if reduced.visits > _MOST_VISITS:
        return
    values = [lp.value]
    for _ in range(_ROUNDS):
        cuts = _violated(reduced, lp.shares)
        if not cuts:
            return
        lp.add(cuts)
        lp.solve()
        values.append(lp.value)
        if not lp.solved or (len(values) > 3 and values[-1] <= values[-4] * (1 + _GAINS)):
            return


def _violated(reduced: Reduced, shares: Floats) -> list[_Cut]:
    fractional = (shares > 1e-7) & (shares < 1 - 1e-7)
    found: list[tuple[float, int, tuple[int, ...]]] = []
    for r, members in enumerate(reduced.members):
        if fractional[members].any():
            by, apart = _worst_set(reduced.sizes[members], shares[members], int(reduced.needs[r]))
            if by > _VIOLATED_BY:
                found.append((by, r, tuple(members[apart].tolist())))
    found.sort(key=lambda cut: (-cut[0], cut[1]))
    return [(r, apart) for _, r, apart in found[:_CUTS_A_ROUND]]


def _worst_set(sizes: Ints, shares: Floats, need: int) -> tuple[float, list[int]]:
    """(violation as a share of the remaining need, the set A) of the most violated cut."""
    order = np.lexsort((-sizes, -shares))
    sizes, shares = sizes[order], shares[order]
    left = need - np.concatenate([[0], np.cumsum(sizes)[:-1]])
    n_sets = int(np.count_nonzero(left > 0))
    tried = np.arange(n_sets) if n_sets <= _MOST_SETS else np.linspace(0, n_sets - 1, _MOST_SETS).astype(np.int64)
    covers = np.minimum(sizes[None, :], left[tried, None]) * shares[None, :]
    covers *= np.arange(len(sizes))[None, :] >= tried[:, None]
    by = 1 - covers.sum(axis=1) / left[tried]
    best = int(by.argmax())
    return float(by[best]), sorted(order[: tried[best]].tolist())
