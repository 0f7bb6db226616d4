"""From a Graph and a Target to a Profile: the one function that strings everything together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from spillprof import __version__
from spillprof.analysis.attribution import Charge, bytes_by_kind, charges
from spillprof.analysis.breakdown import breakdown
from spillprof.analysis.causes import Rung, added_up, causes_by_step
from spillprof.analysis.events import list_events, run_times
from spillprof.analysis.facts import (
    buffer_facts,
    convolution_facts,
    model_facts,
    op_time_facts,
    oversized_operators,
    target_facts,
)
from spillprof.analysis.hotspots import buffer_costs, operator_costs, streamed_beyond_compulsory
from spillprof.analysis.occupancy import in_use_by_step, live_at, residencies
from spillprof.analysis.roofline import step_facts, with_roofline
from spillprof.analysis.spill_timeline import spill_arcs
from spillprof.counterfactuals import Counterfactuals
from spillprof.errors import CapacityError, PlanError
from spillprof.known import bound_of, search_end
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.lowering.pinning import with_slots
from spillprof.model.certificate import Certificate
from spillprof.model.graph import Graph
from spillprof.model.plan import Plan, TransferKind
from spillprof.model.plan_json import plan_from_json, plan_to_json
from spillprof.model.profile import Bounds, Profile
from spillprof.model.program import Program
from spillprof.model.result import EnergyParts, Ideal, Oscillation, Result
from spillprof.model.revision import SIMULATOR_REVISION
from spillprof.model.target import Target
from spillprof.model.timeline import Timeline
from spillprof.planning.bounding.certify import certificate_of
from spillprof.planning.bounds import lower_cost
from spillprof.planning.liveness import lifetimes, live_bytes_by_step
from spillprof.planning.options import CHEAP_STRATEGIES, OPTIMAL, STRATEGIES, Dma, PlanningOptions
from spillprof.planning.planner import IDEAL, check_strategy
from spillprof.planning.traffic import count_traffic
from spillprof.recompute.search import recompute_facts
from spillprof.scheduling import scheduled
from spillprof.simulation import PICOSECONDS_PER_S, on_machine, picoseconds, planned, prepare
from spillprof.timing.timeline import simulate
from spillprof.verify import Violation, verify
from spillprof.verify.certificate import check_certificate
from spillprof.whatif.answers import Comparison, story_of, what_would_help
from spillprof.whatif.change import SmallerBatch
from spillprof.whatif.names import resolve

OSCILLATES_FROM = 3
"""A buffer that is spilled and reloaded so often oscillates."""

_PIN_TRIALS = ((700, 3), (20_000, 1))
"""(most steps, oscillating buffers a strategy that are re-simulated with a dedicated slot): each is a whole run."""


SEARCHED_STEPS = 2_000
"""Steps up to which strategy ``optimal`` is compared without being asked for."""


class WhatIf(StrEnum):
    """Whether changes are tried, each by a run of its own."""

    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """What to simulate."""

    strategies: tuple[str, ...] = ()  # none named: all, but "optimal" only up to SEARCHED_STEPS
    lowering: LoweringOptions = field(default_factory=LoweringOptions)
    planning: PlanningOptions = field(default_factory=PlanningOptions)
    what_if: WhatIf = WhatIf.OFF  # changes no figure: dozens of runs more, for Profile.suggestions


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """Whether a plan is legal, and what it costs if it is."""

    violations: tuple[Violation, ...]
    result: Result | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A program, unfitted and fitted, and what is the same for every strategy on it."""

    program: Program
    fitted: Program
    target: Target
    options: AnalyzeOptions


def analyze(
    graph: Graph,
    target: Target,
    options: AnalyzeOptions,
    *,
    command: str = "",
    smaller_batch: SmallerBatch | None = None,
    why: str | None = None,
) -> Profile:
    """Simulate every strategy on the target, compare it with infinite SRAM, and explain.

    ``smaller_batch``: the same model for fewer samples, if that can be had: something to try. ``why``: a tensor or an
    operator whose story to tell. ``CapacityError`` if no plan is possible at all; a strategy that alone fails becomes
    an infeasible result.
    """
    for strategy in options.strategies:
        check_strategy(strategy)
    machine = on_machine(prepare(graph, target, options.lowering), target, options.planning)
    program, fitted, ideal, infinite = machine.program, machine.fitted, machine.ideal, machine.infinite
    if not options.strategies:
        affordable = STRATEGIES if len(program.steps) <= SEARCHED_STEPS else CHEAP_STRATEGIES
        options = replace(options, strategies=affordable)
    case = _Case(program=program, fitted=fitted, target=target, options=options)
    played = {s: _played(case, s) for s in options.strategies if s != IDEAL}
    if why is not None:
        resolve(why, graph, fitted)  # a wrong name is refused at once
    causes = _counterfactuals(case, [p[0] for p in played.values() if not isinstance(p, CapacityError)])
    simulated = [
        _result(replace(case, fitted=infinite.program), infinite.plan, infinite.timeline, (), ())
        if s == IDEAL
        else _simulated(case, s, played[s], causes)
        for s in options.strategies
    ]
    ideal_s = min([machine.ideal_s, *(r.latency_s for r in simulated if r.feasible)])
    results = [_against(ideal_s, r) if r.feasible else r for r in simulated]
    traffic = count_traffic(ideal.program, ideal.plan)
    peak = live_bytes_by_step(program, stored=False)
    peak_step = int(peak.argmax()) if len(peak) else 0
    asked = Comparison(
        graph=graph,
        program=program,
        fitted=fitted,
        target=target,
        lowering=options.lowering,
        planning=options.planning,
        results=results,
        plans={s: found[0] for s, found in played.items() if not isinstance(found, CapacityError)},
    )
    tries_changes = options.what_if is WhatIf.ON
    return Profile(
        spillprof_version=__version__,
        model=model_facts(graph, program, target, options.lowering, peak, peak_step),
        target=target_facts(target, fitted),
        config=configuration(options),
        steps=step_facts(infinite.program, infinite.plan, target),
        live_bytes=tuple(live_bytes_by_step(program, stored=True).tolist()),
        peak_buffers=live_at(program, peak_step),
        oversized=oversized_operators(program, fitted),
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
        bounds=_bounds(case, results, causes),
        suggestions=what_would_help(asked, lambda: causes.better_order, smaller_batch) if tries_changes else (),
        why=None if why is None else story_of(why, asked),
        recompute=None if machine.recomputation is None else recompute_facts(machine.recomputation),
        recomputed=() if machine.recomputation is None else machine.recomputation.copies,
        command=command,
        simulator_revision=SIMULATOR_REVISION,
    )


def plan_file(graph: Graph, target: Target, options: AnalyzeOptions, strategy: str) -> dict[str, Any]:
    """The plan of one strategy as JSON values (see docs/file-formats.md)."""
    fitted = on_machine(prepare(graph, target, options.lowering), target, options.planning).fitted
    plan, _ = planned(fitted, target, strategy, options.planning)
    return plan_to_json(fitted, plan)


def tensor_ranks(graph: Graph, target: Target, options: AnalyzeOptions) -> dict[str, int]:
    """The step that writes each tensor, in the order that the options ask for; without those inside of fused steps."""
    program = prepare(graph, target, options.lowering).program
    program = scheduled(program, target, options.lowering, options.planning)
    return {name: i for i, step in enumerate(program.steps) for b in step.writes for name in program.buffers[b].tensors}


def check_plan(graph: Graph, target: Target, options: AnalyzeOptions, plan_json: Mapping[str, Any]) -> PlanCheck:
    """Verify a plan, whoever made it, and cost it. ``PlanError`` if it cannot be read as a plan of this model."""
    machine = on_machine(prepare(graph, target, options.lowering), target, options.planning)
    fitted = machine.fitted
    plan = plan_from_json(fitted, plan_json)
    violations = verify(fitted, plan)
    if violations:
        return PlanCheck(violations=violations, result=None)
    case = _Case(program=machine.program, fitted=fitted, target=target, options=options)
    ours = plan.strategy if plan.strategy in STRATEGIES else None
    causes = _counterfactuals(case, [plan])
    ladder = causes.ladder(ours, count_traffic(fitted, plan).spill_bytes)
    charged = charges(fitted, plan, options.planning)
    result = _result(case, plan, simulate(fitted, plan, target), charged, ladder)
    result = replace(result, order_searched=causes.order_is_searched)
    return PlanCheck(violations=(), result=_against(min(machine.ideal_s, result.latency_s), result))


def check_bound(graph: Graph, target: Target, options: AnalyzeOptions, certificate: Certificate) -> int:
    """The lower bound on spill bytes that a certificate proves. ``PlanError`` if it does not prove what it claims."""
    fitted = on_machine(prepare(graph, target, options.lowering), target, options.planning).fitted
    wrong = check_certificate(fitted, certificate)
    if wrong:
        hint = "give the options with which it was made; otherwise its bound is not proven"
        raise PlanError("the certificate does not hold", where=wrong, hint=hint)
    return certificate.spill_bytes_lower


def _played(case: _Case, strategy: str) -> tuple[Plan, Timeline] | CapacityError:
    """The plan of a strategy and its timeline, or why there is none."""
    try:
        return planned(case.fitted, case.target, strategy, case.options.planning)
    except CapacityError as error:
        return error


def _counterfactuals(case: _Case, plans: Sequence[Plan]) -> Counterfactuals:
    return Counterfactuals(
        program=case.program,
        fitted=case.fitted,
        target=case.target,
        lowering=case.options.lowering,
        planning=case.options.planning,
        plans=tuple(plans),
    )


def _simulated(
    case: _Case, strategy: str, played: tuple[Plan, Timeline] | CapacityError, causes: Counterfactuals
) -> Result:
    """The result of a strategy, with what a dedicated slot would change for the buffers that oscillate."""
    if isinstance(played, CapacityError):
        return Result(strategy=strategy, feasible=False, reason=played.message)
    plan, timeline = played
    spill_bytes = count_traffic(case.fitted, plan).spill_bytes
    charged = charges(case.fitted, plan, case.options.planning)
    result = _result(case, plan, timeline, charged, causes.ladder(strategy, spill_bytes))
    return replace(
        result,
        oscillations=_oscillations(case, strategy, charged),
        order_searched=causes.order_is_searched,
    )


def _result(
    case: _Case, plan: Plan, timeline: Timeline, charged: Sequence[Charge], ladder: Sequence[Rung] | None
) -> Result:
    """The result of a plan. ``ladder``: what explains its spills; None if that is not known."""
    program = case.fitted
    causes = None
    if ladder is not None:
        causes = causes_by_step(program, charged, streamed_beyond_compulsory(program, plan), ladder)
    traffic = count_traffic(program, plan)
    in_use = in_use_by_step(program, plan)
    evictions = [c for c in charged if c.evicted]
    listing = list_events(program, plan, timeline)
    return Result(
        strategy=plan.strategy,
        feasible=True,
        spill_bytes=traffic.spill_bytes,
        spill_write_bytes=traffic.spill_write_bytes,
        spill_read_bytes=traffic.spill_read_bytes,
        streamed_bytes=traffic.streamed_bytes,
        spill_count=len(evictions),
        reload_count=sum(t.kind is TransferKind.RELOAD for t in plan.transfers),
        clean_eviction_count=sum(not c.spill.written for c in evictions),
        fragmentation_spill_bytes=sum(c.total_bytes for c in charged if c.kind == "fragmentation"),
        compaction_count=len(plan.moves),
        compaction_bytes=traffic.moved_bytes,
        peak_bytes=int(in_use.max(initial=plan.reserved_bytes)),
        latency_s=timeline.makespan_s,
        serial_cost_s=timeline.serial_cost_s,
        energy_j=timeline.energy_j,
        breakdown=breakdown(program, plan, timeline),
        energy=EnergyParts(
            dram_read_j=timeline.energy.dram_read_j,
            dram_write_j=timeline.energy.dram_write_j,
            sram_j=timeline.energy.sram_j,
            mac_j=timeline.energy.mac_j,
        ),
        causes=None if causes is None else added_up(tuple(causes.values())),
        kinds=bytes_by_kind(charged, traffic.streamed_bytes),
        operators=with_roofline(
            operator_costs(program, plan, charged, timeline, causes), program, plan, charged, case.target
        ),
        buffers=buffer_costs(program, plan, charged, lifetimes(program)),
        in_use_bytes=tuple(in_use.tolist()),
        arcs=spill_arcs(program, plan, charged, timeline),
        residencies=residencies(program, plan, timeline),
        events=listing.events,
        times=run_times(timeline, case.target, listing),
    )


def _against(ideal_s: float, result: Result) -> Result:
    """The result with what depends on the ideal run."""
    spill_time_s = result.latency_s - ideal_s
    hidden = 1 - spill_time_s / result.serial_cost_s if result.serial_cost_s > 0 else None
    return replace(result, spill_time_s=spill_time_s, hidden_share=hidden)


def _oscillations(case: _Case, strategy: str, charged: Sequence[Charge]) -> tuple[Oscillation, ...]:
    """Buffers that go and come back again and again, dearest first; the dearest are tried in a dedicated slot."""
    count: dict[int, int] = {}
    moved: dict[int, int] = {}
    for c in charged:
        if c.evicted and c.spill.reloaded:
            count[c.spill.buffer] = count.get(c.spill.buffer, 0) + 1
            moved[c.spill.buffer] = moved.get(c.spill.buffer, 0) + c.total_bytes
    found = sorted((b for b, n in count.items() if n >= OSCILLATES_FROM), key=lambda b: (-moved[b], b))
    trials = next((n for most, n in _PIN_TRIALS if len(case.program.steps) <= most), 0)
    if strategy == OPTIMAL:  # a search each
        trials = 0
    oscillations = []
    for rank, b in enumerate(found):
        pinned = _pinned(case, strategy, b) if rank < trials else None
        oscillations.append(
            Oscillation(
                buffer=case.program.buffers[b].name,
                size_bytes=case.program.buffers[b].size_bytes,
                spill_count=count[b],
                spill_bytes=moved[b],
                pinned_spill_bytes=None if pinned is None else pinned[0],
                pinned_latency_s=None if pinned is None else pinned[1].makespan_s,
                pinned_energy_j=None if pinned is None else pinned[1].energy_j,
                tried=rank < trials,
            )
        )
    return tuple(oscillations)


def _pinned(case: _Case, strategy: str, buffer: int) -> tuple[int, Timeline] | None:
    """(spill bytes, timeline) of the whole run with the buffer in a dedicated slot; None if it cannot be done."""
    try:
        fitted = fit(with_slots(case.program, [buffer]), case.target, case.options.lowering)
        plan, timeline = planned(fitted, case.target, strategy, case.options.planning)
    except CapacityError:
        return None
    return count_traffic(fitted, plan).spill_bytes, timeline


def _bounds(case: _Case, results: Sequence[Result], causes: Counterfactuals) -> Bounds | None:
    """The proven bounds beside the least that a strategy reached; None where no plan is possible.

    The run in infinite SRAM is no plan of the fitted program.
    """
    fitted, planning = case.fitted, case.options.planning
    try:
        bound = bound_of(fitted, planning)
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
        serial_cost_s_lower=lower_cost(fitted, planning, picoseconds(case.target), bound) / PICOSECONDS_PER_S,
        certificate=certificate_of(fitted, planning, bound.problem, bound.certificate, bound.certified_cost),
        search=search_end(fitted, case.target, planning),
        any_order_bytes=0 if best == 0 else causes.unavoidable_bytes,
    )


def configuration(options: AnalyzeOptions) -> dict[str, Any]:
    """The options under the names that reports show."""
    lowering, planning = options.lowering, options.planning
    times = lowering.op_times
    return {
        **({} if times is None else {"op_times": times.digest}),
        "strategies": list(options.strategies),
        "placement": planning.placement,
        "weights": str(lowering.weights),
        "inputs": str(planning.inputs),
        "order": str(planning.order),
        "recompute": str(planning.recompute),
        "oversized": str(lowering.oversized),
        "fuse": str(lowering.fuse),
        "conv": str(lowering.conv),
        "inplace": lowering.inplace,
        "views": str(lowering.views),
        "fold": lowering.fold,
        "control_flow": str(lowering.control),
        "pin": list(lowering.pin),
        "act_dtype": lowering.act_dtype,
        "weight_dtype": lowering.weight_dtype,
        "prefetch": planning.dma is Dma.PREFETCH,
        "writeback": str(planning.writeback),
        "release": str(planning.release),
        "start": str(planning.start),
        **({"optimize_seconds": planning.optimize_seconds} if OPTIMAL in options.strategies else {}),
    }
