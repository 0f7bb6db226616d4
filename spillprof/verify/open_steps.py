"""Steps whose tiles a plan may choose, as the covering problem of a certificate sees them.

A step that is over capacity and has known loops may pass any of its operands in tiles. One that passes in tiles is
off-chip in the gap before its read, or after its write. So an operand counts as held at the step exactly if that gap is
kept on-chip: the gap covers the step too.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from spillprof.ir.loop_nest import Window
from spillprof.ir.program import ACCUMULATOR, BufferKind, Phase, Program, Step


def may_choose_tiles(step: Step) -> bool:
    """Whether a plan may choose how the step is tiled."""
    return step.nest is not None and step.mode is None and not step.streamed_reads and not step.streamed_writes


def open_operands(program: Program, i: int, resident: set[int]) -> tuple[set[int], int]:
    """Operands of an open step that may pass in tiles, and the pool bytes that the rest of it needs, tiles left out.

    Where the result may take the place of an operand that dies, only what is read counts.
    """
    step = program.steps[i]
    operands = (*step.reads, *step.writes)
    places = () if step.nest is None else step.nest.places
    free = {operands[place] for place in places if place is not None and program.buffers[operands[place]].size_bytes}
    free = {b for b in free if b not in resident and not program.buffers[b].dedicated}
    counted = step.reads if step.updates else operands
    rest = sum(program.buffers[b].size_bytes for b in counted if b not in free and not program.buffers[b].dedicated)
    phase = Phase.READ if step.updates else Phase.COMPUTE
    rest += sum(w.size_bytes for w in step.workspaces if w.purpose != ACCUMULATOR and w.first <= phase <= w.last)
    return free & {*counted}, rest


def designated_gaps(
    program: Program, uses: Sequence[Sequence[int]], i: int, free: set[int], *, steady_state: bool
) -> Iterator[tuple[int, int]]:
    """The gap of each of these operands that decides whether it is held at step ``i``: (buffer, use before the gap).

    The gap before the step, of a first use the one after it. An operand without such a gap is free to pass in tiles,
    and so is one whose gap ends with a use that is streamed in any case.
    """
    n = len(program.steps)
    fixed = {(b, k) for k, step in enumerate(program.steps) for b in (*step.streamed_reads, *step.streamed_writes)}
    for b in sorted(free):
        own = uses[b]
        at = own.index(i)
        goes_round = program.weights_persist and steady_state and program.buffers[b].kind is BufferKind.WEIGHT
        if at:
            gap = own[at - 1], i
        elif len(own) > 1:
            gap = i, own[1]
        elif goes_round:
            gap = i, i + n
        else:
            continue
        if (b, gap[0]) not in fixed and (b, gap[1] % n) not in fixed:
            yield b, gap[0]


def fewest_read_bytes(program: Program, i: int, b: int) -> int:
    """The fewest bytes that bring a buffer to step ``i``: all of it, or in tiles what the step touches."""
    step, moved = program.steps[i], program.buffers[b].moved_bytes
    if step.nest is None or not may_choose_tiles(step):
        return moved
    place = (*step.reads, *step.writes).index(b)
    nest = step.nest.nest
    touched = 0
    for operand, at in zip(nest.operands, step.nest.places, strict=True):
        if at == place:
            along = [
                _touched(tuple(w for w in operand.windows if w.axis == axis), nest.axes[axis].size)
                for axis in operand.axes
            ]
            fixed = prod(w.size for w in operand.windows if w.axis is None)
            touched += operand.bytes_of(fixed * prod(along))
    return min(moved, touched)


@lru_cache(maxsize=16384)
def _touched(windows: tuple[Window, ...], iterations: int) -> int:
    """Positions that the iterations of an axis touch one after another, less what each shares with the one before."""
    total, before = 0, None
    for k in range(iterations):
        box = [window.span(k, k + 1) for window in windows]
        total += prod(end - first for first, end in box)
        if before is not None:
            total -= prod(max(0, min(a[1], c[1]) - max(a[0], c[0])) for a, c in zip(box, before, strict=True))
        before = box
    return total
