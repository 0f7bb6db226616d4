"""Engine: lowers, fits, plans and simulates a Run, and caches the result of each stage.

One engine belongs to one command (or one process of a sweep) and is passed in. There are no other caches, except that
a Program memoizes facts about itself. Threads may share an engine.
"""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial

from spillprof.analysis.occupancy import in_use_by_step
from spillprof.analysis.results import totals_of
from spillprof.engine.keys import (
    NAMES_FIELDS,
    OF_THE_BOUND,
    OF_THE_PROGRAM,
    OF_THE_SEARCH,
    UNREAD_BY_FIT,
    UNREAD_BY_PLANNING,
    UNREAD_BY_PLAYING,
    planning_key,
    target_key,
    unread_by_lowering,
)
from spillprof.engine.recompute.choices import named_choices
from spillprof.engine.recompute.search import Recomputation, recomputed
from spillprof.engine.run import PlayedPlan, Run, terms_of
from spillprof.engine.trials import latency_on_demand_s, memory_order
from spillprof.frontends.models import GraphCache
from spillprof.ir.lru_cache import LruCache
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.result import Totals
from spillprof.ir.target import Target
from spillprof.ir.tiled import with_modes
from spillprof.ir.units import LARGEST_SIZE
from spillprof.lowering.fitting import fit, min_sram, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.transforms import reordered, with_recomputed
from spillprof.planning.bounds.covering import Price, Prices
from spillprof.planning.bounds.methods import LowerBound, lower_bound
from spillprof.planning.gaps import locked_bytes
from spillprof.planning.optimal.search import Optimum, find_optimum
from spillprof.planning.options import Dma, Order, PlanningOptions, Recomputing
from spillprof.planning.planner import make_plan, plan_and_choices
from spillprof.planning.recorder import streamed_operands
from spillprof.planning.strategies import IDEAL, ONLINE_RULES, OPTIMAL, check_strategy
from spillprof.planning.tiling.choice import oversized_steps
from spillprof.timing.dma import Link, read_link, write_link
from spillprof.timing.issue_times import best_issue_times
from spillprof.timing.timeline import simulate
from spillprof.verify import verify

Plans = tuple[tuple[Plan, ...], int]
"""Plans with equal spill bytes and transfers on demand, and how many evictions the strategy decided."""

_PLANNED = PlanningOptions()
_UNREAD_BY_BOUNDS = frozenset(PlanningOptions.__dataclass_fields__) - OF_THE_BOUND
PICOSECONDS_PER_S = 1e12


class Engine:
    """Lowers, fits, orders, plans, plays and bounds runs."""

    def __init__(self, graphs: GraphCache | None = None) -> None:
        self.graphs: GraphCache = LruCache(16) if graphs is None else graphs  # for ``read_model``
        self._lowered: LruCache[Program] = LruCache(32)
        self._orders: LruCache[tuple[int, ...]] = LruCache(8)
        self._recomputed: LruCache[tuple[Recomputation | None]] = LruCache(8)
        self._fitted: LruCache[Program] = LruCache(8)
        self._plans: LruCache[Plans] = LruCache(16)
        self._optima: LruCache[Optimum] = LruCache(16)
        self._searched: LruCache[Optimum] = LruCache(16)
        self._bounds: LruCache[LowerBound] = LruCache(64)
        self._issued: LruCache[PlayedPlan] = LruCache(8)
        self._played: LruCache[PlayedPlan] = LruCache(8)
        self._ideals: LruCache[PlayedPlan] = LruCache(64)
        self._undecided: LruCache[Totals] = LruCache(64)

    def __reduce__(self) -> tuple[type["Engine"], tuple[()]]:
        return Engine, ()  # a pickled engine is empty

    # Programs.

    def lowered(self, run: Run) -> Program:
        """The lowered program in file order, not fitted. Raises ``ModelError`` and ``UsageError`` as ``lower`` does."""
        key = (run.graph.digest, target_key(run.target, unread_by_lowering(run.lowering)), run.lowering)
        run_s = partial(latency_on_demand_s, target=run.target, options=run.lowering)
        return self._lowered.get_or_make(key, lambda: lower(run.graph, run.target, run.lowering, run_s))

    def ordered(self, run: Run) -> Program:
        """The lowered program in the order that the options select, without recomputation."""
        program = self.lowered(run)
        return program if run.planning.order is Order.FILE else reordered(program, self.best_order(program, run))

    def best_order(self, program: Program, run: Run) -> tuple[int, ...]:
        """Permutation of the program's steps that spills least, as found by ``memory_order``."""
        key = (program, target_key(run.target, ()), run.lowering, planning_key(run.planning, OF_THE_PROGRAM))
        return self._orders.get_or_make(key, lambda: memory_order(program, run.target, run.lowering, run.planning))

    def recomputation(self, run: Run) -> Recomputation | None:
        """The recomputed operators of the run and what they change, or None: see ``recomputed``."""
        if run.planning.recompute is Recomputing.OFF and not run.planning.recompute_tensor:
            return None
        program = self.ordered(run)
        key = (program, target_key(run.target, ()), run.lowering, run.planning)
        return self._recomputed.get_or_make(key, lambda: (recomputed(program, run, self),))[0]

    def program(self, run: Run) -> Program:
        """The program that runs, not fitted: the ordered steps and the recomputed ones."""
        if run.planning.recompute is Recomputing.OFF:
            once = self.ordered(run)
            return with_recomputed(once, named_choices(once, run.planning.recompute_tensor))
        found = self.recomputation(run)
        return self.ordered(run) if found is None else found.program

    def fit(self, program: Program, run: Run) -> Program:
        """A program fitted to the memory of the run's target. ``CapacityError`` as ``fit`` raises it."""
        key = (program, target_key(run.target, UNREAD_BY_FIT), run.lowering)
        return self._fitted.get_or_make(key, lambda: fit(program, run.target, run.lowering))

    def fitted(self, run: Run) -> Program:
        """The program that strategies plan, fitted to the memory. ``CapacityError`` as ``fit`` raises it."""
        return self.fit(self.program(run), run)

    # Plans, bounds and timelines.

    def plans(self, fitted: Program, run: Run, strategy: str) -> Plans:
        """The plan of a strategy; for ``optimal``, all equally good plans. Raises as ``make_plan`` does."""
        if strategy == OPTIMAL and fitted.capacity_bytes is not None:
            return self.optimum(fitted, run).plans, 1
        options = _in_infinite_memory(run.planning) if strategy == IDEAL else run.planning
        key = (fitted, strategy, *_planning_keys(run, options, OF_THE_SEARCH | {"dma"}))

        def make() -> Plans:
            plan, choices = plan_and_choices(fitted, run.target, strategy, options)
            return (plan,), choices

        return self._plans.get_or_make(key, make)

    def optimum(self, fitted: Program, run: Run) -> Optimum:
        """The best plans found, the bound that the search proved, and how it ended."""
        other_placement = (fitted, *_planning_keys(run, run.planning, {"dma", "placement"}))

        def search() -> Optimum:
            searched = self._searched.get(other_placement)
            found = find_optimum(
                fitted,
                run.target,
                run.planning,
                lambda strategy: self.plans(fitted, run, strategy)[0][0],
                self.bound(fitted, run) if searched is None else searched.bound,
                searched,
            )
            self._searched.put(other_placement, found)
            return found

        return self._optima.get_or_make((fitted, *_planning_keys(run, run.planning, {"dma"})), search)

    def bound(self, fitted: Program, run: Run, *, searched: bool = False) -> LowerBound:
        """The lower bound on spill bytes; ``searched``: as raised by the search for the optimum.

        Raises as ``lower_bound`` does.
        """
        if searched:
            return self.optimum(fitted, run).bound
        key = (fitted, planning_key(run.planning, _UNREAD_BY_BOUNDS))
        return self._bounds.get_or_make(key, lambda: lower_bound(fitted, run.planning))

    def play(self, fitted: Program, run: Run, strategy: str) -> PlayedPlan:
        """The strategy's fastest plan, verified, with the issue times that the options select, and its timeline.

        ``Dma.PREFETCH`` takes the best issue times found, which are never slower than ``Dma.DEMAND``. Raises as
        ``make_plan`` does.
        """
        key = (fitted, strategy, target_key(run.target, UNREAD_BY_PLAYING), planning_key(run.planning, OF_THE_PROGRAM))

        def make() -> PlayedPlan:
            issued = [self.issue(fitted, run, plan) for plan in self.plans(fitted, run, strategy)[0]]
            fastest = min(issued, key=lambda each: each.timeline.makespan_s)
            violations = verify(fastest.program, fastest.plan, terms_of(run.planning))
            if violations:
                raise AssertionError(f"strategy {strategy} made an illegal plan: {violations[0]}")
            return fastest

        return (self._ideals if fitted.capacity_bytes is None else self._played).get_or_make(key, make)

    def issue(self, fitted: Program, run: Run, on_demand: Plan) -> PlayedPlan:
        """The plan with the issue times that the options select, not verified, and its timeline."""
        key = (fitted, on_demand, target_key(run.target, UNREAD_BY_PLAYING), run.planning.dma)

        def make() -> PlayedPlan:
            program = with_modes(fitted, on_demand.modes)
            if run.planning.dma is Dma.PREFETCH:
                plan, timeline = best_issue_times(program, on_demand, run.target)
            else:
                plan, timeline = on_demand, simulate(program, on_demand, run.target)
            return PlayedPlan(program=program, plan=plan, timeline=timeline)

        return self._issued.get_or_make(key, make)

    def totals(self, run: Run, strategy: str, placement: str) -> Totals:
        """Plans, verifies and plays one strategy. ``CapacityError`` if it cannot be planned in this memory.

        The program is chosen under the run's own placement, whatever ``placement`` plans it. If an online strategy
        never chooses a victim, all online strategies have the same totals, and so has an offline strategy that spills
        nothing.
        """
        if strategy == IDEAL:
            return _totals(self.infinite(run))
        fitted, placed = self.fitted(run), run.planned(placement=placement)
        key = (
            fitted,
            target_key(run.target, NAMES_FIELDS),
            planning_key(placed.planning, OF_THE_PROGRAM | OF_THE_SEARCH),
        )
        undecided = self._undecided.get(key)
        if undecided is not None and (strategy in ONLINE_RULES or _spills_nothing(fitted, placed, strategy, undecided)):
            return undecided
        found = _totals(self.play(fitted, placed, strategy))
        if not self.plans(fitted, placed, strategy)[1]:
            self._undecided.put(key, found)
        return found

    # The baseline: infinite memory.

    def ideal(self, run: Run) -> PlayedPlan:
        """The run in infinite memory, without recomputation."""
        return self.play(unlimited(self.ordered(run), run.target, run.lowering), run, IDEAL)

    def infinite(self, run: Run) -> PlayedPlan:
        """The run in infinite memory, with its recomputed operators."""
        return self.play(unlimited(self.program(run), run.target, run.lowering), run, IDEAL)

    def ideal_s(self, run: Run) -> float:
        """Makespan with infinite SRAM: the run that holds every operand or the one that streams, whichever is faster.

        Streaming overlaps an operand's transfer with its operator, so an oversized operator can be faster than one
        that waits for its operands; and a plan that is legal in less memory is legal in infinite memory. For the same
        reason a strategy that is faster than this sets the ideal. ``CapacityError`` as ``fit`` raises it.
        """
        fitted = self.fit(self.ordered(run), run)
        held_s = self.ideal(run).timeline.makespan_s
        if not streamed_operands(fitted):
            return held_s
        streaming = self.play(replace(fitted, capacity_bytes=None), run, IDEAL)
        return min(held_s, streaming.timeline.makespan_s)

    def sram_limits(self, run: Run) -> tuple[int, int]:
        """(smallest SRAM at which nothing is streamed, peak SRAM of the ideal run), in bytes."""
        program, needed = self.lowered(run), partial(locked_bytes, options=run.planning)
        smallest, _ = min_sram(program, run.target, run.lowering, needed)
        roomy = run.target.with_overrides(sram_bytes=LARGEST_SIZE)  # the staging area at its largest
        boundless = unlimited(program, roomy, run.lowering)
        plan = make_plan(boundless, roomy, IDEAL, run.planning)
        return smallest, max(smallest, int(in_use_by_step(boundless, plan).max(initial=0)))


def picoseconds(target: Target) -> Prices:
    """Prices of transfers without contention, in whole picoseconds, rounded down: bounds stay exact."""

    def price(link: Link) -> Price:
        return lambda nbytes: int(link.alone_s(nbytes) * PICOSECONDS_PER_S * (1 - 1e-12))

    return Prices(read=price(read_link(target)), write=price(write_link(target)))


def _spills_nothing(fitted: Program, run: Run, strategy: str, undecided: Totals) -> bool:
    """Whether an offline strategy spends no gap off-chip, and so makes the plan of the online strategies."""
    choose_gaps = check_strategy(strategy).choose_gaps
    return (
        choose_gaps is not None
        and not fitted.weights_persist
        and not oversized_steps(fitted)
        and not undecided.compaction_count
        and not choose_gaps(fitted, run.target, run.planning)
    )


def _totals(played: PlayedPlan) -> Totals:
    return totals_of(played.program, played.plan, played.timeline)


def _in_infinite_memory(options: PlanningOptions) -> PlanningOptions:
    """The options with the default placement: in infinite memory placement changes nothing."""
    return replace(options, placement=_PLANNED.placement)


def _planning_keys(run: Run, options: PlanningOptions, unread: frozenset[str] | set[str]) -> tuple[Hashable, ...]:
    return target_key(run.target, UNREAD_BY_PLANNING), planning_key(options, OF_THE_PROGRAM | unread)
