"""What is proven about the least that any plan spills, beside the least that a strategy reached."""

from collections.abc import Sequence

from spillprof.engine.engine import PICOSECONDS_PER_S, Engine, picoseconds
from spillprof.engine.run import Run
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.ir.errors import CapacityError
from spillprof.ir.profile import Bounds
from spillprof.ir.result import Result
from spillprof.planning.bounds.methods import lower_cost
from spillprof.planning.bounds.rows import certificate_of
from spillprof.planning.strategies import IDEAL, OPTIMAL


def bounds_facts(engine: Engine, run: Run, results: Sequence[Result], causes: Counterfactuals) -> Bounds | None:
    """The proven bounds beside the least that a strategy reached; None where no plan is possible.

    The run in infinite SRAM is no plan of the fitted program.
    """
    fitted, planning = engine.fitted(run), run.planning
    searched = any(r.feasible and r.strategy == OPTIMAL for r in results)
    try:
        bound = engine.bound(fitted, run, searched=searched)
    except CapacityError:
        return None
    lower = bound.cost
    best = min((r.spill_bytes for r in results if r.feasible and r.strategy != IDEAL), default=None)
    gap = None if best is None else 0.0 if best == lower else best / lower - 1 if lower else None
    return Bounds(
        spill_bytes_lower=lower,
        spill_bytes_best=best,
        gap=gap,
        proven_by=bound.proven_by,
        certified_bytes=bound.certified_cost,
        certified_by=bound.certified_by,
        serial_cost_s_lower=lower_cost(fitted, planning, picoseconds(run.target), bound) / PICOSECONDS_PER_S,
        certificate=certificate_of(fitted, planning, bound.problem, bound.certificate, bound.certified_cost),
        search=engine.optimum(fitted, run).search if searched else "",
        any_order_bytes=0 if best == 0 else causes.unavoidable_bytes,
    )
