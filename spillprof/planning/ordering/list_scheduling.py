"""List scheduling: of the steps that are ready, always run the one that is best for memory now."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from random import Random

from spillprof.planning.ordering.dependencies import Dependencies

Key = Callable[[int, int, int], tuple[float, ...]]
"""(step, net growth of the bytes in use if it ran now, how many steps ran when it became ready) -> least first."""


def grow_least_latest(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """Least growth; of equals the one that became ready last, so that a chain is followed to its end."""
    return growth, -ready_since, step


def grow_least_first(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """Least growth; of equals the first in the present order."""
    return growth, step


def shrink_first(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """What frees memory at once; else the present order."""
    return growth >= 0, step


def follow_chains(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
    """What does not grow memory; else the one that became ready last."""
    return growth > 0, -ready_since, growth, step


KEYS: tuple[Key, ...] = (grow_least_latest, grow_least_first, shrink_first, follow_chains)


def noisy(seed: int, spread: float = 0.5) -> Key:
    """Least growth, each step's weighed by a factor of its own, so that restarts differ. The same for one seed."""

    def key(step: int, growth: int, ready_since: int) -> tuple[float, ...]:
        return growth * (1 + spread * (Random(seed * 1_000_003 + step).random() - 0.5)), -ready_since, step

    return key


def list_order(graph: Dependencies, key: Key) -> tuple[int, ...]:
    """An order of all steps. O(E log N): a ready step is looked at again only when its growth has changed."""
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
            continue  # there is a newer entry
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
