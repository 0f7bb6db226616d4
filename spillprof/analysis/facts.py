"""Facts of a Profile about the model, its buffers, convolutions, operator times and oversized operators."""

from collections.abc import Sequence
from functools import partial

from spillprof.analysis.hotspots import streamed_beyond_compulsory
from spillprof.analysis.modes import mode_words, passes_by_step
from spillprof.ir.graph import Graph
from spillprof.ir.plan import Plan
from spillprof.ir.profile_facts import (
    BufferFact,
    ConvolutionFacts,
    ModelFacts,
    OpTimeFacts,
    ReservedBytes,
    StreamedOperator,
)
from spillprof.ir.program import BufferKind, Program
from spillprof.ir.target import Target
from spillprof.ir.units import format_size
from spillprof.lowering.fitting import min_sram, stream_staging_bytes
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.gaps import locked_bytes
from spillprof.planning.liveness import lifetimes, live_peak, step_demand_bytes
from spillprof.planning.options import PlanningOptions, Start

_MOST_LISTED = 200
"""Unmatched names that a profile lists, of each side."""


def oversized_operators(
    program: Program, fitted: Program, played: Sequence[tuple[Program, Plan]]
) -> tuple[StreamedOperator, ...]:
    """Operators that are too large for the memory, or that some plan runs in tiles, and what they move.

    ``played``: programs with the modes of a plan, and the plans; figures are those of the first that runs it in tiles.
    """
    pool = None if fitted.capacity_bytes is None else fitted.capacity_bytes - fitted.reserved_bytes
    found: dict[int, StreamedOperator] = {}
    for tiled, plan in played:
        passing: dict[int, int] = {mode.step: mode.weight_repeat_bytes for mode in plan.modes}
        for s in plan.streamed:
            passing[s.step] = passing.get(s.step, 0) + s.size_bytes
        beyond: dict[int, int] = {}
        for (_, step), nbytes in streamed_beyond_compulsory(tiled, plan).items():
            beyond[step] = beyond.get(step, 0) + nbytes
        repeated = passes_by_step(tiled, plan)
        for i in passing.keys() - found.keys():
            mode = tiled.steps[i].mode
            found[i] = StreamedOperator(
                step=i,
                name=fitted.steps[i].name,
                demand_bytes=step_demand_bytes(program, program.steps[i]),
                fits=pool is not None and mode is not None and step_demand_bytes(fitted, fitted.steps[i]) <= pool,
                streamed_bytes=passing[i],
                beyond_bytes=beyond.get(i, 0),
                passes_bytes=repeated.get(i, 0),
                tiling="" if mode is None else mode_words(tiled, mode),
            )
    return tuple(found[i] for i in sorted(found))


def cold_notes(fitted: Program, planning: PlanningOptions) -> tuple[str, ...]:
    """A note on weights that a cold run counts as spilled although their first load is compulsory, if any."""
    if planning.start is not Start.COLD or not fitted.weights_persist:
        return ()
    read: set[int] = set()
    nbytes = 0
    for step in fitted.steps:
        first = [b for b in step.streamed_reads if b not in read and fitted.buffers[b].kind is BufferKind.WEIGHT]
        nbytes += sum(fitted.buffers[b].moved_bytes for b in first)
        read.update(step.reads)
    if not nbytes:
        return ()
    return (
        f"{format_size(nbytes)} of cached weights are tiled through DRAM: they count as spilled, although infinite "
        "SRAM would load them once in a cold run too",
    )


def model_facts(
    graph: Graph, program: Program, target: Target, options: LoweringOptions, planning: PlanningOptions
) -> ModelFacts:
    """Facts of the model as lowered."""
    peak = live_peak(program)
    smallest, smallest_step = min_sram(program, target, options, partial(locked_bytes, options=planning))
    return ModelFacts(
        path=graph.path or graph.name,
        sha256=graph.sha256 or "",
        external_sha256=graph.external_sha256 or "",
        name=graph.name,
        opset=graph.opset,
        operators=len(graph.operators),
        steps=len(program.steps),
        tensors=len(graph.tensors),
        weight_bytes=program.weight_bytes,
        macs=sum(step.macs for step in program.steps if not step.recomputes),
        peak_live_bytes=peak.live_bytes,
        peak_padding_bytes=peak.padding_bytes,
        peak_step=peak.step,
        min_sram_bytes=smallest,
        min_sram_step=smallest_step,
        dims=dict(graph.dims),
        folded_operators=program.folded_operators,
        removed_operators=program.removed_operators,
        assumptions=program.assumptions,
        control_flow=program.control_flow,
        notes=program.notes,
        outputs=_outputs(graph, program),
    )


def _outputs(graph: Graph, program: Program) -> dict[str, str | None]:
    """The buffer of each graph output; a view's is the one that it shares."""
    names = frozenset(graph.outputs)
    held = {name: buffer.name for buffer in program.buffers for name in buffer.tensors if name in names}
    return {name: held.get(name) for name in graph.outputs}


def buffer_facts(program: Program) -> tuple[BufferFact, ...]:
    """Every buffer with the steps that touch it, in the order of ``program.buffers``."""
    return tuple(
        [
            BufferFact(
                name=buffer.name,
                kind=buffer.kind.value,
                size_bytes=buffer.size_bytes,
                written_by=life.write_step,
                read_by=life.read_steps,
            )
            for buffer, life in zip(program.buffers, lifetimes(program), strict=True)
        ]
    )


def convolution_facts(program: Program) -> tuple[ConvolutionFacts, ...]:
    """The convolutions of a program by algorithm."""
    found = [step.convolution for step in program.steps if step.convolution is not None]
    by_algorithm = {name: [c for c in found if c.algorithm == name] for name in sorted({c.algorithm for c in found})}
    return tuple(
        ConvolutionFacts(
            algorithm=name,
            steps=len(own),
            workspace_bytes=max(c.workspace_bytes for c in own),
            blocks=sum(c.blocks for c in own if c.blocks > 1),
            fell_back=sum(c.fastest != c.algorithm for c in own),
        )
        for name, own in by_algorithm.items()
    )


def op_time_facts(program: Program, options: LoweringOptions) -> OpTimeFacts | None:
    """How many steps have measured times, and which names match nothing; None without measured times."""
    times = options.op_times
    if times is None:
        return None
    used = {name for step in program.steps for name in step.operators}
    estimated = [step.name for step in program.steps if step.measured_s is None]
    unused = [name for name, _ in times.times if name not in used]
    return OpTimeFacts(
        source=times.source,
        measured_steps=len(program.steps) - len(estimated),
        estimated_steps=len(estimated),
        estimated=tuple(estimated[:_MOST_LISTED]),
        unused_names=len(unused),
        unused=tuple(unused[:_MOST_LISTED]),
    )


def reserved_for(target: Target, fitted: Program) -> ReservedBytes:
    """What the target reserves for this program."""
    reserved = {r.what: r.size_bytes for r in fitted.reservations}
    return ReservedBytes(
        runtime_bytes=reserved.get("runtime", 0),
        weight_staging_bytes=reserved.get("weight staging", 0),
        stream_staging_bytes=stream_staging_bytes(target),
        shared_workspace_bytes=reserved.get("shared workspace", 0),
        reserved_bytes=fitted.reserved_bytes,
    )
