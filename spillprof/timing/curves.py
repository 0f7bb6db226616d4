"""Curves over time: how busy the bus is, and how many transfers wait for a channel."""

import numpy as np

from spillprof.ir.target import Target
from spillprof.ir.timeline import BusCurve, Indices, JobKind, QueueCurve, Seconds, Timeline
from spillprof.timing.bus import bus_limits, fair_rates

_READS = [kind for kind in JobKind if kind.is_read]
_WRITES = [kind for kind in JobKind if kind.is_write]


def bus_curve(timeline: Timeline, target: Target) -> BusCurve:
    """What each direction and the background carry, from event to event."""
    jobs = timeline.jobs
    reads, writes = np.isin(jobs.kind, _READS), np.isin(jobs.kind, _WRITES)
    flowing = (reads | writes) & (jobs.end_s > jobs.flow_s)
    time_s = _moments(timeline, jobs.flow_s[flowing], jobs.end_s[flowing])
    n_reads = _count(time_s, jobs.flow_s[flowing & reads], jobs.end_s[flowing & reads])
    n_writes = _count(time_s, jobs.flow_s[flowing & writes], jobs.end_s[flowing & writes])
    limits = bus_limits(target)
    states, which = np.unique(np.stack([n_reads, n_writes], axis=1), axis=0, return_inverse=True)
    rates = np.array([_carried(fair_rates(limits, r, w), r, w) for r, w in states.tolist()]).reshape(-1, 3)
    carried = rates[which.reshape(-1)] if len(time_s) else np.zeros((0, 3))
    return BusCurve(
        time_s=time_s,
        read_bytes_per_s=carried[:, 0],
        write_bytes_per_s=carried[:, 1],
        background_bytes_per_s=carried[:, 2],
    )


def queue_curve(timeline: Timeline) -> QueueCurve:
    """Transfers that were issued and have no channel yet, by direction, from event to event."""
    jobs = timeline.jobs
    reads, writes = np.isin(jobs.kind, _READS), np.isin(jobs.kind, _WRITES)
    waiting = (reads | writes) & (jobs.start_s > jobs.queued_s)
    time_s = _moments(timeline, jobs.queued_s[waiting], jobs.start_s[waiting])
    return QueueCurve(
        time_s=time_s,
        reads=_count(time_s, jobs.queued_s[waiting & reads], jobs.start_s[waiting & reads]),
        writes=_count(time_s, jobs.queued_s[waiting & writes], jobs.start_s[waiting & writes]),
    )


def _carried(rates: tuple[float, float, float], reads: int, writes: int) -> tuple[float, float, float]:
    return rates[0] * reads, rates[1] * writes, rates[2]


def _moments(timeline: Timeline, starts_s: Seconds, ends_s: Seconds) -> Seconds:
    """The start of the run and every moment at which something changes before its end, ascending."""
    moments: Seconds = np.unique(np.concatenate([[0.0], starts_s, ends_s]))
    return moments[moments < timeline.makespan_s]


def _count(time_s: Seconds, starts_s: Seconds, ends_s: Seconds) -> Indices:
    """How many have started and not ended, from each moment on."""
    started = np.searchsorted(np.sort(starts_s), time_s, side="right")
    ended = np.searchsorted(np.sort(ends_s), time_s, side="right")
    return (started - ended).astype(np.int64)
