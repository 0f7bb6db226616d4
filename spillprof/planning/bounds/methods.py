"""Proven lower bounds on what plans spill: several methods weigh the rows of the covering problem, and the best counts.

- *equal weights*, *local ratio*: combinatorial, quick;
- *linear program*: the duals of the covering LP; strong for many small gaps. It lets a buffer leave in part, so the
  optimum may lie above it;
- *knapsack cover*: the LP with cuts that hold only for whole buffers.

A method only chooses weights; the bound is what the weighted rows prove in exact integers (``bounds.rows``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spillprof.ir.program import Program
from spillprof.planning.bounds.cover_lp import CoverLp, add_cuts
from spillprof.planning.bounds.covering import BYTES, Covering, Prices, covering, has_open_steps
from spillprof.planning.bounds.reduction import reduce
from spillprof.planning.bounds.rows import MANY_VISITS, SCALE, WeightedRow, proven_cost
from spillprof.planning.budget import search_budget
from spillprof.planning.gaps import GapKey
from spillprof.planning.options import PlanningOptions
from spillprof.planning.range_max import RangeMax

NOTHING_FORCED = "nothing must spill"
ONLY_FORCED = "operators that cannot fit"

_LP_GAPS = 150_000
_LP_VISITS = 50_000_000  # (gap, step) pairs: with more, the solver runs out of time and takes a gigabyte
_MANY_VISITS_AGAIN = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """A proven lower bound: no plan of the program costs less."""

    cost: int  # spill bytes, or their cost at the prices given
    proven_by: str  # NOTHING_FORCED, ONLY_FORCED, or the name of a method or solver
    certified_cost: int  # the most that rows prove: less than ``cost`` if a solver proved that
    certified_by: str
    certificate: tuple[WeightedRow, ...]  # of certified_cost
    problem: Covering  # that the certificate's rows belong to
    covers: tuple[tuple[GapKey, ...], ...] = ()  # sets of gaps that the methods spend off-chip: starts for a search

    def raised(self, cost: int | None, proven_by: str) -> "LowerBound":
        """The bound, raised to what a solver proved."""
        return self if cost is None or cost <= self.cost else replace(self, cost=cost, proven_by=proven_by)


def lower_bound(program: Program, options: PlanningOptions, prices: Prices = BYTES) -> LowerBound:
    """The best bound found on all plans of a fitted program in its order of steps, however steps are tiled."""
    from spillprof.planning.optimal.joint import FEW_BINARIES, SOLVER, least_jointly

    bound = bound_of(covering(program, options, prices))
    if prices is not BYTES or not has_open_steps(program, options):
        return bound
    return bound.raised(least_jointly(program, options, search_budget(options), FEW_BINARIES), SOLVER)


def bound_of(problem: Covering) -> LowerBound:
    """The best bound found on a covering problem."""
    forced = problem.forced_cost
    best: tuple[int, str, tuple[WeightedRow, ...]] = (forced, ONLY_FORCED if forced else NOTHING_FORCED, ())
    covers: list[Sequence[int]] = []
    for name, rows in _methods(problem, covers) if problem.gaps else ():
        cost = proven_cost(problem, rows)
        if cost > best[0]:
            best = (cost, name, rows)
    cost, proven_by, certificate = best
    return LowerBound(
        cost=cost,
        proven_by=proven_by,
        certified_cost=cost,
        certified_by=proven_by,
        certificate=certificate,
        problem=problem,
        covers=_named(problem, covers),
    )


def covers_of(problem: Covering) -> tuple[tuple[GapKey, ...], ...]:
    """Sets of gaps that the methods spend off-chip, one a method: starts for a search."""
    covers: list[Sequence[int]] = []
    for _ in _methods(problem, covers) if problem.gaps else ():
        pass
    return _named(problem, covers)


def _named(problem: Covering, covers: Sequence[Sequence[int]]) -> tuple[tuple[GapKey, ...], ...]:
    return tuple(tuple(problem.gaps[g].key for g in spent) for spent in covers if spent)


def _methods(problem: Covering, covers: list[Sequence[int]]) -> Iterator[tuple[str, tuple[WeightedRow, ...]]]:
    """(name, rows) of each method; the gaps that a method spends are appended to ``covers``."""
    yield "equal weights", _equal_weights(problem)
    ratio = _local_ratio(problem)
    covers.append(ratio.spent)
    yield "local ratio", ratio.rows
    reduced = reduce(problem)
    if not 0 < len(reduced.gaps) <= _LP_GAPS or reduced.visits > _LP_VISITS:
        return
    lp = CoverLp(reduced)
    lp.solve()
    yield "linear program", lp.weighted_rows()
    if lp.solved:
        add_cuts(lp, reduced)
        covers.append([reduced.gaps[c] for c in np.flatnonzero(lp.shares > 1e-6).tolist()])
        yield "knapsack cover", lp.weighted_rows()


def quick_bound(program: Program, options: PlanningOptions) -> int:
    """A lower bound on spill bytes without a solver: never above ``lower_bound``, often equal to it."""
    problem = covering(program, options, BYTES)
    methods = (_equal_weights(problem), _local_ratio(problem).rows) if problem.gaps else ()
    return max([problem.forced_cost, *(proven_cost(problem, rows) for rows in methods)])


def lower_cost(program: Program, options: PlanningOptions, prices: Prices, of_bytes: LowerBound) -> int:
    """The best bound found on the cost of plans at other prices. ``of_bytes``: the bound on spill bytes.

    In large problems its rows are only rescaled to the cost of a byte, which is quick and, where the set-up of a
    transfer hardly counts, as good.
    """
    if of_bytes.problem.visits <= _MANY_VISITS_AGAIN:
        return lower_bound(program, options, prices).cost
    problem = covering(program, options, prices)
    per_byte = sum(problem.gap_costs) / max(1, sum(of_bytes.problem.gap_costs))
    return proven_cost(
        problem, [WeightedRow(row.step, row.apart, int(row.weight * per_byte)) for row in of_bytes.certificate]
    )


def _equal_weights(problem: Covering) -> tuple[WeightedRow, ...]:
    """One weight for every step with excess: a weak bound, but quick for any size (as PFOO-L, Berger et al. 2018).

    The bound is concave in the weight, so ternary search finds the best, one pass over the gaps a try.
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
    return tuple(WeightedRow(step=i, apart=(), weight=weight) for i in steps) if weight else ()


@dataclass(frozen=True, slots=True)
class _LocalRatio:
    """The rows that were raised, and the gaps that became paid for, in order."""

    rows: tuple[WeightedRow, ...]
    spent: tuple[int, ...]


def _local_ratio(problem: Covering) -> _LocalRatio:
    """Local ratio (Bar-Noy et al. 2001): raises the row of the step that lacks most until none lacks anything.

    Each gap pays from its own cost, then from the write-back that it shares; a gap that is paid for is spent off-chip.
    So the method gives both a bound (what was paid) and a cover (what was spent). Strong for few large gaps; empty for
    very large problems.
    """
    if problem.visits > MANY_VISITS:
        return _LocalRatio((), ())
    own_left = [float(cost) for cost in problem.gap_costs]
    write_left = {b: float(cost) for b, cost in problem.write_costs.items()}
    paid_off = [1e-9 * (own_left[g] + write_left[gap.buffer]) for g, gap in enumerate(problem.gaps)]
    missing = RangeMax(problem.excess_bytes)
    gone = [False] * len(problem.gaps)
    rows: list[WeightedRow] = []
    spent: list[int] = []
    while True:
        need, step = missing.overall()
        left = [g for g in problem.spanning[step] if not gone[g]] if need > 0 else []
        if not left:  # or no gap is left to spend: no plan exists, and the rows stay valid
            return _LocalRatio(tuple(rows), tuple(spent))
        share = {g: min(problem.gaps[g].size_bytes, need) for g in left}
        price = min((own_left[g] + write_left[problem.gaps[g].buffer]) / share[g] for g in left)
        if price > 0:
            apart = tuple(g for g in problem.spanning[step] if gone[g])
            rows.append(WeightedRow(step=step, apart=apart, weight=int(price * SCALE)))
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
