"""Fitted programs, their plans, runs and bounds, kept for whoever asks again: what is tried starts from all of them."""

from dataclasses import replace

from spillprof.ir.lru_cache import LruCache
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Timeline
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.bounds.methods import LowerBound, lower_bound
from spillprof.planning.optimal.search import Optimum, find_optimum
from spillprof.planning.options import Dma, Order, PlanningOptions, Recomputing
from spillprof.planning.planner import plan_and_choices
from spillprof.planning.strategies import OPTIMAL
from spillprof.timing.issue_times import best_issue_times
from spillprof.timing.timeline import simulate

_MOST_PLANS = 16  # of one program and then some: plans are large
_MOST_PROGRAMS = 8
_MOST_RUNS = 8
_MOST_BOUNDS = 64

Plans = tuple[tuple[Plan, ...], int]
"""Plans that spill the same bytes, transfers on demand; how often their course was the strategy's choice."""

_plans: LruCache[tuple[Program, Target, Plans]] = LruCache(_MOST_PLANS)
_optima: LruCache[tuple[Program, Target, Optimum]] = LruCache(_MOST_PLANS)
_searched: LruCache[tuple[Program, Target, Optimum]] = LruCache(_MOST_PLANS)
_bounds: LruCache[tuple[Program, LowerBound]] = LruCache(_MOST_BOUNDS)
_fitted: LruCache[tuple[Program, Program]] = LruCache(_MOST_PROGRAMS)
_runs: LruCache[tuple[Program, Plan, Target, tuple[Plan, Timeline]]] = LruCache(_MOST_RUNS)


def fitted_of(program: Program, target: Target, lowering: LoweringOptions) -> Program:
    """The program fitted to the memory. ``CapacityError`` as ``fit`` raises it."""
    memory = (target.sram_bytes, target.reserved_bytes, target.alignment_bytes, target.shared_workspace)
    staging = (target.weight_staging_bytes, target.stream_staging_bytes)
    key = (id(program), memory, staging, lowering)
    return _fitted.get_or_make(key, lambda: (program, fit(program, target, lowering)))[1]


def run_of(program: Program, on_demand: Plan, target: Target, dma: Dma) -> tuple[Plan, Timeline]:
    """The plan with its transfers issued when it is best, or on demand, and its timeline."""

    def run() -> tuple[Program, Plan, Target, tuple[Plan, Timeline]]:
        if dma is Dma.PREFETCH:
            return program, on_demand, target, best_issue_times(program, on_demand, target)
        return program, on_demand, target, (on_demand, simulate(program, on_demand, target))

    return _runs.get_or_make((id(program), id(on_demand), id(target), dma), run)[3]


def plans_of(program: Program, target: Target, strategy: str, options: PlanningOptions) -> Plans:
    """The plan of a strategy; of ``optimal`` all that are equally good. Raises as ``make_plan`` does."""
    if strategy == OPTIMAL and program.capacity_bytes is not None:
        return optimum_of(program, target, options).plans, 1
    return _kept_plans(program, target, strategy, options)


def optimum_of(program: Program, target: Target, options: PlanningOptions) -> Optimum:
    """The best plans found; the bound that the search proved is kept too."""

    other_placement = (id(program), id(target), replace(options, placement="", dma=Dma.DEMAND))

    def search() -> tuple[Program, Target, Optimum]:
        kept = _searched.get(other_placement)
        searched = None if kept is None else kept[2]
        optimum = find_optimum(
            program,
            target,
            options,
            lambda strategy: _kept_plans(program, target, strategy, options)[0][0],
            bound_of(program, options),
            searched,
        )
        _searched.put(other_placement, (program, target, optimum))
        _bounds.put(_bound_key(program, options), (program, optimum.bound))
        return program, target, optimum

    return _optima.get_or_make((id(program), id(target), options), search)[2]


def bound_of(program: Program, options: PlanningOptions) -> LowerBound:
    """The best lower bound on spill bytes that is known so far. Raises as ``lower_bound`` does."""
    return _bounds.get_or_make(_bound_key(program, options), lambda: (program, lower_bound(program, options)))[1]


def search_end(program: Program, target: Target, options: PlanningOptions) -> str:
    """How the search for the optimum ended; empty if there was none."""
    found = _optima.get((id(program), id(target), options))
    return "" if found is None else found[2].search


def _kept_plans(program: Program, target: Target, strategy: str, options: PlanningOptions) -> Plans:
    # Program and target are kept beside the plan: nothing else gets their ids meanwhile.
    def make() -> tuple[Program, Target, Plans]:
        plan, choices = plan_and_choices(program, target, strategy, options)
        return program, target, ((plan,), choices)

    return _plans.get_or_make((id(program), id(target), strategy, _as_planned(options)), make)[2]


def _as_planned(options: PlanningOptions) -> PlanningOptions:
    """Without what makes another program, or runs and searches otherwise."""
    return replace(
        options,
        dma=Dma.DEMAND,
        order=Order.FILE,
        optimize_work=0,
        optimize_seconds=None,
        recompute=Recomputing.OFF,
        recompute_tensor=(),
    )


def _bound_key(program: Program, options: PlanningOptions) -> tuple[int, PlanningOptions]:
    plain = PlanningOptions()  # whose other switches do not matter to the bound
    return id(program), replace(plain, inputs=options.inputs, writeback=options.writeback, start=options.start)
