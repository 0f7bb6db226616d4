"""SRAM in use over the run, and what lives at the peak."""

import numpy as np
import numpy.typing as npt

from spillprof.model.plan import Plan
from spillprof.model.profile_facts import LiveBuffer
from spillprof.model.program import PHASES_PER_STEP, Phase, Program
from spillprof.model.result import Residency
from spillprof.model.timeline import JobKind, Timeline
from spillprof.planning.liveness import lifetimes, live_intervals
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
    """(from when on each segment's place is taken, when it is free), in seconds. Two never hold one place at a time."""
    step_start, step_end = [*timeline.step_start_s.tolist(), timeline.makespan_s], timeline.step_end_s.tolist()
    starts, ends = [], []
    for s in plan.segments:
        starts.append(step_start[s.start // PHASES_PER_STEP] if s.start else 0.0)
        step, phase = divmod(s.end, PHASES_PER_STEP)
        if phase == Phase.COMPUTE:  # replaced in place
            ends.append(step_start[step])
        else:
            ends.append(step_end[step if phase else step - 1] if s.end else 0.0)
    for t, start, end in zip(
        plan.transfers, timeline.transfer_start_s.tolist(), timeline.transfer_end_s.tolist(), strict=True
    ):
        if t.kind.is_read:
            starts[t.segment] = start
        else:
            ends[t.segment] = max(ends[t.segment], end)
    jobs = timeline.jobs
    moved_s = {int(jobs.step[j]): float(jobs.end_s[j]) for j in np.flatnonzero(jobs.kind == JobKind.MOVE)}
    moves = {(m.buffer, PHASES_PER_STEP * m.step): moved_s[m.step] for m in plan.moves}
    several_cores = bool(timeline.step_core.any())
    owners = AddressMap()
    for k in sorted(range(len(plan.segments)), key=lambda k: plan.segments[k].start):
        s = plan.segments[k]
        starts[k] = moves.get((s.buffer, s.start), starts[k])
        ends[k] = max(starts[k], moves.get((s.buffer, s.end), ends[k]))
        if several_cores:  # a buffer may have left before the step began that its space waited for
            size = program.buffers[s.buffer].size_bytes
            for owner in owners.claim(s.address, size):
                ends[owner] = min(ends[owner], starts[k])
            owners.put(s.address, size, k)
    return starts, ends


def live_at(program: Program, step: int) -> tuple[LiveBuffer, ...]:
    """Buffers live at a step, largest first."""
    if not program.steps:
        return ()
    first, last = PHASES_PER_STEP * step, PHASES_PER_STEP * (step + 1)
    used = {*program.steps[step].reads, *program.steps[step].writes}
    lives = lifetimes(program)
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
                    end=lives[b].last_step,
                    used_here=b in used,
                )
            )
    return tuple(sorted(found, key=lambda live: (-live.size_bytes, live.start, live.name)))
