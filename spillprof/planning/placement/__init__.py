"""Placement policies: at which address a new segment goes."""

from typing import Protocol

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.program import Program
from spillprof.planning.free_list import FreeList
from spillprof.planning.options import PERFECT, PLACEMENTS
from spillprof.planning.placement.fits import BestFit, FirstFit
from spillprof.planning.placement.owner import Owner
from spillprof.planning.placement.perfect import Anywhere, CountedSpace
from spillprof.planning.placement.recent import RecentSameSize
from spillprof.planning.placement.size_classes import SizeClasses
from spillprof.planning.placement.unlimited import EndlessSpace, NeverAgain


class Placement(Protocol):
    """Chooses addresses for one run. ``choose`` returns an address where ``size`` bytes are free, or None."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The address for a new segment of ``size`` bytes; None if no hole is large enough."""

    def freed(self, address: int, size: int) -> None:
        """Told after each segment's end."""


def make_placement(name: str, program: Program) -> Placement:
    """A fresh policy of that name for one run of the program; in infinite memory none is needed.

    ``UsageError`` for an unknown name.
    """
    if program.capacity_bytes is None and name in (*PLACEMENTS, PERFECT):
        return NeverAgain()
    match name:
        case "perfect":
            return Anywhere()
        case "first-fit":
            return FirstFit()
        case "best-fit":
            return BestFit()
        case "recent-same-size":
            return RecentSameSize()
        case "size-classes":
            return SizeClasses(program)
    near = nearest(name, PLACEMENTS)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise UsageError(f"unknown placement '{name}'", hint=f"{hint}available: {', '.join(PLACEMENTS)}")


def make_space(program: Program, pool: tuple[int, int], placement: str) -> FreeList:
    """The free memory of a run: holes with addresses; a count of bytes where there are none to choose, or no end."""
    if program.capacity_bytes is None:
        return EndlessSpace(*pool)
    return CountedSpace(*pool) if placement == PERFECT else FreeList(*pool)
