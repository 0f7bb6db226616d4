"""From a Program to a Plan, by strategy name."""

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.planning.bounds.methods import LowerBound
from spillprof.planning.interval import choose_gaps
from spillprof.planning.offline import plan_offline
from spillprof.planning.optimal.search import Optimum, find_optimum
from spillprof.planning.options import PlanningOptions
from spillprof.planning.placements import make_placement
from spillprof.planning.run_facts import SimulationSpec
from spillprof.planning.steady import run_to_steady_state
from spillprof.planning.strategies import ONLINE_RULES, OPTIMAL, STRATEGIES
from spillprof.planning.traffic import transfer_costs

INTERVAL = "interval"
IDEAL = "none"
"""The strategy that never spills: it needs a program fitted to infinite SRAM."""


def make_plan(program: Program, target: Target, strategy: str, options: PlanningOptions) -> Plan:
    """The plan of a strategy, transfers issued on demand.

    ``CapacityError`` if it cannot be done in the program's capacity, ``UsageError`` for an unknown strategy.
    """
    return plan_and_choices(program, target, strategy, options)[0]


def plan_and_choices(program: Program, target: Target, strategy: str, options: PlanningOptions) -> tuple[Plan, int]:
    """As ``make_plan``, and how often the plan's course was the strategy's choice.

    An online strategy that was never asked for a victim makes the plan that every other one makes, and so does
    ``interval`` where it sends nothing off-chip and nothing has to move. (Which weights stay for the next inference
    is a choice too.)
    """
    check_strategy(strategy)
    if strategy == OPTIMAL and program.capacity_bytes is not None:
        return optimize(program, target, options).plans[0], 1
    if strategy == INTERVAL:
        gaps = choose_gaps(program, target, options)
        if not gaps and not program.weights_persist:
            plan, asked = _plan_online(program, target, strategy, options)
            if not asked and not plan.moves:
                return plan, 0
        return plan_offline(program, target, gaps, strategy, options), 1
    return _plan_online(program, target, strategy, options)


def _plan_online(program: Program, target: Target, strategy: str, options: PlanningOptions) -> tuple[Plan, int]:
    setting = SimulationSpec(
        program=program,
        strategy=strategy,
        rule=ONLINE_RULES.get(strategy, ONLINE_RULES["lru"]),  # the others are never asked for a victim
        costs=transfer_costs(program, target),
        options=options,
        off_chip={},
    )
    return run_to_steady_state(setting, lambda: make_placement(options.placement, program))


def optimize(program: Program, target: Target, options: PlanningOptions, bound: LowerBound | None = None) -> Optimum:
    """The best plans found, and the lower bound; ``bound``: if it is known already.

    ``CapacityError`` if no strategy can be planned.
    """
    return find_optimum(program, target, options, lambda other: make_plan(program, target, other, options), bound)


def check_strategy(strategy: str) -> None:
    """``UsageError`` unless the strategy exists."""
    names = (IDEAL, *STRATEGIES)
    if strategy not in names:
        near = nearest(strategy, names)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UsageError(f"unknown strategy '{strategy}'", hint=f"{hint}available: {', '.join(names)}")
