"""Gaps: stretches between two consecutive uses of a buffer, where it may be spilled; and which of them write."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.memo import once_per_program, once_per_steps
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.liveness import demand_by_step, lifetimes, release_steps, resident_inputs
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack

GapKey = tuple[int, int]
"""(buffer, step of the use before the gap)."""


StepDemand = Callable[[Program], Ints]
"""Pool bytes that each step needs at once. Shape (n_steps,)."""


@dataclass(frozen=True, slots=True)
class GapOption:
    """A gap that a planner may spend off-chip. Ranges of steps are half-open."""

    buffer: int
    last_use: int  # step of the use before
    next_use: int | None  # step of the use after (+ n_steps in the next inference); None: it dies here
    ranges: tuple[tuple[int, int], ...]  # idle steps: one range, or two if it wraps around
    size_bytes: int  # of the pool that it frees
    moved_bytes: int  # by its reload, and by its write-back

    @property
    def key(self) -> GapKey:
        """What names the gap."""
        return self.buffer, self.last_use

    @property
    def length(self) -> int:
        """Steps in which the buffer is idle."""
        return sum(end - start for start, end in self.ranges)


class Ranges(NamedTuple):
    """The idle steps of gaps, one row a range."""

    gap: Ints  # position of the gap in the list of gaps
    start: Ints
    end: Ints


def ranges_of(gaps: Sequence[GapOption]) -> Ranges:
    """The ranges of gaps, in their order. Shapes (n_ranges,), int64."""
    rows = [(g, start, end) for g, gap in enumerate(gaps) for start, end in gap.ranges]
    return Ranges(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


@once_per_steps
def streamed_uses(program: Program) -> tuple[tuple[int, int, bool], ...]:
    """(buffer, step, whether it is written) of each streamed operand, by step."""
    streaming = [(i, s) for i, s in enumerate(program.steps) if s.streamed_reads or s.streamed_writes]
    reads = [(b, i, False) for i, step in streaming for b in step.streamed_reads]
    return tuple(sorted(reads + [(b, i, True) for i, s in streaming for b in s.streamed_writes], key=lambda u: u[1]))


@once_per_program
def forced_gaps(program: Program) -> dict[GapKey, int]:
    """Gaps that are off-chip in every plan, with the step before or after that streams the buffer.

    A buffer that is streamed next has to be in DRAM by then, and one that was just streamed is not on-chip.
    """
    lives, found = lifetimes(program), dict[GapKey, int]()
    for b, i, _ in streamed_uses(program):
        points = lives[b].use_steps
        at = bisect_left(points, i)
        found[b, i] = i
        if at:
            found.setdefault((b, points[at - 1]), i)
    return found


def gap_options(program: Program, options: PlanningOptions) -> tuple[GapOption, ...]:
    """Every gap that a planner may choose, in program order; computed once for each program.

    Left out are gaps that begin or end with a streamed use (off-chip in any case), gaps without a step between, and
    buffers that take no pool space or may not leave it. A buffer that is freed late has a last gap from its last use
    to its release.
    """
    goes_round = program.weights_persist and options.start is Start.STEADY
    return _gap_options(program, options.inputs, options.release, program.weights_persist, goes_round)


@once_per_steps
def _gap_options(
    program: Program, inputs: Inputs, release: Release, weights_stay: bool, goes_round: bool
) -> tuple[GapOption, ...]:
    n = len(program.steps)
    fixed = resident_inputs(program, PlanningOptions(inputs=inputs))
    lives = lifetimes(program)
    releases = release_steps(program, [life.last_step for life in lives], release)
    streamed = {(b, i) for b, i, _ in streamed_uses(program)}
    overwritten = {u.old for step in program.steps for u in step.updates}
    found: list[GapOption] = []
    for buffer, life, released in zip(program.buffers, lives, releases, strict=True):
        b, size, moved = buffer.index, buffer.size_bytes, buffer.moved_bytes
        if b in fixed or buffer.dedicated or not size:
            continue
        points = life.use_steps
        if not points:
            continue
        p = points[0]
        for u in points[1:]:
            if u > p + 1 and (b, p) not in streamed and (b, u) not in streamed:
                found.append(GapOption(b, p, u, ((p + 1, u),), size, moved))
            p = u
        last, first = p, points[0]
        if (b, last) in streamed:
            continue
        if weights_stay and buffer.kind is BufferKind.WEIGHT:
            if goes_round and (b, first) not in streamed:
                ranges = tuple(r for r in ((last + 1, n), (0, first)) if r[0] < r[1])
                if ranges:
                    found.append(GapOption(b, last, first + n, ranges, size, moved))
        elif released > last and b not in overwritten:  # an in-place result takes over the space
            found.append(GapOption(b, last, None, ((last + 1, released + 1),), size, moved))
    return tuple(found)


def locked_bytes(
    program: Program,
    options: PlanningOptions,
    demand: StepDemand = demand_by_step,
    may_be_replaced: Mapping[int, int] | None = None,
) -> list[int]:
    """Pool bytes that each step needs however much is spilled. Shape (n_steps,).

    ``may_be_replaced``: resident inputs that a result may take the place of, by buffer, with the step; they count until
    then, beside those whose place one does take.
    """
    fixed = resident_inputs(program, options)
    if not fixed:
        return list(demand(program).tolist())
    overwritten = {u.old: i for i, step in enumerate(program.steps) for u in step.updates} | dict(may_be_replaced or {})
    sizes = {b: program.buffers[b].size_bytes for b in fixed if not program.buffers[b].dedicated}
    change = [0] * (len(program.steps) + 1)
    change[0] = sum(sizes.values())
    for b, size in sizes.items():
        change[overwritten.get(b, len(program.steps) - 1) + 1] -= size  # taken over in place
    return [
        held + needed - sum(sizes.get(b, 0) for b in step.reads)
        for held, needed, step in zip(accumulate(change), demand(program).tolist(), program.steps, strict=False)
    ]


def unspilled_bytes(
    program: Program, options: PlanningOptions, gaps: Sequence[GapOption], demand: StepDemand = demand_by_step
) -> list[int]:
    """Pool bytes in use at each step if none of the gaps is spilled. Shape (n_steps,)."""
    return in_use_unspilled(gaps, locked_bytes(program, options, demand))


def in_use_unspilled(gaps: Sequence[GapOption], locked: Sequence[int]) -> list[int]:
    """The same, from the bytes that each step needs however much is spilled."""
    rows = ranges_of(gaps)
    size = np.array([gap.size_bytes for gap in gaps], dtype=np.int64)[rows.gap]
    change = np.zeros(len(locked) + 1, dtype=np.int64)
    np.add.at(change, rows.start, size)
    np.subtract.at(change, rows.end, size)
    idle = np.cumsum(change[:-1])
    return [own + nbytes for own, nbytes in zip(locked, idle.tolist(), strict=True)]


class WriteBacks:
    """Which evictions of a program's buffers cost a DRAM write that is not made anyway.

    DRAM holds inputs and weights from the start. Graph outputs are written in any case, and so are buffers that some
    step streams through DRAM: an eviction only makes that write earlier.
    """

    def __init__(self, program: Program, writeback: WriteBack) -> None:
        buffers = program.buffers
        if writeback is WriteBack.ALWAYS:
            self._first = [not b.in_dram_at_start and b.kind is not BufferKind.OUTPUT for b in buffers]
            self._later = [not b.in_dram_at_start for b in buffers]
        else:
            streamed = {b for b, _, _ in streamed_uses(program)}
            self._first = [b.kind is BufferKind.ACTIVATION and b.index not in streamed for b in buffers]
            self._later = [False] * len(buffers)

    def adds_write(self, buffer: int, *, evicted_before: bool) -> bool:
        """Whether the first eviction of a buffer, or a later one, costs an extra write."""
        return (self._later if evicted_before else self._first)[buffer]
