"""The order in which a program's steps run: as the file has them, or the one found that spills least here."""

from collections.abc import Sequence

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.lowering.transforms import reordered
from spillprof.planning.options import Order, PlanningOptions
from spillprof.planning.ordering import dependencies, least_order, order_effort
from spillprof.planning.planner import make_plan
from spillprof.planning.traffic import count_traffic

JUDGE = "cost"
"""The strategy whose spill bytes decide between orders: quick, and seldom far from the best."""

_INFERENCES = 6


def scheduled(program: Program, target: Target, lowering: LoweringOptions, planning: PlanningOptions) -> Program:
    """The (not yet fitted) program in the order that the options ask for."""
    if planning.order is Order.FILE:
        return program
    return reordered(program, memory_order(program, target, lowering, planning))


def steps_to_judge(program: Program) -> int:
    """How many steps are simulated to judge one order: of cached weights, more than one inference."""
    return len(program.steps) * (_INFERENCES if program.weights_persist else 1)


def memory_order(
    program: Program, target: Target, lowering: LoweringOptions, planning: PlanningOptions
) -> tuple[int, ...]:
    """Positions of the present steps in the order that spills least under ``JUDGE``; never more than the present one.

    Of orders that spill alike, the one that moves less inside of SRAM. An order in which no plan is possible is
    never taken, unless the present one is such.
    """

    def judge(order: Sequence[int]) -> tuple[float, ...]:
        try:
            fitted = fit(reordered(program, order), target, lowering)
            traffic = count_traffic(fitted, make_plan(fitted, target, JUDGE, planning))
        except CapacityError:
            return (float("inf"), 0.0)
        return float(traffic.spill_bytes), float(traffic.moved_bytes)

    return least_order(dependencies(program), judge, target.sram_bytes, order_effort(steps_to_judge(program)))
