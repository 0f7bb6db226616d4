"""The DRAM bus: how concurrent transfers share its bandwidth, when each of them ends, and what the bus carried.

Rates are max-min fair: every transfer in flight, and the background traffic, gets an equal share of the bus, but no
direction exceeds its own bandwidth, nor the background its demand; what one leaves, the others share. So all
transfers of one direction have the same rate. Each direction keeps a virtual clock that runs at that rate: a
transfer of ``n`` bytes that starts at clock ``v`` is done at ``v + n``, whatever happens to the rate meanwhile, and a
heap of these values never needs to be re-keyed.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from spillprof.ir.target import Target
from spillprof.ir.timeline import BusCurve, Indices, JobKind, Seconds, Timeline
from spillprof.timing.dma import read_link, write_link

READ, WRITE = 0, 1
_READS = [kind for kind in JobKind if kind.is_read]
_WRITES = [kind for kind in JobKind if kind.is_write]
_NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class BusLimits:
    """What a bus can carry, in bytes per second."""

    read_bytes_per_s: float
    write_bytes_per_s: float
    bus_bytes_per_s: float  # both directions and the background together; infinite: nothing shared
    background_bytes_per_s: float = 0.0


def bus_limits(target: Target) -> BusLimits:
    """Limits of the target's bus."""
    return BusLimits(
        read_bytes_per_s=read_link(target).bytes_per_s,
        write_bytes_per_s=write_link(target).bytes_per_s,
        bus_bytes_per_s=target.dram_bus_bytes_per_s or _NEVER,
        background_bytes_per_s=target.background_bytes_per_s,
    )


def fair_rates(limits: BusLimits, reads: int, writes: int) -> tuple[float, float, float]:
    """Bytes per second of each read and of each write in flight, and of the background."""
    wishes = [
        (limits.read_bytes_per_s / reads if reads else 0.0, reads, 0),
        (limits.write_bytes_per_s / writes if writes else 0.0, writes, 1),
        (limits.background_bytes_per_s, 1 if limits.background_bytes_per_s else 0, 2),
    ]
    left, claimants = limits.bus_bytes_per_s, sum(members for _, members, _ in wishes)
    rates = [0.0, 0.0, 0.0]
    for wish, members, kind in sorted(wishes):
        if members:
            rates[kind] = min(wish, left / claimants)
            left -= rates[kind] * members
            claimants -= members
    return rates[0], rates[1], rates[2]


class Bus:
    """Transfers in flight. ``next_s`` is when the first of them ends."""

    def __init__(self, limits: BusLimits) -> None:
        self._limits = limits
        self._rates: dict[tuple[int, int], tuple[float, float, float]] = {}
        self._directions = (_Direction(), _Direction())
        self.next_s = _NEVER

    def enter(self, direction: int, job: int, flow_bytes: float, now_s: float) -> None:
        """Starts a transfer."""
        own = self._directions[direction]
        own.advance(now_s)
        heappush(own.ends, (own.clock + flow_bytes, job))
        self._share(now_s)

    def leave(self) -> int:
        """Ends and returns the transfer due at ``next_s``; among several, a read first, then the one issued first."""
        reads, writes = self._directions
        own = reads if reads.next_s <= writes.next_s else writes
        now_s = own.next_s
        own.clock, job = heappop(own.ends)
        own.since_s = now_s
        if not own.ends:
            own.clock = 0.0  # so that rounding errors do not grow over the run
        self._share(now_s)
        return job

    def _share(self, now_s: float) -> None:
        reads, writes = self._directions
        in_flight = len(reads.ends), len(writes.ends)
        rates = self._rates.get(in_flight)
        if rates is None:
            rates = self._rates[in_flight] = fair_rates(self._limits, *in_flight)
        reads.set_rate(rates[READ], now_s)
        writes.set_rate(rates[WRITE], now_s)
        self.next_s = reads.next_s if reads.next_s <= writes.next_s else writes.next_s


class _Direction:
    """One virtual clock, in bytes that each transfer in flight has moved."""

    __slots__ = ("clock", "ends", "next_s", "rate", "since_s")

    def __init__(self) -> None:
        self.ends: list[tuple[float, int]] = []  # heap: clock at the end, job
        self.clock = 0.0  # at ``since_s``
        self.since_s = 0.0
        self.rate = 0.0
        self.next_s = _NEVER

    def advance(self, now_s: float) -> None:
        if self.ends:
            self.clock += self.rate * (now_s - self.since_s)
        self.since_s = now_s

    def set_rate(self, rate: float, now_s: float) -> None:
        """Sets the rate from now on; recomputes only if the rate or the first transfer to end changes."""
        if not self.ends:
            self.next_s = _NEVER
            return
        if rate != self.rate:
            self.advance(now_s)
            self.rate = rate
        left = self.ends[0][0] - self.clock
        self.next_s = self.since_s + (left / rate if left > 0 else 0.0)


def bus_curve(timeline: Timeline, target: Target) -> BusCurve:
    """The bandwidth that each direction and the background use, from event to event."""
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


def _carried(rates: tuple[float, float, float], reads: int, writes: int) -> tuple[float, float, float]:
    return rates[0] * reads, rates[1] * writes, rates[2]


def _moments(timeline: Timeline, starts_s: Seconds, ends_s: Seconds) -> Seconds:
    """The start of the run and every later moment of change before its end, ascending."""
    moments: Seconds = np.unique(np.concatenate([[0.0], starts_s, ends_s]))
    return moments[moments < timeline.makespan_s]


def _count(time_s: Seconds, starts_s: Seconds, ends_s: Seconds) -> Indices:
    """How many intervals have started and not ended, from each moment on."""
    started = np.searchsorted(np.sort(starts_s), time_s, side="right")
    ended = np.searchsorted(np.sort(ends_s), time_s, side="right")
    return (started - ended).astype(np.int64)
