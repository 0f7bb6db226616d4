"""Search for the order of steps that spills least: list schedules, beam search, then changes inside of windows.

An order is legal if it respects the dependencies: each step comes after those that write what it reads. Candidates are
judged by what they spill, not by their peak: an order with a lower peak can spill as much, and one with the same peak
less.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random

from spillprof.ir.program import BufferKind, Program

StepOrder = tuple[int, ...]
OrderCost = Callable[[StepOrder], tuple[float, ...]]
"""The cost of an order; less is better."""

Key = Callable[[int, int, int], tuple[float, ...]]
"""(step, net growth of the bytes in use, steps done when it became ready) -> its priority, smallest first."""

_BEAM_WIDTH = 32
_WINDOWS = (10, 20, 40, 80)
_JITTERS = (2.0, 5.0, 15.0, 40.0)
_MOST_LOOKS = 200_000  # extensions of partial orders that a beam search looks at before it gives up


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """The dependency graph of steps, and what each step does to the bytes in use. Steps and buffers by index."""

    waits_for: tuple[tuple[int, ...], ...]  # by step: its predecessors, each once
    awaited_by: tuple[tuple[int, ...], ...]  # by step: its successors
    readers: tuple[tuple[int, ...], ...]  # by buffer: steps that read or hold it
    size_bytes: tuple[int, ...]  # by buffer: pool bytes; 0 for dedicated buffers and weights
    loaded: tuple[tuple[int, ...], ...]  # by step: graph inputs among its reads
    written: tuple[tuple[int, ...], ...]  # by step: results that some step reads
    read: tuple[tuple[int, ...], ...]  # by step: operands and held buffers that count


def dependencies(program: Program) -> Dependencies:
    """The dependency graph of a program's steps. Weights are left out: no order changes their bytes."""
    buffers = program.buffers
    readers: list[list[int]] = [[] for _ in buffers]
    writer = {b: i for i, step in enumerate(program.steps) for b in step.writes}
    waits_for = [
        tuple(dict.fromkeys(writer[b] for b in (*step.reads, *step.holds) if b in writer)) for step in program.steps
    ]
    awaited_by: list[list[int]] = [[] for _ in program.steps]
    for i, step in enumerate(program.steps):
        for j in waits_for[i]:
            awaited_by[j].append(i)
        for b in step.reads:
            readers[b].append(i)
    holds = [tuple(b for b in step.holds if b in writer or readers[b]) for step in program.steps]
    for i, held in enumerate(holds):  # a hold keeps a buffer live as a read does
        for b in held:
            readers[b].append(i)
    counted = [not b.dedicated and b.kind is not BufferKind.WEIGHT for b in buffers]
    return Dependencies(
        waits_for=tuple(waits_for),
        awaited_by=tuple(map(tuple, awaited_by)),
        readers=tuple(map(tuple, readers)),
        size_bytes=tuple(b.size_bytes if counted[b.index] else 0 for b in buffers),
        loaded=tuple(tuple(b for b in s.reads if b not in writer and counted[b]) for s in program.steps),
        written=tuple(tuple(b for b in s.writes if readers[b] and counted[b]) for s in program.steps),
        read=tuple(
            tuple(b for b in (*s.reads, *held) if counted[b]) for s, held in zip(program.steps, holds, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffort:
    """How many orders are judged: counts, so that the result never depends on the speed of the machine."""

    restarts: int  # list schedules with noise
    changes: int  # of the best order so far


def order_effort(steps_to_judge: int) -> OrderEffort:
    """Fewer trials where each takes longer; ``steps_to_judge``: steps simulated for one trial."""
    for most, restarts, changes in ((300, 16, 60), (1_000, 8, 24), (3_000, 4, 8), (20_000, 1, 2)):
        if steps_to_judge <= most:
            return OrderEffort(restarts=restarts, changes=changes)
    return OrderEffort(restarts=0, changes=0)


def least_order(graph: Dependencies, judge: OrderCost, capacity_bytes: int, trials: OrderEffort) -> StepOrder:
    """The best order found; the present one (0, 1, 2, ...) if none costs less."""
    best: StepOrder = tuple(range(len(graph.waits_for)))
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
            if other <= cost:  # accept ties: the next change starts from elsewhere
                best, cost = order, other
    return best


def _schedules(graph: Dependencies, capacity_bytes: int, trials: OrderEffort) -> Iterator[StepOrder]:
    for key in (*KEYS, *map(noisy, range(trials.restarts))):
        yield list_order(graph, key)
    beam = beam_order(graph, capacity_bytes, _BEAM_WIDTH)
    if beam is not None:
        yield beam


def _changed(order: Sequence[int], rng: Random) -> Key:
    """A key that reproduces the order except in a random window, which is jittered, or rescheduled with noise."""
    n = len(order)
    rank = [0] * n
    for position, step in enumerate(order):
        rank[step] = position
    reach, centre = rng.choice((*_WINDOWS, n)), rng.randrange(max(1, n))
    low, high = centre - reach, centre + reach
    if rng.random() < 0.3:
        inner = noisy(rng.randrange(1 << 30)) if rng.random() < 0.8 else _grow_least_latest

        def rescheduled(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
            at = rank[step]
            return (low, *inner(step, growth, ready_since)) if low <= at < high else (at, 0.0, 0.0, 0.0)

        return rescheduled
    scale = rng.choice(_JITTERS)
    jitter = {step: rng.gauss(0, scale) for step in order[max(0, low) : high]}

    def shaken(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
        return rank[step] + jitter.get(step, 0.0), step

    return shaken


# --- list scheduling


def _grow_least_latest(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """Least growth; ties: the one that became ready last, so that a chain is followed to its end."""
    return growth, -ready_since, step


def _grow_least_first(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """Least growth; ties: the first in the present order."""
    return growth, step


def _shrink_first(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """Steps that free memory first; else the present order."""
    return growth >= 0, step


def _follow_chains(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """Steps that do not grow memory first; else the one that became ready last."""
    return growth > 0, -ready_since, growth, step


KEYS: tuple[Key, ...] = (_grow_least_latest, _grow_least_first, _shrink_first, _follow_chains)


def noisy(seed: int, spread: float = 0.5) -> Key:
    """Least growth times a random factor of each step, so that restarts differ. Deterministic by seed."""

    def key(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
        return growth * (1 + spread * (Random(seed * 1_000_003 + step).random() - 0.5)), -ready_since, step

    return key


def list_order(graph: Dependencies, key: Key) -> tuple[int, ...]:
    """List scheduling: always runs the ready step of smallest key. O(E log N).

    A step is keyed anew only when its growth has changed.
    """
    n = len(graph.waits_for)
    missing = [len(before) for before in graph.waits_for]
    unread = [len(readers) for readers in graph.readers]
    present = [False] * len(graph.size_bytes)
    ready_since: dict[int, int] = {i: 0 for i in range(n) if not missing[i]}
    done = [False] * n
    order: list[int] = []

    def growth(i: int) -> int:
        grown = sum(graph.size_bytes[b] for b in graph.written[i])
        grown += sum(graph.size_bytes[b] for b in graph.loaded[i] if not present[b])
        return grown - sum(graph.size_bytes[b] for b in graph.read[i] if unread[b] == 1)

    heap = [(key(i, growth(i), 0), i) for i in ready_since]
    heapify(heap)
    latest = {i: entry for entry, i in heap}
    while heap:
        entry, i = heappop(heap)
        if done[i] or latest[i] != entry:
            continue  # stale entry
        done[i] = True
        order.append(i)
        changed: list[int] = []
        for b in graph.loaded[i]:
            if not present[b]:
                present[b] = True
                changed += graph.readers[b]
        for b in graph.read[i]:
            unread[b] -= 1
            if unread[b] == 1:
                changed += (j for j in graph.readers[b] if not done[j])
        for j in graph.awaited_by[i]:
            missing[j] -= 1
            if not missing[j]:
                ready_since[j] = len(order)
                changed.append(j)
        for j in dict.fromkeys(changed):
            if j in ready_since and not done[j]:
                latest[j] = key(j, growth(j), ready_since[j])
                heappush(heap, (latest[j], j))
    return tuple(order)


# --- beam search


@dataclass(frozen=True, slots=True)
class _Partial:
    """A partial order. Sets of steps are bit masks."""

    excess: int  # bytes over the capacity, summed over the steps done
    peak: int
    live: int  # bytes in use now
    done: int
    ready: tuple[int, ...]
    last: "tuple[int, object] | None"  # linked list of the steps, latest first


def beam_order(graph: Dependencies, capacity_bytes: int, width: int) -> tuple[int, ...] | None:
    """An order found by beam search: keeps ``width`` partial orders, least bytes over the capacity, then least peak.

    None where too many steps are ready at once to finish.
    """
    n = len(graph.waits_for)
    needs = [sum(1 << j for j in before) for before in graph.waits_for]
    reader_masks = [sum(1 << j for j in readers) for readers in graph.readers]
    beam = [_Partial(0, 0, 0, 0, tuple(i for i in range(n) if not needs[i]), None)]
    looks = 0
    for _ in range(n):
        looks += sum(len(state.ready) for state in beam)
        if looks > _MOST_LOOKS:
            return None
        best: dict[int, _Partial] = {}
        for state in beam:
            for i in state.ready:
                grown = sum(graph.size_bytes[b] for b in graph.written[i])
                grown += sum(graph.size_bytes[b] for b in graph.loaded[i] if not reader_masks[b] & state.done)
                used = state.live + grown
                done = state.done | 1 << i
                excess = state.excess + max(0, used - capacity_bytes)
                peak = max(state.peak, used)
                other = best.get(done)
                if other is not None and (other.excess, other.peak) <= (excess, peak):
                    continue
                freed = sum(graph.size_bytes[b] for b in graph.read[i] if not reader_masks[b] & ~done)
                best[done] = _Partial(excess, peak, used - freed, done, (i, *state.ready), (i, state.last))
        chosen = sorted(best.values(), key=lambda s: (s.excess, s.peak, s.live))[:width]
        beam = [_advanced(state, graph, needs) for state in chosen]
    order: list[int] = []
    link = beam[0].last
    while link is not None:
        step, link = link  # type: ignore[assignment]
        order.append(step)
    return tuple(reversed(order))


def _advanced(state: _Partial, graph: Dependencies, needs: list[int]) -> _Partial:
    """The partial order with its ready steps updated after the step just done."""
    ran, *others = state.ready
    ready = [j for j in others if j != ran]
    ready += [j for j in graph.awaited_by[ran] if not needs[j] & ~state.done]
    return _Partial(state.excess, state.peak, state.live, state.done, tuple(ready), state.last)
