"""One weight for all steps: a weak bound, but quick for any size (so does PFOO-L of Berger et al. 2018)."""

import numpy as np

from spillprof.planning.bounding.rows import SCALE, Row
from spillprof.planning.covering import Covering


def equal_weights(problem: Covering) -> tuple[Row, ...]:
    """The best equal weight of every step with excess: one pass over the gaps a try.

    The bound is concave in the weight, so narrowing an interval around its maximum finds it.
    """
    steps = [i for i, excess in enumerate(problem.excess_bytes) if excess]
    sizes = np.array([gap.size_bytes for gap in problem.gaps], dtype=np.float64)
    costs = np.array(problem.gap_costs, dtype=np.float64)
    covered = np.bincount(problem.ranges.gap, problem.covered, minlength=len(problem.gaps))
    buffers, owner = np.unique([gap.buffer for gap in problem.gaps], return_inverse=True)
    writes = np.array([problem.write_costs[b] for b in buffers.tolist()], dtype=np.float64)
    excess = float(sum(problem.excess_bytes))

    def value(weight: float) -> float:
        unpaid = np.bincount(owner, np.minimum(0.0, costs - weight * sizes * covered))
        return float(weight * excess + np.minimum(0.0, writes + unpaid).sum())

    low, high = 0.0, float(((costs + writes[owner]) / sizes).max(initial=0.0))
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if value(left) < value(right) else (low, right)
    weight = int(low * SCALE)
    return tuple(Row(step=i, apart=(), weight=weight) for i in steps) if weight else ()
