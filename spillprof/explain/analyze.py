"""analyze(): simulates every strategy, compares it with infinite SRAM, and explains; the result is a Profile."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spillprof import __version__
from spillprof.analysis.attribution import Charge, charges
from spillprof.analysis.facts import (
    buffer_facts,
    cold_notes,
    convolution_facts,
    model_facts,
    op_time_facts,
    oversized_operators,
    reserved_for,
)
from spillprof.analysis.main_result import main_result
from spillprof.analysis.occupancy import in_use_by_step, live_at, live_bytes
from spillprof.analysis.results import against_ideal, result_of
from spillprof.analysis.roofline import step_facts
from spillprof.engine.engine import PICOSECONDS_PER_S, Engine, picoseconds
from spillprof.engine.recompute.search import recompute_facts
from spillprof.engine.run import PlayedPlan, Run
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.explain.options import AnalyzeOptions, configuration, run_of
from spillprof.explain.whatif.answers import Comparison, over_sizes, story_of, what_would_help
from spillprof.explain.whatif.change import SmallerBatch
from spillprof.explain.whatif.suggest import Tried
from spillprof.explain.whatif.why import resolve
from spillprof.ir.errors import CapacityError
from spillprof.ir.graph import Graph
from spillprof.ir.plan import Plan
from spillprof.ir.profile import Bounds, Profile
from spillprof.ir.program import Program
from spillprof.ir.result import Ideal, Oscillation, Result
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.stages import Stage, unheard
from spillprof.ir.target import Target
from spillprof.ir.tiled import with_modes
from spillprof.ir.timeline import Timeline
from spillprof.lowering.transforms import with_slots
from spillprof.planning.bounds.methods import lower_cost
from spillprof.planning.bounds.rows import certificate_of
from spillprof.planning.options import Inputs, PlanningOptions
from spillprof.planning.recorder import streamed_operands
from spillprof.planning.strategies import CHEAP_STRATEGIES, IDEAL, OPTIMAL, STRATEGIES, check_strategy
from spillprof.planning.tiling.choice import choose_modes
from spillprof.planning.tiling.network_floor import dram_bytes_floor
from spillprof.planning.traffic import count_traffic

SEARCHED_STEPS = 2_000
"""Most steps of a program for which ``optimal`` is among the default strategies."""


def analyze(
    graph: Graph,
    target: Target,
    options: AnalyzeOptions,
    *,
    engine: Engine | None = None,
    command: str = "",
    smaller_batch: SmallerBatch | None = None,
    why: str | None = None,
    stage: Stage = unheard,
) -> Profile:
    """Simulates every strategy on the target, compares it with infinite SRAM, and explains.

    ``engine``: its caches are used; by default a new one. ``smaller_batch``: the same model with a smaller batch, to
    try as a what-if. ``why``: a tensor or operator to explain. ``stage``: progress callback. ``CapacityError`` if the
    program cannot be fitted; a strategy without a plan becomes an infeasible result.
    """
    for strategy in options.strategies:
        check_strategy(strategy)
    stage(0, 1, "the program")
    engine, run = engine or Engine(), run_of(graph, target, options)
    ideal_s = engine.ideal_s(run)
    program, fitted, ideal, infinite = engine.program(run), engine.fitted(run), engine.ideal(run), engine.infinite(run)
    recomputation = engine.recomputation(run)
    if not options.strategies:
        affordable = STRATEGIES if len(program.steps) <= SEARCHED_STEPS else CHEAP_STRATEGIES
        options = replace(options, strategies=affordable)
    finite = [s for s in options.strategies if s != IDEAL]
    total = len(finite) + 3
    played = {}
    for done, s in enumerate(finite, start=1):
        stage(done, total, f"strategy {s}")
        played[s] = _played(engine, run, s)
    if why is not None:
        resolve(why, graph, fitted)  # a wrong name is refused at once
    stage(total - 2, total, "why it spills")
    plans = {s: found.plan for s, found in played.items() if not isinstance(found, CapacityError)}
    causes = Counterfactuals(engine=engine, run=run, program=program, fitted=fitted, plans=tuple(plans.values()))
    simulated = [
        result_of(infinite.program, target, infinite.plan, infinite.timeline, (), ())
        if s == IDEAL
        else _simulated(engine, run, s, played[s], causes)
        for s in options.strategies
    ]
    ideal_s = min([ideal_s, *(r.latency_s for r in simulated if r.feasible)])
    ends_s = infinite.timeline.step_end_s.tolist()
    results = [against_ideal(ideal_s, r, ends_s) if r.feasible else r for r in simulated]
    traffic = count_traffic(ideal.program, ideal.plan)
    model = model_facts(graph, program, target, options.lowering, options.planning)
    comparison = Comparison(engine=engine, run=run, results=results, plans=plans)
    plans_by_rank = _in_order(results, played, fitted, options.planning)
    stage(total - 1, total, "what would help" if options.what_if else "the profile")
    tried = what_would_help(comparison, lambda: causes.better_order, smaller_batch) if options.what_if else Tried()
    return Profile(
        spillprof_version=__version__,
        model=replace(model, notes=(*model.notes, *cold_notes(plans_by_rank[0][0], options.planning))),
        target=target.resolved(),
        reserved=reserved_for(target, fitted),
        config=configuration(options),
        steps=step_facts(infinite.program, infinite.plan, target),
        live_bytes=live_bytes(infinite.program),
        peak_buffers=live_at(program, model.peak_step),
        oversized=oversized_operators(program, fitted, plans_by_rank),
        op_times=op_time_facts(program, options.lowering),
        convolutions=convolution_facts(program),
        ideal=Ideal(
            latency_s=ideal_s,
            energy_j=ideal.timeline.energy_j,
            compulsory_read_bytes=traffic.compulsory_read_bytes,
            compulsory_write_bytes=traffic.compulsory_write_bytes,
            peak_bytes=int(in_use_by_step(ideal.program, ideal.plan).max(initial=0)),
        ),
        results=tuple(results),
        buffers=buffer_facts(program),
        bounds=bounds_facts(engine, run, results, causes),
        suggestions=tried.suggestions,
        untried=tried.untried,
        size_curve=over_sizes(comparison) if options.what_if else None,
        why=None if why is None else story_of(why, comparison),
        recompute=None if recomputation is None else recompute_facts(recomputation),
        recomputed=() if recomputation is None else recomputation.copies,
        command=command,
        simulator_revision=SIMULATOR_REVISION,
    )


def _in_order(
    results: Sequence[Result],
    played: Mapping[str, PlayedPlan | CapacityError],
    fitted: Program,
    planning: PlanningOptions,
) -> list[tuple[Program, Plan]]:
    """The plans with their programs, that of the leading result first."""
    lead = main_result(results)
    found = {s: p for s, p in played.items() if isinstance(p, PlayedPlan)}
    first = [found.pop(lead.strategy)] if lead is not None and lead.strategy in found else []
    return [(p.program, p.plan) for p in (*first, *found.values())] or [_unplanned(fitted, planning)]


def _unplanned(fitted: Program, planning: PlanningOptions) -> tuple[Program, Plan]:
    """The program with a mode for each operator that does not fit, and no more of a plan than what its tiles move."""
    tiled = with_modes(fitted, choose_modes(fitted, planning))
    plan = Plan(
        strategy=IDEAL,
        capacity_bytes=None,
        reserved_bytes=0,
        segments=(),
        transfers=(),
        streamed=streamed_operands(tiled),
        modes=tuple(step.mode for step in tiled.steps if step.mode is not None),
    )
    return tiled, plan


def tensor_ranks(engine: Engine, run: Run) -> dict[str, int]:
    """Index of the step that writes each tensor, in the selected order; tensors inside fused steps are left out."""
    program = engine.ordered(run)
    return {name: i for i, step in enumerate(program.steps) for b in step.writes for name in program.buffers[b].tensors}


def _played(engine: Engine, run: Run, strategy: str) -> PlayedPlan | CapacityError:
    """The plan of a strategy and its timeline, or the error if it has no plan."""
    try:
        return engine.play(engine.fitted(run), run, strategy)
    except CapacityError as error:
        return error


def _simulated(
    engine: Engine, run: Run, strategy: str, played: PlayedPlan | CapacityError, causes: Counterfactuals
) -> Result:
    """The result of a strategy, with its oscillating buffers re-simulated in dedicated slots."""
    if isinstance(played, CapacityError):
        return Result(strategy=strategy, feasible=False, reason=played.message)
    fitted, plan = played.program, played.plan
    spill_bytes = count_traffic(fitted, plan).spill_bytes
    charged = charges(fitted, plan, run.planning)
    rungs = causes.ladder(strategy, spill_bytes)
    result = result_of(fitted, run.target, plan, played.timeline, charged, rungs)
    return replace(
        result,
        oscillations=oscillations(engine, run, strategy, charged),
        order_searched=causes.order_is_searched,
    )


OSCILLATES_FROM = 3
"""Reloaded spills from which a buffer oscillates."""

_SLOT_TRIALS = ((700, 3), (20_000, 1))
"""(most steps, oscillating buffers per strategy to re-simulate with a dedicated slot, each a whole run)."""


def oscillations(engine: Engine, run: Run, strategy: str, charged: Sequence[Charge]) -> tuple[Oscillation, ...]:
    """Buffers that oscillate, most spill bytes first; the first ones are re-simulated in a dedicated slot."""
    program = engine.program(run)
    count: dict[int, int] = {}
    moved: dict[int, int] = {}
    for c in charged:
        if c.evicted and c.spill.reloaded:
            count[c.spill.buffer] = count.get(c.spill.buffer, 0) + 1
            moved[c.spill.buffer] = moved.get(c.spill.buffer, 0) + c.total_bytes
    found = sorted((b for b, n in count.items() if n >= OSCILLATES_FROM), key=lambda b: (-moved[b], b))
    trials = next((n for most, n in _SLOT_TRIALS if len(program.steps) <= most), 0)
    if strategy == OPTIMAL:  # each trial would be a search
        trials = 0
    listed = []
    for rank, b in enumerate(found):
        pinned = _pinned(engine, run, strategy, b) if rank < trials else None
        listed.append(
            Oscillation(
                buffer=program.buffers[b].name,
                size_bytes=program.buffers[b].size_bytes,
                spill_count=count[b],
                spill_bytes=moved[b],
                pinned_spill_bytes=None if pinned is None else pinned[0],
                pinned_latency_s=None if pinned is None else pinned[1].makespan_s,
                pinned_energy_j=None if pinned is None else pinned[1].energy_j,
                tried=rank < trials,
            )
        )
    return tuple(listed)


def _pinned(engine: Engine, run: Run, strategy: str, buffer: int) -> tuple[int, Timeline] | None:
    """(spill bytes, timeline) of the whole run with the buffer in a dedicated slot; None if no plan is possible."""
    try:
        played = engine.play(engine.fit(with_slots(engine.program(run), [buffer]), run), run, strategy)
    except CapacityError:
        return None
    return count_traffic(played.program, played.plan).spill_bytes, played.timeline


def bounds_facts(engine: Engine, run: Run, results: Sequence[Result], causes: Counterfactuals) -> Bounds | None:
    """The proven bounds and the fewest spill bytes of a strategy; None if no plan is possible.

    The run in infinite SRAM does not count, as it is no plan of the fitted program.
    """
    fitted, planning = engine.fitted(run), run.planning
    searched = any(r.feasible and r.strategy == OPTIMAL for r in results)
    try:
        bound = engine.bound(fitted, run, searched=searched)
    except CapacityError:
        return None
    lower = bound.cost
    best = min((r.spill_bytes for r in results if r.feasible and r.strategy != IDEAL), default=None)
    gap = None if best is None else 0.0 if best == lower else best / lower - 1 if lower else None
    return Bounds(
        spill_bytes_lower=lower,
        spill_bytes_best=best,
        gap=gap,
        proven_by=bound.proven_by,
        certified_bytes=bound.certified_cost,
        certified_by=bound.certified_by,
        serial_cost_s_lower=lower_cost(fitted, planning, picoseconds(run.target), bound) / PICOSECONDS_PER_S,
        certificate=certificate_of(fitted, planning, bound.problem, bound.certificate, bound.certified_cost),
        search=engine.optimum(fitted, run).search if searched else "",
        any_order_bytes=0 if best == 0 else causes.unavoidable_bytes,
        dram_bytes_floor=dram_bytes_floor(
            engine.program(run), run.target.sram_bytes, inputs_resident=planning.inputs is Inputs.RESIDENT
        ),
    )
