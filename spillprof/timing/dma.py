"""Time of one DMA transfer without contention, and the serial cost of a plan's spill transfers."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache

from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import BufferKind, Program
from spillprof.ir.target import Target, TransferCurve


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction between SRAM and DRAM.

    A transfer first sets up, which takes a channel but no bandwidth; then it flows. With a calibrated curve, the set-up
    is the curve at 0 bytes, and the flow is the rest of its time at the full rate: alone, a transfer takes exactly the
    curve's time.
    """

    setup_s: float
    bytes_per_s: float  # of one transfer alone: the direction's bandwidth, or that of a narrower bus
    burst_bytes: int
    curve: TransferCurve = ()

    def alone_s(self, nbytes: int) -> float:
        """Seconds for one transfer alone: set-up + whole bursts / bandwidth, or the curve; nothing for no bytes."""
        if nbytes <= 0:
            return 0.0
        return self.setup_s + self.flow_bytes(nbytes) / self.bytes_per_s

    def flow_bytes(self, nbytes: int) -> float:
        """Bytes at the full rate that a transfer takes of the bus."""
        if self.curve:
            return (curve_s(self.curve, nbytes) - self.setup_s) * self.bytes_per_s
        return -(-nbytes // self.burst_bytes) * self.burst_bytes


def curve_s(curve: TransferCurve, nbytes: int) -> float:
    """Seconds at a size: linear between the points, extrapolated from the nearest piece beyond them."""
    right = min(max(bisect_right(curve, (nbytes, float("inf"))), 1), len(curve) - 1)
    (bytes_0, s_0), (bytes_1, s_1) = curve[right - 1 : right + 1]
    return s_0 + (s_1 - s_0) * (nbytes - bytes_0) / (bytes_1 - bytes_0)


def read_link(target: Target) -> Link:
    """DRAM to SRAM."""
    curve = target.dram_read_curve
    return Link(
        setup_s=max(curve_s(curve, 0), 0.0) if curve else target.dram_read_setup_s,
        bytes_per_s=min(target.dram_read_bytes_per_s, target.dram_bus_bytes_per_s or float("inf")),
        burst_bytes=target.dram_burst_bytes,
        curve=curve,
    )


def write_link(target: Target) -> Link:
    """SRAM to DRAM."""
    curve = target.dram_write_curve
    return Link(
        setup_s=max(curve_s(curve, 0), 0.0) if curve else target.dram_write_setup_s,
        bytes_per_s=min(target.dram_write_bytes_per_s, target.dram_bus_bytes_per_s or float("inf")),
        burst_bytes=target.dram_burst_bytes,
        curve=curve,
    )


def serial_cost_s(program: Program, plan: Plan, target: Target) -> float:
    """Seconds that all spill transfers take one after another: reloads, write-backs, streamed operands.


    Compulsory transfers are left out.
    """
    read_s, write_s = cache(read_link(target).alone_s), cache(write_link(target).alone_s)  # few sizes, many transfers
    of_transfer, of_streamed = compulsory(program, plan)
    total = 0.0
    for transfer, expected in zip(plan.transfers, of_transfer, strict=True):
        if not expected:
            total += (read_s if transfer.kind.is_read else write_s)(transfer.size_bytes)
    for operand, expected in zip(plan.streamed, of_streamed, strict=True):
        if not expected:
            total += (write_s if operand.write else read_s)(operand.size_bytes)
    return total


def compulsory(program: Program, plan: Plan) -> tuple[list[bool], list[bool]]:
    """Whether each transfer, and each streamed operand, is compulsory: infinite SRAM would make it too.


    Those are an input's first load and an output's first write.
    """
    unwritten = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}
    of_transfer, of_streamed = [], []
    streamed_out = {s.buffer for s in plan.streamed if s.write}  # by the step that writes it, before any transfer
    for t in plan.transfers:
        first_write = t.buffer in unwritten and not t.kind.is_read and t.buffer not in streamed_out
        of_transfer.append(t.kind is TransferKind.FETCH or first_write)
        if first_write:
            unwritten.discard(t.buffer)
    unread = {b.index for b in program.buffers if b.kind is BufferKind.INPUT and not plan.inputs_resident}
    unread -= {t.buffer for t in plan.transfers if t.kind is TransferKind.FETCH}
    outputs = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}
    for s in plan.streamed:
        of_streamed.append(s.buffer in (outputs if s.write else unread))
        if not s.write:
            unread.discard(s.buffer)
    return of_transfer, of_streamed
