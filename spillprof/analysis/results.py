"""A plan and its timeline as a Result: figures, time and bytes by cause, operators, buffers, data of the charts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spillprof.analysis.attribution import Charge, bytes_by_kind, evictions
from spillprof.analysis.causes import Rung, added_up, causes_by_step
from spillprof.analysis.events import list_events, run_times, spill_arcs
from spillprof.analysis.hotspots import buffer_costs, operator_costs, streamed_beyond_compulsory
from spillprof.analysis.modes import passes_by_step, tiling_bytes_by_step
from spillprof.analysis.occupancy import in_use_by_step, residencies
from spillprof.analysis.roofline import roofline
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import Program
from spillprof.ir.result import Breakdown, Result, Totals
from spillprof.ir.target import Target
from spillprof.ir.timeline import JobKind, Timeline
from spillprof.planning.liveness import lifetimes
from spillprof.planning.traffic import count_traffic
from spillprof.timing.dma import compulsory
from spillprof.timing.idle import idle_stretches

_ROUNDING = 1e-9
"""Relative excess over a flow's time alone that counts as rounding error."""


def totals_of(program: Program, plan: Plan, timeline: Timeline) -> Totals:
    """What a plan of the program costs as it was played."""
    traffic = count_traffic(program, plan)
    return Totals(
        spill_bytes=traffic.spill_bytes,
        spill_write_bytes=traffic.spill_write_bytes,
        spill_read_bytes=traffic.spill_read_bytes,
        streamed_bytes=traffic.streamed_bytes,
        spill_count=len(evictions(program, plan)),
        reload_count=sum(t.kind is TransferKind.RELOAD for t in plan.transfers),
        compaction_count=len(plan.moves),
        peak_bytes=int(in_use_by_step(program, plan).max(initial=plan.reserved_bytes)),
        latency_s=timeline.makespan_s,
        energy_j=timeline.energy_j,
    )


def result_of(
    program: Program,
    target: Target,
    plan: Plan,
    timeline: Timeline,
    charged: Sequence[Charge],
    ladder: Sequence[Rung] | None,
) -> Result:
    """The result of a plan of the fitted program, without what depends on the ideal run.

    ``ladder``: counterfactual plans that explain its spills; None if they were not simulated.
    """
    causes = None
    if ladder is not None:
        streamed = streamed_beyond_compulsory(program, plan)
        causes = causes_by_step(program, charged, streamed, ladder, tiling_bytes_by_step(program, plan))
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
        dram_bytes=traffic.compulsory_read_bytes + traffic.compulsory_write_bytes + traffic.spill_bytes,
        passes_bytes=sum(passes_by_step(program, plan).values()),
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


def against_ideal(ideal_s: float, result: Result, ideal_ends_s: Sequence[float] = ()) -> Result:
    """The result with its spill time and hidden share, relative to the latency of the ideal run.

    ``ideal_ends_s``: ends of the same steps in the ideal run; then also what each step adds to its latency.
    """
    spill_time_s = result.latency_s - ideal_s
    hidden = 1 - spill_time_s / result.serial_cost_s if result.serial_cost_s > 0 else None
    result = replace(result, spill_time_s=spill_time_s, hidden_share=hidden)
    if result.times is None or len(ideal_ends_s) != len(result.times.step_end_s):
        return result
    added = added_s(result.times.step_end_s, ideal_ends_s, spill_time_s)
    operators = tuple([replace(each, added_s=added[each.step]) for each in result.operators])
    return replace(result, added_s=tuple(added), operators=operators)


def added_s(ends_s: Sequence[float], ideal_ends_s: Sequence[float], spill_time_s: float) -> list[float]:
    """Seconds that each step adds to the ideal run; they add up to the spill time. Shape (n_steps,).

    From the moment at which all steps before it have ended to the moment at which it has ended too, in this run and in
    the ideal one. What follows the last step belongs to that step, as does the rounding.
    """
    if not len(ends_s):
        return []
    run, ideal = (np.maximum.accumulate(np.array(ends, dtype=np.float64)) for ends in (ends_s, ideal_ends_s))
    added: list[float] = np.diff(run - ideal, prepend=0.0).tolist()
    added[-1] += spill_time_s - sum(added)
    return added


def breakdown(program: Program, plan: Plan, timeline: Timeline) -> Breakdown:
    """The makespan, cut into parts.

    Time in which a unit computes counts as computing, whatever transfers overlap it. Every other stretch belongs to the
    job that the next step waits for: its set-up is ``sync``; of its flow, the time that it would take alone is
    compulsory or spill, and the rest ``contention``. The time after the last step is the ``tail``.
    """
    jobs = timeline.jobs
    kinds, flow_s, end_s, alone_s = (a.tolist() for a in (jobs.kind, jobs.flow_s, jobs.end_s, jobs.flow_alone_s))
    last_s = float(timeline.step_end_s.max(initial=0.0))
    expected = _compulsory_jobs(program, plan, kinds, jobs.transfer.tolist(), jobs.step.tolist())
    parts = {"compulsory": 0.0, "spill": 0.0, "sync": 0.0, "contention": 0.0, "fragmentation": 0.0}
    for start, end, j, _ in idle_stretches(timeline):
        end = min(end, last_s)
        if end <= start:
            continue
        if kinds[j] == JobKind.MOVE:
            parts["fragmentation"] += end - start
            continue
        flowing_s = max(end - max(start, flow_s[j]), 0.0)
        took_s = end_s[j] - flow_s[j]
        share = alone_s[j] / took_s if took_s > alone_s[j] * (1 + _ROUNDING) else 1.0
        parts["sync"] += end - start - flowing_s
        parts["contention"] += flowing_s * (1 - share)
        parts["compulsory" if expected[j] else "spill"] += flowing_s * share
    tail_s = timeline.makespan_s - last_s
    return Breakdown(
        compute_s=_computing_s(timeline),
        compulsory_s=parts["compulsory"],
        spill_s=parts["spill"],
        sync_s=parts["sync"],
        contention_s=parts["contention"],
        fragmentation_s=parts["fragmentation"],
        tail_s=tail_s,
    )


def _computing_s(timeline: Timeline) -> float:
    """Seconds in which a compute unit computes."""
    order = np.argsort(timeline.step_start_s, kind="stable")
    starts, computed = timeline.step_start_s[order], (timeline.step_start_s + timeline.step_compute_s)[order]
    busy_until_s = np.maximum.accumulate(np.append(0.0, computed))[:-1]
    return float(np.append(0.0, np.maximum(computed - np.maximum(starts, busy_until_s), 0.0)).cumsum()[-1])


def _compulsory_jobs(
    program: Program, plan: Plan, kinds: Sequence[int], transfers: Sequence[int], steps: Sequence[int]
) -> list[bool]:
    """Whether each job is compulsory: infinite SRAM would make it too."""
    of_transfer, of_streamed = compulsory(program, plan)
    streamed = iter(
        k for k in sorted(range(len(plan.streamed)), key=lambda k: plan.streamed[k].step) if plan.streamed[k].size_bytes
    )
    again = _repeated_weights(program, kinds, steps)
    found = []
    for j, (kind, transfer) in enumerate(zip(kinds, transfers, strict=True)):
        if kind in (JobKind.STREAM_IN, JobKind.STREAM_OUT):
            found.append(of_streamed[next(streamed)])
        else:
            found.append(of_transfer[transfer] if transfer >= 0 else kind == JobKind.WEIGHTS and j not in again)
    return found


def _repeated_weights(program: Program, kinds: Sequence[int], steps: Sequence[int]) -> set[int]:
    """Jobs of weights that pass again: the last one of each step whose mode repeats them."""
    last = {steps[j]: j for j, kind in enumerate(kinds) if kind == JobKind.WEIGHTS}
    return {j for step, j in last.items() if program.steps[step].weight_repeat_bytes}
