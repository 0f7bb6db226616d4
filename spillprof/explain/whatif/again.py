"""Single tensors that could be computed again in place of being moved."""

from collections.abc import Iterator

from spillprof.engine.recompute.asked import longest_gap_end
from spillprof.explain.whatif.change import Change, Situation
from spillprof.explain.whatif.words import option_words
from spillprof.ir.units import format_size, format_time
from spillprof.lowering.transforms import producers
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import Order, Recomputing
from spillprof.timing.compute import step_times_s

_MOST_TENSORS = 3


def recomputed_tensors(now: Situation) -> Iterator[Change]:
    """One tensor at a time, those first that move most: beside those that are computed again already."""
    run, planning = now.trial.run, now.trial.run.planning
    if planning.recompute is not Recomputing.OFF or (planning.recompute_tensor and planning.order is Order.MEMORY):
        return  # what it would start from takes a search
    once = now.trial.engine.lowered(run) if planning.recompute_tensor else now.program
    made_by, lives, step_s = producers(once), lifetimes(once), step_times_s(once, run.target)
    number = {buffer.name: buffer.index for buffer in once.buffers if buffer.index in made_by}
    moving = [b.name for b in now.buffers if b.name in number and b.name not in planning.recompute_tensor]
    able = (name for name in moving if longest_gap_end(once, number[name], lives[number[name]]) is not None)
    for _, name in zip(range(_MOST_TENSORS), able, strict=False):
        tensors = (*planning.recompute_tensor, name)
        argument = option_words("--recompute-tensor", tensors)
        if argument is None:
            continue
        at = made_by[number[name]]
        step = once.steps[at]
        weights = f", {format_size(step.weight_stream_bytes)} of weights again" if step.weight_stream_bytes else ""
        yield Change(
            kind="recompute-tensor",
            argument=argument,
            costs=f"{step.op_type} runs twice: {step.macs:,} MACs, {format_time(float(step_s[at]))}{weights}",
            trial=now.trial.planned(recompute_tensor=tensors),
        )
