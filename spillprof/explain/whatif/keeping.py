"""What would keep one buffer in SRAM: a slot of its own, or more SRAM."""

from spillprof.explain.whatif.change import Change
from spillprof.explain.whatif.memory import LARGER, grid
from spillprof.explain.whatif.slots import slot
from spillprof.explain.whatif.suggest import STEPS_IN_ALL, suggestion
from spillprof.explain.whatif.trial import Outcome, Trial, runs_in_one
from spillprof.ir.errors import SpillprofError
from spillprof.ir.program import Buffer
from spillprof.ir.story import Suggestion
from spillprof.ir.units import format_size, size_word

_MOST_PLANS = 10


def in_a_slot(buffer: Buffer, trial: Trial, before: Outcome) -> Suggestion | None:
    """The run with the buffer in a slot of its own, whether it saves anything or not; None if it cannot be done."""
    change = slot(buffer.name, buffer.size_bytes, trial)
    return None if change is None else _tried(change, before)


def with_more_sram(buffer: Buffer, trial: Trial, before: Outcome) -> Suggestion | None:
    """The smallest SRAM found, by bisection, in which the buffer lies still; None in a long program."""
    present, program = trial.run.target.sram_bytes, trial.fitted()
    if len(program.steps) * runs_in_one(trial.run.planning, program) * _MOST_PLANS > STEPS_IN_ALL:
        return None
    unit = grid(trial.run.target)
    _, ideal_bytes = trial.engine.sram_limits(trial.run)
    left = _MOST_PLANS

    def stays(n: int) -> bool:
        nonlocal left
        left -= 1
        return _stays(buffer.name, trial.at(n * unit))

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
        trial=trial.at(high * unit),
    )
    return _tried(change, before)


def _stays(name: str, trial: Trial) -> bool:
    """Whether the buffer never leaves its place between its uses, and is not tiled through DRAM."""
    try:
        program = trial.fitted()
        plan = trial.engine.plans(program, trial.run, trial.strategy)[0][0]
    except SpillprofError:
        return False
    gone = {s.buffer for s in plan.spills} | {s.buffer for s in plan.streamed} | {move.buffer for move in plan.moves}
    return all(b.index not in gone for b in program.buffers if b.name == name)


def _tried(change: Change, before: Outcome) -> Suggestion | None:
    after = change.trial.outcome()
    return None if after is None else suggestion(change, before, after, (change.trial.strategy,))
