"""Quick simulations that choose the order of steps and the algorithms of convolutions."""

from collections.abc import Sequence
from math import inf

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.lowering.transforms import reordered
from spillprof.planning.options import PlanningOptions
from spillprof.planning.ordering import dependencies, least_order, order_effort
from spillprof.planning.planner import make_plan
from spillprof.planning.traffic import count_traffic
from spillprof.timing.timeline import simulate

JUDGE = "cost"
"""The strategy whose spill bytes decide between orders: quick, and seldom far from the best."""

_TIMED_UNDER = ("cost", "interval")
_INFERENCES = 6


def steps_to_judge(program: Program) -> int:
    """Steps simulated to judge one order: with cached weights, those of several inferences."""
    return len(program.steps) * (_INFERENCES if program.weights_persist else 1)


def memory_order(
    program: Program, target: Target, lowering: LoweringOptions, planning: PlanningOptions
) -> tuple[int, ...]:
    """Permutation of the steps that spills least under ``JUDGE``, and never more than the present order.

    Ties go to the order that moves fewer bytes inside SRAM. An order without a possible plan is taken only if the
    present order has none.
    """

    def judge(order: Sequence[int]) -> tuple[float, ...]:
        try:
            fitted = fit(reordered(program, order), target, lowering)
            traffic = count_traffic(fitted, make_plan(fitted, target, JUDGE, planning))
        except CapacityError:
            return (inf, 0.0)
        return float(traffic.spill_bytes), float(traffic.moved_bytes)

    return least_order(dependencies(program), judge, target.sram_bytes, order_effort(steps_to_judge(program)))


def latency_on_demand_s(program: Program, target: Target, options: LoweringOptions) -> float:
    """Latency of an unfitted program, transfers on demand, under the faster of two strategies.

    Infinite if no plan is possible.
    """
    best_s = inf
    try:
        fitted = fit(program, target, options)
        for strategy in _TIMED_UNDER:
            plan = make_plan(fitted, target, strategy, PlanningOptions())
            best_s = min(best_s, simulate(fitted, plan, target).makespan_s)
            if not plan.spills and not plan.moves:
                break  # every strategy makes this plan
    except CapacityError:
        pass
    return best_s
