"""The covering problem as an integer program for HiGHS, warm-started from a known cover: whole, or window by window.

Sizes and costs are divided by their greatest common divisors and needs rounded up to whole units, which keeps the
integers small. Coefficients are cut to the need of their row, which is valid for whole buffers.

In very large problems, where rounds of ruin and recreate end too early, each window of rows is solved anew while the
rest stays. Windows overlap by half, so that a column at the edge of one is in the middle of another.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, gcd
from typing import Any

import numpy as np

from spillprof.planning.bounds.reduction import Reduced
from spillprof.planning.budget import Budget
from spillprof.planning.gaps import Ranges
from spillprof.planning.highs import quiet_solver, solve_integer
from spillprof.planning.optimal.cover import Cover

MOST_COLUMNS = 5_000
"""Gaps up to which the integer program is tried."""

_MOST_VISITS = 400_000
OUT_OF_BUDGET = "budget"
"""Why a solver stopped whose budget was spent."""

MANY_COLUMNS = 20_000
"""Gaps from which on windows gain more than rounds of local search in the same time."""

_VISITS = (60_000, 120_000)  # (column, row) pairs of a window: the smaller first, which is quick


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """When the solver stops short of the optimum."""

    relative_gap: float = 0.0  # between its solution and its bound
    most_nodes: int = 20_000


_IN_WINDOW = Precision(relative_gap=0.002, most_nodes=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What the solver found."""

    columns: tuple[int, ...] | None  # spent; None without a solution
    lower_cost: int | None  # its bound, rounded down by its tolerances; None without a bound
    stopped: str  # why it stopped early; empty if it finished


def solve_milp(reduced: Reduced, start: list[int], budget: Budget, precision: Precision = Precision()) -> Solved | None:
    """Solve within the budget; None if none is left or the problem is too large to try."""
    if len(reduced.gaps) > MOST_COLUMNS or reduced.visits > _MOST_VISITS or budget.is_spent:
        return None
    import highspy

    cost_unit = gcd(*reduced.costs.tolist(), *reduced.write_costs.values()) or 1
    solver = quiet_solver()
    for name, value in (
        ("mip_max_nodes", precision.most_nodes),
        ("mip_rel_gap", precision.relative_gap),
        ("mip_abs_gap", 0.99),  # costs are whole units: closer is equal
    ):
        solver.setOptionValue(name, value)
    solver.passModel(_model(reduced, cost_unit))
    solver.setSolution(_start(reduced, start))
    in_budget = solve_integer(solver, reduced.visits, budget)
    status, info = solver.getModelStatus(), solver.getInfo()
    stopped = {
        highspy.HighsModelStatus.kOptimal: "",
        highspy.HighsModelStatus.kSolutionLimit: "nodes",
        highspy.HighsModelStatus.kIterationLimit: "iterations",
    }.get(status, "the solver failed" if in_budget else OUT_OF_BUDGET)
    bound = float(info.mip_dual_bound)
    if stopped not in ("", "nodes", OUT_OF_BUDGET) or not np.isfinite(bound):
        return Solved(columns=None, lower_cost=None, stopped=stopped)
    values = np.asarray(solver.getSolution().col_value)[: len(reduced.gaps)]
    lower = cost_unit * max(0, ceil(bound - 0.01 - 1e-9 * abs(bound)))
    return Solved(
        columns=tuple(np.flatnonzero(values > 0.5).tolist()) if len(values) else None, lower_cost=lower, stopped=stopped
    )


def _start(reduced: Reduced, columns: list[int]) -> Any:
    import highspy

    position = {b: k for k, b in enumerate(reduced.write_costs)}
    values = [0.0] * (len(reduced.gaps) + len(position))
    for c in columns:
        values[c] = 1.0
        if reduced.buffers[c] in position:
            values[len(reduced.gaps) + position[reduced.buffers[c]]] = 1.0
    solution = highspy.HighsSolution()
    solution.col_value = values
    return solution


def _model(reduced: Reduced, cost_unit: int) -> Any:
    """Columns: gaps, then write-backs. Rows: steps, then 'a spent gap implies its write-back'."""
    import highspy

    n, infinity = len(reduced.gaps), highspy.kHighsInf
    size_unit = int(np.gcd.reduce(reduced.sizes)) or 1
    needs, sizes = -(-reduced.needs // size_unit), reduced.sizes // size_unit
    write_column = {b: n + k for k, b in enumerate(reduced.write_costs)}
    starts, indices, values = [0], [], []
    for members, need in zip(reduced.members, needs.tolist(), strict=True):
        indices.append(members)
        values.append(np.minimum(sizes[members], need).astype(np.float64))
        starts.append(starts[-1] + len(members))
    writers = [c for c, b in enumerate(reduced.buffers) if b in write_column]
    for c in writers:
        indices.append(np.array([c, write_column[reduced.buffers[c]]]))
        values.append(np.array([1.0, -1.0]))
        starts.append(starts[-1] + 2)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n + len(write_column), len(starts) - 1
    lp.col_cost_ = np.array([*reduced.costs.tolist(), *reduced.write_costs.values()], dtype=np.float64) / cost_unit
    lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.ones(lp.num_col_)
    lp.row_lower_ = np.concatenate([needs.astype(np.float64), np.full(len(writers), -infinity)])
    lp.row_upper_ = np.concatenate([np.full(len(needs), infinity), np.zeros(len(writers))])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(starts)
    lp.a_matrix_.index_ = np.concatenate(indices)
    lp.a_matrix_.value_ = np.concatenate(values)
    return lp


def improve_in_windows(cover: Cover, budget: Budget, visits: tuple[int, ...] = _VISITS) -> bool:
    """Improve a complete cover in place, window by window; False if the budget ended it."""
    reduced = cover.reduced
    n = len(reduced.gaps)
    firsts, ends = np.full(n, len(reduced.steps)), np.zeros(n, dtype=np.int64)
    np.minimum.at(firsts, reduced.covered.gap, reduced.covered.start)
    np.maximum.at(ends, reduced.covered.gap, reduced.covered.end)
    for rows in _windows(len(reduced.steps), reduced.visits, visits):
        if budget.is_spent:
            return False
        inside = np.flatnonzero((firsts >= rows.start) & (ends <= rows.stop))
        _solve_window(cover, rows, inside.tolist(), budget)
    return True


def _windows(n_rows: int, all_visits: int, visits: tuple[int, ...]) -> Iterator[range]:
    for most in visits:
        width = max(2, n_rows * most // max(1, all_visits))
        for offset in (0, width // 2):
            for start in range(-offset, n_rows, width):
                yield range(max(0, start), min(n_rows, start + width))


def _solve_window(cover: Cover, rows: range, columns: list[int], budget: Budget) -> None:
    """Solve a window: its ``columns``, which cover no other rows, are chosen anew if that costs no more."""
    before = cover.cost
    spent = [c for c in columns if cover.spent[c]]
    for c in spent:
        cover.keep(c)
    part = _part(cover, rows, columns)
    position = {c: k for k, c in enumerate(part.gaps)}
    solved = solve_milp(part, [position[c] for c in spent if c in position], budget, _IN_WINDOW) if part.steps else None
    chosen = spent if solved is None or solved.columns is None else [part.gaps[k] for k in solved.columns]
    for c in chosen:
        cover.spend(c)
    if cover.cost > before or int(cover.slack[rows.start : rows.stop].min(initial=0)) < 0:
        for c in chosen:
            cover.keep(c)
        for c in spent:
            cover.spend(c)


def _part(cover: Cover, rows: range, columns: list[int]) -> Reduced:
    """The covering problem of what the rows still lack; its ``gaps`` are indices of ``columns``."""
    whole = cover.reduced
    needs = -cover.slack[rows.start : rows.stop]
    lacking = needs > 0
    before = np.concatenate([[0], np.cumsum(lacking)])  # rows that lack something, before each row
    mine = np.isin(whole.covered.gap, columns)
    starts, ends = (before[at[mine] - rows.start] for at in (whole.covered.start, whole.covered.end))
    left = starts < ends
    used, positions = np.unique(whole.covered.gap[mine][left], return_inverse=True)
    gaps = used.tolist()
    buffers = [whole.buffers[c] for c in gaps]
    return Reduced(
        steps=[whole.steps[rows.start + k] for k in np.flatnonzero(lacking).tolist()],
        needs=needs[lacking],
        gaps=gaps,
        covered=Ranges(positions, starts[left], ends[left]),
        sizes=whole.sizes[gaps],
        costs=whole.costs[gaps],
        buffers=buffers,
        write_costs={
            b: whole.write_costs[b] for b in sorted({*buffers} & whole.write_costs.keys()) if not cover.spent_of[b]
        },
    )
