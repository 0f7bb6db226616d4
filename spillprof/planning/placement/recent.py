"""Recently freed block of the same size first: keeps addresses stable from one feature map to the next."""

from collections import defaultdict

from spillprof.planning.free_list import FreeList
from spillprof.planning.placement.owner import Owner


class RecentSameSize:
    """The block of this very size that was freed last, while it is still free; else best fit."""

    def __init__(self) -> None:
        self._freed: defaultdict[int, list[int]] = defaultdict(list)

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The most recently freed address of this size, else the best fit."""
        recent = self._freed[size]
        while recent:
            address = recent.pop()
            if free.is_free(address, size):
                return address
        return free.best_fit(size)

    def freed(self, address: int, size: int) -> None:
        """Remember the block."""
        self._freed[size].append(address)
