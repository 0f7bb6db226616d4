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
from spillprof.engine.engine import Engine
from spillprof.engine.recompute.search import recompute_facts
from spillprof.engine.run import Played, Run
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.explain.options import AnalyzeOptions, configuration, run_of
from spillprof.explain.oscillation import oscillations
from spillprof.explain.proven import bounds_facts
from spillprof.explain.whatif.answers import Comparison, over_sizes, story_of, what_would_help
from spillprof.explain.whatif.change import SmallerBatch
from spillprof.explain.whatif.names import resolve
from spillprof.explain.whatif.suggest import Tried
from spillprof.ir.errors import CapacityError
from spillprof.ir.graph import Graph
from spillprof.ir.profile import Profile
from spillprof.ir.result import Ideal, Result
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.stages import Stage, unheard
from spillprof.ir.target import Target
from spillprof.planning.strategies import CHEAP_STRATEGIES, IDEAL, STRATEGIES, check_strategy
from spillprof.planning.traffic import count_traffic

SEARCHED_STEPS = 2_000
"""Steps up to which strategy ``optimal`` is compared without being asked for."""


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

    ``engine``: what answers the questions and remembers them; a new one if none is given.
    ``smaller_batch``: the same model for fewer samples, if that can be had: something to try. ``why``: a tensor or an
    operator whose story to tell. ``stage`` is told what is about to be done. ``CapacityError`` if no plan is possible
    at all; a strategy that alone fails becomes an infeasible result.
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
    planned_ones = [s for s in options.strategies if s != IDEAL]
    total = len(planned_ones) + 3
    played = {}
    for done, s in enumerate(planned_ones, start=1):
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
    results = [against_ideal(ideal_s, r) if r.feasible else r for r in simulated]
    traffic = count_traffic(ideal.program, ideal.plan)
    model = model_facts(graph, program, target, options.lowering, options.planning)
    asked = Comparison(engine=engine, run=run, results=results, plans=plans)
    stage(total - 1, total, "what would help" if options.what_if else "the profile")
    tried = what_would_help(asked, lambda: causes.better_order, smaller_batch) if options.what_if else Tried()
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
        bounds=bounds_facts(engine, run, results, causes),
        suggestions=tried.suggestions,
        untried=tried.untried,
        size_curve=over_sizes(asked) if options.what_if else None,
        why=None if why is None else story_of(why, asked),
        recompute=None if recomputation is None else recompute_facts(recomputation),
        recomputed=() if recomputation is None else recomputation.copies,
        command=command,
        simulator_revision=SIMULATOR_REVISION,
    )


def tensor_ranks(engine: Engine, run: Run) -> dict[str, int]:
    """The step that writes each tensor, in the order that the options ask for; without those inside of fused steps."""
    program = engine.ordered(run)
    return {name: i for i, step in enumerate(program.steps) for b in step.writes for name in program.buffers[b].tensors}


def _played(engine: Engine, run: Run, strategy: str) -> Played | CapacityError:
    """The plan of a strategy and its timeline, or why there is none."""
    try:
        return engine.play(engine.fitted(run), run, strategy)
    except CapacityError as error:
        return error


def _simulated(
    engine: Engine, run: Run, strategy: str, played: Played | CapacityError, causes: Counterfactuals
) -> Result:
    """The result of a strategy, with what a dedicated slot would change for the buffers that oscillate."""
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
