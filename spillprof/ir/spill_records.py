"""Spill records that follow from where buffers are: for plans whose writer gives none."""

from bisect import bisect_left
from collections.abc import Sequence

from spillprof.ir.plan import Move, Segment, Spill, StreamedOperand, Transfer, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Program


def spill_records(
    program: Program,
    *,
    segments: Sequence[Segment],
    transfers: Sequence[Transfer],
    streamed: Sequence[StreamedOperand],
    moves: Sequence[Move],
    steady_state: bool = True,
) -> tuple[Spill, ...]:
    """One record for each gap that a buffer spends off-chip before it is read again, by evict_step.

    A gap begins where a segment ends or with a streamed use; in steady state that of a cached weight may reach into
    the next inference. A buffer that is written back though nobody reads it again has a record too. Which step forced
    it out cannot be told from a plan: the step at which it leaves is taken.
    """
    n = len(program.steps)
    reads: list[list[int]] = [[] for _ in program.buffers]
    written: list[int] = [-1] * len(program.buffers)
    for i, step in enumerate(program.steps):
        for b in step.reads:
            reads[b].append(i)
        for b in step.writes:
            written[b] = i
    written_back = {t.segment for t in transfers if t.kind is TransferKind.WRITE_BACK}
    filled = {t.segment for t in transfers if t.kind.is_read}
    stays = {s.buffer for k, s in enumerate(segments) if s.start == 0 and k not in filled}  # since the run before
    from_dram = {(s.step, s.buffer) for s in streamed if not s.write}
    moved = {(move.buffer, PHASES_PER_STEP * move.step) for move in moves}
    goes_round = program.weights_persist and steady_state

    def gap(b: int, last_use_step: int | None, evict_step: int, *, is_written: bool) -> Spill | None:
        after = bisect_left(reads[b], evict_step)
        needed_step = reads[b][after] if after < len(reads[b]) else None
        if needed_step is None and goes_round and program.buffers[b].kind is BufferKind.WEIGHT and b not in stays:
            needed_step = reads[b][0] + n if reads[b] else None
        if needed_step is None and not is_written:
            return None
        if last_use_step is None:
            last_use_step = reads[b][after - 1] if after else written[b]
            if last_use_step < 0:  # a weight that was used in the inference before
                last_use_step = max(reads[b], default=n) - n
        return Spill(
            buffer=b,
            last_use_step=last_use_step,
            evict_step=evict_step,
            needed_step=needed_step,
            forced_by_step=min(evict_step, n - 1),
            written=is_written,
            reloaded=needed_step is not None and (needed_step % n, b) not in from_dram,
        )

    records = [
        gap(s.buffer, None, -(-s.end // PHASES_PER_STEP), is_written=k in written_back)
        for k, s in enumerate(segments)
        if (s.buffer, s.end) not in moved
    ]
    records += [gap(s.buffer, s.step, s.step + 1, is_written=False) for s in streamed]
    found = [record for record in records if record is not None]
    return tuple(sorted(found, key=lambda s: (s.evict_step, s.last_use_step, s.buffer)))
