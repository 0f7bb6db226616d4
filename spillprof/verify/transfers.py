"""Rules about transfers: reads from DRAM, writes to DRAM, compaction moves."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.plan import TransferKind
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Phase
from spillprof.verify.columns import FlagColumn
from spillprof.verify.facts import PlanFacts, RowCheck, wrong
from spillprof.verify.rules import PlanRule, Violation


def check_reads(f: PlanFacts) -> Iterator[Violation]:
    """A read fills a segment of its own, in time for the first use there, from a valid DRAM copy."""
    t, rows = f.transfers, f.rows
    row, start = rows.row_of[t.segment], PHASES_PER_STEP * t.issue_step
    first_use = f.loaded_reads.following(t.buffer, t.issue_step)
    useless = (first_use < 0) | (PHASES_PER_STEP * first_use >= rows.end[row])
    is_first = _is_first_load(f)
    checks: tuple[RowCheck, ...] = (
        *_common(f),
        (_is_repeated(t.segment, t.is_read) | f.is_given[row], lambda k: "its space holds the data already"),
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
        yield Violation(rule=PlanRule.NO_DRAM_COPY, message=message, step=step, buffer=b)


def _is_first_load(f: PlanFacts) -> FlagColumn:
    """Whether it is the first load of an input, or in a cold run of a weight."""
    t = f.transfers
    came_before = f.rows.before[f.rows.row_of[t.segment]] >= 0
    came_before |= f.streamed_reads.preceding(t.buffer, t.issue_step) >= 0
    kinds = [BufferKind.INPUT]
    if f.terms.cold or not f.program.weights_persist:
        kinds.append(BufferKind.WEIGHT)
    return ~came_before & f.is_kind(*kinds)[t.buffer]


def _is_of_wrong_kind(f: PlanFacts, is_first: FlagColumn) -> FlagColumn:
    """Whether a first load is no fetch, or another is one. In steady state, all loads of cached weights are reloads."""
    is_fetch = np.array([kind is TransferKind.FETCH for kind in f.transfers.kind], dtype=bool)
    wrong_kind: FlagColumn = is_first != is_fetch
    return wrong_kind


def check_writes(f: PlanFacts) -> Iterator[Violation]:
    """A write moves data that is on-chip when it is issued. Transfers are listed in issue order."""
    t, rows = f.transfers, f.rows
    row, at = rows.row_of[t.segment], PHASES_PER_STEP * t.issue_step
    latest = np.maximum.accumulate(t.issue_step)
    is_drain = _is_drain(f)
    landed = np.full(len(f.fill_count), -1)
    np.maximum.at(landed, t.segment[t.is_read], t.needed_step[t.is_read])
    absent = (at < rows.start[row]) | ((f.write_step[t.buffer] >= 0) & (t.issue_step <= f.write_step[t.buffer]))
    leaves = _leaves(f)
    of_writes: tuple[RowCheck, ...] = (
        *_common(f),
        (is_drain & ~f.is_kind(BufferKind.OUTPUT)[t.buffer], lambda k: "it is not a graph output"),
        (absent, lambda k: "it is not there yet"),
        (t.issue_step <= landed[t.segment], lambda k: "its reload need not have landed yet"),
        (rows.end[row] < at - 1, lambda k: f"it has gone at tick {rows.end[row[k]]}"),
        (t.issue_step > t.needed_step, lambda k: f"it is to be gone at step {t.needed_step[k]}"),
        (_is_early_drain(f, is_drain), lambda k: "it is still to be read after its segment ends: a write-back"),
        (~is_drain & _moves_on(f), lambda k: "its segment ends with a move: it does not leave"),
        (t.needed_step != leaves, lambda k: f"it leaves at step {leaves[k]}, not {t.needed_step[k]}"),
        (_is_final(f) & ~is_drain, lambda k: "it is the final write of a graph output: a drain"),
    )
    of_writes = ((t.issue_step < latest, lambda k: f"listed after one of step {latest[k]}"), *of_writes)
    problems = wrong(of_writes[0], *((flags & ~t.is_read, say) for flags, say in of_writes[1:]))
    yield from (_bad(f, k, problem) for k, problem in problems)
    is_bad = np.logical_or.reduce([flags for flags, _ in of_writes])
    for k in np.flatnonzero(_is_needless(f) & ~is_bad).tolist():
        yield _bad(f, k, "DRAM has a copy already", PlanRule.NEEDLESS_WRITE)


def _is_drain(f: PlanFacts) -> FlagColumn:
    return np.array([kind is TransferKind.DRAIN for kind in f.transfers.kind], dtype=bool)


def _moves_on(f: PlanFacts) -> FlagColumn:
    """By transfer: whether its segment ends with a compaction move."""
    moves_on = np.zeros(len(f.rows.start), dtype=bool)
    moves_on[f.rows.before[f.is_moved]] = True
    return moves_on[f.rows.row_of[f.transfers.segment]]


def _leaves(f: PlanFacts) -> Ints:
    """By transfer: the step at which its buffer leaves. A write-back evicts; a drain leaves after the last use."""
    end, last = f.rows.end[f.rows.row_of[f.transfers.segment]], _last_use(f)
    is_replaced = end == PHASES_PER_STEP * last + Phase.COMPUTE  # overwritten in place by that step
    return np.where(_is_drain(f), np.where(is_replaced, last, last + 1), -(-end // PHASES_PER_STEP))


def _last_use(f: PlanFacts) -> Ints:
    """By transfer: the last step that reads or writes its buffer."""
    t = f.transfers
    return np.maximum(f.reads.preceding(t.buffer, np.full_like(t.buffer, len(f.program.steps))), f.write_step[t.buffer])


def _is_early_drain(f: PlanFacts, is_drain: FlagColumn) -> FlagColumn:
    """Whether a drain empties a segment after which its buffer is read again."""
    end = f.rows.end[f.rows.row_of[f.transfers.segment]]
    return is_drain & (end <= PHASES_PER_STEP * _last_use(f))


def _is_final(f: PlanFacts) -> FlagColumn:
    """Whether a transfer writes a graph output that DRAM lacks and that no later step reads."""
    t = f.transfers
    evict = -(-f.rows.end[f.rows.row_of[t.segment]] // PHASES_PER_STEP)
    unread = f.reads.following(t.buffer, evict) < 0
    return f.is_kind(BufferKind.OUTPUT)[t.buffer] & unread & ~t.is_read & ~_is_copied(f)


def _is_needless(f: PlanFacts) -> FlagColumn:
    """Whether a transfer writes what DRAM holds already, and the terms do not ask for it."""
    t = f.transfers
    known = np.array([buffer.in_dram_at_start for buffer in f.program.buffers], dtype=bool)[t.buffer]
    if not f.terms.rewrites:
        return ~t.is_read & (known | _is_copied(f))
    is_drain = _is_drain(f)
    again = _is_repeated(t.segment * 2 + is_drain, ~t.is_read)
    return ~t.is_read & (known | again | (is_drain & _is_copied(f)))


def _is_copied(f: PlanFacts) -> FlagColumn:
    """Whether a streaming step or an earlier write of the plan has written a transfer's buffer to DRAM."""
    t = f.transfers
    streamed_out = np.zeros(len(f.kind), dtype=bool)
    streamed_out[[b for i, b in f.streamed if f.write_step[b] == i]] = True
    return streamed_out[t.buffer] | _is_repeated(t.buffer, ~t.is_read)


def _is_repeated(keys: Ints, among: FlagColumn) -> FlagColumn:
    """Whether an earlier transfer among those flagged has the same key."""
    at = np.flatnonzero(among)
    repeated = among.copy()
    repeated[at[np.unique(keys[at], return_index=True)[1]]] = False
    return repeated


def _common(f: PlanFacts) -> tuple[RowCheck, RowCheck]:
    """Checks of both reads and writes."""
    t, rows = f.transfers, f.rows
    owner, size = rows.buffer[rows.row_of[t.segment]], f.moved_bytes[t.buffer]
    return (
        (owner != t.buffer, lambda k: f"its segment belongs to {f.name(owner[k])}"),
        (t.size_bytes != size, lambda k: f"it has {size[k]} bytes, not {t.size_bytes[k]}"),
    )


def _bad(f: PlanFacts, k: int, problem: str, rule: PlanRule = PlanRule.BAD_TRANSFER) -> Violation:
    transfer = f.plan.transfers[k]
    message = f"{transfer.kind} of {f.name(transfer.buffer)} issued at step {transfer.issue_step}: {problem}"
    return Violation(rule=rule, message=message, step=transfer.issue_step, buffer=transfer.buffer)


def check_moves(f: PlanFacts) -> Iterator[Violation]:
    """Each compaction move is whole, and starts one segment."""
    joined = Counter(
        (int(f.rows.buffer[row]), int(f.rows.start[row]), int(f.rows.address[row]))
        for row in np.flatnonzero(f.is_moved).tolist()
    )
    for move in f.plan.moves:
        key = (move.buffer, PHASES_PER_STEP * move.step, move.to_address)
        joined[key] -= 1
        whole = move.size_bytes == f.program.buffers[move.buffer].moved_bytes
        away = move.from_address != move.to_address
        if joined[key] < 0 or f.moved_from[key] != move.from_address or not whole or not away:
            message = f"{f.name(move.buffer)} does not move from {move.from_address} to {move.to_address} then"
            yield Violation(rule=PlanRule.BAD_MOVE, message=message, step=move.step, buffer=move.buffer)
