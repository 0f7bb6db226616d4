"""Answers of a sweep: the smallest sufficient memory, and the Pareto front of size, latency and energy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spillprof.studies.sweep.curves import scenario
from spillprof.studies.sweep.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The smallest size swept at which a goal is met under some strategy; None if none is."""

    goal: str  # "no spill", or "within 5 % of the ideal"
    model: str | None  # None: for all models at once
    dims: Mapping[str, int]
    settings: Mapping[str, Any]
    sram_bytes: int | None
    strategy: str | None
    placement: str | None
    failed_models: tuple[str, ...] = ()  # models without a result at any size, which keep the goal from being met


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoChoice:
    """A Pareto-optimal size, strategy and placement, by size and by the latency and energy of all models."""

    dims: Mapping[str, int]
    settings: Mapping[str, Any]
    sram_bytes: int
    placement: str
    strategy: str
    latency_s: float  # of all models, one after the other
    energy_j: float


def smallest(rows: Sequence[Row], within: float) -> tuple[Answer, ...]:
    """Smallest sizes without spills and within a share of the ideal, by scenario and model, then for all models."""
    found = []
    for own in _scenarios(rows).values():
        models = list(dict.fromkeys(row.model for row in own))
        goals = {
            "no spill": [row for row in own if row.spill_bytes == 0],
            f"within {100 * within:g} % of the ideal": [row for row in own if _is_near(row, within)],
        }
        for goal, met in goals.items():
            for model in models:
                found.append(_answer(goal, model, own, [row for row in met if row.model == model]))
            if len(models) > 1:
                common = set.intersection(*({r.sram_bytes for r in met if r.model == model} for model in models))
                found.append(_answer(goal, None, own, [row for row in met if row.sram_bytes in common]))
    return tuple(found)


def pareto(rows: Sequence[Row]) -> tuple[ParetoChoice, ...]:
    """The Pareto front of each scenario, by size. Latency and energy are sums over all models."""
    found: list[ParetoChoice] = []
    for own in _scenarios(rows).values():
        models = {row.model for row in own}
        grouped: dict[tuple[int, str, str], list[Row]] = {}
        for row in own:
            if row.ok:
                grouped.setdefault((row.sram_bytes, row.placement, row.strategy), []).append(row)
        choices = [
            ParetoChoice(
                dims=members[0].dims, settings=members[0].settings, sram_bytes=sram_bytes, placement=placement,
                strategy=strategy, latency_s=sum(row.latency_s or 0.0 for row in members),
                energy_j=sum(row.energy_j or 0.0 for row in members),
            )
            for (sram_bytes, placement, strategy), members in grouped.items()
            if {row.model for row in members} == models
        ]  # fmt: skip
        found += _front(choices)
    return tuple(found)


def _front(choices: Sequence[ParetoChoice]) -> Iterator[ParetoChoice]:
    """The choices that no other dominates in size, latency and energy; of equal ones the first."""
    front: list[tuple[float, float]] = []  # latency, energy of smaller or equal sizes
    for choice in sorted(choices, key=lambda c: (c.sram_bytes, c.latency_s, c.energy_j)):
        if not any(latency <= choice.latency_s and energy <= choice.energy_j for latency, energy in front):
            front.append((choice.latency_s, choice.energy_j))
            yield choice


def _scenarios(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    grouped: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.strategy != "none":  # infinite memory meets every goal
            grouped.setdefault(scenario(row), []).append(row)
    return grouped


def _is_near(row: Row, within: float) -> bool:
    if row.latency_s is None or row.spill_time_s is None:
        return False
    return row.spill_time_s <= within * (row.latency_s - row.spill_time_s)


def _answer(goal: str, model: str | None, own: Sequence[Row], met: Sequence[Row]) -> Answer:
    best = min(met, key=lambda row: (row.sram_bytes, row.latency_s or 0.0), default=None)
    for_all = model is None  # each model may have another strategy
    models = dict.fromkeys(row.model for row in own if for_all or row.model == model)
    simulated = {row.model for row in own if row.ok}
    return Answer(
        goal=goal,
        model=model,
        dims=own[0].dims,
        settings=own[0].settings,
        sram_bytes=None if best is None else best.sram_bytes,
        strategy=None if best is None or for_all else best.strategy,
        placement=None if best is None or for_all else best.placement,
        failed_models=tuple(name for name in models if name not in simulated),
    )
