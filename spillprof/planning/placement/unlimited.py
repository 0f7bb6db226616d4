"""Placement in infinite memory: no address is ever used twice, so nobody waits for anybody's space."""

from spillprof.planning.free_list import FreeList
from spillprof.planning.placement.owner import Owner


class EndlessSpace(FreeList):
    """A memory in which nothing that was left is looked at again: all beyond what was taken is free."""

    __slots__ = ("_top",)

    def __init__(self, start: int, end: int) -> None:
        super().__init__(start, end)
        self._top = start

    def tail(self) -> int:
        """The end of all that was ever taken."""
        return self._top

    def take(self, address: int, size: int) -> None:
        """Occupy ``[address, address + size)``."""
        self._top = max(self._top, address + size)

    def give(self, address: int, size: int) -> None:
        """Nobody asks for it again."""


class NeverAgain:
    """The next address that was never used."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The end of all that was placed so far, and of what was resident when the run began."""
        return free.tail()

    def freed(self, address: int, size: int) -> None:
        """Space is never used again."""
