"""Live intervals of a Program's buffers, the demand of each step, and the peaks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillprof.model.program import PHASES_PER_STEP, BufferKind, Phase, Program, Step
from spillprof.planning.once import once_per_program

Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """When a buffer is written and read, in steps."""

    write_step: int | None  # None: present at the start
    read_steps: tuple[int, ...]  # ascending; a step that reads it twice counts once

    @property
    def last_step(self) -> int:
        """The last step that touches it; -1 for a buffer that nothing touches."""
        if self.read_steps:
            return self.read_steps[-1]
        return -1 if self.write_step is None else self.write_step


@once_per_program
def lifetimes(program: Program) -> tuple[Lifetime, ...]:
    """Lifetime of every buffer, in order of ``program.buffers``."""
    writes: list[int | None] = [None] * len(program.buffers)
    reads: list[list[int]] = [[] for _ in program.buffers]
    for i, step in enumerate(program.steps):
        for b in step.reads:
            reads[b].append(i)
        for b in step.writes:
            writes[b] = i
    return tuple(Lifetime(write_step=w, read_steps=tuple(r)) for w, r in zip(writes, reads, strict=True))


def live_intervals(program: Program) -> Iterator[tuple[int, int, int]]:
    """``(buffer, start, end)`` in half-open ticks, for activations, inputs and outputs, in buffer order.

    From the first write (inputs: the start) to the last read (outputs: the end of the run). An in-place update
    ends the old buffer where the new one begins. A buffer that nobody reads lives for its step.
    """
    n_ticks = PHASES_PER_STEP * len(program.steps)
    updated_at = {u.old: i for i, step in enumerate(program.steps) for u in step.updates}
    for buffer, life in zip(program.buffers, lifetimes(program), strict=True):
        if buffer.kind is BufferKind.WEIGHT or life.last_step < 0:
            continue
        start = 0 if life.write_step is None else PHASES_PER_STEP * life.write_step + Phase.COMPUTE
        if buffer.kind is BufferKind.OUTPUT:
            end = n_ticks
        elif buffer.index in updated_at:
            end = PHASES_PER_STEP * updated_at[buffer.index] + Phase.COMPUTE
        elif life.read_steps:
            end = PHASES_PER_STEP * life.last_step + Phase.COMPUTE + 1
        else:
            end = PHASES_PER_STEP * life.last_step + Phase.WRITE + 1
        yield buffer.index, start, end


def live_bytes_by_tick(program: Program, *, stored: bool) -> Bytes:
    """Live bytes in each tick. Shape (3 n_steps,), int64.

    ``stored``: sizes as they lie in memory (padded, aligned), workspaces included; otherwise the tensors' own
    sizes, and tensors alone.
    """
    delta = np.zeros(PHASES_PER_STEP * len(program.steps) + 1, dtype=np.int64)
    for b, start, end in live_intervals(program):
        buffer = program.buffers[b]
        nbytes = buffer.size_bytes if stored else buffer.payload_bytes
        delta[start] += nbytes
        delta[end] -= nbytes
    for i, step in enumerate(program.steps if stored else ()):
        for w in step.workspaces:
            delta[PHASES_PER_STEP * i + w.first] += w.size_bytes
            delta[PHASES_PER_STEP * i + w.last + 1] -= w.size_bytes
    return np.cumsum(delta[:-1])


def live_bytes_by_step(program: Program, *, stored: bool) -> Bytes:
    """Live bytes of each step at its fullest phase. Shape (n_steps,), int64."""
    ticks = live_bytes_by_tick(program, stored=stored)
    return ticks.reshape(-1, PHASES_PER_STEP).max(axis=1) if len(ticks) else ticks


def step_demand_bytes(program: Program, step: Step) -> int:
    """Pool bytes that a step needs at once: the largest phase, streamed and dedicated operands left out.

    Buffers leave between steps, so an operand that is read again later stays to the end of the step; as this
    function does not know which are, all count in WRITE too. That matters only beside a workspace that lives in
    WRITE alone.
    """
    read, compute, write, staying = _by_phase(program, step)
    return max(read, compute, write + staying)


def step_least_bytes(program: Program, step: Step) -> int:
    """Pool bytes that a step needs in any plan, even one whose operands leave as soon as they were read."""
    read, compute, write, _ = _by_phase(program, step)
    return max(read, compute, write)


def _by_phase(program: Program, step: Step) -> tuple[int, int, int, int]:
    """Pool bytes in READ, COMPUTE and WRITE, and those of operands read that may stay through WRITE."""
    by_phase = [step.stream_staging_bytes] * PHASES_PER_STEP
    staying = 0
    replaced = {u.old for u in step.updates}
    streamed_reads, streamed_writes = frozenset(step.streamed_reads), frozenset(step.streamed_writes)
    for b in step.reads:
        if b not in streamed_reads and not program.buffers[b].dedicated:
            by_phase[Phase.READ] += program.buffers[b].size_bytes
            if b not in replaced:
                by_phase[Phase.COMPUTE] += program.buffers[b].size_bytes
                staying += program.buffers[b].size_bytes
    for b in step.writes:
        if b not in streamed_writes and not program.buffers[b].dedicated:
            by_phase[Phase.COMPUTE] += program.buffers[b].size_bytes
            by_phase[Phase.WRITE] += program.buffers[b].size_bytes
    for w in step.workspaces:
        for phase in range(w.first, w.last + 1):
            by_phase[phase] += w.size_bytes
    return by_phase[Phase.READ], by_phase[Phase.COMPUTE], by_phase[Phase.WRITE], staying
