"""Placements: the address that a new segment gets. One row of ``PLACEMENT_TABLE`` registers a placement whole.

To add one: write its policy, a class with ``choose``, and add its row. Option values, help, completion and checks
derive from the table.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.free_list import FreeList

Owner = tuple[int | str, int]
"""What a segment is for: (buffer, or the purpose of a step's scratch; tick at which its space begins)."""


class PlacementPolicy(ABC):
    """Chooses addresses for one run."""

    @abstractmethod
    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The address of a new segment of ``size`` bytes; None if no hole is large enough."""

    def freed(self, address: int, size: int) -> None:  # noqa: B027 - most policies remember nothing
        """Called after each segment ends. Ignored unless a policy remembers it."""


class FirstFit(PlacementPolicy):
    """The hole with the lowest address."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The lowest address at which ``size`` bytes are free."""
        return free.first_fit(size)


class BestFit(PlacementPolicy):
    """The smallest hole that is large enough."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The start of the smallest hole of at least ``size`` bytes."""
        return free.best_fit(size)


class RecentSameSize(PlacementPolicy):
    """The hole of exactly this size that was freed last, else best fit: feature maps keep their addresses."""

    def __init__(self) -> None:
        self._freed: defaultdict[int, list[int]] = defaultdict(list)

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The address of this size that was freed last and is still free, else the best fit."""
        recent = self._freed[size]
        while recent:
            address = recent.pop()
            if free.is_free(address, size):
                return address
        return free.best_fit(size)

    def freed(self, address: int, size: int) -> None:
        """Push the address on the stack of its size."""
        self._freed[size].append(address)


_CLASSES = 4  # at most so many sizes get slots
_SLOT_SHARE = 0.5  # of the pool, at most, for all slots together
_MIN_MEMBERS = 3  # a size is common if at least so many buffers have it


class SizeClasses(PlacementPolicy):
    """Size classes: slots at the pool's start for the commonest buffer sizes, best fit in the rest.

    Slots are a preference, not a partition: other buffers use them when the rest of the pool is full. So no operator
    becomes impossible that fits otherwise.
    """

    def __init__(self, program: Program) -> None:
        self._slots: dict[int, list[int]] = {}
        self._rest_start = program.reserved_bytes
        budget = int(((program.capacity_bytes or 0) - program.reserved_bytes) * _SLOT_SHARE)
        counts = Counter(
            b.size_bytes
            for b in program.buffers
            if b.kind is not BufferKind.WEIGHT and b.size_bytes and not b.dedicated
        )
        common = [size for size, n in counts.most_common(_CLASSES) if n >= _MIN_MEMBERS]
        for size in sorted(common, reverse=True):
            n_slots = min(counts[size], budget // len(common) // size)
            self._slots[size] = [self._rest_start + k * size for k in range(n_slots)]
            self._rest_start += n_slots * size

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """A free slot of the class, else the best fit outside of the slots, else the best fit anywhere."""
        for address in self._slots.get(size, ()):
            if free.is_free(address, size):
                return address
        outside = [
            (end - max(start, self._rest_start), max(start, self._rest_start))
            for start, end in free.holes()
            if end - max(start, self._rest_start) >= size
        ]
        return min(outside)[1] if outside else free.best_fit(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One placement, with all that the rest of the package knows of it."""

    name: str
    help: str  # one line
    policy: Callable[[Program], PlacementPolicy]  # a fresh one for each run of a program


PLACEMENT_TABLE = (
    Placement(name="first-fit", help="the lowest address where it fits", policy=lambda _: FirstFit()),
    Placement(name="best-fit", help="the smallest hole where it fits", policy=lambda _: BestFit()),
    Placement(
        name="recent-same-size",
        help="the hole of the same size that was freed last, else best fit",
        policy=lambda _: RecentSameSize(),
    ),
    Placement(
        name="size-classes",
        help="slots of their own for the commonest sizes, else best fit",
        policy=SizeClasses,
    ),
)
"""Every placement that users may choose, in the order in which help lists them."""

PLACEMENTS = tuple(row.name for row in PLACEMENT_TABLE)

PERFECT = "perfect"
"""The placement that counts bytes and gives no addresses: for comparison, as its plans cannot run."""


def make_placement(name: str, program: Program) -> PlacementPolicy:
    """A fresh policy for one run of the program; infinite memory always gets the bump allocator.

    ``UsageError`` for an unknown name.
    """
    rows = {row.name: row for row in PLACEMENT_TABLE}
    if name not in rows and name != PERFECT:
        near = nearest(name, PLACEMENTS)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UsageError(f"unknown placement '{name}'", hint=f"{hint}available: {', '.join(PLACEMENTS)}")
    if program.capacity_bytes is None:
        return BumpAllocator()
    return PerfectPlacement() if name == PERFECT else rows[name].policy(program)


def make_space(program: Program, pool: tuple[int, int], placement: str) -> FreeList:
    """The free space of a run that suits its placement: a free list, a byte count, or infinite memory."""
    if program.capacity_bytes is None:
        return UnboundedSpace(*pool)
    return CountedSpace(*pool) if placement == PERFECT else FreeList(*pool)


class CountedSpace(FreeList):
    """Free space without addresses: only the number of free bytes, as if every buffer could be split and moved."""

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


class PerfectPlacement(PlacementPolicy):
    """The policy for counted space: what a strategy spills less with it is due to fragmentation."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The start of the memory, if so many bytes are free."""
        return free.best_fit(size)


class UnboundedSpace(FreeList):
    """Infinite memory of a bump allocator: everything above the high-water mark is free, and nothing below it."""

    __slots__ = ("_top",)

    def __init__(self, start: int, end: int) -> None:
        super().__init__(start, end)
        self._top = start

    def tail(self) -> int:
        """The high-water mark."""
        return self._top

    def take(self, address: int, size: int) -> None:
        """Occupy ``[address, address + size)``."""
        self._top = max(self._top, address + size)

    def give(self, address: int, size: int) -> None:
        """Ignored: freed space is never reused."""


class BumpAllocator(PlacementPolicy):
    """Bump allocator for infinite memory: freed space is never reused."""

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The high-water mark: above all that was placed so far and all that was resident at the start."""
        return free.tail()
