"""What-if questions on analyzed strategies: suggestions, the curve over SRAM sizes, the story of a tensor."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spillprof.analysis.attribution import charges
from spillprof.analysis.main_result import main_result
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.engine.trials import JUDGE
from spillprof.explain.whatif.change import Situation, SmallerBatch
from spillprof.explain.whatif.size_curve import size_curve
from spillprof.explain.whatif.suggest import Tried, suggestions
from spillprof.explain.whatif.trial import Trial, TrialTotals
from spillprof.explain.whatif.why import StoryContext, story
from spillprof.ir.errors import UsageError
from spillprof.ir.plan import Plan
from spillprof.ir.profile import SizeCurve
from spillprof.ir.result import BufferCost, Result
from spillprof.ir.story import Story
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import Order, PlanningOptions, Recomputing
from spillprof.planning.strategies import CHEAP_STRATEGIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Strategies analyzed on one run."""

    engine: Engine
    run: Run
    results: Sequence[Result]
    plans: Mapping[str, Plan]  # by strategy, if it has one


def what_would_help(
    comparison: Comparison, better_order: Callable[[], tuple[int, ...] | None], smaller_batch: SmallerBatch | None
) -> Tried:
    """Changes that improve the main result, simulated under the best strategy that is quick to plan."""
    main = main_result(comparison.results)
    if main is None:
        return Tried()
    quick = main_result([r for r in comparison.results if r.strategy in CHEAP_STRATEGIES]) or main
    now = Situation(
        trial=_trial(comparison, quick.strategy),
        program=comparison.engine.program(comparison.run),
        spill_bytes=quick.spill_bytes,
        moved_bytes=quick.compaction_bytes,
        buffers=_moved(comparison, quick),
        strategies=tuple(r.strategy for r in comparison.results),
        pinned=_pinned(quick, comparison.run.planning),
        better_order=better_order,
        smaller_batch=smaller_batch,
    )
    return suggestions(now, _outcome(main))


def _moved(comparison: Comparison, quick: Result) -> tuple[BufferCost, ...]:
    """Buffers that spill or, if none does, that are moved inside SRAM; most bytes first."""
    if quick.buffers or quick.strategy not in comparison.plans:
        return quick.buffers
    moved = Counter[int]()
    for move in comparison.plans[quick.strategy].moves:
        moved[move.buffer] += move.size_bytes
    program = comparison.engine.fitted(comparison.run)
    lives = lifetimes(program)
    return tuple(
        BufferCost(
            name=program.buffers[b].name,
            kind=str(program.buffers[b].kind),
            size_bytes=program.buffers[b].size_bytes,
            start=lives[b].write_step or 0,
            end=lives[b].last_step,
            uses=lives[b].read_steps,
            spill_count=0,
            spill_bytes=0,
        )
        for b, _ in sorted(moved.items(), key=lambda item: (-item[1], item[0]))
    )


def over_sizes(comparison: Comparison) -> SizeCurve:
    """Curve over SRAM sizes of the best strategy that is quick to plan, and of one that spills differently here."""
    cheap = [r for r in comparison.results if r.strategy in CHEAP_STRATEGIES and r.feasible]
    quick = main_result(cheap)
    first = _trial(comparison, JUDGE if quick is None else quick.strategy)
    others = [r.strategy for r in cheap if quick is not None and r.spill_bytes != quick.spill_bytes]
    return size_curve(first, comparison.engine.program(comparison.run), [first.strategy, *others])


def story_of(name: str, comparison: Comparison) -> Story | None:
    """The story of a tensor or operator under the main strategy; None if no strategy has a plan.

    ``UsageError`` if the name is unknown, or the memory infinite.
    """
    main = main_result(comparison.results)
    if main is None:
        return None
    if main.strategy not in comparison.plans:
        raise UsageError("nothing leaves a memory without limit", hint="ask for a strategy that spills")
    plan = comparison.plans[main.strategy]
    quick = main_result([r for r in comparison.results if r.strategy in CHEAP_STRATEGIES]) or main
    fitted = comparison.engine.fitted(comparison.run)
    context = StoryContext(
        graph=comparison.run.graph,
        program=fitted,
        plan=plan,
        charged=charges(fitted, plan, comparison.run.planning),
        result=main,
        again=_trial(comparison, (main if main.strategy in CHEAP_STRATEGIES else quick).strategy),
        before=_outcome(main),
    )
    return story(name, context)


def _trial(comparison: Comparison, strategy: str) -> Trial:
    """The run under the strategy if that is quick to plan, else under ``JUDGE``."""
    return Trial(
        engine=comparison.engine, run=comparison.run, strategy=strategy if strategy in CHEAP_STRATEGIES else JUDGE
    )


def _pinned(quick: Result, planning: PlanningOptions) -> dict[str, TrialTotals]:
    """Totals with an oscillating buffer in a slot, by buffer; empty if a slot changes the order or recomputation."""
    if planning.order is not Order.FILE or planning.recompute is not Recomputing.OFF or planning.recompute_tensor:
        return {}
    return {
        each.buffer: TrialTotals(
            spill_bytes=each.pinned_spill_bytes, latency_s=each.pinned_latency_s, energy_j=each.pinned_energy_j
        )
        for each in quick.oscillations
        if each.pinned_spill_bytes is not None
        and each.pinned_latency_s is not None
        and each.pinned_energy_j is not None
    }


def _outcome(result: Result) -> TrialTotals:
    return TrialTotals(
        spill_bytes=result.spill_bytes,
        latency_s=result.latency_s,
        energy_j=result.energy_j,
        moved_bytes=result.compaction_bytes,
    )
