"""The rules of a legal plan, and what the checks know about the plan at hand."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import StrEnum

from spillprof.model.plan import Plan, Segment
from spillprof.model.program import PHASES_PER_STEP, BufferKind, Phase, Program

NEVER = 1 << 62
"""A step that never comes."""


class Rule(StrEnum):
    """What a legal plan keeps to."""

    MALFORMED = "malformed"  # every buffer, step, tick and segment that is named exists
    RESERVED = "reserved"  # the reserved part is the program's; a dedicated buffer lies in its own slot
    OUT_OF_RANGE = "out-of-range"  # everything else lies between the reserved part and the capacity
    MISALIGNED = "misaligned"  # addresses are multiples of the alignment
    OVERLAP = "overlap"  # what is on-chip at the same time does not share addresses
    OPERAND_ABSENT = "operand-absent"  # operands that are not streamed are on-chip in the phases that need them
    SCRATCH_ABSENT = "scratch-absent"  # workspaces and stream staging have space
    BAD_UPDATE = "bad-update"  # an in-place result takes over the place of the operand that it replaces
    BAD_SEGMENT = "bad-segment"  # no buffer is on-chip before it is written, or at two addresses at once
    NOT_FILLED = "not-filled"  # a segment starts with a write, a move or exactly one read from DRAM
    NOT_STEADY = "not-steady"  # a weight that is on-chip at the start is there, at that place, at the end
    EVICTED_PINNED = "evicted-pinned"  # a dedicated buffer never leaves
    NO_DRAM_COPY = "no-dram-copy"  # what is read from DRAM was there at the start or was written before
    BAD_TRANSFER = "bad-transfer"  # transfers have the right size, kind and order, while the data is on-chip
    BAD_STREAM = "bad-stream"  # only what the program streams is streamed, and it is off-chip meanwhile
    BAD_MOVE = "bad-move"  # a compaction move joins two segments of its buffer
    BAD_SPILL = "bad-spill"  # each eviction of a buffer that is still to be read has one record, and it is true
    OUTPUT_LOST = "output-lost"  # every graph output is written to DRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that the plan breaks, and where."""

    rule: Rule
    message: str
    step: int | None = None
    buffer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Program and plan, indexed by buffer. "Segments" here are indices into ``plan.segments``."""

    program: Program
    plan: Plan
    write_step: list[int | None]  # None: present at the start
    streamed: set[tuple[int, int]]  # (step, buffer) that the plan streams
    reads: list[list[int]]  # steps that read the buffer on-chip, ascending
    streamed_reads: list[list[int]]  # steps that read it from DRAM
    segments: list[list[int]]  # by start
    starts: list[list[int]]  # ticks at which they start
    fills: list[list[int]]  # by segment: indices of the reads that fill it
    copied_at: list[int]  # the first step at which DRAM holds a copy
    moved_from: dict[tuple[int, int, int], int]  # (buffer, tick, new address): old address

    def name(self, buffer: int) -> str:
        """The buffer's name, quoted."""
        return f"'{self.program.buffers[buffer].name}'"

    def covering(self, buffer: int, start: int, end: int) -> Segment | None:
        """The segment that holds the buffer all through ticks ``[start, end)``."""
        own = self.segments[buffer]
        at = bisect_right(self.starts[buffer], start)
        segment = self.plan.segments[own[at - 1]] if at else None
        return segment if segment is not None and segment.end >= end else None

    def touching(self, buffer: int, start: int, end: int) -> bool:
        """Whether the buffer is on-chip at some tick in ``[start, end)``."""
        own = self.segments[buffer]
        at = bisect_left(self.starts[buffer], end)
        return at > 0 and self.plan.segments[own[at - 1]].end > start

    def before(self, k: int) -> int | None:
        """The segment of the same buffer that comes before segment ``k``."""
        segment = self.plan.segments[k]
        at = bisect_left(self.starts[segment.buffer], segment.start)
        return self.segments[segment.buffer][at - 1] if at else None

    def is_moved(self, k: int) -> bool:
        """Whether segment ``k`` starts with a compaction move from the segment before it."""
        segment = self.plan.segments[k]
        source = self.moved_from.get((segment.buffer, segment.start, segment.address))
        before = None if source is None else self.before(k)
        if before is None:
            return False
        return self.plan.segments[before].end == segment.start and self.plan.segments[before].address == source

    def holds_data_at_start(self, k: int) -> bool:
        """Whether segment ``k`` needs no transfer: written, moved, or on-chip before the run."""
        segment = self.plan.segments[k]
        buffer, written = self.program.buffers[segment.buffer], self.write_step[segment.buffer]
        if written is not None and segment.start == PHASES_PER_STEP * written + Phase.COMPUTE:
            return True
        stays = buffer.kind is BufferKind.WEIGHT and self.program.weights_persist
        given = buffer.kind is BufferKind.INPUT and self.plan.inputs_resident
        return self.is_moved(k) or (segment.start == 0 and (stays or given) and not self.fills[k])


def gather(program: Program, plan: Plan) -> Facts:
    """Index a program and a plan whose indices are all valid."""
    n = len(program.buffers)
    streamed = {(s.step, s.buffer) for s in plan.streamed}
    write_step: list[int | None] = [None] * n
    reads: list[list[int]] = [[] for _ in range(n)]
    streamed_reads: list[list[int]] = [[] for _ in range(n)]
    copied_at = [0 if buffer.in_dram_at_start else NEVER for buffer in program.buffers]
    for i, step in enumerate(program.steps):
        for b in step.reads:
            (streamed_reads if (i, b) in streamed else reads)[b].append(i)
        for b in step.writes:
            write_step[b] = i
            if (i, b) in streamed:
                copied_at[b] = i + 1
    segments: list[list[int]] = [[] for _ in range(n)]
    for k in sorted(range(len(plan.segments)), key=lambda k: plan.segments[k].start):
        segments[plan.segments[k].buffer].append(k)
    fills: list[list[int]] = [[] for _ in plan.segments]
    for t, transfer in enumerate(plan.transfers):
        if transfer.kind.is_read:
            fills[transfer.segment].append(t)
        else:
            copied_at[transfer.buffer] = min(copied_at[transfer.buffer], transfer.issue_step)
    moved_from = {(m.buffer, PHASES_PER_STEP * m.step, m.to_address): m.from_address for m in plan.moves}
    return Facts(
        program=program, plan=plan, write_step=write_step, streamed=streamed, reads=reads,
        streamed_reads=streamed_reads, segments=segments,
        starts=[[plan.segments[k].start for k in own] for own in segments],
        fills=fills, copied_at=copied_at, moved_from=moved_from,
    )  # fmt: skip
