"""Integer programs built row by row, in bytes, and run with HiGHS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np

from spillprof.planning.budget import Budget
from spillprof.planning.highs import quiet_solver, solve_integer

_MOST_NODES = 2_000


@dataclass(slots=True)
class RowModel:
    """Rows and columns of the integer program, in bytes."""

    costs: list[float] = field(default_factory=list)
    is_integer: list[bool] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    indices: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def column(self, cost: float, *, integer: bool) -> int:
        """A new column between 0 and 1; its index."""
        self.costs.append(cost)
        self.is_integer.append(integer)
        return len(self.costs) - 1

    def row(self, entries: Mapping[int, float], lower: float, upper: float) -> None:
        """A new row: coefficients by column."""
        self.indices += entries.keys()
        self.values += entries.values()
        self.starts.append(len(self.indices))
        self.lower.append(lower)
        self.upper.append(upper)


def run_model(model: RowModel, budget: Budget) -> tuple[Any, int, bool]:
    """The solver that has run, the unit of its costs in bytes, and whether it ended within the budget."""
    unit = gcd(*(int(cost) for cost in model.costs)) or 1
    solver = quiet_solver()
    for name, value in (("mip_max_nodes", _MOST_NODES), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.99)):
        solver.setOptionValue(name, value)
    solver.passModel(_as_lp(model, unit))
    return solver, unit, solve_integer(solver, len(model.indices), budget)


def _as_lp(model: RowModel, unit: int) -> Any:
    import highspy

    lp = highspy.HighsLp()
    n = len(model.costs)
    lp.num_col_, lp.num_row_ = n, len(model.lower)
    lp.col_cost_ = np.array(model.costs) / unit
    lp.col_lower_, lp.col_upper_ = np.zeros(n), np.ones(n)
    scale = np.array([max((abs(v) for v in model.values[a:b]), default=1.0) for a, b in pairwise(model.starts)])
    lp.row_lower_, lp.row_upper_ = np.array(model.lower) / scale, np.array(model.upper) / scale
    lp.integrality_ = [
        highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous for whole in model.is_integer
    ]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(model.starts)
    lp.a_matrix_.index_ = np.array(model.indices)
    lp.a_matrix_.value_ = np.array(model.values) / np.repeat(scale, np.diff(model.starts))
    return lp
