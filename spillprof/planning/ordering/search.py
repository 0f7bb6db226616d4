"""Search for the order of steps that spills least: many list schedules, a beam, then changes inside of windows.

Every candidate is judged by what it spills, not by its peak: an order with a lower peak can spill as much, and one
with the same peak less.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from spillprof.planning.ordering.beam import beam_order
from spillprof.planning.ordering.dependencies import Dependencies
from spillprof.planning.ordering.list_scheduling import KEYS, Key, grow_least_latest, list_order, noisy

Order = tuple[int, ...]
Judge = Callable[[Order], tuple[float, ...]]
"""What an order costs; less is better."""

_BEAM_WIDTH = 32
_WINDOWS = (10, 20, 40, 80)
_JITTERS = (2.0, 5.0, 15.0, 40.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How many orders are judged. The result depends on these counts, never on the speed of the machine."""

    restarts: int  # list schedules with noise
    changes: int  # of the best order so far


def effort(steps_to_judge: int) -> Effort:
    """Fewer trials where one takes longer: ``steps_to_judge`` is how many steps are simulated for it."""
    for most, restarts, changes in ((300, 16, 60), (1_000, 8, 24), (3_000, 4, 8), (20_000, 1, 2)):
        if steps_to_judge <= most:
            return Effort(restarts=restarts, changes=changes)
    return Effort(restarts=0, changes=0)


def least_order(graph: Dependencies, judge: Judge, capacity_bytes: int, trials: Effort) -> Order:
    """The best order found; the present one (0, 1, 2, ...) if none is better by the judge."""
    best: Order = tuple(range(len(graph.waits_for)))
    cost = judge(best)
    seen = {best}
    for order in _schedules(graph, capacity_bytes, trials):
        if order not in seen:
            seen.add(order)
            other = judge(order)
            if other < cost:
                best, cost = order, other
    rng = Random(0)
    for _ in range(trials.changes):
        order = list_order(graph, _changed(best, rng))
        if order not in seen:
            seen.add(order)
            other = judge(order)
            if other <= cost:  # sideways too: the next change starts from elsewhere
                best, cost = order, other
    return best


def _schedules(graph: Dependencies, capacity_bytes: int, trials: Effort) -> Iterator[Order]:
    for key in (*KEYS, *map(noisy, range(trials.restarts))):
        yield list_order(graph, key)
    beam = beam_order(graph, capacity_bytes, _BEAM_WIDTH)
    if beam is not None:
        yield beam


def _changed(order: Sequence[int], rng: Random) -> Key:
    """A key that gives the order again but for a window, which is shaken, or scheduled anew with noise."""
    n = len(order)
    rank = [0] * n
    for position, step in enumerate(order):
        rank[step] = position
    reach, centre = rng.choice((*_WINDOWS, n)), rng.randrange(max(1, n))
    low, high = centre - reach, centre + reach
    if rng.random() < 0.3:
        inner = noisy(rng.randrange(1 << 30)) if rng.random() < 0.8 else grow_least_latest

        def rescheduled(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
            at = rank[step]
            return (low, *inner(step, growth, ready_since)) if low <= at < high else (at, 0.0, 0.0, 0.0)

        return rescheduled
    scale = rng.choice(_JITTERS)
    jitter = {step: rng.gauss(0, scale) for step in order[max(0, low) : high]}

    def shaken(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
        return rank[step] + jitter.get(step, 0.0), step

    return shaken
