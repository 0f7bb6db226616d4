"""Size classes: slots for the commonest feature-map sizes, the common pool for the rest.

The slots are a preference, not a wall: a buffer of a common size goes to a free slot of its class, other buffers
stay out of the slots while the rest of the pool has room, and use them when it has not. So a policy that keeps
irregular buffers away from the regular ones never makes an operator impossible that fits otherwise.
"""

from collections import Counter

from spillprof.ir.program import BufferKind, Program
from spillprof.planning.free_list import FreeList
from spillprof.planning.placement.owner import Owner

CLASSES = 4  # at most so many sizes get slots
SLOT_SHARE = 0.5  # of the pool, at most, for all slots together
MIN_MEMBERS = 3  # a size is common if at least so many buffers have it


class SizeClasses:
    """Slots from the pool's start, one class after the other; best fit in the rest."""

    def __init__(self, program: Program) -> None:
        self._slots: dict[int, list[int]] = {}
        self._rest_start = program.reserved_bytes
        budget = int(((program.capacity_bytes or 0) - program.reserved_bytes) * SLOT_SHARE)
        counts = Counter(
            b.size_bytes
            for b in program.buffers
            if b.kind is not BufferKind.WEIGHT and b.size_bytes and not b.dedicated
        )
        common = [size for size, n in counts.most_common(CLASSES) if n >= MIN_MEMBERS]
        for size in sorted(common, reverse=True):
            n_slots = min(counts[size], budget // len(common) // size)
            self._slots[size] = [self._rest_start + k * size for k in range(n_slots)]
            self._rest_start += n_slots * size

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """A free slot of the class, else the best fit outside the slots, else the best fit anywhere."""
        for address in self._slots.get(size, ()):
            if free.is_free(address, size):
                return address
        outside = [
            (end - max(start, self._rest_start), max(start, self._rest_start))
            for start, end in free.holes()
            if end - max(start, self._rest_start) >= size
        ]
        return min(outside)[1] if outside else free.best_fit(size)

    def freed(self, address: int, size: int) -> None:
        """Nothing to remember."""
