"""Rules about addresses: reserved part, capacity, alignment, overlaps, scratch."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.plan import Plan
from spillprof.ir.program import PHASES_PER_STEP, Phase, Program
from spillprof.verify.columns import field_column
from spillprof.verify.rules import PlanRule, Violation

STREAM_STAGING = "stream staging"
"""Purpose of the scratch through which operands are streamed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """Bytes ``[address, top)`` in use during ticks ``[start, end)``, by start, then address."""

    program: Program
    plan: Plan
    start: Ints
    end: Ints
    address: Ints
    top: Ints
    buffer: Ints  # -1: scratch
    record: Ints  # index into Plan.segments, then Plan.scratch

    def name(self, k: int) -> str:
        """The buffer's name, quoted, or the purpose of the scratch."""
        if self.buffer[k] >= 0:
            return f"'{self.program.buffers[self.buffer[k]].name}'"
        return self.plan.scratch[int(self.record[k]) - len(self.plan.segments)].purpose

    def violation(self, k: int, rule: PlanRule, message: str) -> Violation:
        """A violation by block ``k``."""
        step, buffer = int(self.start[k]) // PHASES_PER_STEP, int(self.buffer[k])
        return Violation(
            rule=rule, message=f"{self.name(k)} {message}", step=step, buffer=None if buffer < 0 else buffer
        )


def blocks_in_use(program: Program, plan: Plan) -> Blocks:
    """All segments and scratch. A segment takes space until its last write has been issued."""
    held, segment = field_column(plan.segments, "end"), field_column(plan.transfers, "segment")
    leaving = PHASES_PER_STEP * field_column(plan.transfers, "issue_step") == held[segment] + 1
    leaving &= np.array([not transfer.kind.is_read for transfer in plan.transfers], dtype=bool)
    held[segment[leaving]] += 1
    buffer = np.concatenate([field_column(plan.segments, "buffer"), np.full(len(plan.scratch), -1)])
    size = field_column(program.buffers, "size_bytes")[field_column(plan.segments, "buffer")]
    start, address = (
        np.concatenate([field_column(plan.segments, field), field_column(plan.scratch, field)])
        for field in ("start", "address")
    )
    end = np.concatenate([held, field_column(plan.scratch, "end")])
    top = address + np.concatenate([size, field_column(plan.scratch, "size_bytes")])
    order = np.lexsort((address, start))
    return Blocks(
        program=program,
        plan=plan,
        start=start[order],
        end=end[order],
        address=address[order],
        top=top[order],
        buffer=buffer[order],
        record=order,
    )


def check_places(blocks: Blocks) -> Iterator[Violation]:
    """Rules RESERVED, OUT_OF_RANGE and MISALIGNED."""
    program, plan = blocks.program, blocks.plan
    reserved = program.reserved_bytes
    capacities = [c for c in (program.capacity_bytes, plan.capacity_bytes) if c is not None]
    capacity = min(capacities, default=None)  # a plan that names none must still fit the program's
    if plan.reserved_bytes != reserved:
        message = f"the plan reserves {plan.reserved_bytes} bytes, the program {reserved}"
        yield Violation(rule=PlanRule.RESERVED, message=message)
    slot, slot_end = np.full((2, len(program.buffers) + 1), -1)  # the last one is that of scratch
    address = 0
    for reservation in program.reservations:
        if reservation.buffer is not None:
            slot[reservation.buffer], slot_end[reservation.buffer] = address, address + reservation.size_bytes
        address += reservation.size_bytes
    dedicated = np.array([*(buffer.dedicated for buffer in program.buffers), False], dtype=bool)[blocks.buffer]
    misplaced = (blocks.address != slot[blocks.buffer]) | (blocks.top > slot_end[blocks.buffer])
    outside = blocks.address < reserved
    if capacity is not None:
        outside |= blocks.top > capacity
    misaligned = blocks.address % program.alignment_bytes != 0
    broken = np.where(dedicated, misplaced, outside)
    for k in np.flatnonzero(broken | misaligned).tolist():
        rule = PlanRule.MISALIGNED if not broken[k] else PlanRule.RESERVED if dedicated[k] else PlanRule.OUT_OF_RANGE
        yield blocks.violation(k, rule, f"lies at bytes {blocks.address[k]} to {blocks.top[k]}")


def check_overlaps(blocks: Blocks) -> Iterator[Violation]:
    """Rule OVERLAP. The blocks in use stay disjoint and sorted by address over time: only neighbours can clash."""
    start, end, address, top = (column.tolist() for column in (blocks.start, blocks.end, blocks.address, blocks.top))
    taking = np.flatnonzero(blocks.top > blocks.address)
    leaving = iter(taking[np.argsort(blocks.end[taking], kind="stable")].tolist())
    next_out = next(leaving, -1)
    addresses: list[int] = []
    at_address: dict[int, int] = {}
    for k in taking.tolist():
        while end[next_out] <= start[k]:  # block k has not left yet, so there is a next one
            if at_address.get(address[next_out]) == next_out:
                del at_address[address[next_out]]
                del addresses[bisect_left(addresses, address[next_out])]
            next_out = next(leaving)
        i = bisect_right(addresses, address[k])
        if i and top[at_address[addresses[i - 1]]] > address[k]:
            clash = at_address[addresses[i - 1]]
        elif i < len(addresses) and addresses[i] < top[k]:
            clash = at_address[addresses[i]]
        else:
            addresses.insert(i, address[k])
            at_address[address[k]] = k
            continue
        message = f"at byte {address[k]} overlaps {blocks.name(clash)} at byte {address[clash]}"
        yield blocks.violation(k, PlanRule.OVERLAP, message)


def check_scratch(program: Program, plan: Plan) -> Iterator[Violation]:
    """Each workspace, and the staging of a step that streams, has a piece of scratch of its own; nothing else has."""
    given = defaultdict(list)
    for scratch in plan.scratch:
        given[scratch.step].append(scratch)
    streaming = {s.step for s in plan.streamed}
    for i, step in enumerate(program.steps):
        if not step.workspaces and i not in streaming:
            continue
        needs = [(w.purpose, w.size_bytes, w.first, w.last) for w in step.workspaces]
        if i in streaming:
            needs.append((STREAM_STAGING, step.stream_staging_bytes, Phase.READ, Phase.WRITE))
        for purpose, size, first, last in sorted(needs, key=lambda need: -need[1]):
            start, end = PHASES_PER_STEP * i + first, PHASES_PER_STEP * i + last + 1
            named = [x for x in given[i] if x.purpose == purpose]
            fitting = [x for x in named if x.size_bytes >= size and x.start <= start and x.end >= end]
            if named:
                given[i].remove(min(fitting or named, key=lambda x: x.size_bytes))
            if size and not fitting:
                message = f"{purpose} of step {i} has no {size} bytes through ticks {start} to {end}"
                yield Violation(rule=PlanRule.SCRATCH_ABSENT, message=message, step=i)
    for left in given.values():
        for x in left:
            message = f"{x.purpose}, {x.size_bytes} bytes at {x.address}, is nothing that step {x.step} needs"
            yield Violation(rule=PlanRule.SCRATCH_UNKNOWN, message=message, step=x.step)
