"""The last owner of each address: what a new owner of a range waits for."""

from bisect import bisect_left, bisect_right


class AddressMap:
    """A piecewise map from address to its last owner: disjoint pieces, sorted by address.

    ``pop`` removes the pieces of a range; its new owner waits for the owners returned. Each call adds at most two
    pieces, so n calls visit O(n) pieces in all; finding them is a bisection.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: dict[int, tuple[int, int]] = {}  # start -> end, owner

    def put(self, address: int, size: int, owner: int) -> None:
        """Makes ``owner`` the owner of the range."""
        self.pop(address, size)
        if size:
            self._insert(address, address + size, owner)

    def pop(self, address: int, size: int) -> list[int]:
        """Removes and returns the owners of the range, each once, by address."""
        if not self._starts or not size:
            return []
        top = address + size
        first = bisect_right(self._starts, address) - 1
        if first < 0 or self._pieces[self._starts[first]][0] <= address:
            first += 1
        last = bisect_left(self._starts, top)
        if first >= last:
            return []
        owners: dict[int, None] = {}
        outside: list[tuple[int, int, int]] = []
        for start in self._starts[first:last]:
            end, owner = self._pieces.pop(start)
            owners[owner] = None
            if start < address:
                outside.append((start, address, owner))
            if end > top:
                outside.append((top, end, owner))
        del self._starts[first:last]
        for piece in outside:
            self._insert(*piece)
        return list(owners)

    def _insert(self, start: int, end: int, owner: int) -> None:
        self._starts.insert(bisect_left(self._starts, start), start)
        self._pieces[start] = (end, owner)
