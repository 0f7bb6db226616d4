"""What moves: reads from DRAM, writes to it, compaction moves."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from spillprof.model.plan import Transfer, TransferKind
from spillprof.model.program import PHASES_PER_STEP, BufferKind
from spillprof.verify.rules import Facts, Rule, Violation


def reads(f: Facts) -> Iterator[Violation]:
    """A read fills a segment of its own, in time for the first use there, from a valid DRAM copy."""
    for filling in f.fills:
        for n_before, t in enumerate(filling):
            transfer = f.plan.transfers[t]
            problem = _common(f, transfer) or _read(f, transfer, n_before)
            if problem:
                yield _bad(f, transfer, problem)
            elif f.copied_at[transfer.buffer] > transfer.issue_step:
                message = f"{f.name(transfer.buffer)} is read back at step {transfer.issue_step}, but DRAM has no copy"
                yield Violation(
                    rule=Rule.NO_DRAM_COPY, message=message, step=transfer.issue_step, buffer=transfer.buffer
                )


def _read(f: Facts, transfer: Transfer, n_before: int) -> str:
    segment, b = f.plan.segments[transfer.segment], transfer.buffer
    if n_before or f.holds_data_at_start(transfer.segment):
        return "its space holds the data already"
    if segment.start != PHASES_PER_STEP * transfer.issue_step:
        return f"its space is held from tick {segment.start}, not from its issue on"
    at = bisect_left(f.reads[b], transfer.issue_step)
    first_use = f.reads[b][at] if at < len(f.reads[b]) else None
    if first_use is None or PHASES_PER_STEP * first_use >= segment.end:
        return "nobody reads it before it leaves again"
    if transfer.needed_step != first_use:
        return f"it is needed at step {first_use}, not {transfer.needed_step}"
    return _kind_of_read(f, transfer)


def _kind_of_read(f: Facts, transfer: Transfer) -> str:
    b, kind = transfer.buffer, f.program.buffers[transfer.buffer].kind
    came_before = f.before(transfer.segment) is not None or (
        bool(f.streamed_reads[b]) and f.streamed_reads[b][0] < transfer.issue_step
    )
    first = not came_before and kind in (BufferKind.INPUT, BufferKind.WEIGHT)
    cold_or_steady = first and kind is BufferKind.WEIGHT and f.program.weights_persist
    if first != (transfer.kind is TransferKind.FETCH) and not cold_or_steady:
        return f"it is {'the first' if first else 'not the first'} load"
    return ""


def writes(f: Facts) -> Iterator[Violation]:
    """A write takes data that is there, before it goes. Transfers are listed in issue order."""
    latest = 0
    for transfer in f.plan.transfers:
        problem = f"listed after one of step {latest}" if transfer.issue_step < latest else ""
        latest = max(latest, transfer.issue_step)
        if not transfer.kind.is_read:
            problem = problem or _common(f, transfer) or _write(f, transfer)
        if problem:
            yield _bad(f, transfer, problem)


def _write(f: Facts, transfer: Transfer) -> str:
    segment, written = f.plan.segments[transfer.segment], f.write_step[transfer.buffer]
    at = PHASES_PER_STEP * transfer.issue_step
    if transfer.kind is TransferKind.DRAIN and f.program.buffers[transfer.buffer].kind is not BufferKind.OUTPUT:
        return "it is not a graph output"
    if at < segment.start or (written is not None and transfer.issue_step <= written):
        return "it is not there yet"
    if any(transfer.issue_step <= f.plan.transfers[t].needed_step for t in f.fills[transfer.segment]):
        return "its reload need not have landed yet"
    if segment.end < at - 1:
        return f"it has gone at tick {segment.end}"
    if not transfer.issue_step <= transfer.needed_step <= len(f.program.steps):
        return f"it is to be gone at step {transfer.needed_step}"
    return ""


def _common(f: Facts, transfer: Transfer) -> str:
    size = f.program.buffers[transfer.buffer].size_bytes
    if f.plan.segments[transfer.segment].buffer != transfer.buffer:
        return f"its segment belongs to {f.name(f.plan.segments[transfer.segment].buffer)}"
    return f"it has {size} bytes, not {transfer.size_bytes}" if transfer.size_bytes != size else ""


def _bad(f: Facts, transfer: Transfer, problem: str) -> Violation:
    message = f"{transfer.kind} of {f.name(transfer.buffer)} issued at step {transfer.issue_step}: {problem}"
    return Violation(rule=Rule.BAD_TRANSFER, message=message, step=transfer.issue_step, buffer=transfer.buffer)


def moves(f: Facts) -> Iterator[Violation]:
    """Each compaction move is whole, and starts one segment."""
    joined = Counter(
        (s.buffer, s.start, s.address) for k, s in enumerate(f.plan.segments) if f.is_moved(k)
    )  # fmt: skip
    for move in f.plan.moves:
        key = (move.buffer, PHASES_PER_STEP * move.step, move.to_address)
        joined[key] -= 1
        whole = move.size_bytes == f.program.buffers[move.buffer].size_bytes
        if joined[key] < 0 or f.moved_from[key] != move.from_address or not whole:
            message = f"{f.name(move.buffer)} does not move from {move.from_address} to {move.to_address} then"
            yield Violation(rule=Rule.BAD_MOVE, message=message, step=move.step, buffer=move.buffer)
