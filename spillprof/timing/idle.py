"""Idle time of a run: the stretches in which no unit computes, cut by the job that the next step waits for."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spillprof.ir.timeline import Timeline


class IdleStretch(NamedTuple):
    """A stretch of time in which no unit computes, and the job that the next step waits for."""

    start_s: float
    end_s: float
    job: int  # index into Timeline.jobs
    step: int  # the step that the stretch delays; n_steps: the end of the run


def idle_stretches(timeline: Timeline) -> list[IdleStretch]:
    """All idle stretches, in no particular order; with the time in which a unit computes they add up to the makespan.

    Walks back from each step that ends an idle stretch (and from the end of the run) along the chain of causes: the
    job that ended last, the job that it waited for, and so on to the start of the stretch.
    """
    n = len(timeline.step_start_s)
    step_end_s, step_cause = timeline.step_end_s.tolist(), timeline.step_cause.tolist()
    end_cause = timeline.step_end_cause.tolist()
    job_start_s, job_cause = timeline.jobs.start_s.tolist(), timeline.jobs.cause.tolist()
    found = []
    for idle_s, until_s, step, node in _idle(timeline):
        at_s = until_s
        while at_s > idle_s and node >= 0:
            if node >= n:
                job = node - n
                start_s = max(job_start_s[job], idle_s)
                if start_s < at_s:
                    found.append(IdleStretch(start_s, at_s, job, step))
                at_s, node = job_start_s[job], job_cause[job]
            elif step_end_s[node] <= at_s and end_cause[node] != node:
                node = end_cause[node]  # its streams ended after its computing
            else:
                node = step_cause[node]
    return found


def _idle(timeline: Timeline) -> Iterator[tuple[float, float, int, int]]:
    """``(start, end, step, node)``: no unit computes until ``node`` ends and the step starts."""
    n = len(timeline.step_start_s)
    order = np.argsort(timeline.step_start_s, kind="stable")
    starts, computed = timeline.step_start_s[order], (timeline.step_start_s + timeline.step_compute_s)[order]
    busy_until_s = np.maximum.accumulate(np.append(0.0, computed))
    idle = starts > busy_until_s[:-1]
    columns = busy_until_s[:-1][idle], starts[idle], order[idle], timeline.step_cause[order][idle]
    yield from zip(*(column.tolist() for column in columns), strict=True)
    if timeline.makespan_s > busy_until_s[-1]:
        ends = np.concatenate([timeline.step_end_s, timeline.jobs.end_s])[::-1]
        yield (
            float(busy_until_s[-1]),
            timeline.makespan_s,
            n,
            len(ends) - 1 - int(ends.argmax()),
        )  # of several, the last
