"""The length of a run in one pass over its steps, for machines on which an event loop has nothing to decide.

With one compute unit, and channels that neither wait for each other nor share bandwidth, whatever a step or a
transfer waits for was issued before it: writes of a step before its reads, reads no later than the step that needs
them, and what is ahead in its own queue. So where the pass comes to it, all ends that it waits for are known, and it
starts at the latest of them; nothing that is issued later can change that. Sums are formed in the order in which the
event loop forms them, so that both give the same number to the last bit.
"""

from collections.abc import Sequence
from typing import NamedTuple

from spillprof.model.plan import Move, Plan
from spillprof.model.program import Program
from spillprof.model.target import Target
from spillprof.timing.addresses import AddressMap
from spillprof.timing.builder import WEIGHT_STAGING, claims_by_step
from spillprof.timing.bus import bus_limits, fair_rates
from spillprof.timing.compute import step_times_s
from spillprof.timing.dma import Link, read_link, write_link


def is_exact(target: Target) -> bool:
    """Whether one pass is enough: one compute unit, and every transfer passes as if it were alone."""
    if target.cores > 1 or target.dma_shared_channels > 1:
        return False
    if target.dma_shared_channels:
        return True
    if target.dma_read_channels > 1 or target.dma_write_channels > 1 or target.dram_outstanding == 1:
        return False
    limits = bus_limits(target)
    return fair_rates(limits, 1, 1)[:2] == (fair_rates(limits, 1, 0)[0], fair_rates(limits, 0, 1)[1])


class _Step(NamedTuple):
    """What a step does by itself. Flows are seconds that bytes take after the set-up; None: nothing to move."""

    compute_s: float
    early_flow_s: float | None  # the part of its weights that comes before it starts
    rest_flow_s: float | None
    streams: tuple[tuple[int, bool, float | None], ...]  # buffer, whether it is written, flow
    claims: tuple[tuple[int, int], ...]  # address, bytes that it writes over


class ForwardPass:
    """One plan on one target. What does not depend on when transfers are issued is computed once."""

    def __init__(self, program: Program, plan: Plan, target: Target) -> None:
        limits = bus_limits(target)
        self._read = _Flow(read_link(target), fair_rates(limits, 1, 0)[0])
        self._write = _Flow(write_link(target), fair_rates(limits, 0, 1)[1])
        self._write_queue = 0 if target.dma_shared_channels else 1  # reads are in queue 0
        self._in_dram_at_start = [b.in_dram_at_start for b in program.buffers]
        transfers = plan.transfers
        self._is_read = [t.kind.is_read for t in transfers]
        self._order = sorted(
            range(len(transfers)), key=lambda k: (self._is_read[k], transfers[k].needed_step, transfers[k].buffer, k)
        )
        self._flow_s = [
            (self._read if r else self._write).s(t.size_bytes) for r, t in zip(self._is_read, transfers, strict=True)
        ]
        self._places = [(t.buffer, t.segment, plan.segments[t.segment].address, t.size_bytes) for t in transfers]
        self._landing: dict[int, list[int]] = {}  # reads by the step that needs them
        for k, t in enumerate(transfers):
            if self._is_read[k]:
                self._landing.setdefault(t.needed_step, []).append(k)
        moves: dict[int, list[Move]] = {}
        for m in plan.moves:
            moves.setdefault(m.step, []).append(m)
        self._moves = {  # by step: seconds that they take together, and what they write over
            i: (
                2 * sum(m.size_bytes for m in own) / target.sram_bytes_per_s,
                [(m.to_address, program.buffers[m.buffer].size_bytes) for m in own],
            )
            for i, own in moves.items()
        }
        self._steps = self._own(program, plan, target)

    def _own(self, program: Program, plan: Plan, target: Target) -> list[_Step]:
        staging_bytes = sum(r.size_bytes for r in program.reservations if r.what == WEIGHT_STAGING)
        streams: dict[int, list[tuple[int, bool, float | None]]] = {}
        for o in plan.streamed:
            flow_s = (self._write if o.write else self._read).s(o.size_bytes)
            streams.setdefault(o.step, []).append((o.buffer, o.write, flow_s))
        compute_s = step_times_s(program, target).tolist()
        claims = claims_by_step(program, plan)
        return [
            _Step(
                compute_s=compute_s[i],
                early_flow_s=self._read.s(min(step.weight_stream_bytes, staging_bytes)),
                rest_flow_s=self._read.s(step.weight_stream_bytes - staging_bytes),
                streams=tuple(streams.get(i, ())),
                claims=tuple(claims[i]),
            )
            for i, step in enumerate(program.steps)
        ]

    def makespan_s(self, issue_steps: Sequence[int]) -> float:
        """Seconds until all is over if transfers are issued at these steps, in the order of their queues."""
        reads: dict[int, list[int]] = {}
        writes: dict[int, list[int]] = {}
        for k in self._order:
            (reads if self._is_read[k] else writes).setdefault(issue_steps[k], []).append(k)
        flow_s, places, in_dram = self._flow_s, self._places, self._in_dram_at_start
        read_setup_s, write_setup_s, out = self._read.setup_s, self._write.setup_s, self._write_queue
        free_s = [0.0, 0.0]  # when the last transfer of each queue is over
        end_s = [0.0] * len(places)  # of transfers
        filled_s: dict[int, float] = {}  # by segment
        copied_s: dict[int, float] = {}  # when the first copy of a buffer is in DRAM
        pending = AddressMap()  # writes that empty a range

        def serve(queue: int, setup_s: float, flow: float | None, ready_s: float) -> float:
            if flow is None:
                return ready_s
            over_s = (ready_s if ready_s > free_s[queue] else free_s[queue]) + setup_s + flow
            free_s[queue] = over_s
            return over_s

        def after_claim(ready_s: float, address: int, size: int) -> float:
            for k in pending.claim(address, size):
                if end_s[k] > ready_s:
                    ready_s = end_s[k]
            return ready_s

        def issue_writes(i: int, now_s: float) -> None:
            for k in writes.get(i, ()):
                buffer, segment, address, size = places[k]
                end_s[k] = serve(out, write_setup_s, flow_s[k], max(now_s, filled_s.get(segment, 0.0)))
                copied_s.setdefault(buffer, end_s[k])
                pending.put(address, size, k)

        now_s = 0.0  # the end of the step before
        weights_s = serve(0, read_setup_s, self._steps[0].early_flow_s, 0.0) if self._steps else 0.0
        for i, step in enumerate(self._steps):
            if i in writes:
                issue_writes(i, now_s)
            start_s = issued_s = now_s
            if i in self._moves:
                move_s, claims = self._moves[i]
                for address, size in claims:
                    issued_s = after_claim(issued_s, address, size)
                start_s = issued_s = issued_s + move_s
            for k in reads.get(i, ()):
                buffer, segment, address, size = places[k]
                ready_s = after_claim(issued_s, address, size)
                if not in_dram[buffer] and buffer in copied_s:
                    ready_s = max(ready_s, copied_s[buffer])
                end_s[k] = filled_s[segment] = serve(0, read_setup_s, flow_s[k], ready_s)
            for k in self._landing.get(i, ()):
                start_s = max(start_s, end_s[k])
            for address, size in step.claims:
                start_s = after_claim(start_s, address, size)
            for buffer, written, _ in step.streams:
                if not written and not in_dram[buffer] and buffer in copied_s:
                    start_s = max(start_s, copied_s[buffer])
            start_s = max(start_s, weights_s)
            now_s = start_s + step.compute_s
            if step.rest_flow_s is not None:
                now_s = max(now_s, serve(0, read_setup_s, step.rest_flow_s, start_s))
            for _, written, flow in step.streams:
                if written:
                    now_s = max(now_s, serve(out, write_setup_s, flow, start_s))
                else:
                    now_s = max(now_s, serve(0, read_setup_s, flow, start_s))
            for buffer, written, _ in step.streams:
                if written:
                    copied_s.setdefault(buffer, now_s)
            if i + 1 < len(self._steps):
                weights_s = serve(0, read_setup_s, self._steps[i + 1].early_flow_s, start_s)
        issue_writes(len(self._steps), now_s)
        return max(now_s, *free_s, *end_s)


class _Flow:
    """How long bytes are on the bus in one direction, alone."""

    def __init__(self, link: Link, bytes_per_s: float) -> None:
        self._link, self._bytes_per_s = link, bytes_per_s
        self.setup_s = link.setup_s

    def s(self, nbytes: int) -> float | None:
        """Seconds after the set-up; None for no bytes, which take no channel."""
        if nbytes <= 0:
            return None
        flow_bytes = self._link.flow_bytes(nbytes)
        return flow_bytes / self._bytes_per_s if flow_bytes > 0 else 0.0
