"""Spill records that follow from where buffers are: for plans whose writer gives none."""

from bisect import bisect_left
from collections.abc import Sequence

from spillprof.model.plan import Move, Segment, Spill, StreamedOperand, Transfer
from spillprof.model.program import PHASES_PER_STEP, Program


def spill_records(
    program: Program,
    *,
    segments: Sequence[Segment],
    transfers: Sequence[Transfer],
    streamed: Sequence[StreamedOperand],
    moves: Sequence[Move],
) -> tuple[Spill, ...]:
    """One record for each segment that ends while its buffer is still to be read, by evict_step.

    Which step forced it out cannot be told from a plan: the step at which it leaves is taken.
    """
    reads: list[list[int]] = [[] for _ in program.buffers]
    written: list[int] = [-1] * len(program.buffers)
    for i, step in enumerate(program.steps):
        for b in step.reads:
            reads[b].append(i)
        for b in step.writes:
            written[b] = i
    write_backs: list[list[int]] = [[] for _ in program.buffers]  # issue steps
    for transfer in transfers:
        if not transfer.kind.is_read:
            write_backs[transfer.buffer].append(transfer.issue_step)
    from_dram = {(s.step, s.buffer) for s in streamed if not s.write}
    moved = {(move.buffer, PHASES_PER_STEP * move.step) for move in moves}
    records = []
    for segment in segments:
        b, evict_step = segment.buffer, -(-segment.end // PHASES_PER_STEP)
        after = bisect_left(reads[b], evict_step)
        if after == len(reads[b]) or (b, segment.end) in moved:
            continue
        needed_step = reads[b][after]
        last_use_step = reads[b][after - 1] if after else written[b]
        records.append(
            Spill(
                buffer=b,
                last_use_step=last_use_step,
                evict_step=evict_step,
                needed_step=needed_step,
                forced_by_step=evict_step,
                written=any(last_use_step < issued <= evict_step for issued in write_backs[b]),
                reloaded=(needed_step, b) not in from_dram,
            )
        )
    return tuple(sorted(records, key=lambda s: (s.evict_step, s.last_use_step, s.buffer)))
