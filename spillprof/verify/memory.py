"""Where things lie: reserved part, capacity, alignment, overlaps, scratch."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from spillprof.model.plan import Plan
from spillprof.model.program import PHASES_PER_STEP, Phase, Program
from spillprof.verify.rules import Rule, Violation

STREAM_STAGING = "stream staging"
"""Purpose of the scratch through which operands are streamed."""


class Block(NamedTuple):
    """Bytes ``[address, top)`` in use during ticks ``[start, end)``."""

    start: int
    end: int
    address: int
    top: int
    buffer: int | None  # None: scratch
    name: str


def blocks_in_use(program: Program, plan: Plan) -> list[Block]:
    """Everything that takes space, by start. A segment stays until its last write has been issued."""
    held = [segment.end for segment in plan.segments]
    for t in plan.transfers:
        if not t.kind.is_read and PHASES_PER_STEP * t.issue_step == held[t.segment] + 1:
            held[t.segment] += 1
    blocks = []
    for s, end in zip(plan.segments, held, strict=True):
        buffer = program.buffers[s.buffer]
        blocks.append(Block(s.start, end, s.address, s.address + buffer.size_bytes, s.buffer, f"'{buffer.name}'"))
    for x in plan.scratch:
        blocks.append(Block(x.start, x.end, x.address, x.address + x.size_bytes, None, x.purpose))
    return sorted(blocks, key=attrgetter("start", "address"))


def places(program: Program, plan: Plan, blocks: list[Block]) -> Iterator[Violation]:
    """Rules RESERVED, OUT_OF_RANGE and MISALIGNED."""
    reserved = program.reserved_bytes
    capacities = [c for c in (program.capacity_bytes, plan.capacity_bytes) if c is not None]
    capacity = min(capacities, default=None)  # a plan that names none must still fit the program's
    if plan.reserved_bytes != reserved:
        message = f"the plan reserves {plan.reserved_bytes} bytes, the program {reserved}"
        yield Violation(rule=Rule.RESERVED, message=message)
    slots: dict[int, tuple[int, int]] = {}
    address = 0
    for reservation in program.reservations:
        if reservation.buffer is not None:
            slots[reservation.buffer] = (address, reservation.size_bytes)
        address += reservation.size_bytes
    for block in blocks:
        broken: Rule | None = None
        if block.buffer is not None and program.buffers[block.buffer].dedicated:
            slot, size = slots.get(block.buffer, (-1, 0))
            if block.address != slot or block.top > slot + size:
                broken = Rule.RESERVED
        elif block.address < reserved or (capacity is not None and block.top > capacity):
            broken = Rule.OUT_OF_RANGE
        if broken is None and block.address % program.alignment_bytes:
            broken = Rule.MISALIGNED
        if broken is not None:
            message = f"{block.name} lies at bytes {block.address} to {block.top}"
            yield Violation(rule=broken, message=message, step=block.start // PHASES_PER_STEP, buffer=block.buffer)


def overlaps(blocks: list[Block]) -> Iterator[Violation]:
    """A sweep over time; the blocks in use, sorted by address, stay disjoint: only neighbours can clash."""
    blocks = [block for block in blocks if block.top > block.address]
    leaving = iter(sorted(blocks, key=attrgetter("end")))
    next_out = next(leaving, None)
    addresses: list[int] = []
    at_address: dict[int, Block] = {}
    for block in blocks:
        while next_out is not None and next_out.end <= block.start:
            if at_address.get(next_out.address) is next_out:
                del at_address[next_out.address]
                del addresses[bisect_left(addresses, next_out.address)]
            next_out = next(leaving, None)
        i = bisect_right(addresses, block.address)
        clash: Block | None = None
        if i and at_address[addresses[i - 1]].top > block.address:
            clash = at_address[addresses[i - 1]]
        elif i < len(addresses) and addresses[i] < block.top:
            clash = at_address[addresses[i]]
        if clash is None:
            addresses.insert(i, block.address)
            at_address[block.address] = block
        else:
            message = f"{block.name} at byte {block.address} overlaps {clash.name} at byte {clash.address}"
            step = block.start // PHASES_PER_STEP
            yield Violation(rule=Rule.OVERLAP, message=message, step=step, buffer=block.buffer)


def scratch(program: Program, plan: Plan) -> Iterator[Violation]:
    """Each workspace, and the staging of a step that streams, has a piece of scratch of its own."""
    given = defaultdict(list)
    for scratch in plan.scratch:
        given[scratch.step].append(scratch)
    streaming = {s.step for s in plan.streamed}
    for i, step in enumerate(program.steps):
        needs = [(w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces]
        if i in streaming:
            needs.append((STREAM_STAGING, step.stream_staging_bytes, Phase.READ, Phase.WRITE))
        if not needs:
            continue
        for purpose, size, first, last in sorted(needs, key=lambda need: -need[1]):
            start, end = PHASES_PER_STEP * i + first, PHASES_PER_STEP * i + last + 1
            fitting = [x for x in given[i] if x.purpose == purpose and x.size_bytes >= size]
            fitting = [x for x in fitting if x.start <= start and x.end >= end]
            if fitting:
                given[i].remove(min(fitting, key=lambda x: x.size_bytes))
            elif size:
                message = f"{purpose} of step {i} has no {size} bytes through ticks {start} to {end}"
                yield Violation(rule=Rule.SCRATCH_ABSENT, message=message, step=i)
