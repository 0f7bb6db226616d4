"""From a Program to a Plan, by strategy name."""

from difflib import get_close_matches

from spillprof.errors import UsageError
from spillprof.model.plan import Plan
from spillprof.model.program import Program
from spillprof.model.target import Target
from spillprof.planning.costs import transfer_costs
from spillprof.planning.offline import plan_offline
from spillprof.planning.options import STRATEGIES, PlanningOptions
from spillprof.planning.placement import make_placement
from spillprof.planning.setting import Setting
from spillprof.planning.steady import run_to_steady_state
from spillprof.planning.strategies.interval import choose_gaps
from spillprof.planning.strategies.online import ONLINE_RULES

IDEAL = "none"
"""The strategy that never spills: it needs a program fitted to infinite SRAM."""


def make_plan(program: Program, target: Target, strategy: str, options: PlanningOptions) -> Plan:
    """The plan of a strategy, transfers issued on demand.

    ``CapacityError`` if it cannot be done in the program's capacity, ``UsageError`` for an unknown strategy.
    """
    check_strategy(strategy)
    if strategy == "interval":
        return plan_offline(program, target, choose_gaps(program, target, options), strategy, options)
    setting = Setting(
        program=program,
        strategy=strategy,
        rule=ONLINE_RULES.get(strategy, ONLINE_RULES["lru"]),  # "none" never asks for a victim
        costs=transfer_costs(program, target),
        options=options,
        off_chip={},
    )
    return run_to_steady_state(setting, lambda: make_placement(options.placement, program))


def check_strategy(strategy: str) -> None:
    """``UsageError`` unless the strategy exists."""
    names = (IDEAL, *STRATEGIES)
    if strategy not in names:
        near = get_close_matches(strategy, names, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UsageError(f"unknown strategy '{strategy}'", hint=f"{hint}available: {', '.join(names)}")
