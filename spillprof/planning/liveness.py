"""Live ranges of a Program's buffers: when each is written, read, held and released; demand of each step; peaks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.errors import CapacityError
from spillprof.ir.fast_init import fast_init
from spillprof.ir.memo import once_per_steps
from spillprof.ir.program import (
    ACCUMULATOR,
    PHASES_PER_STEP,
    BufferKind,
    Phase,
    Program,
    Step,
    Workspace,
    largest_phase_bytes,
)
from spillprof.planning.options import Inputs, PlanningOptions, Release


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """The steps that write and read a buffer."""

    write_step: int | None  # None: present at the start
    read_steps: tuple[int, ...]  # ascending; a step that reads it twice counts once

    @property
    def use_steps(self) -> tuple[int, ...]:
        """Steps that write or read it, ascending."""
        return self.read_steps if self.write_step is None else (self.write_step, *self.read_steps)

    @property
    def last_step(self) -> int:
        """The last step that touches it; -1 for a buffer that nothing touches."""
        if self.read_steps:
            return self.read_steps[-1]
        return -1 if self.write_step is None else self.write_step


@once_per_steps
def held_until(program: Program) -> tuple[int, ...]:
    """The last step that holds each buffer on-chip without reading it; -1 if none does. Shape (n_buffers,)."""
    last = [-1] * len(program.buffers)
    for i, step in enumerate(program.steps):
        for b in step.holds:
            last[b] = i
    return tuple(last)


@once_per_steps
def lifetimes(program: Program) -> tuple[Lifetime, ...]:
    """Lifetime of every buffer, in order of ``program.buffers``."""
    written_at: list[int | None] = [None] * len(program.buffers)
    read_at: list[list[int]] = [[] for _ in program.buffers]
    for i, step in enumerate(program.steps):
        for b in step.reads:
            read_at[b].append(i)
        for b in step.writes:
            written_at[b] = i
    return tuple([Lifetime(write_step=w, read_steps=tuple(r)) for w, r in zip(written_at, read_at, strict=True)])


def live_intervals(program: Program) -> Iterator[tuple[int, int, int]]:
    """Live ranges of activations, inputs and outputs: ``(buffer, start, end)`` in half-open ticks, in buffer order.

    From the write (inputs: the start of the run) to the last read or hold (outputs: the end of the run). An in-place
    update ends the old buffer where the new one begins. A buffer that is never read lives for the step that writes it.
    """
    return zip(*(column.tolist() for column in _live_intervals(program)), strict=True)


@once_per_steps
def _live_intervals(program: Program) -> tuple[Ints, Ints, Ints]:
    """Live ranges as columns: buffers, starts and ends."""
    read, write = _read_operands(program), _written_operands(program)
    read_at, written_at = np.full((2, len(program.buffers)), -1, dtype=np.int64)
    read_at[read.buffers] = read.steps  # the last of several assignments counts
    written_at[write.buffers] = write.steps
    read_at = np.maximum(read_at, np.array(held_until(program), dtype=np.int64))
    starts = np.where(written_at < 0, 0, PHASES_PER_STEP * written_at + Phase.COMPUTE)
    ends = np.where(
        read_at < 0, PHASES_PER_STEP * written_at + Phase.WRITE + 1, PHASES_PER_STEP * read_at + Phase.COMPUTE + 1
    )
    for i, step in enumerate(program.steps):
        for update in step.updates:
            ends[update.old] = PHASES_PER_STEP * i + Phase.COMPUTE
    ends[[b.index for b in program.buffers if b.kind is BufferKind.OUTPUT]] = PHASES_PER_STEP * len(program.steps)
    lives = np.array([b.kind is not BufferKind.WEIGHT for b in program.buffers], dtype=bool)
    (buffers,) = np.nonzero(lives & (np.maximum(read_at, written_at) >= 0))
    return buffers, starts[buffers], ends[buffers]


def resident_inputs(program: Program, options: PlanningOptions) -> frozenset[int]:
    """Graph inputs that stay on-chip for the whole run: all of them under ``--inputs resident``, else none.

    ``CapacityError`` if an oversized step streams one from DRAM.
    """
    if options.inputs is not Inputs.RESIDENT:
        return frozenset()
    for step in program.steps:
        for b in step.streamed_reads:
            if program.buffers[b].kind is BufferKind.INPUT:
                raise CapacityError(
                    f"graph input '{program.buffers[b].name}' cannot stay on-chip: "
                    f"operator '{step.name}' does not fit beside it and tiles it through DRAM",
                    hint="load inputs on demand (--inputs on-demand), or give more --sram",
                )
    return frozenset(b.index for b in program.buffers if b.kind is BufferKind.INPUT)


def release_steps(program: Program, last: Sequence[int], release: Release) -> Sequence[int]:
    """The step at whose end each buffer's space is freed, by the release policy. Shape (n_buffers,).

    Never before its ``last`` use or the last step that holds it; -1 for a buffer that is never used.
    """
    held = held_until(program)
    if max(held, default=-1) >= 0:
        last = [max(step, until) if step >= 0 else step for step, until in zip(last, held, strict=True)]
    match release:
        case Release.LAST_USE:
            return last
        case Release.END:
            return [len(program.steps) - 1 if step >= 0 else step for step in last]
        case Release.SCOPE:
            ends = _scope_ends(program)
            return [ends[step] if step >= 0 else step for step in last]


def _scope_ends(program: Program) -> list[int]:
    """For each step, the last step of the run of steps that share its scope.

    The scope of a step is its name up to the last '/': the module path that exporters write. A recomputing step belongs
    to the scope of the step that it runs for.
    """
    scopes = [step.name.rpartition("/")[0] for step in program.steps]
    for i in range(len(scopes) - 2, -1, -1):
        if program.steps[i].recomputes:
            scopes[i] = scopes[i + 1]
    ends = list(range(len(scopes)))
    for i in range(len(scopes) - 2, -1, -1):
        if scopes[i] == scopes[i + 1]:
            ends[i] = ends[i + 1]
    return ends


@once_per_steps
def _tensor_bytes_by_tick(program: Program, is_stored: bool) -> Ints:
    """Bytes of the tensors live in each tick, without weights. Shape (3 n_steps,), int64."""
    delta = np.zeros(PHASES_PER_STEP * len(program.steps) + 1, dtype=np.int64)
    buffers, starts, ends = _live_intervals(program)
    sizes = [b.size_bytes for b in program.buffers] if is_stored else [b.payload_bytes for b in program.buffers]
    nbytes = np.array(sizes, dtype=np.int64)[buffers]
    np.add.at(delta, starts, nbytes)
    np.subtract.at(delta, ends, nbytes)
    return np.cumsum(delta[:-1])


@once_per_steps
def _workspace_bytes_by_tick(program: Program) -> Ints:
    found = np.zeros(PHASES_PER_STEP * len(program.steps), dtype=np.int64)
    for i, step in enumerate(program.steps):
        for w in step.workspaces:
            found[PHASES_PER_STEP * i + w.first : PHASES_PER_STEP * i + w.last + 1] += w.size_bytes
    return found


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The peak of live tensor bytes, without weights and workspaces."""

    step: int
    live_bytes: int  # as stored
    padding_bytes: int  # part of these that rounding up of channels and sizes adds


def live_peak(program: Program) -> Peak:
    """The peak of a program; the first of several equal ones."""
    stored = _tensor_bytes_by_tick(program, True)
    if not len(stored):
        return Peak(step=0, live_bytes=0, padding_bytes=0)
    tick = int(stored.argmax())
    own = int(_tensor_bytes_by_tick(program, False)[tick])
    return Peak(step=tick // PHASES_PER_STEP, live_bytes=int(stored[tick]), padding_bytes=int(stored[tick]) - own)


def live_bytes_by_step(program: Program, *, stored: bool, workspaces: bool = True) -> Ints:
    """Live bytes of each step in its fullest phase. Shape (n_steps,), int64.

    ``stored``: sizes as they lie in memory (padded, aligned), with or without ``workspaces``; else the tensors' own
    sizes, without workspaces.
    """
    ticks = _tensor_bytes_by_tick(program, stored)
    if stored and workspaces:
        ticks = ticks + _workspace_bytes_by_tick(program)
    return ticks.reshape(-1, PHASES_PER_STEP).max(axis=1) if len(ticks) else ticks


def demand_by_step(program: Program) -> Ints:
    """Pool bytes that each step needs at once: its largest phase, without streamed and dedicated operands.

    Buffers leave between steps, so an operand that is read again later stays to the end of the step. Which do is not
    known here, so all count in WRITE too; that matters only beside a workspace of WRITE alone. Shape (n_steps,), int64,
    read-only.
    """
    return _needs(program)[0]


def least_by_step(program: Program) -> Ints:
    """Pool bytes that each step needs in any plan, even one whose operands leave as soon as they are read.

    Shape (n_steps,), int64, read-only.
    """
    return _needs(program)[1]


def step_demand_bytes(program: Program, step: Step) -> int:
    """``demand_by_step`` of one step, which need not be one of the program's."""
    return int(_demand_and_least(program, (step,))[0][0])


@once_per_steps
def most_workspace_bytes(program: Program) -> int:
    """The largest bytes of workspaces that one phase of a step holds together, without accumulators."""
    shared = (shared_workspaces(step) for step in program.steps if step.workspaces)
    return max(map(largest_phase_bytes, shared), default=0)


def shared_workspaces(step: Step) -> tuple[Workspace, ...]:
    """The workspaces of a step that a shared block holds: all but accumulators, which tiles may do without."""
    return tuple(w for w in step.workspaces if w.purpose != ACCUMULATOR)


@once_per_steps
def most_weight_stream_bytes(program: Program) -> int:
    """The largest bytes of weights that a step streams."""
    return max((step.weight_stream_bytes for step in program.steps), default=0)


@once_per_steps
def _needs(program: Program) -> tuple[Ints, Ints]:
    return _demand_and_least(program, program.steps)


def _demand_and_least(program: Program, steps: Sequence[Step]) -> tuple[Ints, Ints]:
    """Pool bytes of each step if its operands stay, and if they leave as soon as they are read."""
    size = _pool_sizes(program)
    read, compute, write, staying = np.zeros((4, len(steps)), dtype=np.int64)
    for use, phases in (
        (_flattened([s.reads for s in steps]), (read, compute, staying)),
        (_flattened([s.writes for s in steps]), (compute, write)),
    ):
        for phase in phases:
            np.add.at(phase, use.steps, size[use.buffers])
    for i, s in enumerate(steps):
        for b in s.streamed_reads:
            read[i] -= size[b]
        for b in s.streamed_writes:
            compute[i] -= size[b]
            write[i] -= size[b]
        if s.updates or s.streamed_reads:
            for b in {*s.streamed_reads, *(u.old for u in s.updates)}.intersection(s.reads):
                compute[i] -= size[b]
                staying[i] -= size[b]
        for w in s.workspaces:
            for phase in (read, compute, write)[w.first : w.last + 1]:
                phase[i] += w.size_bytes
    staging = np.array([s.stream_staging_bytes for s in steps], dtype=np.int64)
    most = np.maximum(read, compute)
    return np.maximum(most, write + staying) + staging, np.maximum(most, write) + staging


@once_per_steps
def _pool_sizes(program: Program) -> Ints:
    """Pool bytes of each buffer: none if it has a dedicated slot."""
    return np.array([0 if b.dedicated else b.size_bytes for b in program.buffers], dtype=np.int64)


class _Operands(NamedTuple):
    """(step, buffer) pairs as two columns, in step order, then operand order; read-only."""

    steps: Ints  # ascending
    buffers: Ints


@once_per_steps
def _read_operands(program: Program) -> _Operands:
    return _flattened([step.reads for step in program.steps])


@once_per_steps
def _written_operands(program: Program) -> _Operands:
    return _flattened([step.writes for step in program.steps])


def _flattened(by_step: Sequence[Sequence[int]]) -> _Operands:
    counts = np.fromiter(map(len, by_step), dtype=np.int64, count=len(by_step))
    buffers = np.fromiter(chain.from_iterable(by_step), dtype=np.int64, count=int(counts.sum()))
    return _Operands(steps=np.repeat(np.arange(len(by_step)), counts), buffers=buffers)
