"""First fit and best fit."""

from spillprof.planning.free_list import FreeList
from spillprof.planning.placement.owner import Owner


class FirstFit:
    """The hole with the lowest address."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The lowest address at which ``size`` bytes are free."""
        return free.first_fit(size)

    def freed(self, address: int, size: int) -> None:
        """Nothing to remember."""


class BestFit:
    """The smallest hole that is large enough."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The start of the smallest hole of at least ``size`` bytes."""
        return free.best_fit(size)

    def freed(self, address: int, size: int) -> None:
        """Nothing to remember."""
