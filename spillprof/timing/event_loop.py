"""The event loop: simulates the nodes of a plan in time.

An event is the end of a step, of a set-up, of a move, or of a transfer. What it enables starts at once: the agenda
advances, channels take the next job of their queue, nodes that follow it may start. When all events of one moment
have been handled, ready steps go to free compute units, in plan order. Events of one moment are handled in the order
in which they were scheduled, so runs are deterministic. E events take O(E log E).
"""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from spillprof.timing.bus import READ, WRITE, Bus, BusLimits
from spillprof.timing.work import Work

_NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaLimits:
    """DMA channels and bus of a target."""

    limits: BusLimits
    channels: tuple[int, ...]  # (reading, writing), or one number: shared by both directions
    outstanding: int | None  # most transfers in flight at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Duration of each node without contention."""

    step_s: list[float]
    setup_s: list[float]  # by job, before it flows; of a move: all of it
    flow_bytes: list[float]  # by job: what the bus carries


class _Queue:
    """A class of channels and the jobs that wait for one."""

    __slots__ = ("channels", "jobs")

    def __init__(self, channels: int) -> None:
        self.channels = channels  # that are free
        self.jobs: deque[int] = deque()


class _Prefix:
    """Length of the longest prefix of steps that are all marked but for ``slack`` of them."""

    __slots__ = ("_marked", "_missing", "_slack", "reached")

    def __init__(self, n: int, slack: int) -> None:
        self._marked = bytearray(n + 1)
        self._slack = slack
        self._missing = 0  # unmarked ones before ``reached``
        self.reached = 0
        self._advance()

    def mark(self, i: int) -> None:
        self._marked[i] = 1
        if i < self.reached:
            self._missing -= 1
        self._advance()

    def _advance(self) -> None:
        while self.reached < len(self._marked) - 1:
            if not self._marked[self.reached]:
                if self._missing == self._slack:
                    return
                self._missing += 1
            self.reached += 1


class EventLoop:
    """One run. After ``play`` the lists hold its times by step or by job, in seconds."""

    def __init__(self, work: Work, durations: Durations, dma: DmaLimits) -> None:
        n, m = work.n_steps, len(work.jobs)
        self._work, self._durations, self._n = work, durations, n
        self._waits = work.waits.copy()
        self._bus = Bus(dma.limits)
        self._queues = [_Queue(channels) for channels in dma.channels]
        self._direction = [WRITE if kind.is_write else READ for kind, _, _, _ in work.jobs]
        own = (self._queues[0], self._queues[-1])
        self._queue = [own[d] if work.uses_dma(n + j) else None for j, d in enumerate(self._direction)]
        self._slots = m + 1 if dma.outstanding is None else dma.outstanding  # free ones
        self._timers: list[tuple[float, int, int]] = []  # time, sequence, node
        self._sequence = 0
        self._ended, self._started = _Prefix(n, work.cores - 1), _Prefix(n, 0)
        self._turns = deque(work.in_turn)
        self._agenda_at = 0
        self._ready: list[int] = []
        self._ready_since = [(0.0, -1)] * n  # when, by the end of which node
        self._free_units = [(0.0, unit, -1) for unit in range(work.cores)]  # since when, unit, freed by which step
        self._parts = [0] * n  # of a step that runs: its computing, and each of its streams
        self._stream_of = {node - n: i for i, nodes in work.streams.items() for node in nodes}
        self._root = -1  # the node whose end (or, of a step, start) is being handled
        self.now = 0.0
        self.step_start, self.step_end = [0.0] * n, [0.0] * n
        self.step_reached = [0.0] * n  # when all steps that it follows had ended, and its unit was free
        self.step_unit, self.step_cause, self.step_end_cause = [0] * n, [-1] * n, list(range(n))
        self.queued, self.start, self.flow, self.end = [0.0] * m, [0.0] * m, [0.0] * m, [0.0] * m
        self.cause = [-1] * m

    def play(self) -> None:
        """Handles all events."""
        for i in range(self._n):
            if not self._waits[i]:
                self._begin(i)
        self._go_on()
        timers, bus, ready, free = self._timers, self._bus, self._ready, self._free_units
        while True:
            timer_s, bus_s = timers[0][0] if timers else _NEVER, bus.next_s
            if ready and free and timer_s > self.now and bus_s > self.now:
                self._dispatch()
            elif bus_s <= timer_s:
                if bus_s == _NEVER:
                    return
                self.now = bus_s
                self._transfer_over(bus.leave())
            else:
                self.now, _, node = heappop(timers)
                self._time_is_up(node)

    # --- events

    def _time_is_up(self, node: int) -> None:
        if node < self._n:
            self._part_over(node, node)
        elif self._queue[node - self._n] is None:
            self._job_over(node - self._n)
        else:
            self._flow(node - self._n)

    def _transfer_over(self, j: int) -> None:
        queue = self._queue[j]
        assert queue is not None
        queue.channels += 1
        self._slots += 1
        self._job_over(j)
        for other in self._queues if self._slots == 1 else (queue,):
            self._serve(other)

    def _job_over(self, j: int) -> None:
        self.end[j] = self.now
        self._root = self._n + j
        step = self._stream_of.get(j)
        if step is not None:
            self._part_over(step, self._n + j)
        self._release_followers(self._n + j)

    def _part_over(self, i: int, node: int) -> None:
        """Ends the computing of a step, or one of its streams."""
        self._parts[i] -= 1
        if self._parts[i]:
            return
        self.step_end[i], self.step_end_cause[i] = self.now, node
        self._root = i
        heappush(self._free_units, (self.now, self.step_unit[i], i))
        self._ended.mark(i)
        self._go_on()
        self._release_followers(i)

    def _dispatch(self) -> None:
        """Starts the first ready step on the unit that has been free for longest."""
        i = heappop(self._ready)
        freed_s, self.step_unit[i], freed_by = heappop(self._free_units)
        self.step_start[i] = self.now
        ready_s, ready_by = self._ready_since[i]
        self.step_cause[i] = freed_by if freed_s > ready_s else ready_by
        if freed_s > self.step_reached[i]:
            self.step_reached[i] = freed_s
        streams = self._work.streams.get(i, ())
        self._parts[i] = 1 + len(streams)
        self._root = i
        self._set_timer(self._durations.step_s[i], i)
        for node in streams:
            self._enqueue(node - self._n)
        self._started.mark(i)
        self._go_on()

    # --- what an event enables

    def _go_on(self) -> None:
        """Issues the next entries of the agenda, and releases the steps whose turn it is."""
        agenda, ended, started = self._work.agenda, self._ended.reached, self._started.reached
        while self._turns and self._turns[0] <= started:
            self._release(self._turns.popleft())
        while self._agenda_at < len(agenda):
            after_ended, after_started, node = agenda[self._agenda_at]
            if after_ended > ended or after_started > started:
                return
            self._agenda_at += 1
            if node >= self._n and self._queue[node - self._n] is not None:
                self._enqueue(node - self._n)
            elif node >= 0:
                self._release(node)

    def _release_followers(self, node: int) -> None:
        for follower in self._work.followers.get(node, ()):
            self._release(follower)

    def _release(self, node: int) -> None:
        """Removes one dependence of a node."""
        self._waits[node] -= 1
        if node < self._n and self._root < self._n:
            self.step_reached[node] = self.now
        if not self._waits[node]:
            self._begin(node)

    def _begin(self, node: int) -> None:
        """Makes ready a node that has no dependence left."""
        if node < self._n:
            self._ready_since[node] = (self.now, self._root)
            heappush(self._ready, node)
            return
        j = node - self._n
        queue = self._queue[j]
        if queue is not None:
            if queue.jobs and queue.jobs[0] == j:
                self._serve(queue)
            return
        self.queued[j] = self.start[j] = self.flow[j] = self.now
        self.cause[j] = self._root
        if self._durations.setup_s[j]:
            self._set_timer(self._durations.setup_s[j], node)
        else:
            root = self._root
            self._job_over(j)
            self._root = root

    def _enqueue(self, j: int) -> None:
        queue = self._queue[j]
        assert queue is not None
        self.queued[j] = self.now
        queue.jobs.append(j)
        if queue.channels:
            self._serve(queue)

    def _serve(self, queue: _Queue) -> None:
        """Starts jobs in queue order: a job with unmet dependences blocks those behind it."""
        while queue.jobs and queue.channels and self._slots and not self._waits[self._n + queue.jobs[0]]:
            j = queue.jobs.popleft()
            queue.channels -= 1
            self._slots -= 1
            self.start[j] = self.now
            self.cause[j] = self._root
            if self._durations.setup_s[j]:
                self._set_timer(self._durations.setup_s[j], self._n + j)
            else:
                self._flow(j)

    def _flow(self, j: int) -> None:
        self.flow[j] = self.now
        self._bus.enter(self._direction[j], j, self._durations.flow_bytes[j], self.now)

    def _set_timer(self, duration_s: float, node: int) -> None:
        self._sequence += 1
        heappush(self._timers, (self.now + duration_s, self._sequence, node))
