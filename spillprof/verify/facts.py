"""Program and plan as columns, indexed for the rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Phase, Program
from spillprof.verify.columns import FlagColumn, SegmentRows, StepUses, field_column, int_column, segment_rows, uses
from spillprof.verify.rules import Terms

NEVER = 1 << 62
"""Stands for no step: later than all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transfers:
    """The transfers of a plan, in its order."""

    kind: list[TransferKind]
    is_read: FlagColumn
    buffer: Ints
    size_bytes: Ints
    issue_step: Ints
    needed_step: Ints
    segment: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanFacts:
    """Program and plan. Columns are by buffer unless stated otherwise."""

    program: Program
    plan: Plan
    terms: Terms
    kind: list[BufferKind]
    moved_bytes: Ints
    dedicated: FlagColumn
    write_step: Ints  # -1: present at the start
    streamed: set[tuple[int, int]]  # (step, buffer) that the plan streams
    reads: StepUses  # of all steps
    writes: StepUses
    loaded_reads: StepUses  # those of operands that are on-chip
    streamed_reads: StepUses  # the others
    rows: SegmentRows
    transfers: Transfers
    fill_count: Ints  # by segment: reads that fill it
    is_moved: FlagColumn  # by row of ``rows``: it starts with a compaction move from the segment before it
    is_given: FlagColumn  # by row: it needs no transfer: written, moved, or on-chip before the run
    copied_at: Ints  # the first step at which DRAM holds a copy
    moved_from: dict[tuple[int, int, int], int]  # (buffer, tick, new address): old address

    def name(self, buffer: int) -> str:
        """The buffer's name, quoted."""
        return f"'{self.program.buffers[buffer].name}'"

    def is_kind(self, *kinds: BufferKind) -> FlagColumn:
        """Whether a buffer is of one of these kinds."""
        return np.array([kind in kinds for kind in self.kind], dtype=bool)


RowCheck = tuple[FlagColumn, Callable[[int], str]]
"""Which rows are wrong, and the message about such a row."""


def wrong(*checks: RowCheck) -> Iterator[tuple[int, str]]:
    """(row, message) of each row that fails a check, from the first check that it fails."""
    failed = np.logical_or.reduce([flags for flags, _ in checks])
    for row in np.flatnonzero(failed).tolist():
        yield row, next(say(row) for flags, say in checks if flags[row])


def plan_facts(program: Program, plan: Plan, terms: Terms) -> PlanFacts:
    """Indexes a program and a plan whose indices are all valid."""
    n, steps = len(program.buffers), program.steps
    reads, writes = uses([step.reads for step in steps]), uses([step.writes for step in steps])
    streamed = {(s.step, s.buffer) for s in plan.streamed}
    loaded_reads, streamed_reads = reads.split(streamed)
    kind = [buffer.kind for buffer in program.buffers]
    write_step = np.full(n, -1)
    write_step[writes.buffer] = writes.step
    rows = segment_rows(plan.segments, PHASES_PER_STEP * len(steps))
    transfers = _transfers(plan)
    moved_from = {(m.buffer, PHASES_PER_STEP * m.step, m.to_address): m.from_address for m in plan.moves}
    fill_count = np.bincount(transfers.segment[transfers.is_read], minlength=len(plan.segments))
    is_moved = _is_moved(rows, moved_from)
    on_chip = np.array([_is_on_chip_before(program, plan, terms, k) for k in kind], dtype=bool)
    written_here = (write_step >= 0)[rows.buffer] & (
        rows.start == PHASES_PER_STEP * write_step[rows.buffer] + Phase.COMPUTE
    )
    left_there = (rows.start == 0) & on_chip[rows.buffer] & (fill_count[rows.segment] == 0)
    return PlanFacts(
        program=program,
        plan=plan,
        terms=terms,
        kind=kind,
        moved_bytes=field_column(program.buffers, "moved_bytes"),
        dedicated=np.array([buffer.dedicated for buffer in program.buffers], dtype=bool),
        write_step=write_step,
        streamed=streamed,
        reads=reads,
        writes=writes,
        loaded_reads=loaded_reads,
        streamed_reads=streamed_reads,
        rows=rows,
        transfers=transfers,
        fill_count=fill_count,
        is_moved=is_moved,
        is_given=written_here | is_moved | left_there,
        copied_at=_copied_at(program, plan, write_step, transfers, streamed),
        moved_from=moved_from,
    )


def _transfers(plan: Plan) -> Transfers:
    kind = [transfer.kind for transfer in plan.transfers]
    return Transfers(
        kind=kind,
        is_read=np.array([k is TransferKind.FETCH or k is TransferKind.RELOAD for k in kind], dtype=bool),
        buffer=field_column(plan.transfers, "buffer"),
        size_bytes=field_column(plan.transfers, "size_bytes"),
        issue_step=field_column(plan.transfers, "issue_step"),
        needed_step=field_column(plan.transfers, "needed_step"),
        segment=field_column(plan.transfers, "segment"),
    )


def _is_moved(rows: SegmentRows, moved_from: dict[tuple[int, int, int], int]) -> FlagColumn:
    moved = np.zeros(len(rows.start), dtype=bool)
    if not moved_from:
        return moved
    for row in np.flatnonzero((rows.before >= 0) & (rows.end[rows.before] == rows.start)).tolist():
        to = int(rows.buffer[row]), int(rows.start[row]), int(rows.address[row])
        moved[row] = moved_from.get(to) == rows.address[rows.before[row]]
    return moved


def _is_on_chip_before(program: Program, plan: Plan, terms: Terms, kind: BufferKind) -> bool:
    """Whether buffers of this kind may be on-chip before the run starts."""
    return (kind is BufferKind.WEIGHT and program.weights_persist and not terms.cold) or (
        kind is BufferKind.INPUT and plan.inputs_resident
    )


def _copied_at(
    program: Program, plan: Plan, write_step: Ints, transfers: Transfers, streamed: set[tuple[int, int]]
) -> Ints:
    copied_at = np.where([buffer.in_dram_at_start for buffer in program.buffers], 0, NEVER).astype(np.int64)
    out = int_column(b for i, b in streamed if write_step[b] == i)
    copied_at[out] = write_step[out] + 1
    writes = ~transfers.is_read
    np.minimum.at(copied_at, transfers.buffer[writes], transfers.issue_step[writes])
    return copied_at
