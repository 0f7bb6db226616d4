"""Where the time of a run goes, in parts that add up to it."""

from collections.abc import Sequence

import numpy as np

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.result import Breakdown
from spillprof.ir.timeline import JobKind, Timeline
from spillprof.timing.dma import compulsory
from spillprof.timing.idle import idle_stretches

_ROUNDING = 1e-9
"""A flow that takes longer than alone by less than this, relatively, lost nothing."""


def breakdown(program: Program, plan: Plan, timeline: Timeline) -> Breakdown:
    """The makespan, cut into parts.

    While a unit computes, time counts as computing, whatever else goes on. Every other stretch belongs to the job that
    is being waited for: its set-up is ``sync``; of the time that it flows, what it would take alone counts as
    compulsory or as spill, and the rest is ``contention``. What comes after the last step is the ``tail``.
    """
    jobs = timeline.jobs
    kinds, flow_s, end_s, alone_s = (a.tolist() for a in (jobs.kind, jobs.flow_s, jobs.end_s, jobs.flow_alone_s))
    last_s = float(timeline.step_end_s.max(initial=0.0))
    expected = _compulsory_jobs(program, plan, kinds, jobs.transfer.tolist())
    parts = {"compulsory": 0.0, "spill": 0.0, "sync": 0.0, "contention": 0.0, "fragmentation": 0.0}
    for start, end, j, _ in idle_stretches(timeline):
        end = min(end, last_s)
        if end <= start:
            continue
        if kinds[j] == JobKind.MOVE:
            parts["fragmentation"] += end - start
            continue
        flowing_s = max(end - max(start, flow_s[j]), 0.0)
        took_s = end_s[j] - flow_s[j]
        share = alone_s[j] / took_s if took_s > alone_s[j] * (1 + _ROUNDING) else 1.0
        parts["sync"] += end - start - flowing_s
        parts["contention"] += flowing_s * (1 - share)
        parts["compulsory" if expected[j] else "spill"] += flowing_s * share
    tail_s = timeline.makespan_s - last_s
    return Breakdown(
        compute_s=_computing_s(timeline),
        compulsory_s=parts["compulsory"],
        spill_s=parts["spill"],
        sync_s=parts["sync"],
        contention_s=parts["contention"],
        fragmentation_s=parts["fragmentation"],
        tail_s=tail_s,
    )


def _computing_s(timeline: Timeline) -> float:
    """Seconds in which a compute unit computes."""
    order = np.argsort(timeline.step_start_s, kind="stable")
    starts, computed = timeline.step_start_s[order], (timeline.step_start_s + timeline.step_compute_s)[order]
    busy_until_s = np.maximum.accumulate(np.append(0.0, computed))[:-1]
    return float(np.append(0.0, np.maximum(computed - np.maximum(starts, busy_until_s), 0.0)).cumsum()[-1])


def _compulsory_jobs(program: Program, plan: Plan, kinds: Sequence[int], transfers: Sequence[int]) -> list[bool]:
    """Whether infinite SRAM would do each job too."""
    of_transfer, of_streamed = compulsory(program, plan)
    streamed = iter(
        k for k in sorted(range(len(plan.streamed)), key=lambda k: plan.streamed[k].step) if plan.streamed[k].size_bytes
    )
    found = []
    for kind, transfer in zip(kinds, transfers, strict=True):
        if kind in (JobKind.STREAM_IN, JobKind.STREAM_OUT):
            found.append(of_streamed[next(streamed)])
        else:
            found.append(of_transfer[transfer] if transfer >= 0 else kind == JobKind.WEIGHTS)
    return found
