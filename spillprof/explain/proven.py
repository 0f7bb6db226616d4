"""What is proven about the least that any plan spills, beside the least that a strategy reached."""

from collections.abc import Sequence

from spillprof.engine.case import Case
from spillprof.engine.known import bound_of, search_end
from spillprof.engine.simulation import PICOSECONDS_PER_S, picoseconds
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.ir.errors import CapacityError
from spillprof.ir.profile import Bounds
from spillprof.ir.result import Result
from spillprof.planning.bounds.methods import lower_cost
from spillprof.planning.bounds.rows import certificate_of
from spillprof.planning.strategies import IDEAL


def bounds_facts(case: Case, results: Sequence[Result], causes: Counterfactuals) -> Bounds | None:
    """The proven bounds beside the least that a strategy reached; None where no plan is possible.

    The run in infinite SRAM is no plan of the fitted program.
    """
    fitted, planning = case.fitted, case.planning
    try:
        bound = bound_of(fitted, planning)
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
        serial_cost_s_lower=lower_cost(fitted, planning, picoseconds(case.target), bound) / PICOSECONDS_PER_S,
        certificate=certificate_of(fitted, planning, bound.problem, bound.certificate, bound.certified_cost),
        search=search_end(fitted, case.target, planning),
        any_order_bytes=0 if best == 0 else causes.unavoidable_bytes,
    )
