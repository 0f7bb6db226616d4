"""Free space of one contiguous memory. Freed neighbours merge; every operation is near O(log n)."""

from bisect import bisect_left, bisect_right, insort

INFINITE_BYTES = 1 << 62
"""Size that stands for infinite memory."""


class FreeList:
    """Holes of the region ``[start, end)``, ordered by address and by size."""

    __slots__ = ("_by_size", "_ends", "_starts", "free_bytes")

    def __init__(self, start: int, end: int) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._by_size: list[tuple[int, int]] = []
        self.free_bytes = 0
        if end > start:
            self._insert(0, start, end)
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
        start, end = self._starts[i], self._ends[i]
        if i < 0 or end < address + size:
            raise ValueError(f"[{address}, {address + size}) is not free")
        self._remove(i)
        if address + size < end:
            self._insert(i, address + size, end)
        if start < address:
            self._insert(i, start, address)
        self.free_bytes -= size

    def give(self, address: int, size: int) -> None:
        """Free ``[address, address + size)``, which must be occupied."""
        if size == 0:
            return
        start, end = address, address + size
        i = bisect_left(self._starts, address)
        if i < len(self._starts) and self._starts[i] == end:
            end = self._ends[i]
            self._remove(i)
        if i > 0 and self._ends[i - 1] == start:
            start = self._starts[i - 1]
            self._remove(i - 1)
            i -= 1
        self._insert(i, start, end)
        self.free_bytes += size

    def _insert(self, i: int, start: int, end: int) -> None:
        self._starts.insert(i, start)
        self._ends.insert(i, end)
        insort(self._by_size, (end - start, start))

    def _remove(self, i: int) -> None:
        key = (self._ends[i] - self._starts[i], self._starts[i])
        del self._starts[i], self._ends[i]
        del self._by_size[bisect_left(self._by_size, key)]
