"""The search of strategy ``optimal``: chooses gaps to spend off-chip, places the best choices, and keeps the best plan.

It starts from every strategy's choice of gaps and from greedy covers. Where few gaps are open at once, dynamic
programming solves the covering problem exactly; elsewhere local search improves the best choice, and an integer program
gets the work that is left.

Gaps are chosen without regard to addresses; the best choices are then placed, and compared with the plans of all other
strategies, so that the result never spills more than any of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spillprof.ir.errors import CapacityError
from spillprof.ir.modes import StepMode
from spillprof.ir.plan import COMPLETE, Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.tiled import with_modes
from spillprof.planning.bounds.covering import Covering, covering_in_modes, has_open_steps, planners_covering
from spillprof.planning.bounds.methods import LowerBound, bound_of, covers_of, lower_bound
from spillprof.planning.bounds.reduction import Reduced, reduce
from spillprof.planning.budget import OPTION, search_budget
from spillprof.planning.ejection.packer import EjectionEffort
from spillprof.planning.gaps import GapKey, GapOption
from spillprof.planning.interval import choose_gaps
from spillprof.planning.offline import plan_by_ejection, plan_offline
from spillprof.planning.optimal.cover import Cover, complete_greedily
from spillprof.planning.optimal.dynamic_program import solve_dynamic_program
from spillprof.planning.optimal.joint import SOLVER, choose_jointly, least_jointly
from spillprof.planning.optimal.local_search import improve
from spillprof.planning.optimal.milp import (
    MANY_COLUMNS,
    MOST_COLUMNS,
    OUT_OF_BUDGET,
    Solved,
    improve_in_windows,
    solve_milp,
)
from spillprof.planning.options import PlanningOptions
from spillprof.planning.strategies import CHEAP_STRATEGIES, OPTIMAL
from spillprof.planning.traffic import count_traffic, transfer_costs

_DYNAMIC_PROGRAMMING = "dynamic programming"

_PLACED = 4  # choices that are placed, best first,
_PLACED_IF_LONG = 2  # and in long programs,
_LONG = 3_000  # of so many steps or more
_MODES_TRIED = 2  # choices of modes whose gaps are searched
_TIED = 2  # plans that are returned, at most
_ROOM = 0.05  # of the pool, left free in a choice for a long program, for fragmentation
_SWEEPS = 3  # of ejection search
_NEAR = 1.02  # times the best cost: choices up to that may still win when placed


Modes = tuple[StepMode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The best plans, the bound, and how the search ended."""

    plans: tuple[Plan, ...]  # that spill the fewest bytes found; least transfer time first
    bound: LowerBound
    search: str  # COMPLETE, or what ended it early
    choices: Mapping[Modes, Sequence["GapChoice"]] = field(default_factory=dict)  # by modes of the steps, best first


def find_optimum(
    program: Program,
    target: Target,
    options: PlanningOptions,
    plan_of: Callable[[str], Plan],
    bound: LowerBound | None = None,
    searched: Optimum | None = None,
) -> Optimum:
    """The best plan found for a fitted program. ``CapacityError`` if no strategy can be planned.

    Modes first: those of the other strategies' plans, and those that an integer program chooses together with the gaps.
    Then gaps and addresses, in the most promising choices of modes. ``plan_of``: makes another strategy's plan;
    ``bound``: the lower bound, if it is known already; ``searched``: the optimum under another placement, whose choices
    are only placed anew.
    """
    bound = bound or lower_bound(program, options)
    plans = list(_plans(plan_of))
    if not has_open_steps(program, options):
        return _in_modes(program, target, options, plans, bound, searched.choices if searched else {})
    by_modes: dict[Modes, list[Plan]] = {}
    for plan in plans:
        by_modes.setdefault(plan.modes, []).append(plan)
    promise = {modes: min(_spilled(program, plan) for plan in found) for modes, found in by_modes.items()}
    joint = choose_jointly(program, options, search_budget(options)) if min(promise.values()) > bound.cost else None
    if joint is not None:
        for modes in (joint.grown, joint.modes):
            promise[modes] = min(joint.cost, promise.get(modes, joint.cost))
    found: list[Optimum] = []
    for modes in sorted(promise, key=lambda each: promise[each])[:_MODES_TRIED]:
        if found and min(_spilled(program, best.plans[0]) for best in found) <= bound.cost:
            break
        tiled = with_modes(program, modes)
        start = by_modes.get(modes) or [_first_plan(tiled, target, options)]
        known = searched.choices if searched else {}
        found.append(_in_modes(tiled, target, options, start, bound_of(covering_in_modes(tiled, options)), known))
    others = [plan for plans_of in by_modes.values() for plan in plans_of]
    if joint is not None and min(_spilled(program, plan) for best in found for plan in best.plans) > bound.cost:
        bound = bound.raised(least_jointly(program, options, search_budget(options)), SOLVER)
    every = [*(plan for best in found for plan in best.plans), *others]
    ranked = sorted((_cost(program, target, plan), k) for k, plan in enumerate(every))
    tied = [replace(every[k], strategy=OPTIMAL) for cost, k in ranked if cost[0] == ranked[0][0][0]]
    search = next((best.search for best in found if best.search != COMPLETE), COMPLETE)
    choices = {modes: chosen for best in found for modes, chosen in best.choices.items()}
    return Optimum(plans=tuple(dict.fromkeys(tied[:_TIED])), bound=bound, search=search, choices=choices)


def _first_plan(program: Program, target: Target, options: PlanningOptions) -> Plan:
    return plan_offline(program, target, choose_gaps(program, target, options), OPTIMAL, options)


def _in_modes(
    program: Program,
    target: Target,
    options: PlanningOptions,
    plans: Sequence[Plan],
    bound: LowerBound,
    searched: Mapping[Modes, Sequence["GapChoice"]],
) -> Optimum:
    """The best plan found for a program whose steps have their modes; ``plans`` of it to start from.

    ``searched``: choices under another placement, by the modes of their steps.
    """
    modes = tuple([step.mode for step in program.steps if step.mode is not None])
    plans = list(plans)
    problem = planners_covering(program, options)
    least = min(_spilled(program, plan) for plan in plans)
    choices: tuple[GapChoice, ...] = ()
    search = COMPLETE
    if least > bound.cost:
        if searched.get(modes):
            choices = tuple(searched[modes])
        else:
            choices, bound, search = _choices(program, target, options, problem, plans, bound)
        most = _PLACED if len(program.steps) < _LONG else _PLACED_IF_LONG
        for choice in choices[:most]:
            if choice.cost + problem.forced_cost >= least:
                break
            plan = plan_offline(program, target, choice.gaps, OPTIMAL, options)
            plans.append(plan)
            least = min(least, _spilled(program, plan))
        if len(program.steps) >= _LONG and choices and least > choices[0].cost + problem.forced_cost:
            plan, placed = _with_room(program, target, options, choices[0], bound)
            plans.append(plan)
            search = placed if search == COMPLETE else search
    ranked = sorted((_cost(program, target, plan), k) for k, plan in enumerate(plans))
    tied = [replace(plans[k], strategy=OPTIMAL) for cost, k in ranked if cost[0] == ranked[0][0][0]]
    return Optimum(plans=tuple(dict.fromkeys(tied[:_TIED])), bound=bound, search=search, choices={modes: choices})


def _with_room(
    program: Program, target: Target, options: PlanningOptions, choice: "GapChoice", bound: LowerBound
) -> tuple[Plan, str]:
    """A plan that starts with room for fragmentation and then takes gaps back; and how its search ended."""
    pool = (program.capacity_bytes or 0) - program.reserved_bytes
    problem = planners_covering(program, options, int(_ROOM * pool))
    start = replace(bound, covers=(_gaps(choice), *covers_of(problem)))
    roomy = _choices(program, target, options, problem, (), start)[0]
    budget = search_budget(options)
    plan, in_budget = plan_by_ejection(
        program,
        target,
        choice.gaps,
        roomy[0].gaps if roomy else choice.gaps,
        OPTIMAL,
        options,
        EjectionEffort(sweeps=_SWEEPS, budget=budget),
    )
    return plan, COMPLETE if in_budget else budget.end(OPTION)


@dataclass(frozen=True, slots=True)
class GapChoice:
    """Gaps to be spent off-chip, each with the step that forces it, and their cost."""

    cost: int
    gaps: list[tuple[GapOption, int]]


def _gaps(choice: GapChoice) -> tuple[GapKey, ...]:
    return tuple(gap.key for gap, _ in choice.gaps)


def _plans(plan_of: Callable[[str], Plan]) -> Iterable[Plan]:
    failed: CapacityError | None = None
    found = False
    for strategy in CHEAP_STRATEGIES:
        try:
            yield plan_of(strategy)
            found = True
        except CapacityError as error:
            failed = error
    if not found and failed is not None:
        raise failed


def _choices(
    program: Program,
    target: Target,
    options: PlanningOptions,
    problem: Covering,
    plans: Sequence[Plan],
    bound: LowerBound,
) -> tuple[tuple[GapChoice, ...], LowerBound, str]:
    """Choices of gaps, cheapest first; the bound, raised if a solver proved more; and how the search ended."""
    reduced = reduce(problem)
    column = {problem.gaps[g].key: c for c, g in enumerate(reduced.gaps)}
    starts: list[Iterable[GapKey]] = [_spilled_gaps(program, plan) for plan in plans]
    starts.append([gap.key for gap, _ in choose_gaps(program, target, options)])
    starts += [(), *bound.covers]
    found: dict[tuple[int, ...], int] = {}  # columns -> cost
    for start in starts:
        cover = Cover(reduced, sorted({column[gap] for gap in start if gap in column}))
        if complete_greedily(cover):
            cover.prune(cover.columns())
            found[tuple(cover.columns())] = cover.cost
    if not found:
        return (), bound, "no choice of gaps fits"
    goal = bound.cost - problem.forced_cost
    search = COMPLETE
    if min(found.values()) > goal:
        rows = bound.certificate if _is_bounded(problem, bound) else ()
        solved = solve_dynamic_program(reduced, rows, min(found.values()))
        if solved is not None:
            bound = _with(solved, _DYNAMIC_PROGRAMMING, reduced, problem, bound, found)
        else:
            bound, search = _searched(reduced, problem, options, bound, found)
    cheapest = min(found.values())
    near = sorted((cost, columns) for columns, cost in found.items() if cost <= _NEAR * cheapest)
    choices = tuple(GapChoice(cost, _named(problem, reduced, columns)) for cost, columns in near[:_PLACED])
    return choices, bound, search


def _searched(
    reduced: Reduced, problem: Covering, options: PlanningOptions, bound: LowerBound, found: dict[tuple[int, ...], int]
) -> tuple[LowerBound, str]:
    """Local search, then the integer program; adds choices to ``found``. Returns the bound and how the search ended."""
    goal, budget = bound.cost - problem.forced_cost, search_budget(options)
    best = Cover(reduced, min(found.items(), key=lambda item: item[1])[0])
    if len(reduced.gaps) >= MANY_COLUMNS and _is_bounded(problem, bound):
        in_budget = improve_in_windows(best, budget)
    else:  # with room left free, a choice that is optimal to the byte is the hardest to place
        in_budget = improve(best, goal, budget.half())
    found[tuple(best.columns())] = best.cost
    if best.cost <= goal:
        return bound, COMPLETE
    solved = solve_milp(reduced, best.columns(), budget)
    if solved is None:
        if len(reduced.gaps) > MOST_COLUMNS and in_budget:
            return bound, f"too large to solve exactly: {len(reduced.gaps):,} gaps"
        return bound, budget.end(OPTION)
    bound = _with(solved, SOLVER, reduced, problem, bound, found)
    if solved.stopped == OUT_OF_BUDGET or (solved.stopped and not in_budget):
        return bound, budget.end(OPTION)
    return bound, solved.stopped or COMPLETE


def _with(
    solved: Solved, by: str, reduced: Reduced, problem: Covering, bound: LowerBound, found: dict[tuple[int, ...], int]
) -> LowerBound:
    """The bound, raised to what a solver proved; its choice is added to ``found``."""
    if solved.columns is not None:
        cover = Cover(reduced, solved.columns)
        if complete_greedily(cover):  # complete up to the solver's tolerances
            cover.prune(cover.columns())
            found[tuple(cover.columns())] = cover.cost
    if not _is_bounded(problem, bound) or solved.lower_cost is None:
        return bound
    cost = min(solved.lower_cost, *found.values()) + problem.forced_cost
    return replace(bound, cost=cost, proven_by=by) if cost > bound.cost else bound


def _is_bounded(problem: Covering, bound: LowerBound) -> bool:
    """Whether the bound is on the same problem.

    Where operands may leave, or buffers be freed, earlier than our planners do it, the planners' problem is not that of
    all plans.
    """
    return (problem.gaps, problem.excess_bytes) == (bound.problem.gaps, bound.problem.excess_bytes)


def _spilled_gaps(program: Program, plan: Plan) -> list[GapKey]:
    """Gaps that a plan spends off-chip. A weight evicted before its first use left after a use in the run before."""
    n = len(program.steps)
    return [(s.buffer, s.last_use_step + (n if s.last_use_step < 0 else 0)) for s in plan.spills]


def _named(problem: Covering, reduced: Reduced, columns: Sequence[int]) -> list[tuple[GapOption, int]]:
    """The gaps of columns, each with the step that needs it most, in program order."""
    slack = Cover(reduced, columns).slack
    chosen = []
    for c in columns:
        row = min((r for start, end in reduced.ranges[c] for r in range(start, end)), key=lambda r: int(slack[r]))
        chosen.append((problem.gaps[reduced.gaps[c]], reduced.steps[row]))
    return sorted(chosen, key=lambda item: (item[0].buffer, item[0].last_use))


def _spilled(program: Program, plan: Plan) -> int:
    return count_traffic(program, plan).spill_bytes


def _cost(program: Program, target: Target, plan: Plan) -> tuple[int, float, int]:
    """(spill bytes, seconds of its transfers one after another, bytes moved inside SRAM)."""
    costs = transfer_costs(program, target)
    seconds = sum(float((costs.read_s if t.kind.is_read else costs.write_s)[t.buffer]) for t in plan.transfers)
    traffic = count_traffic(program, plan)
    return traffic.spill_bytes, seconds, traffic.moved_bytes
