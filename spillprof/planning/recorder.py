"""Records a planner's decisions and builds the Plan."""

from collections.abc import Iterator, Sequence

from spillprof.ir.modes import OperandTraffic
from spillprof.ir.plan import Move, Plan, Scratch, Segment, Spill, StreamedOperand, Transfer, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, Program

_Stretch = list[int]
"""[buffer, start tick, end tick, address]: a segment under construction."""
_Issue = tuple[int, int, int, TransferKind, int, int, int]
"""A transfer, keyed in queue order: issue step, 1 if it reads DRAM, needed step, kind, buffer, bytes, segment."""


class PlanRecorder:
    """The open segment of each buffer, and everything recorded so far."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._stretches: list[_Stretch] = []
        self._open: dict[int, int] = {}  # buffer -> position in _stretches
        self._issues: list[_Issue] = []
        self._spills: list[Spill] = []
        self._moves: list[Move] = []
        self._scratch: list[Scratch] = []

    def open(self, buffer: int, tick: int, address: int) -> None:
        """Open a segment: the buffer is on-chip from ``tick`` on."""
        self._open[buffer] = len(self._stretches)
        self._stretches.append([buffer, tick, -1, address])

    def close(self, buffer: int, tick: int) -> None:
        """Close the buffer's segment at ``tick``."""
        self._stretches[self._open.pop(buffer)][2] = tick

    def move(self, buffer: int, step: int, to_address: int) -> None:
        """Move the open segment inside SRAM before ``step`` starts; one that begins only then just gets the address."""
        stretch = self._stretches[self._open[buffer]]
        if stretch[1] == PHASES_PER_STEP * step:
            stretch[3] = to_address
            return
        size = self._program.buffers[buffer].moved_bytes
        self._moves.append(
            Move(buffer=buffer, step=step, size_bytes=size, from_address=stretch[3], to_address=to_address)
        )
        self.close(buffer, PHASES_PER_STEP * step)
        self.open(buffer, PHASES_PER_STEP * step, to_address)

    def transfer(self, kind: TransferKind, buffer: int, *, issue_step: int, needed_step: int) -> None:
        """Record a transfer that fills or empties the open segment."""
        size = self._program.buffers[buffer].moved_bytes
        self._issues.append((issue_step, int(kind.is_read), needed_step, kind, buffer, size, self._open[buffer]))

    def spill(self, spill: Spill) -> None:
        """Record a gap spent off-chip."""
        self._spills.append(spill)

    def scratch(self, scratch: Scratch) -> None:
        """Record a workspace or staging buffer of one step."""
        self._scratch.append(scratch)

    def plan(self, strategy: str, *, inputs_resident: bool = False) -> Plan:
        """The plan of everything recorded, in canonical order. All segments must be closed."""
        segments, transfers = _in_canonical_order(self._stretches, self._issues)
        return Plan(
            strategy=strategy,
            capacity_bytes=self._program.capacity_bytes,
            reserved_bytes=self._program.reserved_bytes,
            segments=segments,
            transfers=transfers,
            spills=tuple(sorted(self._spills, key=lambda s: (s.evict_step, s.last_use_step, s.buffer))),
            streamed=streamed_operands(self._program),
            modes=tuple([step.mode for step in self._program.steps if step.mode is not None]),
            moves=tuple(self._moves),
            scratch=tuple(self._scratch),
            inputs_resident=inputs_resident,
        )


def _in_canonical_order(
    stretches: Sequence[_Stretch], issues: Sequence[_Issue]
) -> tuple[tuple[Segment, ...], tuple[Transfer, ...]]:
    """Segments by start, then address; transfers in queue order: by issue step, writes first, most urgent first."""
    order = sorted(range(len(stretches)), key=[(start, address) for _, start, _, address in stretches].__getitem__)
    rank = [0] * len(order)
    for position, k in enumerate(order):
        rank[k] = position
    segments = tuple(
        Segment(buffer=b, start=start, end=end, address=address)
        for b, start, end, address in (stretches[k] for k in order)
    )
    transfers = tuple(
        Transfer(kind=kind, buffer=b, size_bytes=size, issue_step=issue, needed_step=needed, segment=rank[segment])
        for issue, _, needed, kind, b, size, segment in sorted(issues, key=lambda i: (i[0], i[1], i[2], i[4]))
    )
    return segments, transfers


def streamed_operands(program: Program) -> tuple[StreamedOperand, ...]:
    """The operands that the steps of a program with modes stream through DRAM, by step.

    Of a step without known loops, each passes once.
    """
    found: list[StreamedOperand] = []
    for i, step in enumerate(program.steps):
        if step.mode is not None:
            for each in step.mode.traffic:
                found += _streamed_in_mode(i, each)
        elif step.streamed_reads or step.streamed_writes:
            for write, operands in ((False, step.streamed_reads), (True, step.streamed_writes)):
                for b in operands:
                    size = program.buffers[b].moved_bytes
                    found.append(StreamedOperand(step=i, buffer=b, size_bytes=size, write=write))
    return tuple(found)


def _streamed_in_mode(i: int, each: OperandTraffic) -> Iterator[StreamedOperand]:
    """Reads and writes of one buffer. Of a result's tiles, those that come back are one visit fewer each."""
    read = each.transfers if not each.written_bytes else each.transfers * (each.passes - 1) // (2 * each.passes - 1)
    if each.written_bytes:
        written = each.transfers - read
        yield StreamedOperand(step=i, buffer=each.buffer, size_bytes=each.written_bytes, write=True, transfers=written)
    if each.read_bytes or not each.written_bytes:
        yield StreamedOperand(step=i, buffer=each.buffer, size_bytes=each.read_bytes, write=False, transfers=read)
