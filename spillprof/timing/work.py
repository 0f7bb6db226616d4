"""The dependence graph of a plan: steps, DMA jobs and compaction moves, and what each of them waits for.

Step ``i`` is node ``i``, job ``j`` is node ``n_steps + j``. Jobs are DMA transfers, the moves of a step, and joints
(barriers of several nodes). The graph has no times; ``event_loop`` simulates it.

Two kinds of waiting:
  - a node starts when all nodes that it follows have ended (``waits``, ``followers``);
  - the *agenda* is issued in its order: the write transfers of step ``i``, its moves, its read transfers, and the part
    of the next step's weights that the staging area holds. An entry says how many of the steps from the front must
    have ended, but for as many as there are further cores, and how many must have started. A channel serves what was
    issued in that order.

The streams of a step are issued when it starts, and follow nothing else. With several cores, such a step
starts after all steps before it have started, and the agenda goes on after it has.

No deadlock. Number what is on the agenda and the steps in plan order. Everything follows nodes of smaller numbers
only. Take the first one that is not over; all before it are.
  - A job was issued, since all steps before it have ended. Of what is ahead of it in its queue, entries of the agenda
    have smaller numbers and are over, and streams wait for a channel alone. So it gets a channel.
  - A step that runs has its streams in a queue behind entries with smaller numbers alone: they get a channel.
  - A step that does not run waits for a unit at most. A step that streams cannot be ahead of it; others end by
    themselves. So a unit becomes free.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from spillprof.ir.plan import Move, Plan, StreamedOperand, Transfer, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, Phase, Program
from spillprof.ir.timeline import JobKind
from spillprof.timing.addresses import AddressMap

WEIGHT_STAGING = "weight staging"

JOB_KINDS = {  # of jobs, by the transfer that they are
    TransferKind.FETCH: JobKind.FETCH,
    TransferKind.RELOAD: JobKind.RELOAD,
    TransferKind.WRITE_BACK: JobKind.WRITE_BACK,
    TransferKind.DRAIN: JobKind.DRAIN,
}

Nodes = tuple[int, ...]
"""Step ``i`` is node ``i``, transfer ``t`` of the plan is node ``n_steps + t``."""


@dataclass(slots=True, kw_only=True)
class Work:
    """The nodes of a plan and their dependences. Filled by ``WorkBuilder``, then read only."""

    n_steps: int
    cores: int
    jobs: list[tuple[JobKind, int, int, int]] = field(default_factory=list)  # kind, bytes, step, transfer or -1
    waits: list[int] = field(default_factory=list)  # by node: how many nodes it follows, + 1 if it waits for its turn
    followers: dict[int, list[int]] = field(default_factory=dict)  # node -> nodes that follow its end
    agenda: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # steps that have ended, started; node to issue, or -1
    in_turn: list[int] = field(default_factory=list)  # steps that start after all before them have started
    streams: dict[int, list[int]] = field(default_factory=dict)  # step -> jobs issued when it starts

    def uses_dma(self, node: int) -> bool:
        """Whether the node takes a DMA channel. A transfer of no bytes does not."""
        if node < self.n_steps:
            return False
        kind, nbytes, _, _ = self.jobs[node - self.n_steps]
        return kind not in (JobKind.MOVE, JobKind.JOINT) and nbytes > 0


class WorkBuilder:
    """Builds the work of a plan in one pass over its steps, in plan order.

    Each part of a step's streamed weights (the early part, and the rest) and each streamed operand is one job.
    """

    def __init__(self, program: Program, plan: Plan, cores: int) -> None:
        self.program, self.plan = program, plan
        n = self.n = len(program.steps)
        self.work = Work(n_steps=n, cores=cores, waits=[0] * n)
        self.transfer_node = [0] * len(plan.transfers)
        self.move_node: dict[int, int] = {}  # by step
        self._copied: dict[int, int] = {}  # buffer -> node that wrote it to DRAM first
        self._filled: dict[int, int] = {}  # segment -> job that fills it
        self._pending = AddressMap()  # write jobs that empty a range
        self._staging_bytes = sum(r.size_bytes for r in program.reservations if r.what == WEIGHT_STAGING)
        self._writes: dict[int, list[int]] = {}  # transfers by issue step
        self._reads: dict[int, list[int]] = {}
        self._landing: dict[int, list[int]] = {}  # reads by the step that needs them
        for t, transfer in enumerate(plan.transfers):
            if transfer.kind.is_read:
                self._reads.setdefault(transfer.issue_step, []).append(t)
                self._landing.setdefault(transfer.needed_step, []).append(t)
            else:
                self._writes.setdefault(transfer.issue_step, []).append(t)
        self._claims = overwritten_by_step(program, plan)
        self._moves: dict[int, list[Move]] = {}
        for move in plan.moves:
            self._moves.setdefault(move.step, []).append(move)
        self._streamed: dict[int, list[StreamedOperand]] = {}
        for operand in plan.streamed:
            self._streamed.setdefault(operand.step, []).append(operand)

    def build(self) -> Work:
        """The work: all steps, then the transfers issued after the last of them."""
        early = self._early_weights(0)
        for i in range(self.n):
            self._issue_writes(i)
            if i in self._moves:
                self._move(i)
            self._issue_reads(i)
            self._step(i, early)
            early = self._early_weights(i + 1) if i + 1 < self.n else None
        self._issue_writes(self.n)
        return self.work

    # --- nodes

    def job(self, kind: JobKind, nbytes: int, step: int, transfer: int = -1) -> int:
        """The node of a new job."""
        self.work.jobs.append((kind, nbytes, step, transfer))
        self.work.waits.append(0)
        return len(self.work.waits) - 1

    def follow(self, node: int, *before: int) -> None:
        """Makes ``node`` start after the ends of ``before``."""
        for other in before:
            self.work.followers.setdefault(other, []).append(node)
        self.work.waits[node] += len(before)

    # --- one step

    def _issue_writes(self, i: int) -> None:
        for t in self._writes.get(i, ()):
            transfer, node = self._transfer(t)
            if transfer.segment in self._filled:
                self.follow(node, self._filled[transfer.segment])
            self._copied.setdefault(transfer.buffer, node)
            self._pending.put(*self._place(transfer), node)
            self._schedule(i, 0, node)

    def _issue_reads(self, i: int) -> None:
        for t in self._reads.get(i, ()):
            transfer, node = self._transfer(t)
            self.follow(node, *self._pending.pop(*self._place(transfer)))
            self._follow_copy(node, transfer.buffer)
            if i in self._moves:
                self.follow(node, self.move_node[i])
            self._filled[transfer.segment] = node
            self._schedule(i, 0, node)

    def _place(self, transfer: Transfer) -> tuple[int, int]:
        """Address and size of the space that the transfer fills or empties."""
        return self.plan.segments[transfer.segment].address, self.program.buffers[transfer.buffer].size_bytes

    def _transfer(self, t: int) -> tuple[Transfer, int]:
        transfer = self.plan.transfers[t]
        node = self.transfer_node[t] = self.job(JOB_KINDS[transfer.kind], transfer.size_bytes, transfer.needed_step, t)
        return transfer, node

    def _step(self, i: int, early: int | None) -> None:
        for t in self._landing.get(i, ()):
            self.follow(i, self.transfer_node[t])
        for address, size in self._claims[i]:
            self.follow(i, *self._pending.pop(address, size))
        if early is not None:
            self.follow(i, early)
        streams = []
        rest = self.program.steps[i].weight_stream_bytes - self._staging_bytes
        if rest > 0:
            streams.append(self.job(JobKind.WEIGHTS, rest, i))
        again = self.program.steps[i].weight_repeat_bytes
        if again > 0:
            streams.append(self.job(JobKind.WEIGHTS, again, i))
        for operand in self._streamed.get(i, ()):
            if operand.write:
                self._copied.setdefault(operand.buffer, i)
            else:
                self._follow_copy(i, operand.buffer)
            kind = JobKind.STREAM_OUT if operand.write else JobKind.STREAM_IN
            if operand.size_bytes > 0:
                streams.append(self.job(kind, operand.size_bytes, i))
        if streams:
            self.work.streams[i] = streams
        if self.work.cores == 1:
            self._schedule(i, 0, i)
        elif streams:
            self.work.in_turn.append(i)
            self.work.waits[i] += 1
            self.work.agenda.append((0, i + 1, -1))

    def _follow_copy(self, node: int, buffer: int) -> None:
        """Makes ``node`` follow the first write of the buffer to DRAM."""
        if not self.program.buffers[buffer].in_dram_at_start and buffer in self._copied:
            self.follow(node, self._copied[buffer])

    def _early_weights(self, i: int) -> int | None:
        """The job of the weights that load before step ``i`` starts, up to the staging area's size; None if 0 bytes."""
        nbytes = min(self.program.steps[i].weight_stream_bytes, self._staging_bytes) if i < self.n else 0
        if not nbytes:
            return None
        node = self.job(JobKind.WEIGHTS, nbytes, i)
        self._schedule(0, i, node)
        return node

    def _move(self, i: int) -> None:
        """Adds the moves of a step, which are one job."""
        moves = self._moves[i]
        node = self.move_node[i] = self.job(JobKind.MOVE, sum(m.size_bytes for m in moves), i)
        for m in moves:
            self.follow(node, *self._pending.pop(m.to_address, self.program.buffers[m.buffer].size_bytes))
        self.follow(i, node)
        self._schedule(i, 0, node)

    def _schedule(self, ended: int, started: int, node: int) -> None:
        """Puts a node on the agenda. DMA jobs then queue for a channel; other nodes depend on their turn."""
        self.work.agenda.append((ended, started, node))
        if not self.work.uses_dma(node):
            self.work.waits[node] += 1


def overwritten_by_step(program: Program, plan: Plan) -> list[list[tuple[int, int]]]:
    """``(address, size)`` of the ranges that each step overwrites: its results and its scratch."""
    claims: list[list[tuple[int, int]]] = [[] for _ in program.steps]
    for segment in plan.segments:
        step, phase = divmod(segment.start, PHASES_PER_STEP)
        if phase == Phase.COMPUTE:
            claims[step].append((segment.address, program.buffers[segment.buffer].size_bytes))
    for scratch in plan.scratch:
        claims[scratch.step].append((scratch.address, scratch.size_bytes))
    return claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The nodes that must end before each node starts, independent of issue times.

    Segments that share addresses never overlap in time, so the order of owners stays as planned whatever is issued
    earlier, and so does the first write of a buffer to DRAM.
    """

    transfers: list[Nodes]  # a read: writes that empty its space, what copied its buffer; a write: what filled it
    steps: list[Nodes]  # reads that land, writes that empty what the step fills, copies of what it streams in
    moves: dict[int, Nodes]  # by step: writes that empty the places that its moves go to


def waits_of(program: Program, plan: Plan) -> Waits:
    """The waits of a legal plan."""
    n = len(program.steps)
    transfers: list[Nodes] = [()] * len(plan.transfers)
    steps: list[Nodes] = [()] * n
    filled: dict[int, int] = {}  # segment -> the read that fills it
    landing: defaultdict[int, list[int]] = defaultdict(list)  # nodes by the step that needs them
    reads: defaultdict[int, list[int]] = defaultdict(list)  # by issue step
    writes: defaultdict[int, list[int]] = defaultdict(list)
    for t, transfer in enumerate(plan.transfers):
        if transfer.kind.is_read:
            reads[transfer.issue_step].append(t)
            landing[transfer.needed_step].append(n + t)
            filled[transfer.segment] = n + t
        else:
            writes[transfer.issue_step].append(t)
            if transfer.segment in filled:
                transfers[t] = (filled[transfer.segment],)
    for i, nodes in landing.items():
        steps[i] = tuple(nodes)
    moves: defaultdict[int, list[Move]] = defaultdict(list)
    for move in plan.moves:
        moves[move.step].append(move)
    if not writes and not plan.streamed:  # no range has anything to wait for
        return Waits(transfers=transfers, steps=steps, moves=dict.fromkeys(moves, ()))

    streamed = defaultdict(list)
    for operand in plan.streamed:
        streamed[operand.step].append(operand)
    sizes = [buffer.size_bytes for buffer in program.buffers]
    pending = AddressMap()  # writes that empty a range
    copied: dict[int, int] = {}  # buffer -> node that wrote it to DRAM first
    before_moves: dict[int, Nodes] = {}
    for i, claims in enumerate(overwritten_by_step(program, plan)):
        for t in writes.get(i, ()):
            transfer = plan.transfers[t]
            copied.setdefault(transfer.buffer, n + t)
            pending.put(plan.segments[transfer.segment].address, sizes[transfer.buffer], n + t)
        if i in moves:
            places = [(m.to_address, sizes[m.buffer]) for m in moves[i]]
            before_moves[i] = tuple(node for place in places for node in pending.pop(*place))
        for t in reads.get(i, ()):
            transfer = plan.transfers[t]
            waits = pending.pop(plan.segments[transfer.segment].address, sizes[transfer.buffer])
            if transfer.buffer in copied and not program.buffers[transfer.buffer].in_dram_at_start:
                waits.append(copied[transfer.buffer])
            transfers[t] = tuple(waits)
        more = [owner for address, size in claims for owner in pending.pop(address, size)]
        for operand in streamed.get(i, ()):
            if operand.write:
                copied.setdefault(operand.buffer, i)
            elif operand.buffer in copied and not program.buffers[operand.buffer].in_dram_at_start:
                more.append(copied[operand.buffer])
        if more:
            steps[i] += tuple(more)
    return Waits(transfers=transfers, steps=steps, moves=before_moves)
