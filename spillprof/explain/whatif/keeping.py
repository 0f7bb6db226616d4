"""What would keep one buffer in SRAM: a slot of its own, or more SRAM."""

from spillprof.engine.simulation import prepare, sram_limits
from spillprof.explain.whatif.change import Change
from spillprof.explain.whatif.memory import LARGER, grid, sized
from spillprof.explain.whatif.setup import Outcome, Setup, outcome, runs_in_one
from spillprof.explain.whatif.slots import slot
from spillprof.explain.whatif.suggest import STEPS_IN_ALL, suggestion
from spillprof.ir.errors import SpillprofError
from spillprof.ir.program import Buffer
from spillprof.ir.story import Suggestion
from spillprof.ir.units import format_size, size_word
from spillprof.planning.planner import make_plan

_MOST_PLANS = 10


def in_a_slot(buffer: Buffer, setup: Setup, before: Outcome) -> Suggestion | None:
    """The run with the buffer in a slot of its own, whether it saves anything or not; None if it cannot be done."""
    change = slot(buffer.name, buffer.size_bytes, setup)
    return None if change is None else _tried(change, before)


def with_more_sram(buffer: Buffer, setup: Setup, before: Outcome) -> Suggestion | None:
    """The smallest SRAM found, by bisection, in which the buffer lies still; None in a long program."""
    present, program = setup.target.sram_bytes, setup.program()
    if len(program.steps) * runs_in_one(setup, program) * _MOST_PLANS > STEPS_IN_ALL:
        return None
    unit = grid(setup.target)
    _, ideal_bytes = sram_limits(prepare(setup.graph, setup.target, setup.lowering), setup.target, setup.planning)
    left = _MOST_PLANS

    def stays(n: int) -> bool:
        nonlocal left
        left -= 1
        return _stays(buffer.name, sized(setup, n * unit))

    low = present // unit
    high = next((n for n in (-(-int(ideal_bytes * f) // unit) for f in LARGER) if n > low and stays(n)), None)
    if high is None:
        return None
    while high - low > 1 and left > 0:
        middle = (low + high) // 2
        low, high = (low, middle) if stays(middle) else (middle, high)
    change = Change(
        kind="sram",
        argument=f"--sram {size_word(high * unit)}",
        costs=f"hardware: {format_size(high * unit - present)} more SRAM",
        setup=sized(setup, high * unit),
    )
    return _tried(change, before)


def _stays(name: str, setup: Setup) -> bool:
    """Whether the buffer never leaves its place between its uses, and is not tiled through DRAM."""
    try:
        program = setup.program()
        plan = make_plan(program, setup.target, setup.strategy, setup.planning)
    except SpillprofError:
        return False
    gone = {s.buffer for s in plan.spills} | {s.buffer for s in plan.streamed} | {move.buffer for move in plan.moves}
    return all(b.index not in gone for b in program.buffers if b.name == name)


def _tried(change: Change, before: Outcome) -> Suggestion | None:
    after = outcome(change.setup)
    return None if after is None else suggestion(change, before, after, (change.setup.strategy,))
