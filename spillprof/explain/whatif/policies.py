"""Changes that cost nothing but another decision: strategy, order, addresses, transfers, release."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spillprof.engine.recompute.search import recompute_facts, recomputed
from spillprof.explain.whatif.change import Change, Situation
from spillprof.ir.units import format_time
from spillprof.planning.options import Dma, Inputs, Order, PlanningOptions, Recomputing, Release, WriteBack
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
                setup=replace(now.setup, strategy=strategy),
            )


def better_order(now: Situation) -> Iterator[Change]:
    """The order of operators that was found to spill less."""
    planning = now.setup.planning
    again = planning.recompute is not Recomputing.OFF or planning.recompute_tensor
    if planning.order is Order.MEMORY or again:  # of other steps than the model's
        return
    order = now.better_order()
    if order is not None:
        planning = replace(planning, order=Order.MEMORY)
        yield Change(
            kind="order",
            argument="--order memory",
            costs="operators run in another order than the file's",
            setup=replace(now.setup, planning=planning, order=order),
        )


def recomputing(now: Situation) -> Iterator[Change]:
    """Operators that run a second time in place of moving their results: those that the rules find."""
    if now.setup.planning.recompute is not Recomputing.OFF or now.setup.planning.recompute_tensor:
        return
    planning = replace(now.setup.planning, recompute=Recomputing.RULES)
    found = recomputed(now.program, now.setup.target, now.setup.lowering, planning)
    facts = None if found is None else recompute_facts(found)
    if facts is not None and facts.operators:
        operators = "1 operator runs" if facts.operators == 1 else f"{facts.operators:,} operators run"
        costs = f"{operators} twice, {format_time(facts.compute_s)} of computing"
        yield _planned(now, "recompute", "--recompute rules", costs, recompute=Recomputing.RULES)


def prompter_planning(now: Situation) -> Iterator[Change]:
    """What was switched to the slower side."""
    planning = now.setup.planning
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
    if now.setup.strategy == "interval":
        return
    for placement in PLACEMENTS:
        if placement != now.setup.planning.placement:
            yield _planned(now, "placement", f"--placement {placement}", _NOTHING, placement=placement)


def _planned(now: Situation, kind: str, argument: str, costs: str, **changes: Any) -> Change:
    planning: PlanningOptions = replace(now.setup.planning, **changes)
    return Change(kind=kind, argument=argument, costs=costs, setup=replace(now.setup, planning=planning))
