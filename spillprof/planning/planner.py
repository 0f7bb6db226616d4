"""From a Program to a Plan, by strategy name."""

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.tiled import with_modes
from spillprof.planning.bounds.methods import LowerBound
from spillprof.planning.offline import plan_offline
from spillprof.planning.optimal.search import Optimum, find_optimum
from spillprof.planning.options import PlanningOptions
from spillprof.planning.placements import make_placement
from spillprof.planning.run_facts import SimulationSpec
from spillprof.planning.steady import run_to_steady_state
from spillprof.planning.strategies import Strategy, StrategyKind, check_strategy, cost, lru
from spillprof.planning.tiling.choice import choose_modes
from spillprof.planning.tiling.online import modes_as_met
from spillprof.planning.traffic import count_traffic, transfer_costs


def make_plan(program: Program, target: Target, strategy: str, options: PlanningOptions) -> Plan:
    """The plan of a strategy, transfers issued on demand.

    ``CapacityError`` if the program cannot run in its capacity, ``UsageError`` for an unknown strategy. ``none`` never
    spills: it needs a program fitted to infinite SRAM.
    """
    return plan_and_choices(program, target, strategy, options)[0]


def plan_and_choices(program: Program, target: Target, strategy: str, options: PlanningOptions) -> tuple[Plan, int]:
    """The plan, and how many evictions the strategy decided (0: every online strategy would make this plan).

    An offline strategy that sends nothing off-chip decides none either, unless something has to be compacted. (Which
    weights stay for the next inference is also a decision.)
    """
    row = check_strategy(strategy)
    if row.kind is StrategyKind.SEARCH and program.capacity_bytes is not None:
        return optimize(program, target, options).plans[0], 1
    if row.choose_gaps is None:
        modes = modes_as_met(program, target, options, row.rule or lru)
        plan, victims = _plan_online(with_modes(program, modes), target, strategy, options)
        return plan, victims + len(modes)
    ways = dict.fromkeys((choose_modes(program, options), modes_as_met(program, target, options, cost)))
    found = [_plan_offline(with_modes(program, modes), target, row, options) for modes in ways]
    return min(found, key=lambda made: count_traffic(program, made[0]).spill_bytes)


def _plan_offline(program: Program, target: Target, row: Strategy, options: PlanningOptions) -> tuple[Plan, int]:
    assert row.choose_gaps is not None
    gaps = row.choose_gaps(program, target, options)
    if not gaps and not program.weights_persist:
        plan, victims = _plan_online(program, target, row.name, options)
        if not victims and not plan.moves:
            return plan, 0
    return plan_offline(program, target, gaps, row.name, options), 1


def _plan_online(program: Program, target: Target, strategy: str, options: PlanningOptions) -> tuple[Plan, int]:
    """The plan, and how many victims the rule picked. Strategies without a rule expect to need none."""
    spec = SimulationSpec(
        program=program,
        strategy=strategy,
        rule=check_strategy(strategy).rule or lru,
        costs=transfer_costs(program, target),
        options=options,
        off_chip={},
    )
    return run_to_steady_state(spec, lambda: make_placement(options.placement, program))


def optimize(program: Program, target: Target, options: PlanningOptions, bound: LowerBound | None = None) -> Optimum:
    """The best plans found, and the lower bound; ``bound``: the lower bound, if it is known already.

    ``CapacityError`` if no strategy can be planned.
    """
    return find_optimum(program, target, options, lambda other: make_plan(program, target, other, options), bound)
