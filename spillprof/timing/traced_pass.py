"""A whole run in one pass over its steps: what the event loop writes down, where it has nothing to decide.

For machines of which ``forward_pass.is_exact`` holds: whatever a step or a transfer waits for was issued before it,
so all ends that it waits for are known when the pass comes to it, and the latest of them lets it start: its cause.

Of ends at one moment the event loop handles the last read first, then the last write, then what no channel does. A
node has the *rank* of the event that ends it, and of equal moments the higher rank came last. What is issued while a
moment is handled finds its channel free if the channel's last transfer is over by then, and owes its start to the step
that issued it. So (seconds, rank) orders all ends, and of two equal ones the issuing step's is the later. A step that
ends with a transfer ends before the channel goes on.
"""

from collections.abc import Iterable
from typing import Any

from spillprof.model.plan import Move, Plan, StreamedOperand
from spillprof.model.program import Program
from spillprof.model.target import Target
from spillprof.model.timeline import JobKind
from spillprof.timing.addresses import AddressMap
from spillprof.timing.builder import KINDS, WEIGHT_STAGING, claims_by_step
from spillprof.timing.bus import bus_limits, fair_rates
from spillprof.timing.compute import step_times_s
from spillprof.timing.dma import read_link, write_link
from spillprof.timing.record import JobRow, Record

_READ, _WRITE, _ALONE, _STARTED = 0, 1, 2, 3
"""Ranks: ends of a read, of a write, of what takes no channel; a step that starts does so after all of them."""


_NONE: tuple[list[Any], ...] = ([], [], [], [], [], [])


def traced_pass(program: Program, plan: Plan, target: Target) -> Record:
    """Play a legal plan on a machine that ``is_exact``."""
    return _Trace(program, plan, target).record()


class _Trace:
    """Nodes are numbered as in ``timing.work``: steps first, then jobs in the order in which they are issued."""

    def __init__(self, program: Program, plan: Plan, target: Target) -> None:
        n = self._n = len(program.steps)
        limits = bus_limits(target)
        self._program, self._plan = program, plan
        self._links = (read_link(target), write_link(target))
        self._rates = (fair_rates(limits, 1, 0)[0], fair_rates(limits, 0, 1)[1])
        self._sram_bytes_per_s = target.sram_bytes_per_s
        self._staging_bytes = sum(r.size_bytes for r in program.reservations if r.what == WEIGHT_STAGING)
        self._step_s: list[float] = step_times_s(program, target).tolist()
        self._channel = (0, 0 if target.dma_shared_channels else 1)
        self._last = [-1, -1]  # node that each channel served last
        self._ended: dict[int, int] = {}  # node -> the step that ended with it
        self._over = [0.0] * n  # when each node is over, and the rank of that
        self._rank = [-1] * n
        self._flows: dict[tuple[int, int], float] = {}  # bytes on the bus by direction and size
        self._start = [0.0] * n
        self._reached, self._cause, self._end_cause = [0.0] * n, [-1] * n, list(range(n))
        self._rows: list[tuple[JobRow, float, float, float, float, int]] = []  # job, then the columns of the record
        self._pending = AddressMap()  # nodes that empty a range
        self._copied: dict[int, int] = {}  # buffer -> node that wrote it to DRAM first
        self._filled: dict[int, int] = {}  # segment -> node that fills it
        self._node_of = [-1] * len(plan.transfers)

    def record(self) -> Record:
        n = self._n
        self._play()
        jobs, flow_bytes, queued, start, flow, cause = map(list, zip(*self._rows, strict=True)) if self._rows else _NONE
        return Record(
            step_s=self._step_s,
            step_start_s=self._start,
            step_end_s=self._over[:n],
            step_reached_s=self._reached,
            step_core=[0] * n,
            step_cause=self._cause,
            step_end_cause=self._end_cause,
            jobs=jobs,
            flow_bytes=flow_bytes,
            queued_s=queued,
            start_s=start,
            flow_s=flow,
            end_s=self._over[n:],
            cause=cause,
            makespan_s=max(self._over, default=0.0),
        )

    def _play(self) -> None:
        plan, steps, staging_bytes = self._plan, self._program.steps, self._staging_bytes
        writes: dict[int, list[int]] = {}
        reads: dict[int, list[int]] = {}
        landing: dict[int, list[int]] = {}
        for t, transfer in enumerate(plan.transfers):
            if transfer.kind.is_read:
                reads.setdefault(transfer.issue_step, []).append(t)
                landing.setdefault(transfer.needed_step, []).append(t)
            else:
                writes.setdefault(transfer.issue_step, []).append(t)
        moves: dict[int, list[Move]] = {}
        for move in plan.moves:
            moves.setdefault(move.step, []).append(move)
        streamed: dict[int, list[StreamedOperand]] = {}
        for operand in plan.streamed:
            streamed.setdefault(operand.step, []).append(operand)
        claims = claims_by_step(self._program, plan)
        over, rank, pending, node_of = self._over, self._rank, self._pending, self._node_of

        before = (0.0, -1, -1)  # the end of the step before: seconds, rank, node
        weights = self._early_weights(0, before) if steps else -1
        for i, step in enumerate(steps):
            for t in writes.get(i, ()):
                self._write(t, before)
            moved = self._move(i, moves[i], before) if i in moves else -1
            for t in reads.get(i, ()):
                self._read(t, before, moved)
            waits = [node_of[t] for t in landing.get(i, ())]
            for address, size in claims[i]:
                waits += pending.claim(address, size)
            if weights >= 0:
                waits.append(weights)
            if moved >= 0:
                waits.append(moved)
            own = streamed.get(i, ())
            for operand in own:
                if not operand.write:
                    self._wait_for_copy(waits, operand.buffer)
                else:
                    self._copied.setdefault(operand.buffer, i)
            start_s, _, cause = self._latest(before, waits) if waits else before
            self._start[i], self._reached[i], self._cause[i] = start_s, before[0], cause
            started = (start_s, _STARTED, i)
            last = (start_s + self._step_s[i], _ALONE, i)
            streams = []
            if step.weight_stream_bytes > staging_bytes:
                rest = step.weight_stream_bytes - staging_bytes
                streams.append(self._transfer(_READ, JobKind.WEIGHTS, rest, i, -1, started, ()))
            for operand in own:
                if operand.size_bytes > 0:
                    side, kind = (_WRITE, JobKind.STREAM_OUT) if operand.write else (_READ, JobKind.STREAM_IN)
                    streams.append(self._transfer(side, kind, operand.size_bytes, i, -1, started, ()))
            for node in streams:
                last = max(last, (over[node], rank[node], node), key=lambda end: end[:2])
            over[i], rank[i], self._end_cause[i] = last
            self._ended[last[2]] = i
            weights = self._early_weights(i + 1, started) if i + 1 < self._n else -1
            before = (last[0], last[1], i)
        for t in writes.get(self._n, ()):
            self._write(t, before)

    def _latest(self, issued: tuple[float, int, int], waits: Iterable[int]) -> tuple[float, int, int]:
        """The last of these ends: of what issues a node, and of what it waits for."""
        last_s, last_rank, last = issued
        over, rank = self._over, self._rank
        for node in waits:
            over_s = over[node]
            if over_s > last_s or (over_s == last_s and rank[node] > last_rank):
                last_s, last_rank, last = over_s, rank[node], node
        return last_s, last_rank, last

    # --- jobs

    def _write(self, t: int, issued: tuple[float, int, int]) -> None:
        transfer = self._plan.transfers[t]
        waits = (self._filled[transfer.segment],) if transfer.segment in self._filled else ()
        size, address = transfer.size_bytes, self._plan.segments[transfer.segment].address
        node = self._transfer(_WRITE, KINDS[transfer.kind], size, transfer.needed_step, t, issued, waits)
        self._copied.setdefault(transfer.buffer, node)
        self._pending.put(address, size, node)

    def _read(self, t: int, issued: tuple[float, int, int], moved: int) -> None:
        transfer = self._plan.transfers[t]
        size = transfer.size_bytes
        waits = self._pending.claim(self._plan.segments[transfer.segment].address, size)
        self._wait_for_copy(waits, transfer.buffer)
        if moved >= 0:
            waits.append(moved)
        self._filled[transfer.segment] = self._transfer(
            _READ, KINDS[transfer.kind], size, transfer.needed_step, t, issued, waits
        )

    def _wait_for_copy(self, waits: list[int], buffer: int) -> None:
        if buffer in self._copied and not self._program.buffers[buffer].in_dram_at_start:
            waits.append(self._copied[buffer])

    def _early_weights(self, i: int, issued: tuple[float, int, int]) -> int:
        """The part of step ``i``'s weights that comes before it starts; -1 if there is none."""
        nbytes = min(self._program.steps[i].weight_stream_bytes, self._staging_bytes)
        return self._transfer(_READ, JobKind.WEIGHTS, nbytes, i, -1, issued, ()) if nbytes else -1

    def _move(self, i: int, moves: list[Move], issued: tuple[float, int, int]) -> int:
        """The moves of a step happen together."""
        waits: list[int] = []
        for m in moves:
            waits += self._pending.claim(m.to_address, self._program.buffers[m.buffer].size_bytes)
        nbytes = sum(m.size_bytes for m in moves)
        start_s, rank, cause = self._latest(issued, waits)
        duration_s = 2 * nbytes / self._sram_bytes_per_s
        self._rows.append(((JobKind.MOVE, nbytes, i, -1), 0.0, start_s, start_s, start_s, cause))
        self._over.append(start_s + duration_s)
        self._rank.append(_ALONE if duration_s else rank)
        return len(self._over) - 1

    def _transfer(
        self, side: int, kind: JobKind, nbytes: int, step: int, t: int, issued: tuple[float, int, int],
        waits: Iterable[int],
    ) -> int:  # fmt: skip
        """A job in the queue of its channel, as a node. One of no bytes takes no channel, and no time."""
        start_s, rank, cause = self._latest(issued, waits) if waits else issued
        flow_bytes, flow_s, end_s = 0.0, start_s, start_s
        node = len(self._over)
        if nbytes > 0:
            channel, link = self._channel[side], self._links[side]
            ahead = self._last[channel]
            if ahead >= 0:
                over_s = self._over[ahead]
                if over_s > start_s or (over_s == start_s and self._rank[ahead] > rank):
                    start_s, cause = over_s, self._ended.get(ahead, ahead)
            self._last[channel] = node
            found = self._flows.get((side, nbytes))
            if found is None:
                found = self._flows[side, nbytes] = link.flow_bytes(nbytes)
            flow_bytes = found
            flow_s = start_s + link.setup_s
            end_s = flow_s + (flow_bytes / self._rates[side] if flow_bytes > 0 else 0.0)
            rank = side
        if t >= 0:
            self._node_of[t] = node
        queued_s = issued[0] if nbytes > 0 else start_s
        self._rows.append(((kind, nbytes, step, t), flow_bytes, queued_s, start_s, flow_s, cause))
        self._over.append(end_s)
        self._rank.append(rank)
        return node
