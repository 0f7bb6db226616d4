"""From a plan to its work, for steps that run one after another."""

from spillprof.ir.plan import Move, Plan, StreamedOperand, Transfer, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, Phase, Program
from spillprof.ir.timeline import JobKind
from spillprof.timing.addresses import AddressMap
from spillprof.timing.work import Work

WEIGHT_STAGING = "weight staging"

KINDS = {  # of jobs, by the transfer that they are
    TransferKind.FETCH: JobKind.FETCH,
    TransferKind.RELOAD: JobKind.RELOAD,
    TransferKind.WRITE_BACK: JobKind.WRITE_BACK,
    TransferKind.DRAIN: JobKind.DRAIN,
}


class WorkBuilder:
    """One pass over the steps in plan order.

    Each part of a step's streamed weights (what comes early, and the rest) and each streamed operand is one job.
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
        self._claims = claims_by_step(program, plan)
        self._moves: dict[int, list[Move]] = {}
        for move in plan.moves:
            self._moves.setdefault(move.step, []).append(move)
        self._streamed: dict[int, list[StreamedOperand]] = {}
        for operand in plan.streamed:
            self._streamed.setdefault(operand.step, []).append(operand)

    def build(self) -> Work:
        """All steps, then what is issued after the last of them."""
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
        """A new job."""
        self.work.jobs.append((kind, nbytes, step, transfer))
        self.work.waits.append(0)
        return len(self.work.waits) - 1

    def follow(self, node: int, *before: int) -> None:
        """``node`` starts after the ends of those before it."""
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
            self.follow(node, *self._pending.claim(*self._place(transfer)))
            self._follow_copy(node, transfer.buffer)
            if i in self._moves:
                self.follow(node, self.move_node[i])
            self._filled[transfer.segment] = node
            self._schedule(i, 0, node)

    def _place(self, transfer: Transfer) -> tuple[int, int]:
        """Address and size of what the transfer fills or empties."""
        return self.plan.segments[transfer.segment].address, self.program.buffers[transfer.buffer].size_bytes

    def _transfer(self, t: int) -> tuple[Transfer, int]:
        transfer = self.plan.transfers[t]
        node = self.transfer_node[t] = self.job(KINDS[transfer.kind], transfer.size_bytes, transfer.needed_step, t)
        return transfer, node

    def _step(self, i: int, early: int | None) -> None:
        for t in self._landing.get(i, ()):
            self.follow(i, self.transfer_node[t])
        for address, size in self._claims[i]:
            self.follow(i, *self._pending.claim(address, size))
        if early is not None:
            self.follow(i, early)
        streams = []
        rest = self.program.steps[i].weight_stream_bytes - self._staging_bytes
        if rest > 0:
            streams.append(self.job(JobKind.WEIGHTS, rest, i))
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
        """``node`` needs the buffer in DRAM."""
        if not self.program.buffers[buffer].in_dram_at_start and buffer in self._copied:
            self.follow(node, self._copied[buffer])

    def _early_weights(self, i: int) -> int | None:
        """The part of step ``i``'s weights that comes before it starts, as much as the staging area holds."""
        nbytes = min(self.program.steps[i].weight_stream_bytes, self._staging_bytes) if i < self.n else 0
        if not nbytes:
            return None
        node = self.job(JobKind.WEIGHTS, nbytes, i)
        self._schedule(0, i, node)
        return node

    def _move(self, i: int) -> None:
        """The moves of a step happen together."""
        moves = self._moves[i]
        node = self.move_node[i] = self.job(JobKind.MOVE, sum(m.size_bytes for m in moves), i)
        for m in moves:
            self.follow(node, *self._pending.claim(m.to_address, self.program.buffers[m.buffer].size_bytes))
        self.follow(i, node)
        self._schedule(i, 0, node)

    def _schedule(self, ended: int, started: int, node: int) -> None:
        """Put it on the agenda. DMA jobs then queue for a channel; anything else waits for its turn like for a node."""
        self.work.agenda.append((ended, started, node))
        if not self.work.uses_dma(node):
            self.work.waits[node] += 1


def claims_by_step(program: Program, plan: Plan) -> list[list[tuple[int, int]]]:
    """``(address, size)`` that each step writes over by itself: its results and its scratch."""
    claims: list[list[tuple[int, int]]] = [[] for _ in program.steps]
    for segment in plan.segments:
        step, phase = divmod(segment.start, PHASES_PER_STEP)
        if phase == Phase.COMPUTE:
            claims[step].append((segment.address, program.buffers[segment.buffer].size_bytes))
    for scratch in plan.scratch:
        claims[scratch.step].append((scratch.address, scratch.size_bytes))
    return claims
