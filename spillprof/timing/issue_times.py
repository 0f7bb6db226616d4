"""When to issue each transfer of a plan, so that the run ends as early as possible.

Transfers and addresses stay as planned; only issue steps change, within the space that is free. Traffic-optimal is not
time-optimal, and early is not always better: a transfer that is not needed yet delays one that a step waits for. Every
choice is judged by simulating the whole plan.

A reload holds its space from its issue on. So its earliest issue is when all previous owners of that space have left,
and its own buffer has left too. Segments that share addresses never overlap in time, so the earliest issue of each
reload is independent of the others.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import merge

import numpy as np

from spillprof.ir.plan import Plan, Segment, Spill, Transfer
from spillprof.ir.program import PHASES_PER_STEP, Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Timeline
from spillprof.timing.compute import step_times_s
from spillprof.timing.dma import read_link
from spillprof.timing.idle import idle_stretches
from spillprof.timing.one_pass import OnePass, is_exact
from spillprof.timing.record import Record
from spillprof.timing.timeline import event_by_event, simulate, timeline_of

_TRIALS = ((500, 12), (4_000, 6), (30_000, 2))
"""(most steps and transfers together, plans that are simulated after the first three)."""
_WORTH_TRYING = 1e-3
"""Share of the makespan that changes must promise to be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The plan simulated with its transfers issued at given steps."""

    issue_steps: tuple[int, ...]
    order: list[int]  # the transfers as they are queued
    makespan_s: float
    record: Callable[[], Record]


def best_issue_times(program: Program, on_demand: Plan, target: Target) -> tuple[Plan, Timeline]:
    """The plan with its transfers issued at the best steps found, and its timeline.

    Three policies for all transfers are tried first: just in time, as early as space allows, and on demand; so the
    result is never slower than ``on_demand``. The fastest is then improved: a transfer that delays a step that does not
    need it is issued when that step starts, one that is needed and late is issued as early as possible. Changes are
    made together, longest idle time first; if the run does not get shorter, half of them are tried.
    """
    if not on_demand.transfers:
        return on_demand, simulate(program, on_demand, target)
    earliest = tuple(earliest_issues(program, on_demand))
    as_planned = tuple(t.issue_step for t in on_demand.transfers)
    play = _player(program, on_demand, target)
    ways = dict.fromkeys((_just_in_time_of(program, on_demand, target, earliest), earliest, as_planned))
    best = min(map(play, ways), key=lambda run: run.makespan_s)
    plan = on_demand if best.issue_steps == as_planned else reissued(on_demand, best.issue_steps)
    timeline = timeline_of(best.record(), program, plan, target)

    size = len(program.steps) + len(on_demand.transfers)
    trials = next((n for most, n in _TRIALS if size <= most), 0)
    share = 1.0
    while trials:
        changes = _changes(on_demand, best, earliest, timeline)
        changes = changes[: max(1, round(len(changes) * share))] if changes else []
        if sum(seconds for seconds, _, _ in changes) < _WORTH_TRYING * timeline.makespan_s:
            break
        steps = list(best.issue_steps)
        for _, k, step in changes:
            steps[k] = step
        trials -= 1
        tried = play(tuple(steps))
        if tried.makespan_s < best.makespan_s:
            best, plan, share = tried, reissued(on_demand, steps), 1.0
            timeline = timeline_of(best.record(), program, plan, target)
        elif len(changes) == 1:
            break
        else:
            share /= 2
    return plan, timeline


def _player(program: Program, on_demand: Plan, target: Target) -> Callable[[tuple[int, ...]], _Run]:
    """A function that simulates the plan with its transfers issued at given steps."""
    urgency = by_urgency(on_demand)
    one_pass = OnePass(program, on_demand, target) if is_exact(target) else None

    def play(steps: tuple[int, ...]) -> _Run:
        order = issue_order(urgency, steps)
        if one_pass is None:
            record = event_by_event(program, reissued(on_demand, steps), target)
            return _Run(issue_steps=steps, order=order, makespan_s=record.makespan_s, record=lambda: record)
        played = one_pass.play(steps, order)
        return _Run(
            issue_steps=steps, order=order, makespan_s=played.makespan_s, record=lambda: one_pass.record(played)
        )

    return play


def _just_in_time_of(program: Program, on_demand: Plan, target: Target, earliest: Sequence[int]) -> tuple[int, ...]:
    """Reads as late as they would land in time in a run without stalls; writes as early as possible."""
    starts = np.concatenate([[0.0], np.cumsum(step_times_s(program, target))[:-1]]).tolist()
    alone_s = cache(read_link(target).alone_s)  # few sizes, many transfers
    latest = just_in_time(
        on_demand,
        starts,
        [alone_s(t.size_bytes) for t in on_demand.transfers],
        [alone_s(step.weight_stream_bytes) for step in program.steps],
    )
    return tuple(
        max(first, last) if t.kind.is_read else first
        for t, first, last in zip(on_demand.transfers, earliest, latest, strict=True)
    )


def _changes(on_demand: Plan, run: _Run, earliest: Sequence[int], timeline: Timeline) -> list[tuple[float, int, int]]:
    """``(seconds of idle time, transfer, better issue step)``, longest first."""
    steps, order = run.issue_steps, run.order
    job_transfer = timeline.jobs.transfer.tolist()
    waited: defaultdict[tuple[int, int], float] = defaultdict(float)
    for start_s, end_s, job, i in idle_stretches(timeline):
        if job_transfer[job] >= 0 and i < len(timeline.step_start_s):
            k = order[job_transfer[job]]
            t = on_demand.transfers[k]
            step = earliest[k] if not t.kind.is_read or t.needed_step <= i else min(max(i, steps[k] + 1), t.issue_step)
            if step != steps[k]:
                waited[k, step] += end_s - start_s
    chosen: dict[int, tuple[float, int]] = {}
    for (k, step), seconds in waited.items():
        chosen[k] = max(chosen.get(k, (0.0, -1)), (seconds, step))
    return sorted(((seconds, k, step) for k, (seconds, step) in chosen.items()), key=lambda c: (-c[0], c[1]))


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
    """The plan with its transfers issued at these steps; reads hold their space from then on."""
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
    """Indices of the transfers in queue order: by issue step, then by urgency."""
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
    """The first step from which on the space of each segment is free until its start. Shape (n_segments,)."""
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
    """The tick at which the last owner of each address left, as a piecewise constant map."""

    def __init__(self) -> None:
        self._starts = [0]  # of intervals; the last one is endless
        self._ends_at = [0]

    def replace(self, start: int, end: int, tick: int) -> int:
        """Gives ``[start, end)`` to an owner until ``tick``; returns the latest tick at which a previous one left."""
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
