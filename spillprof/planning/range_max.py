"""Segment trees over steps: range add with range maximum, and the lowest rank that covers a step."""

from collections.abc import Sequence

_NOTHING = -(1 << 100)
"""Padding of the tree up to a power of two: below any element, whatever is added."""


class RangeMax:
    """Range add and range maximum of integers, O(log n) each: an iterative segment tree with lazy additions.

    Every node holds the maximum below it, without the pending additions of its ancestors.
    """

    def __init__(self, values: Sequence[int]) -> None:
        self._n = 1 << max(0, (len(values) - 1).bit_length())
        self._top = [_NOTHING] * self._n + list(values) + [_NOTHING] * (self._n - len(values))
        self._pending = [0] * self._n
        for p in range(self._n - 1, 0, -1):
            self._top[p] = max(self._top[2 * p], self._top[2 * p + 1])

    def add(self, start: int, end: int, value: int) -> None:
        """Add ``value`` to every element of ``[start, end)``."""
        if start >= end:
            return
        n, top, pending = self._n, self._top, self._pending
        left, right = start + n, end + n
        while left < right:
            if left & 1:
                top[left] += value
                if left < n:
                    pending[left] += value
                left += 1
            if right & 1:
                right -= 1
                top[right] += value
                if right < n:
                    pending[right] += value
            left >>= 1
            right >>= 1
        for leaf in (start + n, end - 1 + n):
            p = leaf >> 1
            while p:
                a, b = top[2 * p], top[2 * p + 1]
                top[p] = (a if a > b else b) + pending[p]
                p >>= 1

    def max(self, start: int, end: int) -> int:
        """The largest element of ``[start, end)``, which must not be empty."""
        n, top, pending = self._n, self._top, self._pending
        left, right = start + n, end + n
        best_left = best_right = None
        while left < right:
            if left & 1:
                best_left = top[left] if best_left is None or top[left] > best_left else best_left
                left += 1
            if right & 1:
                right -= 1
                best_right = top[right] if best_right is None or top[right] > best_right else best_right
            left >>= 1
            right >>= 1
            # The nodes taken so far on each side lie below the node just outside of what is left to cover.
            if best_left is not None:
                best_left += pending[left - 1]
            if best_right is not None:
                best_right += pending[right]
        low, high = (left - 1) >> 1, right >> 1
        while low or high:
            if best_left is not None:
                best_left += pending[low]
            if best_right is not None:
                best_right += pending[high]
            low >>= 1
            high >>= 1
        return max(value for value in (best_left, best_right) if value is not None)

    def overall(self) -> tuple[int, int]:
        """(maximum, position of the first element that has it)."""
        p, n = 1, self._n
        while p < n:
            p = 2 * p if self._top[2 * p] >= self._top[2 * p + 1] else 2 * p + 1
        return self._top[1], p - n


class StabbingIndex:
    """Ranked intervals of steps: finds the one of lowest rank that covers a step and is not taken yet."""

    def __init__(self, n: int) -> None:
        self._n = 1 << max(0, (n - 1).bit_length())
        self._ranks: dict[int, list[int]] = {}
        self._head: dict[int, int] = {}

    def append(self, rank: int, start: int, end: int) -> None:
        """Add ``[start, end)``. Ranks must be appended in ascending order."""
        left, right = start + self._n, end + self._n
        while left < right:
            if left & 1:
                self._ranks.setdefault(left, []).append(rank)
                left += 1
            if right & 1:
                right -= 1
                self._ranks.setdefault(right, []).append(rank)
            left >>= 1
            right >>= 1

    def first(self, step: int, taken: Sequence[bool]) -> int | None:
        """The lowest rank whose interval covers ``step`` and that is not ``taken``."""
        best: int | None = None
        p = step + self._n
        while p:
            ranks = self._ranks.get(p)
            if ranks is not None:
                head = self._head.get(p, 0)
                while head < len(ranks) and taken[ranks[head]]:
                    head += 1
                self._head[p] = head
                if head < len(ranks) and (best is None or ranks[head] < best):
                    best = ranks[head]
            p >>= 1
        return best
