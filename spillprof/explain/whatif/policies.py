"""Changes that cost nothing but another decision: strategy, order, addresses, transfers, release."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spillprof.engine.recompute.search import recompute_facts
from spillprof.explain.whatif.change import Change, Situation
from spillprof.ir.units import format_time
from spillprof.planning.options import Dma, Inputs, Order, Recomputing, Release, WriteBack
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.strategies import CHEAP_STRATEGIES

_NOTHING = "none: another policy"


def other_strategies(now: Situation) -> Iterator[Change]:
    """Those that nobody compared yet and that plan in one pass; first those that win most often: runs may be few."""
    for strategy in sorted(CHEAP_STRATEGIES, key=lambda name: name not in ("cost", "interval")):
        if strategy not in now.strategies:
            yield Change(
                kind="strategy",
                argument=f"--strategy {strategy}",
                costs=_NOTHING,
                trial=replace(now.trial, strategy=strategy),
            )


def better_order(now: Situation) -> Iterator[Change]:
    """The order of operators that was found to spill less."""
    planning = now.trial.run.planning
    again = planning.recompute is not Recomputing.OFF or planning.recompute_tensor
    if planning.order is Order.MEMORY or again:  # of other steps than the model's
        return
    if now.better_order() is not None:
        costs = "operators run in another order than the file's"
        yield _planned(now, "order", "--order memory", costs, order=Order.MEMORY)


def recomputing(now: Situation) -> Iterator[Change]:
    """Operators that run a second time in place of moving their results: those that the rules find."""
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
    """What was switched to the slower side."""
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
    """Every other rule for addresses, where a rule gives them: ``interval`` lays out all blocks at once."""
    if now.trial.strategy == "interval":
        return
    for placement in PLACEMENTS:
        if placement != now.trial.run.planning.placement:
            yield _planned(now, "placement", f"--placement {placement}", _NOTHING, placement=placement)


def _planned(now: Situation, kind: str, argument: str, costs: str, **changes: Any) -> Change:
    return Change(kind=kind, argument=argument, costs=costs, trial=now.trial.planned(**changes))
