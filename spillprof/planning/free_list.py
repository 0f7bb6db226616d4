"""Free list of one contiguous memory: freed neighbours merge; most operations are near O(log n)."""

from bisect import bisect_left, bisect_right, insort
from enum import StrEnum

INFINITE_BYTES = 1 << 62
"""Size that stands for infinite memory."""


class Fit(StrEnum):
    """Which hole an allocation goes to."""

    FIRST = "first"  # the lowest
    BEST = "best"  # the smallest that is large enough


class FreeList:
    """Holes of the region ``[start, end)``, ordered by address and by size."""

    __slots__ = ("_by_size", "_ends", "_starts", "free_bytes")

    def __init__(self, start: int, end: int) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._by_size: list[tuple[int, int]] = []
        self.free_bytes = 0
        if end > start:
            self._starts.append(start)
            self._ends.append(end)
            self._remember(start, end)
            self.free_bytes = end - start

    def copy(self) -> "FreeList":
        """An independent copy."""
        other = FreeList(0, 0)
        other._starts, other._ends = self._starts.copy(), self._ends.copy()
        other._by_size, other.free_bytes = self._by_size.copy(), self.free_bytes
        return other

    def holes(self) -> list[tuple[int, int]]:
        """``(start, end)`` of every hole, by address."""
        return list(zip(self._starts, self._ends, strict=True))

    def first_fit(self, size: int) -> int | None:
        """Lowest address of a hole of at least ``size`` bytes."""
        for start, end in zip(self._starts, self._ends, strict=True):
            if end - start >= size:
                return start
        return None

    def best_fit(self, size: int) -> int | None:
        """Start of the smallest hole of at least ``size`` bytes; ties: the lowest address."""
        i = bisect_left(self._by_size, (size, -1))
        return self._by_size[i][1] if i < len(self._by_size) else None

    def hole_at(self, address: int) -> tuple[int, int]:
        """``(start, end)`` of the hole around a free address."""
        i = bisect_right(self._starts, address) - 1
        return self._starts[i], self._ends[i]

    def tail(self) -> int:
        """Start of the last hole, which must exist."""
        return self._starts[-1]

    def is_free(self, address: int, size: int) -> bool:
        """Whether ``[address, address + size)`` lies within one hole."""
        i = bisect_right(self._starts, address) - 1
        return i >= 0 and self._ends[i] >= address + size

    def take(self, address: int, size: int) -> None:
        """Occupy ``[address, address + size)``, which must be free."""
        if size == 0:
            return
        i = bisect_right(self._starts, address) - 1
        start, end, top = self._starts[i], self._ends[i], address + size
        if i < 0 or end < top:
            raise ValueError(f"[{address}, {address + size}) is not free")
        self._forget(start, end)
        if start < address:
            self._ends[i] = address
            self._remember(start, address)
            if top < end:
                self._starts.insert(i + 1, top)
                self._ends.insert(i + 1, end)
                self._remember(top, end)
        elif top < end:
            self._starts[i] = top
            self._remember(top, end)
        else:
            del self._starts[i], self._ends[i]
        self.free_bytes -= size

    def give(self, address: int, size: int) -> None:
        """Free ``[address, address + size)``, which must be occupied."""
        if size == 0:
            return
        start, end = address, address + size
        i = bisect_left(self._starts, address)
        if i < len(self._starts) and self._starts[i] == end:
            end = self._ends[i]
            self._forget(self._starts[i], end)
            if i > 0 and self._ends[i - 1] == start:
                start = self._starts[i - 1]
                self._forget(start, address)
                del self._starts[i], self._ends[i - 1]
            else:
                self._starts[i] = start
        elif i > 0 and self._ends[i - 1] == start:
            start = self._starts[i - 1]
            self._forget(start, address)
            self._ends[i - 1] = end
        else:
            self._starts.insert(i, start)
            self._ends.insert(i, end)
        self._remember(start, end)
        self.free_bytes += size

    def _remember(self, start: int, end: int) -> None:
        insort(self._by_size, (end - start, start))

    def _forget(self, start: int, end: int) -> None:
        del self._by_size[bisect_left(self._by_size, (end - start, start))]
