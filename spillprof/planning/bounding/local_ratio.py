"""Local ratio (Bar-Noy et al. 2001): raise one row at a time until some gap is paid for. Strong for few large gaps.

Each gap pays from the cost of its own, then from the write-back that it shares; a gap that is paid for is spent
off-chip. So the method gives both a bound (what was paid) and a cover (what was spent).
"""

from dataclasses import dataclass

from spillprof.planning.bounding.rows import MANY_VISITS, SCALE, Row
from spillprof.planning.covering import Covering
from spillprof.planning.range_max import RangeMax


@dataclass(frozen=True, slots=True)
class LocalRatio:
    """Rows that were raised, and the gaps that were paid for, in order."""

    rows: tuple[Row, ...]
    spent: tuple[int, ...]


def local_ratio(problem: Covering) -> LocalRatio:
    """Raise the step that lacks most until no step lacks anything. Nothing for very large problems."""
    if problem.visits > MANY_VISITS:
        return LocalRatio((), ())
    own_left = [float(cost) for cost in problem.gap_costs]
    write_left = {b: float(cost) for b, cost in problem.write_costs.items()}
    paid_off = [1e-9 * (own_left[g] + write_left[gap.buffer]) for g, gap in enumerate(problem.gaps)]
    missing = RangeMax(problem.excess_bytes)
    gone = [False] * len(problem.gaps)
    rows: list[Row] = []
    spent: list[int] = []
    while True:
        need, step = missing.overall()
        left = [g for g in problem.spanning[step] if not gone[g]] if need > 0 else []
        if not left:  # or the step does not fit whatever leaves: no plan exists, and rows stay valid
            return LocalRatio(tuple(rows), tuple(spent))
        share = {g: min(problem.gaps[g].size_bytes, need) for g in left}
        price = min((own_left[g] + write_left[problem.gaps[g].buffer]) / share[g] for g in left)
        if price > 0:
            apart = tuple(g for g in problem.spanning[step] if gone[g])
            rows.append(Row(step=step, apart=apart, weight=int(price * SCALE)))
        for g in left:
            buffer, pay = problem.gaps[g].buffer, price * share[g]
            from_own = min(pay, own_left[g])
            own_left[g] -= from_own
            write_left[buffer] = max(0.0, write_left[buffer] - (pay - from_own))
            if own_left[g] + write_left[buffer] <= paid_off[g]:
                gone[g] = True
                spent.append(g)
                for start, end in problem.gaps[g].ranges:
                    missing.add(start, end, -problem.gaps[g].size_bytes)
