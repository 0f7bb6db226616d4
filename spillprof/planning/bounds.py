"""Proven lower bounds on what plans spill: a ladder of methods, of which the one that proves most counts.

- *equal weights*, *local ratio*: quick;
- *linear program*: the duals of the covering program; strong for many small gaps. Without fractions of buffers the
  optimum may lie above it;
- *knapsack cover*: the same with rows that hold only for whole buffers.

All of them only find weights of rows; the bound is what the rows prove in integers (``bounding.rows``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spillprof.ir.program import Program
from spillprof.planning.bounding.cover_lp import CoverLp
from spillprof.planning.bounding.equal_weights import equal_weights
from spillprof.planning.bounding.knapsack_cover import add_cuts
from spillprof.planning.bounding.local_ratio import local_ratio
from spillprof.planning.bounding.reduction import reduce
from spillprof.planning.bounding.rows import Row, proven_cost
from spillprof.planning.covering import BYTES, Covering, Prices, covering
from spillprof.planning.gaps import Gap
from spillprof.planning.options import PlanningOptions

NOTHING = "nothing must spill"
FORCED = "operators that cannot fit"

_LP_GAPS = 150_000
_LP_VISITS = 50_000_000  # (gap, step) pairs: with more, the solver finds nothing in time, and takes a gigabyte for it
_MANY_VISITS_AGAIN = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """No plan of the program costs less."""

    cost: int  # spill bytes, or what the prices made of them
    proven_by: str  # NOTHING, FORCED, "equal weights", "local ratio", "linear program", "knapsack cover", or a solver
    certified_cost: int  # the most that rows prove: below ``cost`` if a solver proved that
    certified_by: str
    certificate: tuple[Row, ...]  # of certified_cost
    problem: Covering  # that the certificate's rows belong to
    covers: tuple[tuple[Gap, ...], ...] = ()  # gaps that the methods would spend off-chip: starts for a search


def lower_bound(program: Program, options: PlanningOptions, prices: Prices = BYTES) -> Bound:
    """The best bound found for a fitted program: of all plans in this order, with this choice of streamed operands."""
    problem = covering(program, options, prices)
    forced = problem.forced_cost
    best: tuple[int, str, tuple[Row, ...]] = (forced, FORCED if forced else NOTHING, ())
    covers: list[Sequence[int]] = []
    for name, rows in _methods(problem, covers) if problem.gaps else ():
        cost = proven_cost(problem, rows)
        if cost > best[0]:
            best = (cost, name, rows)
    cost, proven_by, certificate = best
    return Bound(
        cost=cost,
        proven_by=proven_by,
        certified_cost=cost,
        certified_by=proven_by,
        certificate=certificate,
        problem=problem,
        covers=_named(problem, covers),
    )


def covers_of(problem: Covering) -> tuple[tuple[Gap, ...], ...]:
    """Gaps that the methods would spend off-chip, one after the other: starts for a search."""
    covers: list[Sequence[int]] = []
    for _ in _methods(problem, covers) if problem.gaps else ():
        pass
    return _named(problem, covers)


def _named(problem: Covering, covers: Sequence[Sequence[int]]) -> tuple[tuple[Gap, ...], ...]:
    return tuple(tuple((problem.gaps[g].buffer, problem.gaps[g].last_use) for g in spent) for spent in covers if spent)


def _methods(problem: Covering, covers: list[Sequence[int]]) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """(name, rows) of each method; gaps that a method would spend are added to ``covers``."""
    yield "equal weights", equal_weights(problem)
    ratio = local_ratio(problem)
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
    methods = (equal_weights(problem), local_ratio(problem).rows) if problem.gaps else ()
    return max([problem.forced_cost, *(proven_cost(problem, rows) for rows in methods)])


def lower_cost(program: Program, options: PlanningOptions, prices: Prices, of_bytes: Bound) -> int:
    """The best bound found on what plans cost at other prices. ``of_bytes``: the bound on spill bytes.

    In large problems its rows are weighed anew by what a byte costs, which is quick and, where the set-up of a
    transfer counts for little, as good.
    """
    if of_bytes.problem.visits <= _MANY_VISITS_AGAIN:
        return lower_bound(program, options, prices).cost
    problem = covering(program, options, prices)
    per_byte = sum(problem.gap_costs) / max(1, sum(of_bytes.problem.gap_costs))
    return proven_cost(problem, [Row(row.step, row.apart, int(row.weight * per_byte)) for row in of_bytes.certificate])
