"""The reference: a forward pass, exact for one compute unit and one channel a direction that share nothing.

When step ``i`` is about to start (step ``i - 1`` has ended), its write transfers are issued, then compaction moves
run, then its read transfers are issued. When it starts, these are issued: the rest of its own streamed weights,
its streamed operands, and up to one staging area of the weights of step ``i + 1``.

A channel serves its queue in issue order; the head of a queue starts as soon as it may:
  - a read, when the writes that empty its destination are complete, and the write that made its DRAM copy;
  - a write, when its source is on-chip (the read that filled it has landed).
Step ``i`` starts when all of these are over: step ``i - 1``; the reads that it needs; writes that empty the space
of its results and scratch; the write of each operand that it streams in; its moves; its first weights.

One forward pass in issue order is exact, without an event queue. Everything that a transfer or a step waits for
was issued before it: writes of a step before its reads, reads no later than the step that needs them, and the
earlier entries of its own queue. So when the pass comes to an item, the times that it waits for are known, and its
start is their maximum; nothing issued later can change it, because queues are never reordered. For the same
reason there is no deadlock: the waits form a graph without cycles, with edges to earlier items only.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from spillprof.ir.plan import Move, Plan, StreamedOperand
from spillprof.ir.program import PHASES_PER_STEP, Phase, Program
from spillprof.ir.target import Target
from spillprof.timing.compute import step_times_s
from spillprof.timing.dma import Link, read_link, write_link

WEIGHT_STAGING = "weight staging"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePassRun:
    """Start and end of each step and transfer, and what each step waited for."""

    step_start_s: list[float]
    step_end_s: list[float]
    transfer_start_s: list[float]
    transfer_end_s: list[float]
    stall_s: list[float]
    stall_transfer: list[int]
    makespan_s: float


def forward_pass(program: Program, plan: Plan, target: Target) -> OnePassRun:
    """Play a legal plan."""
    run = _Run(program, plan, target)
    run.play(step_times_s(program, target).tolist())
    return OnePassRun(
        step_start_s=run.step_start,
        step_end_s=run.step_end,
        transfer_start_s=run.transfer_start,
        transfer_end_s=run.transfer_end,
        stall_s=run.stall,
        stall_transfer=run.stall_transfer,
        makespan_s=max(run.now, run.reads.free_s, run.writes.free_s),
    )


class _Channel:
    """A DMA channel: serves one transfer after another."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.free_s = 0.0

    def serve(self, nbytes: int, ready_s: float) -> tuple[float, float]:
        """``(start, end)`` of a transfer that may start at ``ready_s``. No bytes: no transfer, nothing to wait for."""
        if nbytes <= 0:
            return ready_s, ready_s
        start_s = max(ready_s, self.free_s)
        self.free_s = start_s + self._link.alone_s(nbytes)
        return start_s, self.free_s


class _Run:
    """One pass over the steps. ``now`` is the end of the step before the one at hand."""

    def __init__(self, program: Program, plan: Plan, target: Target) -> None:
        self._program, self._plan = program, plan
        self._sram_bytes_per_s = target.sram_bytes_per_s
        self._staging_bytes = sum(r.size_bytes for r in program.reservations if r.what == WEIGHT_STAGING)
        self.reads, self.writes = _Channel(read_link(target)), _Channel(write_link(target))
        self._pending = PendingWrites()
        self._copied: dict[int, tuple[float, int]] = {}  # buffer -> when its first write to DRAM ends, transfer
        self._filled: dict[int, float] = {}  # segment -> when its read lands
        n = len(program.steps)
        self._issued: list[list[int]] = [[] for _ in range(n + 1)]  # transfers by issue step
        self._landing: list[list[int]] = [[] for _ in range(n + 1)]  # reads by the step that needs them
        for t, transfer in enumerate(plan.transfers):
            self._issued[transfer.issue_step].append(t)
            if transfer.kind.is_read:
                self._landing[transfer.needed_step].append(t)
        self._claims = _claims(program, plan)
        self._moves: list[list[Move]] = [[] for _ in range(n)]
        for move in plan.moves:
            self._moves[move.step].append(move)
        self._streamed: list[list[StreamedOperand]] = [[] for _ in range(n)]
        for operand in plan.streamed:
            self._streamed[operand.step].append(operand)
        self.now = 0.0
        self.step_start, self.step_end = [0.0] * n, [0.0] * n
        self.stall, self.stall_transfer = [0.0] * n, [-1] * n
        self.transfer_start, self.transfer_end = [0.0] * len(plan.transfers), [0.0] * len(plan.transfers)

    def play(self, compute_s: list[float]) -> None:
        """All steps, then what is issued after the last of them."""
        weights_s = self._fetch_weights(0, 0.0)
        for i, own_s in enumerate(compute_s):
            self._issue_writes(i)
            start_s = self._start(i, weights_s)
            rest_s = self._stream(i, start_s)
            weights_s = self._fetch_weights(i + 1, start_s)
            self.step_start[i] = start_s
            self.step_end[i] = self.now = max(start_s + own_s, rest_s)
            for operand in self._streamed[i]:
                if operand.write:
                    self._copied.setdefault(operand.buffer, (self.now, -1))
        self._issue_writes(len(compute_s))

    def _start(self, i: int, weights_s: float) -> float:
        """When step ``i`` starts. Runs its moves, issues its reads, records its stall."""
        waits: list[tuple[float, int]] = []
        moved_s = self.now
        if self._moves[i]:
            buffers = self._program.buffers
            waits += [self._pending.claim(m.to_address, buffers[m.buffer].size_bytes) for m in self._moves[i]]
            moved_s = max(self.now, *(end_s for end_s, _ in waits))
            moved_s += 2 * sum(m.size_bytes for m in self._moves[i]) / self._sram_bytes_per_s
        self._issue_reads(i, moved_s)
        waits += [(self.transfer_end[t], t) for t in self._landing[i]]
        waits += [self._pending.claim(address, size) for address, size in self._claims[i]]
        waits += [self._copy(s.buffer) for s in self._streamed[i] if not s.write]
        last_s, last = self.now, -1
        for end_s, transfer in waits:
            if end_s > last_s:
                last_s, last = end_s, transfer
        start_s = max(last_s, moved_s, weights_s)
        self.stall[i] = start_s - self.now
        self.stall_transfer[i] = last if weights_s <= last_s else -1
        return start_s

    def _issue_writes(self, i: int) -> None:
        for t in self._issued[i]:
            transfer = self._plan.transfers[t]
            if not transfer.kind.is_read:
                ready_s = max(self.now, self._filled.get(transfer.segment, 0.0))
                self.transfer_start[t], end_s = self.writes.serve(transfer.size_bytes, ready_s)
                self.transfer_end[t] = end_s
                self._copied.setdefault(transfer.buffer, (end_s, t))
                self._pending.add(self._plan.segments[transfer.segment].address, transfer.size_bytes, end_s, t)

    def _issue_reads(self, i: int, issued_s: float) -> None:
        for t in self._issued[i]:
            transfer = self._plan.transfers[t]
            if transfer.kind.is_read:
                address = self._plan.segments[transfer.segment].address
                free_s, _ = self._pending.claim(address, transfer.size_bytes)
                copied_s, _ = self._copy(transfer.buffer)
                self.transfer_start[t], end_s = self.reads.serve(transfer.size_bytes, max(issued_s, free_s, copied_s))
                self.transfer_end[t] = end_s
                self._filled[transfer.segment] = end_s

    def _copy(self, buffer: int) -> tuple[float, int]:
        """When DRAM holds the buffer, and the write that brought it there."""
        if self._program.buffers[buffer].in_dram_at_start:
            return 0.0, -1
        return self._copied.get(buffer, (0.0, -1))

    def _fetch_weights(self, i: int, issued_s: float) -> float:
        """Issue the first part of step ``i``'s weights, as much as the staging area holds; when it lands."""
        weights = self._program.steps[i].weight_stream_bytes if i < len(self._program.steps) else 0
        return self.reads.serve(min(weights, self._staging_bytes), issued_s)[1]

    def _stream(self, i: int, start_s: float) -> float:
        """Issue the rest of step ``i``'s weights and its streamed operands at its start; when all has passed."""
        rest = self._program.steps[i].weight_stream_bytes - self._staging_bytes
        end_s = self.reads.serve(rest, start_s)[1]
        for operand in self._streamed[i]:
            channel = self.writes if operand.write else self.reads
            end_s = max(end_s, channel.serve(operand.size_bytes, start_s)[1])
        return end_s


def _claims(program: Program, plan: Plan) -> list[list[tuple[int, int]]]:
    """``(address, size)`` that each step writes over by itself: its results and its scratch."""
    claims: list[list[tuple[int, int]]] = [[] for _ in program.steps]
    for segment in plan.segments:
        step, phase = divmod(segment.start, PHASES_PER_STEP)
        if phase == Phase.COMPUTE:
            claims[step].append((segment.address, program.buffers[segment.buffer].size_bytes))
    for scratch in plan.scratch:
        claims[scratch.step].append((scratch.address, scratch.size_bytes))
    return claims


class PendingWrites:
    """A piecewise map from address to the write that empties it: disjoint pieces, sorted by address.

    Writes end in the order in which they are added (one channel), so a later one simply covers earlier ones.
    Claiming a range removes its pieces: whoever claims it starts after they are gone, and so does all that comes
    after. Each call adds at most two pieces, so n calls look at O(n) pieces in all; finding them is a bisection.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: dict[int, tuple[int, float, int]] = {}  # start -> end, seconds, transfer

    def add(self, address: int, size: int, end_s: float, transfer: int) -> None:
        """The range is busy until ``end_s``, when write ``transfer`` completes."""
        self.claim(address, size)
        if size:
            self._insert(address, address + size, end_s, transfer)

    def claim(self, address: int, size: int) -> tuple[float, int]:
        """``(end_s, transfer)`` of the last write that the range waits for; ``(0.0, -1)`` if none. It is free then."""
        if not self._starts or not size:
            return 0.0, -1
        top = address + size
        first = bisect_right(self._starts, address) - 1
        if first < 0 or self._pieces[self._starts[first]][0] <= address:
            first += 1
        last = bisect_left(self._starts, top)
        latest_s, latest = 0.0, -1
        outside: list[tuple[int, int, float, int]] = []
        for start in self._starts[first:last]:
            end, end_s, transfer = self._pieces.pop(start)
            if end_s > latest_s:
                latest_s, latest = end_s, transfer
            if start < address:
                outside.append((start, address, end_s, transfer))
            if end > top:
                outside.append((top, end, end_s, transfer))
        del self._starts[first:last]
        for piece in outside:
            self._insert(*piece)
        return latest_s, latest

    def _insert(self, start: int, end: int, end_s: float, transfer: int) -> None:
        self._starts.insert(bisect_left(self._starts, start), start)
        self._pieces[start] = (end, end_s, transfer)
