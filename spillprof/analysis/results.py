"""A plan and its timeline as a Result: figures, causes, operators, buffers, and what charts draw."""

from collections.abc import Sequence
from dataclasses import replace

from spillprof.analysis.attribution import Charge, bytes_by_kind
from spillprof.analysis.breakdown import breakdown
from spillprof.analysis.causes import Rung, added_up, causes_by_step
from spillprof.analysis.events import list_events, run_times
from spillprof.analysis.hotspots import buffer_costs, operator_costs, streamed_beyond_compulsory
from spillprof.analysis.occupancy import in_use_by_step, residencies
from spillprof.analysis.roofline import roofline
from spillprof.analysis.spill_timeline import spill_arcs
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import Program
from spillprof.ir.result import Result
from spillprof.ir.target import Target
from spillprof.ir.timeline import Timeline
from spillprof.planning.liveness import lifetimes
from spillprof.planning.traffic import count_traffic


def result_of(
    program: Program,
    target: Target,
    plan: Plan,
    timeline: Timeline,
    charged: Sequence[Charge],
    ladder: Sequence[Rung] | None,
) -> Result:
    """The result of a plan of the fitted program, played on the target, but for what depends on the ideal run.

    ``ladder``: what explains its spills; None if that is not known.
    """
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
        energy=timeline.energy,
        causes=None if causes is None else added_up(tuple(causes.values())),
        kinds=bytes_by_kind(charged, traffic.streamed_bytes),
        operators=operator_costs(program, plan, charged, timeline, causes, roofline(program, plan, charged, target)),
        buffers=buffer_costs(program, plan, charged, lifetimes(program)),
        in_use_bytes=tuple(in_use.tolist()),
        arcs=spill_arcs(program, plan, charged, timeline),
        residencies=residencies(program, plan, timeline),
        events=listing.events,
        times=run_times(timeline, target, listing),
    )


def against_ideal(ideal_s: float, result: Result) -> Result:
    """The result with what depends on the latency of the ideal run."""
    spill_time_s = result.latency_s - ideal_s
    hidden = 1 - spill_time_s / result.serial_cost_s if result.serial_cost_s > 0 else None
    return replace(result, spill_time_s=spill_time_s, hidden_share=hidden)
