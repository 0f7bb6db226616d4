"""Spill records: one for each eviction of a buffer that is still to be read."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from spillprof.model.plan import Spill
from spillprof.model.program import PHASES_PER_STEP, BufferKind
from spillprof.verify.rules import Facts, Rule, Violation


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
    written_at: dict[int, int] = {}  # the first write of each buffer by a transfer
    for transfer in f.plan.transfers:
        if not transfer.kind.is_read:
            written_at.setdefault(transfer.buffer, transfer.issue_step)
    for b, own in enumerate(f.segments):
        uses = sorted(f.reads[b] + f.streamed_reads[b]) if f.streamed_reads[b] else f.reads[b]
        for k, after in zip(own, [*own[1:], None], strict=False):
            end = f.plan.segments[k].end
            evict_step = -(-end // PHASES_PER_STEP)
            next_use = bisect_left(uses, evict_step)
            if next_use == len(uses) or (after is not None and f.is_moved(after)):
                continue
            needed = uses[next_use]
            start = PHASES_PER_STEP * needed
            if (needed, b) not in f.streamed and f.covering(b, start, start + 1) is None:
                continue  # an absent operand, which is reported as such
            last_use = uses[next_use - 1] if next_use else f.write_step[b]
            yield _Eviction(
                buffer=b,
                evict_step=evict_step,
                needed_step=needed,
                last_use_step=-1 if last_use is None else last_use,
                written=written_at.get(b, evict_step + 1) <= evict_step,
                reloaded=(needed, b) not in f.streamed,
            )


def _may_be_recorded(f: Facts, spill: Spill) -> bool:
    """Gaps that are no eviction before a use of this run, and yet worth a record."""
    b, n_steps, written = spill.buffer, len(f.program.steps), f.write_step[spill.buffer]
    reads = sorted(f.reads[b] + f.streamed_reads[b])
    uses = reads if written is None else [written, *reads]
    if spill.needed_step is not None and spill.needed_step < n_steps:  # streamed out before, so never evicted
        at = uses.index(spill.needed_step) if spill.needed_step in uses else 0
        return at > 0 and (uses[at - 1], b) in f.streamed and uses[at - 1] < spill.evict_step <= spill.needed_step
    if not uses or spill.last_use_step != uses[-1] or uses[-1] >= spill.evict_step:
        return False
    leaves = any(-(-f.plan.segments[k].end // PHASES_PER_STEP) == spill.evict_step for k in f.segments[b])
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
