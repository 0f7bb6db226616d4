"""Collects what a planner decides and turns it into a Plan."""

from dataclasses import replace

from spillprof.model.plan import Move, Plan, Scratch, Segment, Spill, StreamedOperand, Transfer, TransferKind
from spillprof.model.program import PHASES_PER_STEP, Program


class PlanRecorder:
    """Open segments by buffer, and everything recorded so far."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._segments: list[Segment] = []  # end is filled in on close
        self._open: dict[int, int] = {}  # buffer -> position in _segments
        self._transfers: list[Transfer] = []
        self._spills: list[Spill] = []
        self._moves: list[Move] = []
        self._scratch: list[Scratch] = []

    def open(self, buffer: int, tick: int, address: int) -> None:
        """The buffer is on-chip from ``tick`` on."""
        self._open[buffer] = len(self._segments)
        self._segments.append(Segment(buffer=buffer, start=tick, end=-1, address=address))

    def close(self, buffer: int, tick: int) -> None:
        """The buffer's space ends at ``tick``."""
        position = self._open.pop(buffer)
        self._segments[position] = replace(self._segments[position], end=tick)

    def move(self, buffer: int, step: int, to_address: int) -> None:
        """The open segment is moved inside SRAM before ``step`` starts (if it begins only then: laid elsewhere)."""
        position = self._open[buffer]
        if self._segments[position].start == PHASES_PER_STEP * step:
            self._segments[position] = replace(self._segments[position], address=to_address)
            return
        from_address = self._segments[position].address
        size = self._program.buffers[buffer].size_bytes
        self._moves.append(
            Move(buffer=buffer, step=step, size_bytes=size, from_address=from_address, to_address=to_address)
        )
        self.close(buffer, PHASES_PER_STEP * step)
        self.open(buffer, PHASES_PER_STEP * step, to_address)

    def transfer(self, kind: TransferKind, buffer: int, *, issue_step: int, needed_step: int) -> None:
        """A transfer that fills or empties the open segment."""
        self._transfers.append(
            Transfer(
                kind=kind,
                buffer=buffer,
                size_bytes=self._program.buffers[buffer].size_bytes,
                issue_step=issue_step,
                needed_step=needed_step,
                segment=self._open[buffer],
            )
        )

    def spill(self, spill: Spill) -> None:
        """A gap off-chip."""
        self._spills.append(spill)

    def scratch(self, scratch: Scratch) -> None:
        """A workspace or staging buffer of one step."""
        self._scratch.append(scratch)

    def plan(self, strategy: str, *, inputs_resident: bool = False) -> Plan:
        """Everything recorded, in canonical order. All segments must be closed."""
        order = sorted(
            range(len(self._segments)), key=lambda k: (self._segments[k].start, self._segments[k].address, k)
        )
        rank = [0] * len(order)
        for position, k in enumerate(order):
            rank[k] = position
        transfers = sorted(self._transfers, key=issue_order)
        return Plan(
            strategy=strategy,
            capacity_bytes=self._program.capacity_bytes,
            reserved_bytes=self._program.reserved_bytes,
            segments=tuple(self._segments[k] for k in order),
            transfers=tuple(replace(t, segment=rank[t.segment]) for t in transfers),
            spills=tuple(sorted(self._spills, key=lambda s: (s.evict_step, s.last_use_step, s.buffer))),
            streamed=streamed_operands(self._program),
            moves=tuple(self._moves),
            scratch=tuple(self._scratch),
            inputs_resident=inputs_resident,
        )


def issue_order(transfer: Transfer) -> tuple[int, bool, int, int]:
    """Sort key of a channel's queue: by issue step, writes before reads, most urgent first."""
    return transfer.issue_step, transfer.kind.is_read, transfer.needed_step, transfer.buffer


def streamed_operands(program: Program) -> tuple[StreamedOperand, ...]:
    """The operands that the program's oversized steps tile through DRAM, by step."""
    return tuple(
        StreamedOperand(step=i, buffer=b, size_bytes=program.buffers[b].size_bytes, write=write)
        for i, step in enumerate(program.steps)
        for write, operands in ((False, step.streamed_reads), (True, step.streamed_writes))
        for b in operands
    )
