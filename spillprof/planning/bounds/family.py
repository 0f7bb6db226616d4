"""The covering problem over all modes: what no plan of this order avoids, however each operator is tiled by itself.

A step that is over capacity and has known loops may pass any of its operands in tiles. An operand that it streams in is
off-chip in the gap before, one that it streams out in the gap after. So an operand counts as held at the step exactly
if that gap is kept on-chip, and the gap covers the step too. Besides, the step needs the smallest footprint of its
modes; and what its modes move beyond one transfer of each operand that they stream, the least of any mode that fits
alone, is paid by every plan.

Both are relaxations: a plan pays the footprint and the traffic of one and the same mode. An operand without such a gap
(an input that is read once, a result that is never read) is free to pass, so it counts nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spillprof.ir.memo import once_per_steps
from spillprof.ir.program import ACCUMULATOR, BufferKind, Phase, Program
from spillprof.ir.tiled import replaceable
from spillprof.planning.gaps import GapOption
from spillprof.planning.liveness import demand_by_step, lifetimes, resident_inputs
from spillprof.planning.options import Inputs, PlanningOptions, Start
from spillprof.planning.tiling.menus import MOST_STREAMED, MenuItem, is_open, menu
from spillprof.planning.tiling.touched import least_read_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStep:
    """A step whose mode is open: it is over capacity, and its loops are known."""

    step: int
    covered: frozenset[int]  # operands that count as held if a gap of theirs is kept
    demand_bytes: int  # of the rest: the smallest footprint, workspaces, operands that cannot pass in tiles
    footprint_bytes: int  # the smallest of any mode, part of the demand; 0 if it fits without tiles
    excess_bytes: int  # that every mode moves beyond one transfer of what it streams


def open_steps(program: Program, options: PlanningOptions, over_full: Sequence[int]) -> dict[int, OpenStep]:
    """The open ones among steps that are over capacity if no gap is spent, by step."""
    if program.capacity_bytes is None:
        return {}
    fixed = resident_inputs(program, PlanningOptions(inputs=options.inputs))
    return {i: _open(program, options, fixed, i) for i in over_full if is_open(program.steps[i])}


def _open(program: Program, options: PlanningOptions, fixed: frozenset[int], i: int) -> OpenStep:
    step, pool = program.steps[i], (program.capacity_bytes or 0) - program.reserved_bytes
    assert step.nest is not None
    operands = (*step.reads, *step.writes)
    known = {operands[place] for place in step.nest.places if place is not None}
    free = {b for b in known if not program.buffers[b].dedicated and program.buffers[b].size_bytes} - fixed
    footprint = excess = 0
    if int(demand_by_step(program)[i]) > pool and len(free) <= MOST_STREAMED:  # of more, not all sets are tried
        items = menu(program, i, options.inputs)
        footprint = min((item.mode.footprint_bytes for item in items if item.mode is not None), default=0)
        excess = min((excess_bytes(program, options, item) for item in items), default=0)
    # In place, the result takes over an operand that dies: then no more than the operands read count.
    counted = operands if not step.updates else step.reads
    rest = [program.buffers[b].size_bytes for b in counted if b not in free and not program.buffers[b].dedicated]
    phases = (Phase.COMPUTE,) if not step.updates else (Phase.READ,)
    beside = [w for w in step.workspaces if w.purpose != ACCUMULATOR]  # tiles of a result may do without
    work = sum(w.size_bytes for w in beside if any(w.first <= phase <= w.last for phase in phases))
    return OpenStep(
        step=i,
        covered=frozenset(counted) & free,
        demand_bytes=footprint + sum(rest) + work,
        footprint_bytes=footprint,
        excess_bytes=excess,
    )


def excess_bytes(program: Program, options: PlanningOptions, item: MenuItem) -> int:
    """Bytes that a way to run a step moves beyond one transfer of each operand that it streams."""
    mode = item.mode
    if mode is None:
        return 0
    step, lives = program.steps[mode.step], lifetimes(program)
    goes_round = program.weights_persist and options.start is Start.STEADY  # then a first use has a gap before it too
    total = mode.weight_repeat_bytes
    for each in mode.traffic:
        buffer = program.buffers[each.buffer]
        if each.buffer in step.writes:
            total += each.read_bytes + each.written_bytes - buffer.moved_bytes
        elif lives[each.buffer].use_steps[0] == mode.step and not (goes_round and buffer.kind is BufferKind.WEIGHT):
            once = buffer.kind is BufferKind.INPUT and options.inputs is Inputs.ON_DEMAND
            total += max(0, each.read_bytes - buffer.moved_bytes) if once else each.read_bytes
        else:
            total += each.read_bytes - least_read_bytes(program, mode.step, each.buffer)
    return max(0, total)


@once_per_steps
def may_be_replaced(program: Program) -> dict[int, int]:
    """Operands whose place an in-place result may take if the one that it would overwrite passes in tiles; the step."""
    steps = enumerate(program.steps)
    return {b: i for i, step in steps if step.updates and is_open(step) for b in replaceable(program, i)}


def family_gaps(
    program: Program, options: PlanningOptions, opened: dict[int, OpenStep], streamed: frozenset[tuple[int, int]]
) -> tuple[GapOption, ...]:
    """Gaps that plans may spend, with the open steps that they cover, in program order.

    ``streamed``: (buffer, step) of operands that are streamed in any case; gaps beside those are spent anyway.
    """
    n = len(program.steps)
    fixed = resident_inputs(program, PlanningOptions(inputs=options.inputs))
    goes_round = program.weights_persist and options.start is Start.STEADY
    found: list[GapOption] = []

    def covers(i: int, b: int) -> bool:
        return i in opened and b in opened[i].covered

    for buffer, life in zip(program.buffers, lifetimes(program), strict=True):
        b, points = buffer.index, life.use_steps
        if b in fixed or buffer.dedicated or not buffer.size_bytes or not points:
            continue
        p = points[0]
        for k, u in enumerate(points[1:]):
            start, end = p + 1 - (k == 0 and covers(p, b)), u + covers(u, b)
            if end > start and (b, p) not in streamed and (b, u) not in streamed:
                read = least_read_bytes(program, u, b)
                found.append(GapOption(b, p, u, ((start, end),), buffer.size_bytes, read))
            p = u
        first, last = points[0], points[-1]
        if goes_round and buffer.kind is BufferKind.WEIGHT and not {(b, first), (b, last)} & streamed:
            ranges = tuple(
                r for r in ((last + 1, n), (0, first + (len(points) == 1 and covers(first, b)))) if r[0] < r[1]
            )
            if ranges:
                read = least_read_bytes(program, first, b)
                found.append(GapOption(b, last, first + n, ranges, buffer.size_bytes, read))
    return tuple(found)
