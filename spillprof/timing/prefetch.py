"""Earlier transfers: the same plan with write-backs issued after the last use and reloads as early as space allows.

A reload's space is held from its issue on, so it may move back to where the space that it fills was left by all
who had it before, and not before its buffer left. Segments that share addresses never share time, so each reload
moves back independently of the others.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from heapq import merge

from spillprof.ir.plan import Plan, Segment, Spill, Transfer
from spillprof.ir.program import PHASES_PER_STEP, Program


def earliest_issues(program: Program, plan: Plan) -> list[int]:
    """The first step at which each transfer could be issued. Shape (n_transfers,)."""
    free_from = _free_from(plan, [b.size_bytes for b in program.buffers])
    spill_at = {(s.buffer, s.evict_step): s for s in plan.spills}
    left_at = {(s.buffer, s.needed_step): s.evict_step for s in plan.spills}
    return [
        min(t.issue_step, max(free_from[t.segment], left_at.get((t.buffer, t.needed_step), 0)))
        if t.kind.is_read
        else _write_issue(t, plan.segments[t.segment], spill_at)
        for t in plan.transfers
    ]


def reissued(plan: Plan, issue_steps: Sequence[int]) -> Plan:
    """The plan with its transfers issued at these steps, from which on the space of what is read is held."""
    segments = list(plan.segments)
    for t, step in zip(plan.transfers, issue_steps, strict=True):
        if step != t.issue_step and t.kind.is_read:
            s = segments[t.segment]
            start = PHASES_PER_STEP * step
            segments[t.segment] = Segment(buffer=s.buffer, start=start, end=s.end, address=s.address)
    order = sorted(range(len(segments)), key=[(s.start, s.address) for s in segments].__getitem__)
    rank = [0] * len(order)
    for position, k in enumerate(order):
        rank[k] = position
    transfers = []
    for k in issue_order(by_urgency(plan), issue_steps):
        t = plan.transfers[k]
        if issue_steps[k] != t.issue_step or rank[t.segment] != t.segment:
            t = Transfer(
                kind=t.kind,
                buffer=t.buffer,
                size_bytes=t.size_bytes,
                issue_step=issue_steps[k],
                needed_step=t.needed_step,
                segment=rank[t.segment],
            )
        transfers.append(t)
    return replace(plan, segments=tuple(segments[k] for k in order), transfers=tuple(transfers))


def by_urgency(plan: Plan) -> list[int]:
    """Indices of the transfers, writes first, most urgent first: their queue if all were issued at one step."""
    queue = [(t.kind.is_read, t.needed_step, t.buffer, k) for k, t in enumerate(plan.transfers)]
    queue.sort()
    return [k for _, _, _, k in queue]


def issue_order(urgency: Sequence[int], issue_steps: Sequence[int]) -> list[int]:
    """Indices of the transfers as they are queued: by issue step, then as ``by_urgency`` has them."""
    return sorted(urgency, key=issue_steps.__getitem__)


def just_in_time(
    plan: Plan,
    step_start_s: Sequence[float],
    transfer_time_s: Sequence[float],
    weight_time_s: Sequence[float],
) -> list[int]:
    """The latest issue step of each transfer that would still let it land in time. Shape (n_transfers,).

    Walks back from the end: the read channel serves one transfer at a time, and each must end before its step
    starts (``step_start_s``, of a run without waiting) and before the next in the queue begins. The weights that
    each step streams take their turn in the same queue.
    """
    latest = [t.issue_step for t in plan.transfers]
    reads = sorted(
        (k for k, t in enumerate(plan.transfers) if t.kind.is_read),
        key=lambda k: (plan.transfers[k].needed_step, k),
        reverse=True,
    )
    free_until = float("inf")
    position = 0
    for step in range(len(step_start_s) - 1, -1, -1):
        free_until = min(free_until, step_start_s[step]) - weight_time_s[step]
        while position < len(reads) and plan.transfers[reads[position]].needed_step == step:
            k = reads[position]
            free_until -= transfer_time_s[k]
            latest[k] = min(step, max(0, bisect_right(step_start_s, free_until) - 1))
            position += 1
    return latest


def _write_issue(t: Transfer, segment: Segment, spill_at: dict[tuple[int, int], Spill]) -> int:
    spill = spill_at.get((t.buffer, t.needed_step))
    if spill is None:
        return t.issue_step
    return min(t.issue_step, max(spill.last_use_step + 1, -(-segment.start // PHASES_PER_STEP)))


def _free_from(plan: Plan, size: Sequence[int]) -> list[int]:
    """The first step before which the space of each segment is free for good. Shape (n_segments,)."""
    spaces = merge(
        ((s.start, s.end, s.address, size[s.buffer], k) for k, s in enumerate(plan.segments)),
        ((s.start, s.end, s.address, s.size_bytes, -1) for s in plan.scratch),
    )
    earliest = [0] * len(plan.segments)
    left = LastOwnerEnd()
    for _, end, address, nbytes, k in spaces:
        if nbytes:
            free_from = left.replace(address, address + nbytes, end)
            if k >= 0:
                earliest[k] = -(-free_from // PHASES_PER_STEP)
    return earliest


class LastOwnerEnd:
    """For every address, the tick at which its last owner left: constant over intervals of addresses."""

    def __init__(self) -> None:
        self._starts = [0]  # of intervals; the last one is endless
        self._ends_at = [0]

    def replace(self, start: int, end: int, tick: int) -> int:
        """Give ``[start, end)`` to an owner that leaves at ``tick``; the latest tick at which one before left."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, end) - 1
        before = max(self._ends_at[first : last + 1])
        starts, ends_at = [start], [tick]
        if self._starts[first] < start:
            starts.insert(0, self._starts[first])
            ends_at.insert(0, self._ends_at[first])
        if last + 1 == len(self._starts) or self._starts[last + 1] > end:
            starts.append(end)
            ends_at.append(self._ends_at[last])
        self._starts[first : last + 1] = starts
        self._ends_at[first : last + 1] = ends_at
        return before
