"""SRAM in use over the run, and the buffers live at its peak."""

import numpy as np
import numpy.typing as npt

from spillprof.ir.plan import Plan
from spillprof.ir.profile_facts import LiveBuffer
from spillprof.ir.program import PHASES_PER_STEP, Phase, Program
from spillprof.ir.result import Residency
from spillprof.ir.timeline import JobKind, Seconds, Timeline
from spillprof.planning.liveness import held_until, lifetimes, live_bytes_by_step, live_intervals
from spillprof.timing.addresses import AddressMap


def in_use_by_step(program: Program, plan: Plan) -> npt.NDArray[np.int64]:
    """SRAM in use within each step, at its fullest phase, the reserved part included. Shape (n_steps,), int64."""
    delta = np.zeros(PHASES_PER_STEP * len(program.steps) + 1, dtype=np.int64)
    size = np.array([0 if b.dedicated else b.size_bytes for b in program.buffers], dtype=np.int64)
    held = np.array([(s.buffer, s.start, s.end) for s in plan.segments], dtype=np.int64).reshape(-1, 3)
    buffers, starts, ends = held.T
    np.add.at(delta, starts, size[buffers])
    np.subtract.at(delta, ends, size[buffers])
    for w in plan.scratch:
        delta[w.start] += w.size_bytes
        delta[w.end] -= w.size_bytes
    by_tick = plan.reserved_bytes + np.cumsum(delta[:-1])
    return by_tick.reshape(-1, PHASES_PER_STEP).max(axis=1) if len(by_tick) else by_tick


def residencies(program: Program, plan: Plan, timeline: Timeline) -> tuple[Residency, ...]:
    """Rectangles of the address map, in the order of ``plan.segments``."""
    starts, ends = _segment_times(program, plan, timeline)
    return tuple(
        Residency(
            buffer=program.buffers[s.buffer].name,
            kind=str(program.buffers[s.buffer].kind),
            start_step=s.start / PHASES_PER_STEP,
            end_step=s.end / PHASES_PER_STEP,
            address=s.address,
            size_bytes=program.buffers[s.buffer].size_bytes,
            start_s=start,
            end_s=end,
        )
        for s, start, end in zip(plan.segments, starts, ends, strict=True)
    )


def _segment_times(program: Program, plan: Plan, timeline: Timeline) -> tuple[list[float], list[float]]:
    """(start, end) of each segment in seconds. Segments that share addresses do not overlap in time."""
    begun = np.append(timeline.step_start_s, timeline.makespan_s)
    start, end = (np.array([getattr(s, at) for s in plan.segments], dtype=np.int64) for at in ("start", "end"))
    starts = np.where(start > 0, begun[start // PHASES_PER_STEP], 0.0)
    ended = np.append(0.0, timeline.step_end_s)[(end + PHASES_PER_STEP - 1) // PHASES_PER_STEP]
    replaced = end % PHASES_PER_STEP == Phase.COMPUTE  # in place
    ends = np.where(replaced, begun[end // PHASES_PER_STEP], ended)
    segment = np.array([t.segment for t in plan.transfers], dtype=np.int64)
    is_read = np.array([t.kind.is_read for t in plan.transfers], dtype=bool)
    starts[segment[is_read]] = timeline.transfer_start_s[is_read]
    np.maximum.at(ends, segment[~is_read], timeline.transfer_end_s[~is_read])
    if plan.moves:
        jobs = timeline.jobs
        moved_s = {int(jobs.step[j]): float(jobs.end_s[j]) for j in np.flatnonzero(jobs.kind == JobKind.MOVE)}
        moves = {(m.buffer, PHASES_PER_STEP * m.step): moved_s[m.step] for m in plan.moves}
        for k, s in enumerate(plan.segments):
            starts[k] = moves.get((s.buffer, s.start), starts[k])
            ends[k] = moves.get((s.buffer, s.end), ends[k])
    ends = np.maximum(starts, ends)
    if timeline.step_core.any():
        _cut_short(program, plan, starts, ends)
    return starts.tolist(), ends.tolist()


def _cut_short(program: Program, plan: Plan, starts: Seconds, ends: Seconds) -> None:
    """Ends segments no later than the next owner of their addresses starts, which several cores need."""
    owners = AddressMap()
    for k in sorted(range(len(plan.segments)), key=lambda k: plan.segments[k].start):
        s = plan.segments[k]
        size = program.buffers[s.buffer].size_bytes
        for owner in owners.pop(s.address, size):
            ends[owner] = min(ends[owner], starts[k])
        owners.put(s.address, size, k)


def live_bytes(program: Program) -> tuple[int, ...]:
    """Live bytes by step as stored, at the fullest phase, with workspaces.

    A shared workspace block counts whole at every step: no tensor can use it.
    """
    block = sum(r.size_bytes for r in program.reservations if r.what == "shared workspace")
    return tuple((block + live_bytes_by_step(program, stored=True)).tolist())


def live_at(program: Program, step: int) -> tuple[LiveBuffer, ...]:
    """Buffers live at a step, largest first."""
    if not program.steps:
        return ()
    first, last = PHASES_PER_STEP * step, PHASES_PER_STEP * (step + 1)
    used = {*program.steps[step].reads, *program.steps[step].writes}
    lives, held = lifetimes(program), held_until(program)
    found = []
    for b, start, end in live_intervals(program):
        if start < last and end > first:
            buffer = program.buffers[b]
            found.append(
                LiveBuffer(
                    name=buffer.name,
                    kind=str(buffer.kind),
                    size_bytes=buffer.size_bytes,
                    start=lives[b].write_step or 0,
                    end=max(lives[b].last_step, held[b]),
                    used_here=b in used,
                )
            )
    return tuple(sorted(found, key=lambda live: (-live.size_bytes, live.start, live.name)))
