"""Rules about modes: what a plan says that its tiles need and move is counted anew from the loop nest.

Nothing of the planners is used. Few tiles are walked one by one, many are counted operand by operand.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

from spillprof.ir.loop_nest import Tiling
from spillprof.ir.modes import OperandTraffic, StepMode, StepNest
from spillprof.ir.plan import Plan
from spillprof.ir.program import BufferKind, Program
from spillprof.verify.nest import NestCount, recount_nest, tiling_faults
from spillprof.verify.nest_passes import recount_by_passes
from spillprof.verify.rules import PlanRule, Terms, Violation

_WALKED = 256  # tiles


def check_modes(program: Program, plan: Plan, terms: Terms) -> Iterator[Violation]:
    """Each mode is one of its step, and states what its loop nest needs and moves. ``program``: with no modes yet."""
    seen: set[int] = set()
    for mode in plan.modes:
        problem = "has two modes" if mode.step in seen else _problem(program, mode, terms)
        seen.add(mode.step)
        if problem:
            message = f"the tiles of step {mode.step} ({program.steps[mode.step].name}): {problem}"
            yield Violation(rule=PlanRule.BAD_MODE, message=message, step=mode.step)


def _problem(program: Program, mode: StepMode, terms: Terms) -> str:
    """What is wrong with a mode; empty if nothing."""
    step = program.steps[mode.step]
    if (step.streamed_reads or step.streamed_writes) and step.mode != mode:
        return "the program streams operands of it already"
    own = nest_of(program, mode)
    if own is None:
        return "its loops are not known, so it cannot run in tiles"
    faults = tiling_faults(own.nest, mode.tiling)
    if faults:
        return faults[0]
    operands = (*step.reads, *step.writes)
    buffers = [each.buffer for each in mode.traffic]
    known = {operands[place] for place in own.places if place is not None}
    if len(set(buffers)) != len(buffers) or not known.issuperset(buffers):
        return "it streams what is no operand of its loops, or one twice"
    for b in buffers:
        buffer = program.buffers[b]
        if buffer.dedicated or (terms.inputs_resident and buffer.kind is BufferKind.INPUT):
            return f"'{buffer.name}' stays on-chip, and cannot pass in tiles"
    if mode.tiling.held != _held(own, operands, buffers):
        return "it holds other operands than those that do not pass in tiles"
    counted = counted_mode(program, mode)
    for what, stated, found in (
        ("footprint_bytes", mode.footprint_bytes, counted.footprint_bytes),
        ("tiles", mode.tiles, counted.tiles),
        ("weight_repeat_bytes", mode.weight_repeat_bytes, counted.weight_repeat_bytes),
    ):
        if stated != found:
            return f"{what} is {stated}, its loops make it {found}"
    for one, other in zip(mode.traffic, counted.traffic, strict=True):
        if (one.read_bytes, one.written_bytes) != (other.read_bytes, other.written_bytes):
            return (
                f"'{program.buffers[one.buffer].name}' is said to be read with {one.read_bytes} bytes and written with "
                f"{one.written_bytes}; its loops read {other.read_bytes} and write {other.written_bytes}"
            )
        if (one.passes, one.transfers) != (other.passes, other.transfers):
            name = program.buffers[one.buffer].name
            return f"'{name}' passes {other.passes} times in {other.transfers} tiles"
    return ""


def nest_of(program: Program, mode: StepMode) -> StepNest | None:
    """The nest that a mode tiles; None if the step has none."""
    nest = program.steps[mode.step].nest
    return nest.in_two_passes if nest is not None and mode.in_two_passes else nest


def _held(own: StepNest, operands: tuple[int, ...], streamed: list[int]) -> frozenset[int]:
    gone = {*streamed}
    return own.resident | {p for p, place in enumerate(own.places) if place is not None and operands[place] not in gone}


def counted_mode(program: Program, mode: StepMode) -> StepMode:
    """The mode with all figures counted from its loops. The tiling must be one of the step's nest."""
    own, step = nest_of(program, mode), program.steps[mode.step]
    assert own is not None
    operands = (*step.reads, *step.writes)
    count = _count(own, mode.tiling, program.alignment_bytes)
    sums: dict[int, list[int]] = {each.buffer: [0, 0, 0, 0] for each in mode.traffic}
    weight_passes, weight_repeat = 1, 0
    for p, (operand, place) in enumerate(zip(own.nest.operands, own.places, strict=True)):
        if p in mode.tiling.held:
            continue
        visits = _visits(own, mode.tiling, p)
        own_tiles = prod(mode.tiling.trips(own.nest)[axis] for axis in operand.axes)
        passes = visits // own_tiles
        if place is None:
            weight_passes = max(weight_passes, passes)
            weight_repeat += max(0, count.read_bytes[p] - operand.nbytes)
            continue
        moved = program.buffers[operands[place]].moved_bytes
        share = min(moved, operand.nbytes)  # of a whole operand: where channels are padded less moves than tiles hold
        found = sums[operands[place]]
        for k, nbytes in enumerate((count.read_bytes[p], count.written_bytes[p])):
            found[k] += -(-nbytes * share // operand.nbytes) if share else nbytes
        found[2] += passes
        found[3] += visits + (visits - own_tiles if operand.is_output else 0)
    return replace(
        mode,
        footprint_bytes=count.footprint_bytes,
        tiles=count.tiles,
        traffic=tuple(
            OperandTraffic(buffer=b, read_bytes=r, written_bytes=w, passes=passes, transfers=transfers)
            for b, (r, w, passes, transfers) in sums.items()
        ),
        weight_passes=weight_passes,
        weight_repeat_bytes=weight_repeat,
    )


def counted_if_legal(program: Program, mode: StepMode) -> StepMode:
    """``counted_mode``; a tiling that is none of the step's nest is left as it is, for ``check_modes`` to refuse."""
    own = nest_of(program, mode)
    operands = (*program.steps[mode.step].reads, *program.steps[mode.step].writes)
    known = set() if own is None else {operands[place] for place in own.places if place is not None}
    legal = own is not None and not tiling_faults(own.nest, mode.tiling)
    return counted_mode(program, mode) if legal and known.issuperset(t.buffer for t in mode.traffic) else mode


@lru_cache(maxsize=16384)
def _count(own: StepNest, tiling: Tiling, alignment_bytes: int) -> NestCount:
    few = prod(tiling.trips(own.nest)) <= _WALKED
    count = recount_nest if few else recount_by_passes
    return count(own.nest, tiling, accumulator_bits=own.accumulator_bits, alignment_bytes=alignment_bytes)


def _visits(own: StepNest, tiling: Tiling, position: int) -> int:
    """How often a tile of the operand comes on-chip: its loops, and the others outside of its innermost one."""
    axes, trips = own.nest.operands[position].axes, tiling.trips(own.nest)
    last = max((k for k, axis in enumerate(tiling.order) if axis in axes), default=-1)
    return prod(trips[axis] for axis in tiling.order[: last + 1])
