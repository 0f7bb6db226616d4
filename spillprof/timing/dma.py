"""What one DMA transfer takes when nothing is in its way, and the closed formula of a plan's spill."""

from dataclasses import dataclass

from spillprof.model.plan import Plan, TransferKind
from spillprof.model.program import BufferKind, Program
from spillprof.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction between SRAM and DRAM."""

    setup_s: float
    bytes_per_s: float
    burst_bytes: int

    def alone_s(self, nbytes: int) -> float:
        """Seconds for one transfer: set-up + whole bursts / bandwidth; nothing for no bytes."""
        if nbytes <= 0:
            return 0.0
        return self.setup_s + -(-nbytes // self.burst_bytes) * self.burst_bytes / self.bytes_per_s


def read_link(target: Target) -> Link:
    """DRAM to SRAM."""
    return Link(
        setup_s=target.dram_read_setup_s,
        bytes_per_s=target.dram_read_bytes_per_s,
        burst_bytes=target.dram_burst_bytes,
    )


def write_link(target: Target) -> Link:
    """SRAM to DRAM."""
    return Link(
        setup_s=target.dram_write_setup_s,
        bytes_per_s=target.dram_write_bytes_per_s,
        burst_bytes=target.dram_burst_bytes,
    )


def serial_cost_s(program: Program, plan: Plan, target: Target) -> float:
    """Seconds that all spill transfers take one after another: reloads, write-backs, streamed operands.

    Left out is what infinite SRAM moves too: an input's first load and an output's first write.
    """
    read, write = read_link(target), write_link(target)
    unread = {b.index for b in program.buffers if b.kind is BufferKind.INPUT and not plan.inputs_resident}
    unread -= {t.buffer for t in plan.transfers if t.kind is TransferKind.FETCH}
    unwritten = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}
    unwritten -= {s.buffer for s in plan.streamed if s.write}  # written out by its step: before any transfer
    total = 0.0
    for transfer in plan.transfers:
        if transfer.kind is TransferKind.RELOAD:
            total += read.alone_s(transfer.size_bytes)
        elif not transfer.kind.is_read and transfer.buffer not in unwritten:
            total += write.alone_s(transfer.size_bytes)
        elif not transfer.kind.is_read:
            unwritten.discard(transfer.buffer)
    outputs = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}
    for operand in plan.streamed:
        if operand.write and operand.buffer not in outputs:
            total += write.alone_s(operand.size_bytes)
        elif not operand.write and operand.buffer not in unread:
            total += read.alone_s(operand.size_bytes)
        unread.discard(operand.buffer)
    return total
