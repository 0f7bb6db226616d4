"""Every event of a run with its times, when each step ran, and the stretches that buffers spend off-chip."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spillprof.analysis.attribution import Charge, evictions
from spillprof.analysis.hotspots import STREAMED_WEIGHTS
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import Program
from spillprof.ir.result import Event, RunTimes, SpillArc
from spillprof.ir.target import Target
from spillprof.ir.timeline import Indices, JobKind, Timeline
from spillprof.timing.bus import bus_curve


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listing:
    """The events of a run by step, then kind, and the position of each job of the timeline among them."""

    events: tuple[Event, ...]
    of_job: Indices  # shape (n_jobs,): position in ``events``, or -1


def list_events(program: Program, plan: Plan, timeline: Timeline) -> Listing:
    """Every transfer, clean eviction, move, streamed operand and piece of streamed weights."""
    found = [*_transfers(program, plan, timeline), *_evictions(program, plan)]
    found += [*_moves(program, plan, timeline), *_streams(program, plan, timeline)]
    order = sorted(range(len(found)), key=lambda k: _key(found[k][0]))
    of_job = np.full(len(timeline.jobs.kind), -1, dtype=np.int64)
    for position, k in enumerate(order):
        job = found[k][1]
        if job >= 0 and of_job[job] < 0:  # the moves of a step are one job
            of_job[job] = position
    return Listing(events=tuple(found[k][0] for k in order), of_job=of_job)


def run_times(timeline: Timeline, target: Target, listing: Listing) -> RunTimes:
    """Times of each step, what it waited for, and the traffic of the bus."""
    bus = bus_curve(timeline, target)
    n = len(timeline.step_start_s)
    waited_for = timeline.step_cause - n
    is_listed = (timeline.stall_s > 0) & (waited_for >= 0)
    stall_event = np.full(n, -1, dtype=np.int64)
    stall_event[is_listed] = listing.of_job[waited_for[is_listed]]
    return RunTimes(
        step_start_s=tuple(timeline.step_start_s.tolist()),
        step_end_s=tuple(timeline.step_end_s.tolist()),
        step_core=tuple(timeline.step_core.tolist()),
        stall_s=tuple(timeline.stall_s.tolist()),
        stall_event=tuple(stall_event.tolist()),
        bus_time_s=tuple(bus.time_s.tolist()),
        bus_read_bytes_per_s=tuple(bus.read_bytes_per_s.tolist()),
        bus_write_bytes_per_s=tuple(bus.write_bytes_per_s.tolist()),
        bus_background_bytes_per_s=tuple(bus.background_bytes_per_s.tolist()),
    )


_Found = tuple[Event, int]
"""An event, and the job that performs it (or -1)."""


def _key(event: Event) -> tuple[int, str, int, str]:
    return event.step, event.kind, -1 if event.needed_step is None else event.needed_step, event.buffer


def _transfers(program: Program, plan: Plan, timeline: Timeline) -> list[_Found]:
    jobs = timeline.jobs
    job_of = dict(zip(jobs.transfer.tolist(), range(len(jobs.transfer)), strict=True))
    issued, start, end = jobs.queued_s.tolist(), jobs.start_s.tolist(), jobs.end_s.tolist()
    found = []
    for k, t in enumerate(plan.transfers):
        job = job_of[k]
        event = Event(
            kind=str(t.kind),
            buffer=program.buffers[t.buffer].name,
            size_bytes=t.size_bytes,
            step=t.issue_step,
            needed_step=t.needed_step,
            address=plan.segments[t.segment].address,
            start_s=start[job],
            end_s=end[job],
            issued_s=issued[job],
        )
        found.append((event, job))
    return found


def _evictions(program: Program, plan: Plan) -> list[_Found]:
    """Evictions that need no write: they take no time."""
    return [
        (
            Event(
                kind="evict-clean",
                buffer=program.buffers[s.buffer].name,
                size_bytes=program.buffers[s.buffer].size_bytes,
                step=s.evict_step,
                needed_step=s.needed_step,
                address=None,
                start_s=None,
                end_s=None,
            ),
            -1,
        )
        for s in evictions(program, plan)
        if not s.written
    ]


def _moves(program: Program, plan: Plan, timeline: Timeline) -> list[_Found]:
    """Compaction moves; those of a step are one job."""
    jobs = timeline.jobs
    job_of = {int(jobs.step[j]): int(j) for j in np.flatnonzero(jobs.kind == JobKind.MOVE)}
    found = []
    for m in plan.moves:
        job = job_of[m.step]
        event = Event(
            kind="move",
            buffer=program.buffers[m.buffer].name,
            size_bytes=m.size_bytes,
            step=m.step,
            needed_step=m.step,
            address=m.to_address,
            start_s=float(jobs.start_s[job]),
            end_s=float(jobs.end_s[job]),
            issued_s=float(jobs.queued_s[job]),
        )
        found.append((event, job))
    return found


def _streams(program: Program, plan: Plan, timeline: Timeline) -> list[_Found]:
    """Streamed operands, and streamed weights in one part or two: what loads before the step, and the rest."""
    jobs = timeline.jobs
    kinds, steps, sizes = jobs.kind.tolist(), jobs.step.tolist(), jobs.size_bytes.tolist()
    issued, start, end = jobs.queued_s.tolist(), jobs.start_s.tolist(), jobs.end_s.tolist()
    waiting: dict[int, list[int]] = {}  # jobs of the streamed operands of each step, in plan order
    found = []
    for j, kind in enumerate(kinds):
        if kind in (JobKind.STREAM_IN, JobKind.STREAM_OUT):
            waiting.setdefault(steps[j], []).append(j)
        elif kind == JobKind.WEIGHTS:
            event = Event(
                kind="weights",
                buffer=STREAMED_WEIGHTS,
                size_bytes=sizes[j],
                step=steps[j],
                needed_step=steps[j],
                address=None,
                start_s=start[j],
                end_s=end[j],
                issued_s=issued[j],
            )
            found.append((event, j))
    for own in waiting.values():
        own.reverse()
    for s in plan.streamed:
        job = waiting[s.step].pop() if s.size_bytes > 0 else -1  # no bytes, no job
        at_s = float(timeline.step_start_s[s.step])
        event = Event(
            kind="stream-out" if s.write else "stream-in",
            buffer=program.buffers[s.buffer].name,
            size_bytes=s.size_bytes,
            step=s.step,
            needed_step=s.step,
            address=None,
            start_s=at_s if job < 0 else start[job],
            end_s=at_s if job < 0 else end[job],
            issued_s=at_s if job < 0 else issued[job],
        )
        found.append((event, job))
    return found


def spill_arcs(program: Program, plan: Plan, charged: Sequence[Charge], timeline: Timeline) -> tuple[SpillArc, ...]:
    """Stretches off-chip of buffers that come back within the run, in the order of ``plan.spills``."""
    starts, ends = timeline.step_start_s.tolist(), timeline.step_end_s.tolist()
    waited = _waited(plan, timeline)
    n = len(program.steps)
    arcs = []
    for charge in charged:
        spill = charge.spill
        if spill.needed_step is None or spill.needed_step >= n or spill.last_use_step < 0:
            continue
        moves = ((TransferKind.WRITE_BACK, spill.evict_step), (TransferKind.RELOAD, spill.needed_step))
        arcs.append(
            SpillArc(
                buffer=program.buffers[spill.buffer].name,
                size_bytes=program.buffers[spill.buffer].size_bytes,
                last_use_step=spill.last_use_step,
                evict_step=spill.evict_step,
                needed_step=spill.needed_step,
                written=spill.written,
                reloaded=spill.reloaded,
                cause=charge.kind,
                idle_s=starts[spill.needed_step] - ends[spill.last_use_step],
                wait_s=sum(waited.get((kind, spill.buffer, step), 0.0) for kind, step in moves),
                evicted=charge.evicted,
            )
        )
    return tuple(arcs)


def _waited(plan: Plan, timeline: Timeline) -> dict[tuple[TransferKind, int, int], float]:
    """Seconds of stalls by (kind, buffer, step that needs it or evicts it) of the plan's transfers."""
    found: dict[tuple[TransferKind, int, int], float] = {}
    for k, stall_s in zip(timeline.stall_transfer.tolist(), timeline.stall_s.tolist(), strict=True):
        if k >= 0 and stall_s > 0:
            t = plan.transfers[k]
            key = t.kind, t.buffer, t.needed_step
            found[key] = found.get(key, 0.0) + stall_s
    return found
