"""Changes of planning: strategy, order, placement, transfers, release, dedicated slots, recomputation."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spillprof.engine.recompute.choices import longest_gap_end
from spillprof.engine.recompute.search import recompute_facts
from spillprof.explain.whatif.change import Change, Situation, option_words
from spillprof.explain.whatif.trial import Trial
from spillprof.ir.units import format_size, format_time
from spillprof.lowering.transforms import producers
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import Dma, Inputs, Order, Recomputing, Release, WriteBack
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.strategies import CHEAP_STRATEGIES
from spillprof.timing.compute import step_times_s

_NOTHING = "none: another policy"


def other_strategies(now: Situation) -> Iterator[Change]:
    """Strategies that plan in one pass and are not analyzed yet; the most frequent winners first."""
    for strategy in sorted(CHEAP_STRATEGIES, key=lambda name: name not in ("cost", "interval")):
        if strategy not in now.strategies:
            yield Change(
                kind="strategy",
                argument=f"--strategy {strategy}",
                costs=_NOTHING,
                trial=replace(now.trial, strategy=strategy),
            )


def better_order(now: Situation) -> Iterator[Change]:
    """The order of operators found to spill less."""
    planning = now.trial.run.planning
    recomputes = planning.recompute is not Recomputing.OFF or planning.recompute_tensor
    if planning.order is Order.MEMORY or recomputes:  # the order found is of the model's own steps
        return
    if now.better_order() is not None:
        costs = "operators run in another order than the file's"
        yield _planned(now, "order", "--order memory", costs, order=Order.MEMORY)


def recomputing(now: Situation) -> Iterator[Change]:
    """Recomputation instead of spilling, where the rules find any."""
    planning = now.trial.run.planning
    if planning.recompute is not Recomputing.OFF or planning.recompute_tensor:
        return
    found = now.trial.engine.recomputation(now.trial.run.planned(recompute=Recomputing.RULES))
    facts = None if found is None else recompute_facts(found)
    if facts is not None and facts.operators:
        operators = "1 operator runs" if facts.operators == 1 else f"{facts.operators:,} operators run"
        costs = f"{operators} twice, {format_time(facts.compute_s)} of computing"
        yield _planned(now, "recompute", "--recompute rules", costs, recompute=Recomputing.RULES)


def prompter_planning(now: Situation) -> Iterator[Change]:
    """Options of planning that are set to their slower value."""
    planning = now.trial.run.planning
    if planning.release is not Release.LAST_USE:
        yield _planned(now, "release", "--release last-use", "a runtime that frees early", release=Release.LAST_USE)
    if planning.writeback is not WriteBack.ONCE:
        yield _planned(
            now, "writeback", "--writeback once", "a runtime that tracks valid copies", writeback=WriteBack.ONCE
        )
    if planning.dma is not Dma.PREFETCH:
        yield _planned(now, "dma", "--dma prefetch", "transfers that are issued ahead", dma=Dma.PREFETCH)
    if planning.inputs is not Inputs.ON_DEMAND:
        yield _planned(now, "inputs", "--inputs on-demand", "inputs that come when first read", inputs=Inputs.ON_DEMAND)


def other_placements(now: Situation) -> Iterator[Change]:
    """Every other placement; none for ``interval``, which lays out all blocks at once."""
    if now.trial.strategy == "interval":
        return
    for placement in PLACEMENTS:
        if placement != now.trial.run.planning.placement:
            yield _planned(now, "placement", f"--placement {placement}", _NOTHING, placement=placement)


def _planned(now: Situation, kind: str, argument: str, costs: str, **changes: Any) -> Change:
    return Change(kind=kind, argument=argument, costs=costs, trial=now.trial.planned(**changes))


_MOST_SLOTS = 3


def dedicated_slots(now: Situation) -> Iterator[Change]:
    """One more dedicated slot each, most bytes first; not for buffers whose totals with a slot are known."""
    for buffer in now.buffers[:_MOST_SLOTS]:
        change = None if buffer.name in now.pinned else slot(buffer.name, buffer.size_bytes, now.trial)
        if change is not None:
            yield change


def tried_slots(now: Situation) -> Iterator[Change]:
    """Slots for oscillating buffers, whose totals with a slot are known."""
    for buffer in now.buffers:
        change = slot(buffer.name, buffer.size_bytes, now.trial) if buffer.name in now.pinned else None
        if change is not None:
            yield replace(change, made=now.pinned[buffer.name])


def slot(buffer: str, size_bytes: int, trial: Trial) -> Change | None:
    """The run with a slot for a buffer; None if its name cannot be part of a command line."""
    pins = (*trial.run.lowering.pin, buffer)
    argument = option_words("--pin", pins)
    if argument is None:
        return None
    return Change(
        kind="pin",
        argument=argument,
        costs=f"{format_size(size_bytes)} of SRAM reserved for the whole run",
        trial=trial.lowered(pin=pins),
    )


_MOST_TENSORS = 3


def recomputed_tensors(now: Situation) -> Iterator[Change]:
    """One more recomputed tensor each, most bytes first."""
    run, planning = now.trial.run, now.trial.run.planning
    if planning.recompute is not Recomputing.OFF or (planning.recompute_tensor and planning.order is Order.MEMORY):
        return  # the program to start from takes a search
    once = now.trial.engine.lowered(run) if planning.recompute_tensor else now.program
    made_by, lives, step_s = producers(once), lifetimes(once), step_times_s(once, run.target)
    number = {buffer.name: buffer.index for buffer in once.buffers if buffer.index in made_by}
    moving = [b.name for b in now.buffers if b.name in number and b.name not in planning.recompute_tensor]
    candidates = (name for name in moving if longest_gap_end(once, number[name], lives[number[name]]) is not None)
    for _, name in zip(range(_MOST_TENSORS), candidates, strict=False):
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
