"""A cover in the making: which gaps are spent off-chip, what they cost, what each step still lacks; greedy completion.

Columns are gaps of a reduced covering problem, rows its steps. The first spent column of a buffer pays for the
write-back that the buffer's columns share.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.planning.bounds.reduction import Reduced


class Cover:
    """A set of spent columns, its cost, and the ``slack`` of each row: bytes over-covered (below 0: lacking)."""

    def __init__(self, reduced: Reduced, columns: Iterable[int] = ()) -> None:
        self.reduced = reduced
        self.sizes: list[int] = reduced.sizes.tolist()
        self.costs: list[int] = reduced.costs.tolist()
        self.buffers = reduced.buffers
        self.write_costs = reduced.write_costs
        self.slack: Ints = -reduced.needs
        self.spent = [False] * len(reduced.gaps)
        self.spent_of: dict[int, int] = dict.fromkeys(reduced.buffers, 0)  # spent columns of each buffer
        self.cost = 0
        for c in columns:
            self.spend(c)

    def columns(self) -> list[int]:
        """Spent columns, ascending."""
        return [c for c, spent in enumerate(self.spent) if spent]

    def spend(self, c: int) -> None:
        """Spend a column: its gap goes off-chip."""
        self.cost += self.price(c)
        self.spent[c] = True
        self.spent_of[self.buffers[c]] += 1
        for start, end in self.reduced.ranges[c]:
            self.slack[start:end] += self.sizes[c]

    def keep(self, c: int) -> None:
        """Keep a spent column on-chip again."""
        self.spent[c] = False
        self.spent_of[self.buffers[c]] -= 1
        self.cost -= self.price(c)
        for start, end in self.reduced.ranges[c]:
            self.slack[start:end] -= self.sizes[c]

    def price(self, c: int) -> int:
        """The cost that spending a column adds, or that keeping a spent one saves."""
        b = self.buffers[c]
        last = self.spent_of[b] == (1 if self.spent[c] else 0)
        return self.costs[c] + (self.write_costs.get(b, 0) if last else 0)

    def prices(self, unspent: Iterable[int]) -> list[float]:
        """The cost that spending each of these unspent columns adds; 1e-9 in place of 0."""
        costs, buffers, spent_of, write_costs = self.costs, self.buffers, self.spent_of, self.write_costs
        return [costs[c] + (0 if spent_of[buffers[c]] else write_costs.get(buffers[c], 0)) or 1e-9 for c in unspent]

    def gain(self, c: int) -> int:
        """Bytes that a column covers of what rows lack."""
        size, total = self.sizes[c], 0
        for start, end in self.reduced.ranges[c]:
            total += int(np.minimum(np.maximum(-self.slack[start:end], 0), size).sum())
        return total

    def is_spare(self, c: int) -> bool:
        """Whether the cover stays complete without a spent column."""
        size, slack = self.sizes[c], self.slack
        return all(slack[start:end].min() >= size for start, end in self.reduced.ranges[c])

    def covers(self) -> bool:
        """Whether the cover is complete: no row lacks anything."""
        return not len(self.slack) or int(self.slack.min()) >= 0

    def prune(self, columns: Iterable[int]) -> list[int]:
        """Keep the spare columns among these again, dearest first; returns them."""
        kept = []
        for c in sorted(columns, key=lambda c: (-self.price(c), c)):
            if self.is_spare(c):
                self.keep(c)
                kept.append(c)
        return kept


_FREE = float("inf")


def complete_greedily(cover: Cover) -> bool:
    """Complete a cover greedily: spend the column that covers most lacking bytes for its cost. False if none helps.

    Keys only fall as rows fill, so the heap is lazy; but once a buffer is written, its other columns get cheaper and
    are pushed again.
    """
    others: dict[int, list[int]] = {}
    for c, b in enumerate(cover.buffers):
        if b in cover.write_costs:
            others.setdefault(b, []).append(c)
    heap = [(-_key(cover, c), c) for c in range(len(cover.spent)) if not cover.spent[c]]
    heapify(heap)
    missing = int((cover.slack < 0).sum())
    while missing:
        if not heap:
            return False
        old_key, c = heappop(heap)
        if cover.spent[c]:
            continue
        key = -_key(cover, c)
        if key >= 0:
            continue
        if heap and key > heap[0][0] and key > old_key:
            heappush(heap, (key, c))
            continue
        first = not cover.spent_of[cover.buffers[c]]
        cover.spend(c)
        missing = int((cover.slack < 0).sum())
        if first:
            for other in others.get(cover.buffers[c], ()):
                if not cover.spent[other]:
                    heappush(heap, (-_key(cover, other), other))
    return True


def _key(cover: Cover, c: int) -> float:
    gain, price = cover.gain(c), cover.price(c)
    return 0.0 if not gain else gain / price if price else _FREE
