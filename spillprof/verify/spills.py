"""Rules about spill records: one for each gap that a buffer spends off-chip, and each matches the transfers.

A gap begins where a segment ends, or with a streamed use. The last gap of a cached weight wraps into the next run.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.plan import Spill, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, BufferKind
from spillprof.verify.columns import FlagColumn, int_column
from spillprof.verify.facts import PlanFacts
from spillprof.verify.rules import PlanRule, Violation


class _Gap(NamedTuple):
    """A gap as segments, transfers and streamed operands show it."""

    buffer: int
    evict_step: int
    needed_step: int | None  # + n_steps if in the next inference; None: dead, but written back
    last_use_step: int  # below 0: in the inference before
    written: bool  # for this gap
    reloaded: bool  # else its next use is a streamed read, or there is none
    left: bool  # it was on-chip; else its last use was streamed


def check_spills(f: PlanFacts) -> Iterator[Violation]:
    """Records and gaps match one to one, and records state what the transfers do."""
    open_gaps: dict[tuple[int, int], list[_Gap]] = defaultdict(list)
    for seen in chain(_after_segments(f), _after_streams(f)):
        open_gaps[seen.buffer, seen.evict_step].append(seen)
    for spill in f.plan.spills:
        found = open_gaps[spill.buffer, spill.evict_step]
        gap = next((gap for gap in found if gap.needed_step == spill.needed_step), None)
        if gap is not None:
            found.remove(gap)
        problem = "there is no such gap" if gap is None else _untrue(f, spill, gap)
        if problem:
            yield _bad(f, spill, problem)
    for left in sorted((gap for found in open_gaps.values() for gap in found), key=lambda gap: gap[:2]):
        yield _bad(f, left, "not recorded as a spill")


def _untrue(f: PlanFacts, spill: Spill, gap: _Gap) -> str:
    """What a record states wrongly; empty if nothing."""
    if gap.last_use_step != spill.last_use_step:
        return f"its last use is step {gap.last_use_step}, not {spill.last_use_step}"
    if gap.reloaded != spill.reloaded:
        return "it is " + ("reloaded" if gap.reloaded else "not reloaded")
    if gap.written != spill.written:
        return "a write-back was made" if gap.written else "no write-back was made"
    n = len(f.program.steps)
    end = n - 1 if gap.needed_step is None else gap.needed_step
    if not any(gap.last_use_step <= step <= end for step in (spill.forced_by_step, spill.forced_by_step + n)):
        return f"step {spill.forced_by_step}, which is said to have forced it, is outside of the gap"
    if f.terms.rewrites and gap.left and not gap.written and not f.program.buffers[gap.buffer].in_dram_at_start:
        return "it is not written, as each eviction is to be"
    return ""


def _after_segments(f: PlanFacts) -> Iterator[_Gap]:
    """A gap for each segment that ends before its buffer's last read, or whose buffer is written back."""
    rows, t, n = f.rows, f.transfers, len(f.program.steps)
    evict = -(-rows.end // PHASES_PER_STEP)
    needed = f.reads.following(rows.buffer, evict)
    moves_on = np.zeros(len(evict), dtype=bool)
    moves_on[rows.before[f.is_moved]] = True
    reloaded = (needed >= 0) & (f.loaded_reads.following(rows.buffer, evict) == needed)
    at = PHASES_PER_STEP * needed
    absent = reloaded & (rows.covering(rows.buffer, at, at + 1) < 0)  # an operand, which is reported as such
    wraps, comes_back = _wraps(f)
    round_trip = (needed < 0) & wraps[rows.buffer]
    first_read = f.reads.following(rows.buffer, np.zeros_like(evict))
    needed = np.where(round_trip, first_read + n, needed)
    reloaded |= round_trip & comes_back[rows.buffer]
    is_write_back = np.array([kind is TransferKind.WRITE_BACK for kind in t.kind], dtype=bool)
    written = np.bincount(t.segment[is_write_back], minlength=len(f.fill_count))[rows.segment] > 0
    off_chip = ~moves_on & ~absent & ((needed >= 0) | written)
    last_use = _last_use(f, rows.buffer, evict)
    for k in np.flatnonzero(off_chip).tolist():
        yield _Gap(
            buffer=int(rows.buffer[k]),
            evict_step=int(evict[k]),
            needed_step=int(needed[k]) if needed[k] >= 0 else None,
            last_use_step=int(last_use[k]),
            written=bool(written[k]),
            reloaded=bool(reloaded[k]),
            left=True,
        )


def _after_streams(f: PlanFacts) -> Iterator[_Gap]:
    """A gap for each streamed operand that is read again."""
    uses = sorted(f.streamed)
    step, buffer = int_column(i for i, _ in uses), int_column(b for _, b in uses)
    n, start = len(f.program.steps), np.zeros_like(step)
    wraps, comes_back = _wraps(f)
    needed = f.reads.following(buffer, step + 1)
    reloaded = (needed >= 0) & (f.loaded_reads.following(buffer, step + 1) == needed)
    round_trip = (needed < 0) & wraps[buffer]
    needed = np.where(round_trip, f.reads.following(buffer, start) + n, needed)
    reloaded |= round_trip & comes_back[buffer]
    for k in np.flatnonzero(needed >= 0).tolist():
        yield _Gap(
            buffer=int(buffer[k]),
            evict_step=int(step[k]) + 1,
            needed_step=int(needed[k]),
            last_use_step=int(step[k]),
            written=False,
            reloaded=bool(reloaded[k]),
            left=False,
        )


def _wraps(f: PlanFacts) -> tuple[FlagColumn, FlagColumn]:
    """By buffer: whether its last gap reaches into the next inference, and whether that reloads it."""
    n = len(f.kind)
    wraps, comes_back = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    if f.program.weights_persist and not f.terms.cold:
        buffers = np.arange(n)
        start = np.zeros(n, dtype=np.int64)
        first = f.reads.following(buffers, start)
        is_read = f.is_kind(BufferKind.WEIGHT) & (first >= 0)
        loaded = is_read & (f.loaded_reads.following(buffers, start) == first)
        comes_back = loaded.copy()
        firsts = f.rows.firsts()
        stayed = f.rows.buffer[firsts[f.fill_count[f.rows.segment[firsts]] == 0]]
        comes_back[stayed] = False  # it was on-chip before the run
        wraps = comes_back | (is_read & ~loaded)
        wraps[stayed] = False
    return wraps, comes_back


def _last_use(f: PlanFacts, buffers: Ints, evict: Ints) -> Ints:
    """The step that read or wrote each buffer last before it left; below 0 in the inference before."""
    n = len(f.program.steps)
    read = f.reads.preceding(buffers, evict)
    last = f.reads.preceding(buffers, np.full_like(buffers, n))
    written = f.write_step[buffers]
    return np.where(read >= 0, read, np.where(written >= 0, written, last - n))


def _bad(f: PlanFacts, spill: Spill | _Gap, problem: str) -> Violation:
    end = "the end" if spill.needed_step is None else f"step {spill.needed_step}"
    message = f"{f.name(spill.buffer)} off-chip from step {spill.evict_step} to {end}: {problem}"
    return Violation(rule=PlanRule.BAD_SPILL, message=message, step=spill.evict_step, buffer=spill.buffer)
