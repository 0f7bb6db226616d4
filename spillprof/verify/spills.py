"""Spill records: one for each eviction of a buffer that is still to be read."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spillprof.model.plan import Spill
from spillprof.model.program import PHASES_PER_STEP, BufferKind
from spillprof.verify.facts import NEVER, Facts
from spillprof.verify.rules import Rule, Violation


class _Eviction(NamedTuple):
    """A gap that the segments show."""

    buffer: int
    evict_step: int
    needed_step: int
    last_use_step: int  # -1: in the inference before
    written: bool  # by then
    reloaded: bool  # else its next use is a streamed read


def spills(f: Facts) -> Iterator[Violation]:
    """Records and evictions match one to one; ``written`` and ``reloaded`` say what the transfers do."""
    open_gaps: dict[tuple[int, int, int | None], _Eviction] = {gap[:3]: gap for gap in _evictions(f)}
    for spill in f.plan.spills:
        gap = open_gaps.pop((spill.buffer, spill.evict_step, spill.needed_step), None)
        if gap is None:
            problem = "" if _may_be_recorded(f, spill) else "no such eviction"
        elif gap.last_use_step not in (-1, spill.last_use_step):
            problem = f"its last use is step {gap.last_use_step}, not {spill.last_use_step}"
        elif gap.reloaded != spill.reloaded:
            problem = "its next use is a " + ("reload" if gap.reloaded else "streamed read")
        else:
            problem = "no write-back was made" if spill.written and not gap.written else ""
        if problem:
            yield _bad(f, spill, problem)
    for gap in open_gaps.values():
        yield _bad(f, gap, "not recorded as a spill")


def _evictions(f: Facts) -> Iterator[_Eviction]:
    """What the segments say: a gap for each segment that ends while its buffer is still to be read."""
    rows, t = f.stays, f.transfers
    evict = -(-rows.end // PHASES_PER_STEP)
    needed = f.reads.following(rows.buffer, evict)
    moves_on = np.zeros(len(evict), dtype=bool)
    moves_on[rows.before[f.is_moved]] = True
    reloaded = f.loaded_reads.following(rows.buffer, evict) == needed
    at = PHASES_PER_STEP * needed
    absent = reloaded & (rows.covering(rows.buffer, at, at + 1) < 0)  # an operand, which is reported as such
    evicted = np.flatnonzero((needed >= 0) & ~moves_on & ~absent)
    buffer, evict, needed, reloaded = rows.buffer[evicted], evict[evicted], needed[evicted], reloaded[evicted]
    last_use = f.reads.preceding(buffer, evict)
    last_use = np.where(last_use < 0, f.write_step[buffer], last_use)
    written_at = np.full(len(f.kind), NEVER)  # the first write of each buffer by a transfer
    np.minimum.at(written_at, t.buffer[~t.is_read], t.issue_step[~t.is_read])
    columns = (buffer, evict, needed, last_use, written_at[buffer] <= evict, reloaded)
    return map(_Eviction._make, zip(*(values.tolist() for values in columns), strict=True))


def _may_be_recorded(f: Facts, spill: Spill) -> bool:
    """Gaps that are no eviction before a use of this run, and yet worth a record."""
    b, n_steps, written = spill.buffer, len(f.program.steps), int(f.write_step[spill.buffer])
    reads = f.reads.of(b)
    uses = reads if written < 0 else [written, *reads]
    if spill.needed_step is not None and spill.needed_step < n_steps:  # streamed out before, so never evicted
        at = uses.index(spill.needed_step) if spill.needed_step in uses else 0
        return at > 0 and (uses[at - 1], b) in f.streamed and uses[at - 1] < spill.evict_step <= spill.needed_step
    if not uses or spill.last_use_step != uses[-1] or uses[-1] >= spill.evict_step:
        return False
    own = slice(*np.searchsorted(f.stays.buffer, (b, b + 1)).tolist())
    leaves = spill.evict_step in (-(-f.stays.end[own] // PHASES_PER_STEP)).tolist()
    if not leaves and (uses[-1], b) not in f.streamed:
        return False
    if spill.needed_step is None:  # dead, but written back by a runtime that does not know
        return True
    wraps = f.program.weights_persist and f.program.buffers[b].kind is BufferKind.WEIGHT
    return wraps and spill.needed_step == n_steps + uses[0]  # wanted by the next inference


def _bad(f: Facts, spill: Spill | _Eviction, problem: str) -> Violation:
    end = "the end" if spill.needed_step is None else f"step {spill.needed_step}"
    message = f"{f.name(spill.buffer)} off-chip from step {spill.evict_step} to {end}: {problem}"
    return Violation(rule=Rule.BAD_SPILL, message=message, step=spill.evict_step, buffer=spill.buffer)
