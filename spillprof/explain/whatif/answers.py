"""Questions about a whole comparison of strategies: what would help its leading result, and why something left."""

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
    """What was compared."""

    engine: Engine
    run: Run
    results: Sequence[Result]
    plans: Mapping[str, Plan]  # by strategy, of those that have one


def what_would_help(
    asked: Comparison, better_order: Callable[[], tuple[int, ...] | None], smaller_batch: SmallerBatch | None
) -> Tried:
    """Changes that help the leading result, tried under the best of the strategies that are quick to plan."""
    lead = main_result(asked.results)
    if lead is None:
        return Tried()
    base = main_result([r for r in asked.results if r.strategy in CHEAP_STRATEGIES]) or lead
    now = Situation(
        trial=_trial(asked, base.strategy),
        program=asked.engine.program(asked.run),
        spill_bytes=base.spill_bytes,
        moved_bytes=base.compaction_bytes,
        buffers=_moved(asked, base),
        strategies=tuple(r.strategy for r in asked.results),
        pinned=_pinned(base, asked.run.planning),
        better_order=better_order,
        smaller_batch=smaller_batch,
    )
    return suggestions(now, _outcome(lead))


def _moved(asked: Comparison, base: Result) -> tuple[BufferCost, ...]:
    """What moved most first: buffers that spill, or, where none does, those that are moved inside SRAM."""
    if base.buffers or base.strategy not in asked.plans:
        return base.buffers
    moved = Counter[int]()
    for move in asked.plans[base.strategy].moves:
        moved[move.buffer] += move.size_bytes
    program = asked.engine.fitted(asked.run)
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


def over_sizes(asked: Comparison) -> SizeCurve:
    """Other sizes of memory under the best strategy that is quick to plan, and one that spills differently here."""
    cheap = [r for r in asked.results if r.strategy in CHEAP_STRATEGIES and r.feasible]
    base = main_result(cheap)
    first = _trial(asked, JUDGE if base is None else base.strategy)
    others = [r.strategy for r in cheap if base is not None and r.spill_bytes != base.spill_bytes]
    return size_curve(first, asked.engine.program(asked.run), [first.strategy, *others])


def story_of(name: str, asked: Comparison) -> Story | None:
    """The story of what has the name, under the leading strategy; None if no strategy can be planned.

    ``UsageError`` if nothing has the name, or nothing can leave.
    """
    lead = main_result(asked.results)
    if lead is None:
        return None
    if lead.strategy not in asked.plans:
        raise UsageError("nothing leaves a memory without limit", hint="ask for a strategy that spills")
    plan = asked.plans[lead.strategy]
    base = main_result([r for r in asked.results if r.strategy in CHEAP_STRATEGIES]) or lead
    fitted = asked.engine.fitted(asked.run)
    evidence = StoryContext(
        graph=asked.run.graph,
        program=fitted,
        plan=plan,
        charged=charges(fitted, plan, asked.run.planning),
        result=lead,
        again=_trial(asked, (lead if lead.strategy in CHEAP_STRATEGIES else base).strategy),
        before=_outcome(lead),
    )
    return story(name, evidence)


def _trial(asked: Comparison, strategy: str) -> Trial:
    """How to run it again, under the strategy if that is quick to plan."""
    return Trial(engine=asked.engine, run=asked.run, strategy=strategy if strategy in CHEAP_STRATEGIES else JUDGE)


def _pinned(base: Result, planning: PlanningOptions) -> dict[str, TrialTotals]:
    """Runs in which a buffer that oscillates had a slot, by buffer; none where a slot changes what runs, or when."""
    if planning.order is not Order.FILE or planning.recompute is not Recomputing.OFF or planning.recompute_tensor:
        return {}
    return {
        each.buffer: TrialTotals(
            spill_bytes=each.pinned_spill_bytes, latency_s=each.pinned_latency_s, energy_j=each.pinned_energy_j
        )
        for each in base.oscillations
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
