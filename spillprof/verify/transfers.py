"""What moves: reads from DRAM, writes to it, compaction moves."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from spillprof.model.plan import TransferKind
from spillprof.model.program import PHASES_PER_STEP, BufferKind
from spillprof.verify.columns import Flags
from spillprof.verify.facts import Check, Facts, wrong
from spillprof.verify.rules import Rule, Violation


def reads(f: Facts) -> Iterator[Violation]:
    """A read fills a segment of its own, in time for the first use there, from a valid DRAM copy."""
    t, rows = f.transfers, f.stays
    row, start = rows.row_of[t.segment], PHASES_PER_STEP * t.issue_step
    first_use = f.loaded_reads.following(t.buffer, t.issue_step)
    useless = (first_use < 0) | (PHASES_PER_STEP * first_use >= rows.end[row])
    is_first = _is_first_load(f)
    checks: tuple[Check, ...] = (
        *_common(f),
        (_is_second_fill(f) | f.is_given[row], lambda k: "its space holds the data already"),
        (
            rows.start[row] != start,
            lambda k: f"its space is held from tick {rows.start[row[k]]}, not from its issue on",
        ),
        (useless, lambda k: "nobody reads it before it leaves again"),
        (t.needed_step != first_use, lambda k: f"it is needed at step {first_use[k]}, not {t.needed_step[k]}"),
        (_is_of_wrong_kind(f, is_first), lambda k: f"it is {'the first' if is_first[k] else 'not the first'} load"),
    )
    checks = tuple((flags & t.is_read, say) for flags, say in checks)
    yield from (_bad(f, k, problem) for k, problem in wrong(*checks))
    no_copy = t.is_read & (f.copied_at[t.buffer] > t.issue_step) & ~np.logical_or.reduce([flags for flags, _ in checks])
    for k in np.flatnonzero(no_copy).tolist():
        b, step = int(t.buffer[k]), int(t.issue_step[k])
        message = f"{f.name(b)} is read back at step {step}, but DRAM has no copy"
        yield Violation(rule=Rule.NO_DRAM_COPY, message=message, step=step, buffer=b)


def _is_second_fill(f: Facts) -> Flags:
    """Whether an earlier read fills the same segment."""
    reads_at = np.flatnonzero(f.transfers.is_read)
    second = f.transfers.is_read.copy()
    second[reads_at[np.unique(f.transfers.segment[reads_at], return_index=True)[1]]] = False
    return second


def _is_first_load(f: Facts) -> Flags:
    """Whether nothing of a buffer that DRAM holds from the start came on-chip before."""
    t = f.transfers
    came_before = f.stays.before[f.stays.row_of[t.segment]] >= 0
    came_before |= f.streamed_reads.preceding(t.buffer, t.issue_step) >= 0
    return ~came_before & f.is_kind(BufferKind.INPUT, BufferKind.WEIGHT)[t.buffer]


def _is_of_wrong_kind(f: Facts, is_first: Flags) -> Flags:
    """Whether a first load is no fetch, or another is one; a cached weight's first load may be either."""
    is_fetch = np.array([kind is TransferKind.FETCH for kind in f.transfers.kind], dtype=bool)
    cold_or_steady = is_first & f.is_kind(BufferKind.WEIGHT)[f.transfers.buffer] & f.program.weights_persist
    wrong_kind: Flags = (is_first != is_fetch) & ~cold_or_steady
    return wrong_kind


def writes(f: Facts) -> Iterator[Violation]:
    """A write takes data that is there, before it goes. Transfers are listed in issue order."""
    t, rows = f.transfers, f.stays
    row, at = rows.row_of[t.segment], PHASES_PER_STEP * t.issue_step
    latest = np.maximum.accumulate(t.issue_step)
    is_drain = np.array([kind is TransferKind.DRAIN for kind in t.kind], dtype=bool)
    landed = np.full(len(f.fill_count), -1)
    np.maximum.at(landed, t.segment[t.is_read], t.needed_step[t.is_read])
    absent = (at < rows.start[row]) | ((f.write_step[t.buffer] >= 0) & (t.issue_step <= f.write_step[t.buffer]))
    gone_late = (t.issue_step > t.needed_step) | (t.needed_step > len(f.program.steps))
    of_writes: tuple[Check, ...] = (
        *_common(f),
        (is_drain & ~f.is_kind(BufferKind.OUTPUT)[t.buffer], lambda k: "it is not a graph output"),
        (absent, lambda k: "it is not there yet"),
        (t.issue_step <= landed[t.segment], lambda k: "its reload need not have landed yet"),
        (rows.end[row] < at - 1, lambda k: f"it has gone at tick {rows.end[row[k]]}"),
        (gone_late, lambda k: f"it is to be gone at step {t.needed_step[k]}"),
    )
    problems = wrong(
        (t.issue_step < latest, lambda k: f"listed after one of step {latest[k]}"),
        *((flags & ~t.is_read, say) for flags, say in of_writes),
    )
    yield from (_bad(f, k, problem) for k, problem in problems)


def _common(f: Facts) -> tuple[Check, Check]:
    """What a transfer must say, read or write."""
    t, rows = f.transfers, f.stays
    owner, size = rows.buffer[rows.row_of[t.segment]], f.moved_bytes[t.buffer]
    return (
        (owner != t.buffer, lambda k: f"its segment belongs to {f.name(owner[k])}"),
        (t.size_bytes != size, lambda k: f"it has {size[k]} bytes, not {t.size_bytes[k]}"),
    )


def _bad(f: Facts, k: int, problem: str) -> Violation:
    transfer = f.plan.transfers[k]
    message = f"{transfer.kind} of {f.name(transfer.buffer)} issued at step {transfer.issue_step}: {problem}"
    return Violation(rule=Rule.BAD_TRANSFER, message=message, step=transfer.issue_step, buffer=transfer.buffer)


def moves(f: Facts) -> Iterator[Violation]:
    """Each compaction move is whole, and starts one segment."""
    joined = Counter(
        (int(f.stays.buffer[row]), int(f.stays.start[row]), int(f.stays.address[row]))
        for row in np.flatnonzero(f.is_moved).tolist()
    )
    for move in f.plan.moves:
        key = (move.buffer, PHASES_PER_STEP * move.step, move.to_address)
        joined[key] -= 1
        whole = move.size_bytes == f.program.buffers[move.buffer].moved_bytes
        if joined[key] < 0 or f.moved_from[key] != move.from_address or not whole:
            message = f"{f.name(move.buffer)} does not move from {move.from_address} to {move.to_address} then"
            yield Violation(rule=Rule.BAD_MOVE, message=message, step=move.step, buffer=move.buffer)
