"""DRAM traffic counted again from a plan's transfers, to check the planner's own figures."""

from spillprof.ir.plan import Plan, Traffic, TransferKind
from spillprof.ir.program import BufferKind, Program

STREAM_IN, STREAM_OUT = "stream-in", "stream-out"


def recount(program: Program, plan: Plan) -> Traffic:
    """Traffic of the plan. Compulsory: each input's first load, each output's first write, streamed weights.

    The first write of an output is the compulsory one even where it is an early write-back. Inputs that are
    on-chip before the run starts are not loaded.
    """
    to_load = {b.index for b in program.buffers if b.kind is BufferKind.INPUT and not plan.inputs_resident}
    to_store = {b.index for b in program.buffers if b.kind is BufferKind.OUTPUT}
    compulsory_read = sum(step.weight_stream_bytes for step in program.steps)
    compulsory_write = 0
    rest = {TransferKind.RELOAD: 0, TransferKind.WRITE_BACK: 0, TransferKind.DRAIN: 0, STREAM_IN: 0, STREAM_OUT: 0}
    for _, kind, buffer, size in sorted(
        [(t.issue_step, t.kind, t.buffer, t.size_bytes) for t in plan.transfers]
        + [(s.step, STREAM_OUT if s.write else STREAM_IN, s.buffer, s.size_bytes) for s in plan.streamed]
    ):
        if kind == TransferKind.FETCH or (kind == STREAM_IN and buffer in to_load):
            compulsory_read += size
            to_load.discard(buffer)
        elif kind in (TransferKind.WRITE_BACK, TransferKind.DRAIN, STREAM_OUT) and buffer in to_store:
            compulsory_write += size
            to_store.discard(buffer)
        else:
            rest[kind] += size
    return Traffic(
        compulsory_read_bytes=compulsory_read,
        compulsory_write_bytes=compulsory_write,
        spill_write_bytes=rest[TransferKind.WRITE_BACK] + rest[TransferKind.DRAIN],
        spill_read_bytes=rest[TransferKind.RELOAD],
        streamed_read_bytes=rest[STREAM_IN],
        streamed_write_bytes=rest[STREAM_OUT],
        moved_bytes=sum(move.size_bytes for move in plan.moves),
    )
