"""From a Graph and a Target to a Profile: the one function that strings everything together."""

from dataclasses import replace

from spillprof import __version__
from spillprof.analysis.attribution import charges
from spillprof.analysis.facts import (
    buffer_facts,
    cold_notes,
    convolution_facts,
    model_facts,
    op_time_facts,
    oversized_operators,
    reserved_for,
)
from spillprof.analysis.occupancy import in_use_by_step, live_at, live_bytes
from spillprof.analysis.results import against_ideal, result_of
from spillprof.analysis.roofline import step_facts
from spillprof.engine.case import Case
from spillprof.engine.recompute.search import recompute_facts
from spillprof.engine.scheduling import scheduled
from spillprof.engine.simulation import on_machine, planned, prepare
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.explain.options import AnalyzeOptions, configuration
from spillprof.explain.oscillation import oscillations
from spillprof.explain.proven import bounds_facts
from spillprof.explain.whatif.answers import Comparison, over_sizes, story_of, what_would_help
from spillprof.explain.whatif.change import SmallerBatch
from spillprof.explain.whatif.names import resolve
from spillprof.explain.whatif.suggest import Tried
from spillprof.ir.errors import CapacityError
from spillprof.ir.graph import Graph
from spillprof.ir.plan import Plan
from spillprof.ir.profile import Profile
from spillprof.ir.result import Ideal, Result
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.stages import Stage, unheard
from spillprof.ir.target import Target
from spillprof.ir.timeline import Timeline
from spillprof.planning.strategies import CHEAP_STRATEGIES, IDEAL, STRATEGIES, check_strategy
from spillprof.planning.traffic import count_traffic

SEARCHED_STEPS = 2_000
"""Steps up to which strategy ``optimal`` is compared without being asked for."""


def analyze(
    graph: Graph,
    target: Target,
    options: AnalyzeOptions,
    *,
    command: str = "",
    smaller_batch: SmallerBatch | None = None,
    why: str | None = None,
    stage: Stage = unheard,
) -> Profile:
    """Simulate every strategy on the target, compare it with infinite SRAM, and explain.

    ``smaller_batch``: the same model for fewer samples, if that can be had: something to try. ``why``: a tensor or an
    operator whose story to tell. ``stage`` is told what is about to be done. ``CapacityError`` if no plan is possible
    at all; a strategy that alone fails becomes an infeasible result.
    """
    for strategy in options.strategies:
        check_strategy(strategy)
    stage(0, 1, "the program")
    machine = on_machine(prepare(graph, target, options.lowering), target, options.planning)
    program, fitted, ideal, infinite = machine.program, machine.fitted, machine.ideal, machine.infinite
    if not options.strategies:
        affordable = STRATEGIES if len(program.steps) <= SEARCHED_STEPS else CHEAP_STRATEGIES
        options = replace(options, strategies=affordable)
    case = Case(program=program, fitted=fitted, target=target, lowering=options.lowering, planning=options.planning)
    planned_ones = [s for s in options.strategies if s != IDEAL]
    total = len(planned_ones) + 3
    played = {}
    for done, s in enumerate(planned_ones, start=1):
        stage(done, total, f"strategy {s}")
        played[s] = _played(case, s)
    if why is not None:
        resolve(why, graph, fitted)  # a wrong name is refused at once
    stage(total - 2, total, "why it spills")
    plans = {s: found[0] for s, found in played.items() if not isinstance(found, CapacityError)}
    causes = Counterfactuals(case=case, plans=tuple(plans.values()))
    simulated = [
        result_of(infinite.program, target, infinite.plan, infinite.timeline, (), ())
        if s == IDEAL
        else _simulated(case, s, played[s], causes)
        for s in options.strategies
    ]
    ideal_s = min([machine.ideal_s, *(r.latency_s for r in simulated if r.feasible)])
    results = [against_ideal(ideal_s, r) if r.feasible else r for r in simulated]
    traffic = count_traffic(ideal.program, ideal.plan)
    model = model_facts(graph, program, target, options.lowering, options.planning)
    asked = Comparison(graph=graph, case=case, results=results, plans=plans)
    tries_changes = options.what_if
    stage(total - 1, total, "what would help" if tries_changes else "the profile")
    tried = what_would_help(asked, lambda: causes.better_order, smaller_batch) if tries_changes else Tried()
    return Profile(
        spillprof_version=__version__,
        model=replace(model, notes=(*model.notes, *cold_notes(fitted, options.planning))),
        target=target.resolved(),
        reserved=reserved_for(target, fitted),
        config=configuration(options),
        steps=step_facts(infinite.program, infinite.plan, target),
        live_bytes=live_bytes(infinite.program),
        peak_buffers=live_at(program, model.peak_step),
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
        bounds=bounds_facts(case, results, causes),
        suggestions=tried.suggestions,
        untried=tried.untried,
        size_curve=over_sizes(asked) if tries_changes else None,
        why=None if why is None else story_of(why, asked),
        recompute=None if machine.recomputation is None else recompute_facts(machine.recomputation),
        recomputed=() if machine.recomputation is None else machine.recomputation.copies,
        command=command,
        simulator_revision=SIMULATOR_REVISION,
    )


def tensor_ranks(graph: Graph, target: Target, options: AnalyzeOptions) -> dict[str, int]:
    """The step that writes each tensor, in the order that the options ask for; without those inside of fused steps."""
    program = prepare(graph, target, options.lowering).program
    program = scheduled(program, target, options.lowering, options.planning)
    return {name: i for i, step in enumerate(program.steps) for b in step.writes for name in program.buffers[b].tensors}


def _played(case: Case, strategy: str) -> tuple[Plan, Timeline] | CapacityError:
    """The plan of a strategy and its timeline, or why there is none."""
    try:
        return planned(case.fitted, case.target, strategy, case.planning)
    except CapacityError as error:
        return error


def _simulated(
    case: Case, strategy: str, played: tuple[Plan, Timeline] | CapacityError, causes: Counterfactuals
) -> Result:
    """The result of a strategy, with what a dedicated slot would change for the buffers that oscillate."""
    if isinstance(played, CapacityError):
        return Result(strategy=strategy, feasible=False, reason=played.message)
    plan, timeline = played
    spill_bytes = count_traffic(case.fitted, plan).spill_bytes
    charged = charges(case.fitted, plan, case.planning)
    result = result_of(case.fitted, case.target, plan, timeline, charged, causes.ladder(strategy, spill_bytes))
    return replace(
        result,
        oscillations=oscillations(case, strategy, charged),
        order_searched=causes.order_is_searched,
    )
