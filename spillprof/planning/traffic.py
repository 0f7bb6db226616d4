"""DRAM traffic: bytes of a plan, split into compulsory, spill and streamed; seconds of one transfer alone."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillprof.ir.plan import Plan, Traffic, TransferKind
from spillprof.ir.program import BufferKind, Program
from spillprof.ir.target import Target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransferCosts:
    """Set-up + bytes / bandwidth for each buffer, as if its transfer ran alone. Shape (n_buffers,), float64."""

    read_s: npt.NDArray[np.float64]
    write_s: npt.NDArray[np.float64]


def transfer_costs(program: Program, target: Target) -> TransferCosts:
    """Seconds of reading and of writing each buffer of the program on the target."""
    sizes = np.array([b.moved_bytes for b in program.buffers], dtype=np.float64)
    return TransferCosts(
        read_s=target.dram_read_setup_s + sizes / target.dram_read_bytes_per_s,
        write_s=target.dram_write_setup_s + sizes / target.dram_write_bytes_per_s,
    )


def count_traffic(program: Program, plan: Plan) -> Traffic:
    """Bytes that the plan moves, by what makes it move them.

    Compulsory is what infinite SRAM would move too: the first load of each input (on-chip or streamed), the first
    write of each output, and one pass of the weights that steps stream. Everything else counts as spill or streamed,
    further passes of tiled operands and of weights included.
    """
    loaded = [b.kind is BufferKind.INPUT and plan.inputs_resident for b in program.buffers]
    written = [b.kind is not BufferKind.OUTPUT for b in program.buffers]
    compulsory_read = sum(step.weight_stream_bytes for step in program.steps)
    compulsory_write = spill_write = spill_read = streamed_write = 0
    streamed_read = sum(mode.weight_repeat_bytes for mode in plan.modes)
    # Each buffer's transfers in time order: streamed writes come first, since the step that streams a buffer out makes
    # it; streamed reads follow the fetch, since an input that was streamed before is reloaded, not fetched.
    for s in plan.streamed:
        if s.write:
            first = 0 if written[s.buffer] else min(s.size_bytes, program.buffers[s.buffer].moved_bytes)
            written[s.buffer] = True
            compulsory_write += first
            streamed_write += s.size_bytes - first
    for t in plan.transfers:
        if t.kind is TransferKind.FETCH:
            loaded[t.buffer] = True
            compulsory_read += t.size_bytes
        elif t.kind is TransferKind.RELOAD:
            spill_read += t.size_bytes
        elif not written[t.buffer]:
            written[t.buffer] = True
            compulsory_write += t.size_bytes
        else:
            spill_write += t.size_bytes
    for s in plan.streamed:
        if s.write:
            continue
        is_first = program.buffers[s.buffer].kind is BufferKind.INPUT and not loaded[s.buffer]
        first = min(s.size_bytes, program.buffers[s.buffer].moved_bytes) if is_first else 0
        loaded[s.buffer] = True
        compulsory_read += first
        streamed_read += s.size_bytes - first
    return Traffic(
        compulsory_read_bytes=compulsory_read,
        compulsory_write_bytes=compulsory_write,
        spill_write_bytes=spill_write,
        spill_read_bytes=spill_read,
        streamed_read_bytes=streamed_read,
        streamed_write_bytes=streamed_write,
        moved_bytes=sum(m.size_bytes for m in plan.moves),
    )
