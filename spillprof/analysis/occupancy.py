"""SRAM in use over the run, and what lives at the peak."""

import numpy as np
import numpy.typing as npt

from spillprof.model.plan import Plan
from spillprof.model.profile import LiveBuffer, Residency
from spillprof.model.program import PHASES_PER_STEP, Program
from spillprof.planning.liveness import lifetimes, live_intervals


def in_use_by_step(program: Program, plan: Plan) -> npt.NDArray[np.int64]:
    """SRAM in use within each step, at its fullest phase, the reserved part included. Shape (n_steps,), int64."""
    delta = np.zeros(PHASES_PER_STEP * len(program.steps) + 1, dtype=np.int64)
    for s in plan.segments:
        if not program.buffers[s.buffer].dedicated:
            delta[s.start] += program.buffers[s.buffer].size_bytes
            delta[s.end] -= program.buffers[s.buffer].size_bytes
    for w in plan.scratch:
        delta[w.start] += w.size_bytes
        delta[w.end] -= w.size_bytes
    by_tick = plan.reserved_bytes + np.cumsum(delta[:-1])
    return by_tick.reshape(-1, PHASES_PER_STEP).max(axis=1) if len(by_tick) else by_tick


def residencies(program: Program, plan: Plan) -> tuple[Residency, ...]:
    """Rectangles of the address map, in the order of ``plan.segments``."""
    return tuple(
        Residency(
            buffer=program.buffers[s.buffer].name,
            kind=str(program.buffers[s.buffer].kind),
            start_step=s.start / PHASES_PER_STEP,
            end_step=s.end / PHASES_PER_STEP,
            address=s.address,
            size_bytes=program.buffers[s.buffer].size_bytes,
        )
        for s in plan.segments
    )


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
