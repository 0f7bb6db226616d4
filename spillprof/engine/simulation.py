"""One strategy on one machine, and nothing but its totals: the light end of ``pipeline.analyze``, made for sweeps.

What does not depend on the field that a sweep changes is computed once: ``prepare`` for each model, ``on_machine``
for each memory and bandwidth, ``Points.totals`` for each strategy and placement.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial

from spillprof.analysis.attribution import evictions
from spillprof.analysis.occupancy import in_use_by_step
from spillprof.engine.known import fitted_of, plans_of, run_of
from spillprof.engine.recompute.search import Recomputation, recomputed
from spillprof.engine.scheduling import scheduled
from spillprof.ir.graph import Graph
from spillprof.ir.lru_cache import LruCache
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Timeline
from spillprof.ir.units import LARGEST_SIZE
from spillprof.lowering.fitting import min_sram, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions
from spillprof.planning.bounds.covering import Price, Prices
from spillprof.planning.gaps import locked_bytes
from spillprof.planning.interval import choose_gaps
from spillprof.planning.options import Inputs, Order, PlanningOptions, Start, WriteBack
from spillprof.planning.planner import make_plan
from spillprof.planning.recorder import streamed_operands
from spillprof.planning.strategies import IDEAL, INTERVAL, ONLINE_RULES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.dma import Link, read_link, write_link
from spillprof.verify import Terms, verify

PICOSECONDS_PER_S = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A model lowered, for all targets with one ``lowering_key``."""

    program: Program
    lowering: LoweringOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """The run in infinite memory."""

    program: Program
    plan: Plan
    timeline: Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A program on one target, unfitted and fitted, and the ideal run."""

    target: Target
    program: Program
    fitted: Program
    recomputation: Recomputation | None  # what of the program runs twice; None: nothing was looked for
    ideal: Ideal  # every operator once
    infinite: Ideal  # the program as it is in infinite memory: what runs twice does so here too
    ideal_s: float  # of the ideal run, or of one that streams as the fitted program if that is faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one point of a sweep costs. Names as in ``Result``."""

    spill_bytes: int
    spill_write_bytes: int
    spill_read_bytes: int
    streamed_bytes: int
    spill_count: int
    compaction_count: int
    peak_bytes: int
    latency_s: float
    energy_j: float


_lowered: LruCache[tuple[Graph, Prepared]] = LruCache(32)


def prepare(graph: Graph, target: Target, options: LoweringOptions) -> Prepared:
    """The model lowered; kept, so that asking again with an equal ``lowering_key`` and equal options costs nothing.

    ``ModelError`` or ``UsageError`` as ``lower`` raises them.
    """
    key = (id(graph), lowering_key(target, options), options)  # the graph is kept too: nothing else gets its id
    _, prepared = _lowered.get_or_make(
        key, lambda: (graph, Prepared(program=lower(graph, target, options), lowering=options))
    )
    return prepared


def lowering_key(target: Target, options: LoweringOptions) -> tuple[object, ...]:
    """What lowering reads of a target: targets with equal keys share a ``Prepared``.

    Memory and speed matter only to convolutions: ``im2col`` cuts its matrix by some of them, ``auto`` plays the run.
    """
    if options.conv is ConvAlgorithm.AUTO:
        return tuple(_hashable(getattr(target, field.name)) for field in fields(target) if field.name != "sources")
    memory = (
        target.sram_bytes,
        target.reserved_bytes,
        target.weight_staging_bytes,
        target.shared_workspace,
        target.dram_read_bytes_per_s,
        target.dram_write_bytes_per_s,
        target.launch_overhead_s,
    )
    return (
        target.alignment_bytes,
        target.channel_align,
        target.accumulator_bytes_per_output,
        target.strided_views,
        memory if options.conv is ConvAlgorithm.IM2COL else None,
        None if options.op_times is None else target.clock_hz,
        _hashable(target.conv_time_factors),
    )


def _hashable(value: object) -> Hashable:
    if isinstance(value, Mapping):
        return tuple(sorted(value.items()))
    assert isinstance(value, Hashable)
    return value


def on_machine(prepared: Prepared, target: Target, options: PlanningOptions, ideal: Ideal | None = None) -> Machine:
    """Fit the program to the target, and play the ideal run. ``CapacityError`` as ``fit`` raises it.

    ``ideal`` may be that of a machine that differs in the size of its SRAM alone: where it reserves the same, it is
    taken as it is. The placement among the options does not matter: infinite memory needs none.
    """
    once = scheduled(prepared.program, target, prepared.lowering, options)
    fitted = fitted_of(once, target, prepared.lowering)
    boundless = unlimited(once, target, prepared.lowering)
    if ideal is None or options.order is not Order.FILE or not _alike(ideal.program, boundless):
        ideal = _in_infinite_memory(boundless, target, options)
    machine = Machine(
        target=target,
        program=once,
        fitted=fitted,
        recomputation=recomputed(once, target, prepared.lowering, options),
        ideal=ideal,
        infinite=ideal,
        ideal_s=_ideal_latency_s(fitted, ideal.timeline, target, options),
    )
    if machine.recomputation is None or not machine.recomputation.copies:
        return machine
    twice = machine.recomputation.program
    return replace(
        machine,
        program=twice,
        fitted=fitted_of(twice, target, prepared.lowering),
        infinite=_in_infinite_memory(unlimited(twice, target, prepared.lowering), target, options),
    )


def fitted_to(prepared: Prepared, target: Target, options: PlanningOptions) -> Program:
    """The program that strategies plan on this target, without the ideal. ``CapacityError`` as ``fit`` raises it."""
    once = scheduled(prepared.program, target, prepared.lowering, options)
    recomputation = recomputed(once, target, prepared.lowering, options)
    chosen = recomputation.program if recomputation is not None and recomputation.copies else once
    return fitted_of(chosen, target, prepared.lowering)


def _in_infinite_memory(boundless: Program, target: Target, options: PlanningOptions) -> Ideal:
    plan, timeline = planned(boundless, target, IDEAL, options)
    return Ideal(program=boundless, plan=plan, timeline=timeline)


def _alike(one: Program, other: Program) -> bool:
    """Whether two programs of one model run and reserve the same."""
    return one.reservations == other.reservations and one.steps == other.steps


class Points:
    """Strategies and placements on one machine."""

    def __init__(self, machine: Machine, options: PlanningOptions) -> None:
        self._machine, self._options = machine, options
        self._unasked: dict[str, Totals] = {}  # by placement: of a run in which nothing had to leave

    def totals(self, strategy: str, placement: str) -> Totals:
        """Plan, verify and play one strategy. ``CapacityError`` if it cannot be planned in this memory.

        Where an online strategy was never asked for a victim, all of them share its run; so does ``interval`` where
        it sends nothing off-chip.
        """
        machine, options = self._machine, replace(self._options, placement=placement)
        if strategy == IDEAL:
            return _totals(machine.infinite.program, machine.infinite.plan, machine.infinite.timeline)
        unasked = self._unasked.get(placement)
        if unasked is not None and (strategy in ONLINE_RULES or self._is_unasked_too(strategy, unasked, options)):
            return unasked
        choices = plans_of(machine.fitted, machine.target, strategy, options)[1]
        totals = _totals(machine.fitted, *planned(machine.fitted, machine.target, strategy, options))
        if not choices:
            self._unasked[placement] = totals
        return totals

    def _is_unasked_too(self, strategy: str, unasked: Totals, options: PlanningOptions) -> bool:
        machine = self._machine
        return (
            strategy == INTERVAL
            and not machine.fitted.weights_persist
            and not unasked.compaction_count
            and not choose_gaps(machine.fitted, machine.target, options)
        )


def sram_limits(prepared: Prepared, target: Target, options: PlanningOptions) -> tuple[int, int]:
    """(smallest SRAM at which nothing is streamed, SRAM that the ideal run uses at most), in bytes."""
    needed = partial(locked_bytes, options=options)
    smallest, _ = min_sram(prepared.program, target, prepared.lowering, needed)
    roomy = target.with_overrides(sram_bytes=LARGEST_SIZE)  # the staging area as large as it ever gets
    boundless = unlimited(prepared.program, roomy, prepared.lowering)
    plan = make_plan(boundless, roomy, IDEAL, options)
    return smallest, max(smallest, int(in_use_by_step(boundless, plan).max(initial=0)))


def planned(program: Program, target: Target, strategy: str, options: PlanningOptions) -> tuple[Plan, Timeline]:
    """The strategy's plan with its transfers issued as the options say, checked, and its timeline.

    ``prefetch`` issues each transfer when it is best for the whole run, as far as that was found; it is never slower
    than ``demand``.
    """
    played = [_played(program, plan, target, options) for plan in plans_of(program, target, strategy, options)[0]]
    return min(played, key=lambda pair: pair[1].makespan_s)


def picoseconds(target: Target) -> Prices:
    """What one transfer takes alone, in whole picoseconds, rounded down: bounds in them stay exact."""

    def price(link: Link) -> Price:
        return lambda nbytes: int(link.alone_s(nbytes) * PICOSECONDS_PER_S * (1 - 1e-12))

    return Prices(read=price(read_link(target)), write=price(write_link(target)))


def _played(program: Program, on_demand: Plan, target: Target, options: PlanningOptions) -> tuple[Plan, Timeline]:
    plan, timeline = run_of(program, on_demand, target, options.dma)
    violations = verify(program, plan, terms_of(options))
    if violations:
        raise AssertionError(f"strategy {plan.strategy} made an illegal plan: {violations[0]}")
    return plan, timeline


def terms_of(options: PlanningOptions) -> Terms:
    """What the options of planning ask of any plan."""
    return Terms(
        inputs_resident=options.inputs is Inputs.RESIDENT,
        cold=options.start is Start.COLD,
        rewrites=options.writeback is WriteBack.ALWAYS,
    )


def _ideal_latency_s(fitted: Program, ideal: Timeline, target: Target, options: PlanningOptions) -> float:
    """Makespan with infinite SRAM: of the run that holds every operand, or of one that streams as the fitted program.

    A streamed operand passes while its operator computes, so an oversized operator can be faster than one that
    waits for its operands; what is legal in less memory is legal in infinite memory. For the same reason no
    strategy's own run can beat the ideal: the fastest of them all is the ideal.
    """
    if not streamed_operands(fitted):
        return ideal.makespan_s
    _, streaming = planned(replace(fitted, capacity_bytes=None), target, IDEAL, options)
    return min(ideal.makespan_s, streaming.makespan_s)


def _totals(program: Program, plan: Plan, timeline: Timeline) -> Totals:
    traffic = count_traffic(program, plan)
    return Totals(
        spill_bytes=traffic.spill_bytes,
        spill_write_bytes=traffic.spill_write_bytes,
        spill_read_bytes=traffic.spill_read_bytes,
        streamed_bytes=traffic.streamed_bytes,
        spill_count=len(evictions(program, plan)),
        compaction_count=len(plan.moves),
        peak_bytes=int(in_use_by_step(program, plan).max(initial=plan.reserved_bytes)),
        latency_s=timeline.makespan_s,
        energy_j=timeline.energy_j,
    )
