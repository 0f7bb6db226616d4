"""Perfect placement: bytes are counted and have no addresses, as if every buffer could be cut and moved for nothing.

What a strategy spills less with it, it spills for want of one hole. Its plans tell bytes only: they cannot run.
"""

from spillprof.planning.free_list import FreeList
from spillprof.planning.placement.owner import Owner


class CountedSpace(FreeList):
    """A memory that knows how many bytes are free, and nothing of where."""

    __slots__ = ("_start",)

    def __init__(self, start: int, end: int) -> None:
        super().__init__(start, end)
        self._start = start

    def best_fit(self, size: int) -> int | None:
        """The start of the memory, if so many bytes are free."""
        return self._start if size <= self.free_bytes else None

    first_fit = best_fit

    def is_free(self, address: int, size: int) -> bool:
        """Whether so many bytes are free, wherever."""
        return size <= self.free_bytes

    def take(self, address: int, size: int) -> None:
        """Occupy so many bytes."""
        if size > self.free_bytes:
            raise ValueError(f"{size} bytes are not free")
        self.free_bytes -= size

    def give(self, address: int, size: int) -> None:
        """Free so many bytes."""
        self.free_bytes += size


class Anywhere:
    """The placement that goes with a counted space."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The start of the memory, if so many bytes are free."""
        return free.best_fit(size)

    def freed(self, address: int, size: int) -> None:
        """Nothing to remember."""
