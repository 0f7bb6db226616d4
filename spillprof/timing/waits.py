"""What the transfers, steps and moves of a plan wait for, whenever its transfers are issued.

Segments that share addresses never share time, so who has a place after whom stays as planned whatever is issued
earlier, and so does which write made the first copy of a buffer in DRAM.
"""

from collections import defaultdict
from dataclasses import dataclass

from spillprof.ir.plan import Move, Plan
from spillprof.ir.program import Program
from spillprof.timing.addresses import AddressMap
from spillprof.timing.builder import claims_by_step

Nodes = tuple[int, ...]
"""Step ``i`` is node ``i``, transfer ``t`` of the plan is node ``n_steps + t``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The nodes that must be over before each begins."""

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
    if not writes and not plan.streamed:  # nobody leaves anything behind
        return Waits(transfers=transfers, steps=steps, moves=dict.fromkeys(moves, ()))

    streamed = defaultdict(list)
    for operand in plan.streamed:
        streamed[operand.step].append(operand)
    sizes = [buffer.size_bytes for buffer in program.buffers]
    pending = AddressMap()  # writes that empty a range
    copied: dict[int, int] = {}  # buffer -> node that wrote it to DRAM first
    before_moves: dict[int, Nodes] = {}
    for i, claims in enumerate(claims_by_step(program, plan)):
        for t in writes.get(i, ()):
            transfer = plan.transfers[t]
            copied.setdefault(transfer.buffer, n + t)
            pending.put(plan.segments[transfer.segment].address, sizes[transfer.buffer], n + t)
        if i in moves:
            places = [(m.to_address, sizes[m.buffer]) for m in moves[i]]
            before_moves[i] = tuple(node for place in places for node in pending.claim(*place))
        for t in reads.get(i, ()):
            transfer = plan.transfers[t]
            waits = pending.claim(plan.segments[transfer.segment].address, sizes[transfer.buffer])
            if transfer.buffer in copied and not program.buffers[transfer.buffer].in_dram_at_start:
                waits.append(copied[transfer.buffer])
            transfers[t] = tuple(waits)
        more = [owner for address, size in claims for owner in pending.claim(address, size)]
        for operand in streamed.get(i, ()):
            if operand.write:
                copied.setdefault(operand.buffer, i)
            elif operand.buffer in copied and not program.buffers[operand.buffer].in_dram_at_start:
                more.append(copied[operand.buffer])
        if more:
            steps[i] += tuple(more)
    return Waits(transfers=transfers, steps=steps, moves=before_moves)
