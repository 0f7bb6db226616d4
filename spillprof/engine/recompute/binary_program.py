"""A 0-1 integer program, built row by row and solved by HiGHS."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from spillprof.planning.budget import Budget
from spillprof.planning.highs import quiet_solver, solve_integer

_MOST_NODES = 5_000
_CLOSE_ENOUGH = 1e-3  # share of the cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Whether each column is 1, and the total cost."""

    values: tuple[bool, ...]
    cost: float
    stopped: str  # "budget" or "nodes" if that limit cut the search short, else empty


class BinaryProgram:
    """Columns with costs, and rows ``sum of coefficient * column <= most``."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._rows: list[tuple[Mapping[int, int], int]] = []

    def column(self, cost: float = 0.0) -> int:
        """Add a column and return its index."""
        self._costs.append(cost)
        return len(self._costs) - 1

    def add_cost(self, column: int, cost: float) -> None:
        """Add to the cost of a column."""
        self._costs[column] += cost

    def at_most(self, coefficients: Mapping[int, int], most: int) -> None:
        """Add a row, unless it always holds."""
        if sum(c for c in coefficients.values() if c > 0) > most:
            self._rows.append((dict(coefficients), most))

    @property
    def entries(self) -> int:
        """Number of coefficients in all rows."""
        return sum(len(coefficients) for coefficients, _ in self._rows)

    def solve(self, budget: Budget) -> Solution | None:
        """The cheapest solution found within the node limit and the budget; None if none was found."""
        import highspy

        solver = quiet_solver()
        limits = {"mip_max_nodes": _MOST_NODES, "mip_rel_gap": _CLOSE_ENOUGH}
        for name, value in limits.items():
            solver.setOptionValue(name, value)
        solver.passModel(self._model())
        in_budget = solve_integer(solver, self.entries, budget)
        found = solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if not found:
            return None
        values = np.asarray(solver.getSolution().col_value) > 0.5
        by_nodes = solver.getModelStatus() == highspy.HighsModelStatus.kSolutionLimit
        stopped = "nodes" if by_nodes else "" if in_budget else "budget"
        return Solution(values=tuple(values.tolist()), cost=float(np.array(self._costs) @ values), stopped=stopped)

    def _model(self) -> object:
        """The model for HiGHS, scaled to numbers near 1: costs by their median, each row by its largest coefficient."""
        import highspy

        costs = np.array(self._costs)
        units = [max(map(abs, coefficients.values())) for coefficients, _ in self._rows]
        rows = list(zip(self._rows, units, strict=True))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(costs), len(rows)
        lp.col_cost_ = costs / (float(np.median(costs[costs > 0])) if (costs > 0).any() else 1.0)
        lp.col_lower_, lp.col_upper_ = np.zeros(len(costs)), np.ones(len(costs))
        lp.row_lower_ = np.full(len(rows), -highspy.kHighsInf)
        lp.row_upper_ = np.array([most / unit for (_, most), unit in rows])
        lp.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(coefficients) for coefficients, _ in self._rows)])
        lp.a_matrix_.index_ = np.array([k for coefficients, _ in self._rows for k in coefficients])
        lp.a_matrix_.value_ = np.array([c / unit for (row, _), unit in rows for c in row.values()])
        return lp
