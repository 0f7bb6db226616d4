"""Greedy layouts: one buffer after the other, each into a hole among the buffers live at the same time.

Several cheap orders and fits make a portfolio; none is best everywhere. ``colored`` works differently: it colours the
live ranges of equal-sized buffers as an interval graph, and places each colour as one slot.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.planning.free_list import INFINITE_BYTES, Fit, FreeList
from spillprof.planning.layout.instance import Instance

LAYOUT_ORDERS: dict[str, Callable[[Instance], Ints]] = {
    "size": lambda i: np.lexsort((i.first, -i.sizes)),
    "area": lambda i: np.lexsort((i.first, -i.sizes * (i.stop - i.first))),
    "duration": lambda i: np.lexsort((-i.sizes, -(i.stop - i.first))),
    "load": lambda i: np.lexsort((-i.sizes, -_highest_load(i))),
    "conflicts": lambda i: np.lexsort((-i.sizes, -_conflicts(i))),
}
"""Greedy orders of buffers. Each compares all pairs: for instances of moderate size."""


def in_time_order(instance: Instance, fit: Fit) -> Ints:
    """Offsets that an online allocator gives: buffers in order of their start, from a free list. Near O(n log n)."""
    free = FreeList(0, INFINITE_BYTES)
    offsets = np.zeros(len(instance), dtype=np.int64)
    ending: list[tuple[int, int]] = []
    sizes, stops, first = instance.sizes.tolist(), instance.stop.tolist(), instance.first.tolist()
    for k in np.lexsort((-instance.sizes, instance.first)).tolist():
        while ending and ending[0][0] <= first[k]:
            _, gone = heappop(ending)
            free.give(int(offsets[gone]), sizes[gone])
        address = free.first_fit(sizes[k]) if fit is Fit.FIRST else free.best_fit(sizes[k])
        if address is None:
            raise AssertionError("infinite memory is full")
        free.take(address, sizes[k])
        offsets[k] = address
        heappush(ending, (stops[k], k))
    return offsets


def in_order(instance: Instance, order: Iterable[int], fit: Fit) -> Ints:
    """Offsets when buffers are placed in that order, each into a hole among the conflicts placed before."""
    sizes, first, stop = instance.sizes, instance.first, instance.stop
    offsets = np.zeros(len(instance), dtype=np.int64)
    placed = np.zeros(len(instance), dtype=bool)
    for k in order:
        beside = np.flatnonzero(placed & (first < stop[k]) & (first[k] < stop))
        offsets[k] = _hole(offsets[beside], offsets[beside] + sizes[beside], int(sizes[k]), fit)
        placed[k] = True
    return offsets


def skyline(instance: Instance) -> Ints:
    """Offsets when the buffer that can lie lowest on those placed always comes next; ties: the longest-lived."""
    sizes, first, stop = instance.sizes, instance.first, instance.stop
    floors = np.zeros(len(instance), dtype=np.int64)
    offsets = np.zeros(len(instance), dtype=np.int64)
    rank = np.argsort(np.lexsort((-sizes, -(stop - first))))
    left = np.ones(len(instance), dtype=bool)
    for _ in range(len(instance)):
        lowest = np.flatnonzero(left & (floors == floors[left].min()))
        k = lowest[rank[lowest].argmin()]
        offsets[k], left[k] = floors[k], False
        beside = left & (first < stop[k]) & (first[k] < stop)
        floors[beside] = np.maximum(floors[beside], floors[k] + sizes[k])
    return offsets


def colored(instance: Instance) -> Ints:
    """Offsets of slots: as few for each size as buffers of it are live at once; largest first, by first fit.

    Interval graphs are coloured optimally in order of time, each interval in any free colour.
    """
    sizes, first, stop = instance.sizes.tolist(), instance.first.tolist(), instance.stop.tolist()
    slots: list[list[int]] = []
    by_size: dict[int, list[int]] = {}
    for k in np.argsort(instance.first, kind="stable").tolist():
        by_size.setdefault(sizes[k], []).append(k)
    for size in sorted(by_size, reverse=True):
        idle: list[tuple[int, int]] = []  # (section in which the slot is free again, slot)
        for k in by_size[size]:
            if idle and idle[0][0] <= first[k]:
                _, slot = heappop(idle)
                slots[slot].append(k)
            else:
                slot = len(slots)
                slots.append([k])
            heappush(idle, (stop[k], slot))
    offsets = np.zeros(len(instance), dtype=np.int64)
    placed = np.zeros(len(instance), dtype=bool)
    for slot_members in slots:
        beside = np.zeros(len(instance), dtype=bool)
        for k in slot_members:
            beside |= (instance.first < stop[k]) & (first[k] < instance.stop)
        beside &= placed
        offset = _hole(offsets[beside], offsets[beside] + instance.sizes[beside], sizes[slot_members[0]], Fit.FIRST)
        offsets[slot_members], placed[slot_members] = offset, True
    return offsets


def peak(instance: Instance, offsets: Ints) -> int:
    """The highest end, in units."""
    return int((offsets + instance.sizes).max(initial=0))


def _hole(starts: Ints, ends: Ints, size: int, fit: Fit) -> int:
    """Offset of the hole between occupied ranges that the fit picks; on top if none is large enough."""
    if not len(starts):
        return 0
    order = np.argsort(starts, kind="stable")
    tops = np.concatenate([[0], np.maximum.accumulate(ends[order])])
    room = starts[order] - tops[:-1]
    fitting = np.flatnonzero(room >= size)
    if not len(fitting):
        return int(tops[-1])
    return int(tops[fitting[0] if fit is Fit.FIRST else fitting[room[fitting].argmin()]])


def _highest_load(instance: Instance) -> Ints:
    return np.array(
        [instance.loads[a:b].max() for a, b in zip(instance.first, instance.stop, strict=True)], dtype=np.int64
    )


def _conflicts(instance: Instance) -> Ints:
    """Conflicts of each buffer: how many are live at the same time."""
    begun = np.searchsorted(np.sort(instance.first), instance.stop, side="left")
    ended = np.searchsorted(np.sort(instance.stop), instance.first, side="right")
    counts: Ints = begun - ended
    return counts
