"""When to issue each transfer of a plan, so that the run ends as early as possible.

What is moved, and to where, stays as planned; only issue steps change, within what the space allows. Traffic-optimal
is not time-optimal, and early is not always better: a transfer that nobody needs yet holds up one that somebody waits
for. Every choice is judged by playing the whole plan.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Timeline
from spillprof.timing.compute import step_times_s
from spillprof.timing.dma import read_link
from spillprof.timing.exposed import exposed
from spillprof.timing.one_pass import OnePass, is_exact
from spillprof.timing.prefetch import by_urgency, earliest_issues, issue_order, just_in_time, reissued
from spillprof.timing.record import Record
from spillprof.timing.timeline import event_by_event, simulate, timeline_of

_TRIALS = ((500, 12), (4_000, 6), (30_000, 2))
"""(most steps and transfers together, plans that are played after the first three)."""
_WORTH_TRYING = 1e-3
"""Share of the makespan that better issue times must promise to be looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The plan played with its transfers issued at certain steps."""

    issue_steps: tuple[int, ...]
    order: list[int]  # the transfers as they are queued
    makespan_s: float
    record: Callable[[], Record]


def best_issue_times(program: Program, on_demand: Plan, target: Target) -> tuple[Plan, Timeline]:
    """The plan with its transfers issued at the best steps found, and its timeline.

    Three ways for all transfers come first: just in time, as early as space allows, and on demand; so the result is
    never slower than ``on_demand``. The fastest is then improved transfer by transfer: what delays a step that does not
    need it is issued when that step is about to start, what is needed and comes late is issued as early as it can be.
    Changes are made together, dearest first; if the run does not get shorter, with half of them.
    """
    if not on_demand.transfers:
        return on_demand, simulate(program, on_demand, target)
    earliest = tuple(earliest_issues(program, on_demand))
    as_planned = tuple(t.issue_step for t in on_demand.transfers)
    play = _player(program, on_demand, target)
    ways = dict.fromkeys((_just_in_time(program, on_demand, target, earliest), earliest, as_planned))
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
    """What plays the run with its transfers issued at given steps."""
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


def _just_in_time(program: Program, on_demand: Plan, target: Target, earliest: Sequence[int]) -> tuple[int, ...]:
    """Reads as late as they would still land in time if nobody waited; writes as early as they can be."""
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
    """``(seconds waited for it, transfer, better issue step)``, dearest first."""
    steps, order = run.issue_steps, run.order
    job_transfer = timeline.jobs.transfer.tolist()
    waited: defaultdict[tuple[int, int], float] = defaultdict(float)
    for start_s, end_s, job, i in exposed(timeline):
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
