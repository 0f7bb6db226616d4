"""A whole run in one pass over its steps: the event loop's record, where no order of events needs to be found.

With one compute unit, and channels that neither wait for each other nor share bandwidth, everything that a step or a
transfer waits for was issued before it: writes of a step before its reads, reads no later than the step that needs
them, and the jobs ahead in its own queue. So all ends that it waits for are known when the pass reaches it, and the
latest of them is its cause. Nothing that is issued later can change that. Sums are formed in the order of the event
loop, so that both give the same numbers to the last bit.

At one moment the event loop handles the end of a read first, then of a write, then of what uses no channel. A node has
the *rank* of the event that ends it, and among equal moments the higher rank is later. A job issued while a moment is
handled finds its channel free if the channel's last transfer has ended by then, and its cause is the step that issued
it. So (seconds, rank) orders all ends, and of two equal ones the issuing step's is the later. A step that ends with a
transfer ends before the channel takes its next job.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import JobKind
from spillprof.timing.bus import bus_limits, fair_rates
from spillprof.timing.compute import step_times_s
from spillprof.timing.dma import read_link, write_link
from spillprof.timing.record import Record
from spillprof.timing.work import JOB_KINDS, WEIGHT_STAGING, Nodes, waits_of

_READ, _WRITE, _ALONE, _STARTED = 0, 1, 2, 3
"""Ranks: the end of a read, of a write, of what takes no channel; the start of a step comes after all of them."""


def is_exact(target: Target) -> bool:
    """Whether one pass is exact: one compute unit, and every transfer takes the time that it takes alone."""
    if target.cores > 1 or target.dma_shared_channels > 1:
        return False
    if target.dma_shared_channels:
        return True
    if target.dma_read_channels > 1 or target.dma_write_channels > 1 or target.dram_outstanding == 1:
        return False
    limits = bus_limits(target)
    return fair_rates(limits, 1, 1)[:2] == (fair_rates(limits, 1, 0)[0], fair_rates(limits, 0, 1)[1])


@dataclass(slots=True)
class _Jobs:
    """All jobs, by node, independent of issue times. Node ``n_steps + t`` is transfer ``t``."""

    kind: list[JobKind] = field(default_factory=list)
    size_bytes: list[int] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    side: list[int] = field(default_factory=list)  # _READ or _WRITE; _ALONE if it takes no channel
    flow_bytes: list[float] = field(default_factory=list)  # that the bus carries
    alone_s: list[tuple[float, float]] = field(default_factory=list)  # set-up; what follows
    waits: list[Nodes] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePassRun:
    """One run. Columns by node, but for what only steps or jobs have."""

    makespan_s: float
    order: Sequence[int]  # transfers as they were queued
    issued: list[int]  # nodes of jobs, in turn
    over_s: list[float]
    start_s: list[float]
    cause: list[int]
    end_cause: list[int]  # by step
    reached_s: list[float]  # by step
    queued_s: list[float]  # by job


class OnePass:
    """One plan on one target that ``is_exact``. What does not depend on issue times is computed once."""

    def __init__(self, program: Program, plan: Plan, target: Target) -> None:
        n = self._n = len(program.steps)
        self._plan, self._target = plan, target
        limits = bus_limits(target)
        self._links = (read_link(target), write_link(target))
        self._rates = (fair_rates(limits, 1, 0)[0], fair_rates(limits, 0, 1)[1])
        self._flows: dict[tuple[int, int], tuple[float, float]] = {}
        self._step_s: list[float] = step_times_s(program, target).tolist()
        waits = waits_of(program, plan)
        self._step_waits = waits.steps
        self._is_read = [t.kind.is_read for t in plan.transfers]
        self._jobs = _Jobs()
        for transfer, is_read, before in zip(plan.transfers, self._is_read, waits.transfers, strict=True):
            side = _READ if is_read else _WRITE
            self._add(JOB_KINDS[transfer.kind], side, transfer.size_bytes, transfer.needed_step, before)
        self._moved: dict[int, int] = {}  # by step: the node of its moves, which happen together
        moved_bytes: defaultdict[int, int] = defaultdict(int)
        for move in plan.moves:
            moved_bytes[move.step] += move.size_bytes
        for i, nbytes in moved_bytes.items():
            self._moved[i] = self._add(JobKind.MOVE, _ALONE, nbytes, i, waits.moves[i])
        staging_bytes = sum(r.size_bytes for r in program.reservations if r.what == WEIGHT_STAGING)
        self._early = [-1] * (n + 1)  # by step: the node of the weights that come before it starts
        self._streams: defaultdict[int, list[int]] = defaultdict(list)  # by step: what passes while it runs
        for i, step in enumerate(program.steps):
            if step.weight_stream_bytes:
                early = min(step.weight_stream_bytes, staging_bytes)
                if early:
                    self._early[i] = self._add(JobKind.WEIGHTS, _READ, early, i)
                if step.weight_stream_bytes > early:
                    rest = self._add(JobKind.WEIGHTS, _READ, step.weight_stream_bytes - early, i)
                    self._streams[i].append(rest)
            if step.weight_repeat_bytes:
                again = self._add(JobKind.WEIGHTS, _READ, step.weight_repeat_bytes, i)
                self._streams[i].append(again)
        for operand in plan.streamed:
            if operand.size_bytes > 0:
                side, kind = (_WRITE, JobKind.STREAM_OUT) if operand.write else (_READ, JobKind.STREAM_IN)
                self._streams[operand.step].append(self._add(kind, side, operand.size_bytes, operand.step))

    def _add(self, kind: JobKind, side: int, nbytes: int, step: int, waits: Nodes = ()) -> int:
        jobs = self._jobs
        if side == _ALONE:
            flow_bytes, alone_s = 0.0, (0.0, 2 * nbytes / self._target.sram_bytes_per_s)
        elif nbytes <= 0:
            side, flow_bytes, alone_s = _ALONE, 0.0, (0.0, 0.0)
        else:
            found = self._flows.get((side, nbytes))
            if found is None:
                flow_bytes = self._links[side].flow_bytes(nbytes)
                flow_s = flow_bytes / self._rates[side] if flow_bytes > 0 else 0.0
                found = self._flows[side, nbytes] = flow_bytes, flow_s
            flow_bytes, alone_s = found[0], (self._links[side].setup_s, found[1])
        jobs.kind.append(kind)
        jobs.size_bytes.append(nbytes)
        jobs.step.append(step)
        jobs.side.append(side)
        jobs.flow_bytes.append(flow_bytes)
        jobs.alone_s.append(alone_s)
        jobs.waits.append(waits)
        return self._n + len(jobs.kind) - 1

    def play(self, issue_steps: Sequence[int], order: Sequence[int]) -> OnePassRun:
        """The run with transfers issued at these steps. ``order``: the transfers in queue order."""
        n, n_jobs = self._n, len(self._jobs.kind)
        is_read, step_waits, early, streams = self._is_read, self._step_waits, self._early, self._streams
        job_waits, sides, alone_s = self._jobs.waits, self._jobs.side, self._jobs.alone_s
        out = 0 if self._target.dma_shared_channels else 1  # the channel of writes; reads have channel 0
        over = [0.0] * (n + n_jobs)  # when each node is over, and the rank of that
        rank = [_ALONE] * (n + n_jobs)
        start, cause, end_cause = [0.0] * (n + n_jobs), [-1] * (n + n_jobs), list(range(n))
        reached, queued = [0.0] * n, [0.0] * n_jobs
        issued: list[int] = []  # nodes of jobs
        ahead = [-1, -1]  # the node that each channel served last
        ended: dict[int, int] = {}  # node -> the step that ended with it

        def issue(node: int, now_s: float, start_s: float, last_rank: int, last: int) -> None:
            """Puts a job in the queue of its channel. It starts after the latest of what it waits for."""
            job = node - n
            for other in job_waits[job]:
                over_s = over[other]
                if over_s > start_s or (over_s == start_s and rank[other] > last_rank):
                    start_s, last_rank, last = over_s, rank[other], other
            side = sides[job]
            setup_s, rest_s = alone_s[job]
            if side != _ALONE:
                queued[job] = now_s
                channel = out if side else 0
                other = ahead[channel]
                if other >= 0:
                    over_s = over[other]
                    if over_s > start_s or (over_s == start_s and rank[other] > last_rank):
                        start_s, last = over_s, ended.get(other, other)
                ahead[channel] = node
                last_rank = side
            else:  # moves, or no bytes: no channel
                queued[job] = start_s
                if rest_s:
                    last_rank = _ALONE
            start[node], cause[node], rank[node] = start_s, last, last_rank
            over[node] = start_s + setup_s + rest_s
            issued.append(node)

        writes = [k for k in order if not is_read[k]]
        reads = [k for k in order if is_read[k]]
        write_at = [issue_steps[k] for k in writes] + [n + 1]
        read_at = [issue_steps[k] for k in reads] + [n + 1]
        write = read = 0  # how many were issued
        now_s, now_rank = 0.0, -1  # the end of the step before
        if self._early[0] >= 0:
            issue(self._early[0], 0.0, 0.0, -1, -1)
        for i, own_s in enumerate(self._step_s):
            while write_at[write] == i:
                issue(n + writes[write], now_s, now_s, now_rank, i - 1)
                write += 1
            start_s, last_rank, last = now_s, now_rank, i - 1
            if i in self._moved:
                moved = self._moved[i]
                issue(moved, now_s, now_s, now_rank, i - 1)
                if over[moved] > start_s or (over[moved] == start_s and rank[moved] > last_rank):
                    start_s, last_rank, last = over[moved], rank[moved], moved
            while read_at[read] == i:
                issue(n + reads[read], now_s, start_s, last_rank, last)
                read += 1
            for other in (*step_waits[i], early[i]) if early[i] >= 0 else step_waits[i]:
                over_s = over[other]
                if over_s > start_s or (over_s == start_s and rank[other] > last_rank):
                    start_s, last_rank, last = over_s, rank[other], other
            start[i], reached[i], cause[i] = start_s, now_s, last
            now_s, now_rank = start_s + own_s, _ALONE
            if i in streams:
                for node in streams[i]:
                    issue(node, start_s, start_s, _STARTED, i)
                for node in streams[i]:
                    if (over[node], rank[node]) > (now_s, now_rank):
                        now_s, now_rank, end_cause[i] = over[node], rank[node], node
                ended[end_cause[i]] = i
            over[i], rank[i] = now_s, now_rank
            if early[i + 1] >= 0:
                issue(early[i + 1], start_s, start_s, _STARTED, i)
        while write_at[write] == n:
            issue(n + writes[write], now_s, now_s, now_rank, n - 1)
            write += 1
        return OnePassRun(
            makespan_s=max(over, default=0.0),
            order=order,
            issued=issued,
            over_s=over,
            start_s=start,
            cause=cause,
            end_cause=end_cause,
            reached_s=reached,
            queued_s=queued,
        )

    def record(self, played: OnePassRun) -> Record:
        """The record of a run, its transfers numbered in queue order."""
        n, jobs = self._n, self._jobs
        issued = np.array(played.issued, dtype=np.int64)
        job = issued - n
        number = np.arange(n + len(jobs.kind) + 1)  # of nodes, in the record
        number[-1] = -1  # none stays none
        number[issued] = n + np.arange(len(issued))
        position = np.full(len(jobs.kind), -1, dtype=np.int64)  # in the queues, of jobs that are transfers of the plan
        position[np.array(played.order, dtype=np.int64)] = np.arange(len(played.order))
        over_s, start_s = np.array(played.over_s), np.array(played.start_s)
        setup_s = np.array([setup_s for setup_s, _ in jobs.alone_s])
        cause = number[np.array(played.cause, dtype=np.int64)]
        return Record(
            step_s=np.array(self._step_s, dtype=np.float64),
            step_start_s=start_s[:n],
            step_end_s=over_s[:n],
            step_reached_s=np.array(played.reached_s, dtype=np.float64),
            step_core=np.zeros(n, dtype=np.int64),
            step_cause=cause[:n],
            step_end_cause=number[np.array(played.end_cause, dtype=np.int64)],
            job_kind=np.array(jobs.kind, dtype=np.int64)[job],
            job_bytes=np.array(jobs.size_bytes, dtype=np.int64)[job],
            job_step=np.array(jobs.step, dtype=np.int64)[job],
            job_transfer=position[job],
            flow_bytes=np.array(jobs.flow_bytes, dtype=np.float64)[job],
            queued_s=np.array(played.queued_s, dtype=np.float64)[job],
            start_s=start_s[issued],
            flow_s=(start_s[n:] + setup_s)[job],
            end_s=over_s[issued],
            cause=cause[issued],
            makespan_s=played.makespan_s,
        )
