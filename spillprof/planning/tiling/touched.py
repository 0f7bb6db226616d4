"""Parts of buffers that steps touch: tiles bring no more than that of an operand, where a reload brings it whole."""

from functools import lru_cache
from math import prod

from spillprof.ir.memo import once_per_steps
from spillprof.ir.modes import StepNest
from spillprof.ir.program import Program
from spillprof.planning.tiling.cost import fixed_elements, operand_spans
from spillprof.planning.tiling.menus import is_open


def least_read_bytes(program: Program, i: int, b: int) -> int:
    """The fewest bytes that bring a buffer to step ``i``: a transfer of it, or tiles of what the step touches, once."""
    step, moved = program.steps[i], program.buffers[b].moved_bytes
    if not is_open(step) or step.nest is None:
        return moved
    touched = _touched_bytes(step.nest, (*step.reads, *step.writes).index(b))
    return moved if touched is None else min(moved, touched)


@once_per_steps
def reads_in_part(program: Program) -> bool:
    """Whether some step whose mode is open touches less than a buffer that it reads."""
    return any(is_open(step) and reads_in_part_at(program, i) for i, step in enumerate(program.steps))


def reads_in_part_at(program: Program, i: int) -> bool:
    """Whether step ``i`` touches less than a buffer that it reads."""
    return any(least_read_bytes(program, i, b) < program.buffers[b].moved_bytes for b in program.steps[i].reads)


@lru_cache(maxsize=4096)
def _touched_bytes(nest: StepNest, place: int) -> int | None:
    """Bytes of the positions of an operand that some iteration touches; None if it is not on the loops."""
    axes, found = nest.nest.axes, list[int]()
    for operand, at in zip(nest.nest.operands, nest.places, strict=True):
        if at == place:
            spans = (operand_spans(operand, axis, axes[axis].size, 1).total_new for axis in operand.axes)
            found.append(operand.bytes_of(fixed_elements(operand) * prod(spans)))
    return sum(found) if found else None
