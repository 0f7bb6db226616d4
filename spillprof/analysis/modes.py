"""What the modes of a plan move more than once, and what each is in words."""

from collections.abc import Iterator

from spillprof.ir.loop_nest import LoopNest
from spillprof.ir.modes import StepMode
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.planning.tiling.menus import menu


def repeated_bytes(program: Program, mode: StepMode) -> int:
    """Bytes that a mode moves beyond one transfer of each operand that it streams, further passes of weights too."""
    moved = program.buffers
    return mode.weight_repeat_bytes + sum(
        max(0, nbytes - moved[each.buffer].moved_bytes)
        for each in mode.traffic
        for nbytes in (each.read_bytes, each.written_bytes)
    )


def passes_by_step(program: Program, plan: Plan) -> dict[int, int]:
    """``repeated_bytes`` of the steps that run in tiles."""
    return {mode.step: repeated_bytes(program, mode) for mode in plan.modes}


def tiling_bytes_by_step(program: Program, plan: Plan) -> dict[int, int]:
    """What the tiles of each step move more than once beyond its best mode, alone in the whole memory."""
    found: dict[int, int] = {}
    for step, nbytes in passes_by_step(program, plan).items():
        if nbytes:
            others = [repeated_bytes(program, item.mode) for item in menu(program, step) if item.mode is not None]
            found[step] = max(0, nbytes - min(others, default=nbytes))
    return found


def mode_words(program: Program, mode: StepMode) -> str:
    """``64 row tiles of 8; weights pass 3 times; x is held``: loops outermost first, repeats, what stays, line buffers.

    Names are those of the model: renderers escape them.
    """
    step = program.steps[mode.step]
    own = step.nest.in_two_passes if step.nest is not None and mode.in_two_passes else step.nest
    if own is None:
        return ""
    return "; ".join(_words(program, mode, own.nest))


def _words(program: Program, mode: StepMode, nest: LoopNest) -> Iterator[str]:
    trips = mode.tiling.trips(nest)
    loops = [f"{nest.axes[a].name} in {trips[a]:,} tiles of {mode.tiling.tile[a]:,}" for a in mode.tiling.order]
    yield ", ".join(loops) or "in one tile"
    if mode.in_two_passes:
        yield "in two passes"
    often = [(each.passes, program.buffers[each.buffer].name) for each in mode.traffic if each.passes > 1]
    often += [(mode.weight_passes, "weights")] if mode.weight_passes > 1 else []
    yield from (f"{name} {_verb(name)} {times:,} times" for times, name in sorted(often, key=lambda o: -o[0]))
    lines = [nest.operands[p].name for p in sorted(mode.tiling.line_buffered)]
    if lines:
        yield f"overlapping rows of {' and '.join(lines)} stay on-chip"


def _verb(name: str) -> str:
    return "pass" if name == "weights" else "passes"
