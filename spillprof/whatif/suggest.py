"""Suggestions: changes that were tried, each by a run of its own, and what they save.

How many runs are made depends on the number of steps alone, never on the speed of the machine.
"""

from collections.abc import Callable, Iterator

from spillprof.model.profile import Suggestion
from spillprof.planning.ordering.search import effort
from spillprof.scheduling import steps_to_judge
from spillprof.whatif.change import Change, Situation
from spillprof.whatif.machine import more_channels, own_workspaces, twice_the_bandwidth
from spillprof.whatif.memory import PROBES, larger_sram, twice_the_sram
from spillprof.whatif.model import leaner_lowering, narrower_types, other_convolutions, other_weights, smaller_batch
from spillprof.whatif.policies import better_order, other_placements, other_strategies, prompter_planning
from spillprof.whatif.setup import Outcome, outcome, searches_orders
from spillprof.whatif.slots import dedicated_slots

STEPS_IN_ALL = 30_000
"""Steps that are simulated for suggestions: about so many divided by those of the program are the runs."""
MOST_RUNS = 40
_FEW_RUNS = 5  # with no more, sizes are not searched for
_PROBES_A_RUN = 4  # plans that take as long as a run, which is planned and played
_NOISE = 1e-4  # of the latency: what saves less time saves none

Kind = Callable[[Situation], Iterator[Change]]

FOR_LONG: tuple[Kind, ...] = (better_order, twice_the_sram, other_strategies, dedicated_slots, twice_the_bandwidth)
"""Kinds of changes of which a long program affords a few, dearest first."""

FOR_ALL: tuple[Kind, ...] = (
    better_order, larger_sram, other_strategies, prompter_planning, leaner_lowering, dedicated_slots, other_weights,
    other_convolutions, own_workspaces, other_placements, narrower_types, twice_the_bandwidth, more_channels,
    smaller_batch,
)  # fmt: skip
"""All kinds of changes: what is most likely to help comes first, in case that runs are few."""


def suggestions(now: Situation, lead: Outcome) -> tuple[Suggestion, ...]:
    """Changes that save time against ``lead``, or bytes in the same time, dearest first. Empty if nothing spills."""
    if not lead.spill_bytes:
        return ()
    runs = affordable_runs(now)
    found = []
    for change in _changes(now, runs):
        after = outcome(change.setup)
        suggestion = None if after is None else _saving(now, change, lead, after)
        if suggestion is not None:
            found.append(suggestion)
    return tuple(sorted(found, key=lambda s: (-s.saves_s, -s.saves_bytes, s.argument)))


def affordable_runs(now: Situation) -> int:
    """How many runs are made for suggestions; a run that searches for an order counts as all that it judges."""
    n = max(steps_to_judge(now.program), 1)
    runs = STEPS_IN_ALL // n
    if searches_orders(now.setup):
        trials = effort(n)
        runs //= 1 + trials.restarts + trials.changes
    return min(runs, MOST_RUNS)


def _changes(now: Situation, runs: int) -> Iterator[Change]:
    """As many changes as there are runs for."""
    for kind in FOR_ALL if runs > _FEW_RUNS else FOR_LONG:
        if kind is larger_sram:
            runs -= PROBES // _PROBES_A_RUN
        if runs <= 0:
            return
        for change in kind(now):
            if runs <= 0:
                return
            runs -= 1
            yield change


def _saving(now: Situation, change: Change, lead: Outcome, after: Outcome) -> Suggestion | None:
    saves_s = lead.latency_s - change.runs * after.latency_s
    saves_bytes = lead.spill_bytes - change.runs * after.spill_bytes
    if saves_s < _NOISE * lead.latency_s and (saves_s < 0 or saves_bytes <= 0):
        return None
    argument = change.argument
    if change.kind != "strategy" and change.setup.strategy not in now.strategies:
        argument += f" --strategy {change.setup.strategy}"
    return Suggestion(
        change=change.kind,
        argument=argument,
        strategy=change.setup.strategy,
        spill_bytes=after.spill_bytes,
        latency_s=after.latency_s,
        energy_j=after.energy_j,
        saves_s=saves_s,
        saves_bytes=saves_bytes,
        saves_j=lead.energy_j - change.runs * after.energy_j,
        costs=change.costs,
    )
