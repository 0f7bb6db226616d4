"""Placement in infinite memory: no address is ever used twice, so nobody waits for anybody's space."""

from spillprof.model.program import Program
from spillprof.planning.free_list import FreeList
from spillprof.planning.placement.owner import Owner


class NeverAgain:
    """The next address that was never used."""

    def __init__(self, program: Program) -> None:
        self._next = program.reserved_bytes

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The end of all that was placed so far, and of what was resident when the run began."""
        address = max(self._next, free.tail())
        self._next = address + size
        return address

    def freed(self, address: int, size: int) -> None:
        """Space is never used again."""
