"""Suggestions: simulated changes and what they save.

The number of runs depends on the number of steps alone, never on the speed of the machine.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from spillprof.engine.trials import steps_to_judge
from spillprof.explain.whatif.change import Change, Situation
from spillprof.explain.whatif.machine_changes import (
    PROBES,
    larger_sram,
    more_channels,
    own_workspaces,
    twice_the_bandwidth,
    twice_the_sram,
)
from spillprof.explain.whatif.model_changes import (
    fused_pairs,
    leaner_lowering,
    narrower_types,
    other_convolutions,
    other_weights,
    smaller_batch,
)
from spillprof.explain.whatif.planning_changes import (
    better_order,
    dedicated_slots,
    other_placements,
    other_strategies,
    prompter_planning,
    recomputed_tensors,
    recomputing,
    tried_slots,
)
from spillprof.explain.whatif.trial import TrialTotals, runs_in_one
from spillprof.ir.story import ANY_CHANGE, Suggestion

STEPS_IN_ALL = 36_000
"""Steps to simulate for suggestions: about this over the program's steps is the number of runs."""
MOST_RUNS = 40
_FEW_RUNS = 5  # with no more, SRAM sizes are not searched
_PROBES_A_RUN = 4  # plans that take as long as planning and playing one run
_NOISE = 1e-4  # share of the latency: smaller savings count as none

ChangeKind = Callable[[Situation], Iterator[Change]]

FOR_LONG: tuple[ChangeKind, ...] = (
    better_order,
    twice_the_sram,
    other_strategies,
    dedicated_slots,
    twice_the_bandwidth,
)
"""Kinds of changes for a program so long that few runs are affordable, most useful first."""

FOR_ALL: tuple[ChangeKind, ...] = (
    better_order, recomputing, larger_sram, other_strategies, prompter_planning, leaner_lowering, dedicated_slots,
    other_weights, other_convolutions, own_workspaces, narrower_types, twice_the_bandwidth, more_channels,
    smaller_batch, fused_pairs, recomputed_tensors, other_placements,
)  # fmt: skip
"""All kinds of changes, those most likely to help first."""

_WORDS: Mapping[ChangeKind, str] = {
    better_order: "another order",
    recomputing: "operators that run twice",
    larger_sram: "more SRAM",
    twice_the_sram: "more SRAM",
    other_strategies: "other strategies",
    prompter_planning: "prompter transfers and release",
    leaner_lowering: "what was switched off",
    dedicated_slots: "dedicated slots",
    other_weights: "other places for weights",
    other_convolutions: "other algorithms of convolutions",
    own_workspaces: "workspaces one by one",
    fused_pairs: "pairs to fuse",
    recomputed_tensors: "tensors to compute again",
    other_placements: "other placements",
    narrower_types: "narrower types",
    twice_the_bandwidth: "more bandwidth",
    more_channels: "more DMA channels",
    smaller_batch: "a smaller batch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Outcome of all trials."""

    suggestions: tuple[Suggestion, ...] = ()  # largest saving first
    untried: tuple[str, ...] = ()  # kinds of changes not all of which were run, in words


def suggestions(now: Situation, main: TrialTotals) -> Tried:
    """Changes that save time over ``main``, or save bytes in the same time.

    Nothing is tried if nothing spills and nothing moves inside SRAM.
    """
    if not main.spill_bytes and not main.moved_bytes:
        return Tried()
    runs = affordable_runs(now)
    found, untried = list[Suggestion](), list[ChangeKind]()

    def judge(change: Change) -> None:
        after = change.made or change.trial.outcome()
        tried = None if after is None else suggestion(change, main, after, now.strategies)
        if tried is not None and _helps(tried, main):
            more = change.trial.tiled_operators() - now.trial.tiled_operators()
            tiled = f"; {more:,} more operator{'s' if more > 1 else ''} tiled through DRAM" if more > 0 else ""
            found.append(replace(tried, costs=tried.costs + tiled))

    for change in tried_slots(now):
        judge(change)
    if runs <= 0:
        others = [kind for kind in FOR_ALL if kind is not dedicated_slots]
        return Tried(suggestions=_dearest_first(found), untried=_words(others, now) if found else (ANY_CHANGE,))
    kinds = FOR_ALL if runs > _FEW_RUNS else FOR_LONG
    for kind in kinds:
        if kind is larger_sram:
            runs -= PROBES // _PROBES_A_RUN
        if runs <= 0:
            untried.append(kind)
            continue
        for change in kind(now):
            if runs <= 0:
                untried.append(kind)
                break
            runs -= 1
            judge(change)
    begun = {_WORDS[kind] for kind in kinds}
    untried += [kind for kind in FOR_ALL if _WORDS[kind] not in begun]
    return Tried(suggestions=_dearest_first(found), untried=_words(untried, now))


def _dearest_first(found: Iterable[Suggestion]) -> tuple[Suggestion, ...]:
    return tuple(sorted(found, key=lambda s: (-s.saves_s, -s.saves_bytes, s.argument)))


def _words(untried: Iterable[ChangeKind], now: Situation) -> tuple[str, ...]:
    return tuple(_WORDS[kind] for kind in untried if kind is not smaller_batch or now.smaller_batch is not None)


def affordable_runs(now: Situation) -> int:
    """Number of runs for suggestions; a run that searches counts as all the runs that it judges."""
    runs = STEPS_IN_ALL // max(steps_to_judge(now.program), 1)
    return min(runs // runs_in_one(now.trial.run.planning, now.program), MOST_RUNS)


def suggestion(change: Change, before: TrialTotals, after: TrialTotals, compared: Collection[str]) -> Suggestion:
    """The change and its savings. ``compared``: strategies that need not be named on the command line."""
    argument = change.argument
    if change.kind != "strategy" and change.trial.strategy not in compared:
        argument += f" --strategy {change.trial.strategy}"
    return Suggestion(
        change=change.kind,
        argument=argument,
        strategy=change.trial.strategy,
        spill_bytes=after.spill_bytes,
        latency_s=after.latency_s,
        energy_j=after.energy_j,
        saves_s=before.latency_s - change.runs * after.latency_s,
        saves_bytes=before.spill_bytes - change.runs * after.spill_bytes,
        saves_j=before.energy_j - change.runs * after.energy_j,
        costs=change.costs,
    )


def _helps(tried: Suggestion, main: TrialTotals) -> bool:
    return tried.saves_s >= _NOISE * main.latency_s or (tried.saves_s >= 0 and tried.saves_bytes > 0)
