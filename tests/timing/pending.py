"""Which address ranges still hold bytes that are on their way to DRAM."""

from bisect import bisect_left, bisect_right


class PendingWrites:
    """A piecewise map from address to the write that empties it: disjoint pieces, sorted by address.

    Writes end in the order in which they are added (one channel), so a later one simply covers earlier ones.
    Claiming a range removes its pieces: whoever claims it starts after they are gone, and so does all that comes
    after. Each call adds at most two pieces, so n calls look at O(n) pieces in all; finding them is a bisection.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: dict[int, tuple[int, float, int]] = {}  # start -> end, seconds, transfer

    def add(self, address: int, size: int, end_s: float, transfer: int) -> None:
        """The range is busy until ``end_s``, when write ``transfer`` completes."""
        self.claim(address, size)
        if size:
            self._insert(address, address + size, end_s, transfer)

    def claim(self, address: int, size: int) -> tuple[float, int]:
        """``(end_s, transfer)`` of the last write that the range waits for; ``(0.0, -1)`` if none. It is free then."""
        if not self._starts or not size:
            return 0.0, -1
        top = address + size
        first = bisect_right(self._starts, address) - 1
        if first < 0 or self._pieces[self._starts[first]][0] <= address:
            first += 1
        last = bisect_left(self._starts, top)
        latest_s, latest = 0.0, -1
        outside: list[tuple[int, int, float, int]] = []
        for start in self._starts[first:last]:
            end, end_s, transfer = self._pieces.pop(start)
            if end_s > latest_s:
                latest_s, latest = end_s, transfer
            if start < address:
                outside.append((start, address, end_s, transfer))
            if end > top:
                outside.append((top, end, end_s, transfer))
        del self._starts[first:last]
        for piece in outside:
            self._insert(*piece)
        return latest_s, latest

    def _insert(self, start: int, end: int, end_s: float, transfer: int) -> None:
        self._starts.insert(bisect_left(self._starts, start), start)
        self._pieces[start] = (end, end_s, transfer)
