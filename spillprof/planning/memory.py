"""SRAM of one run: which buffer lies where, the holes between, and compaction when the holes are too small."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Phase, Program
from spillprof.ir.units import format_size_exact
from spillprof.planning.free_list import INFINITE_BYTES, FreeList
from spillprof.planning.placements import make_space
from spillprof.planning.run_facts import Need, RunFacts, StepFacts


class Memory:
    """The pool of one run: ``address`` of every resident buffer, and ``free``, the free list around them.

    ``moved_from``: the address before it moved of each buffer that moves before the current step.
    """

    def __init__(self, program: Program, facts: RunFacts, placement: str) -> None:
        self._program, self._facts, self._placement = program, facts, placement
        capacity = INFINITE_BYTES if program.capacity_bytes is None else program.capacity_bytes
        end = capacity - capacity % program.alignment_bytes  # compaction also places operands from the end of the pool
        self.pool = (program.reserved_bytes, max(program.reserved_bytes, end))
        self.address: dict[int, int] = {}
        self.moved_from: dict[int, int] = {}
        self.free = make_space(program, self.pool, placement)

    def find_holes(self) -> None:
        """Rebuild the free list from the addresses."""
        self.free = make_space(self._program, self.pool, self._placement)
        for b, address in self.address.items():
            if b not in self._facts.slot:
                self.free.take(address, self._facts.size_bytes[b])

    def move(self, moves: Mapping[int, int]) -> None:
        """Move buffers to new addresses, all at once; none of them if one of these is taken by now."""
        sizes, old = self._facts.size_bytes, {b: self.address[b] for b in moves if b in self.address}
        for b, address in old.items():
            self.free.give(address, sizes[b])
        for b in old:
            if not self.free.is_free(moves[b], sizes[b]):
                self.find_holes()
                return
            self.free.take(moves[b], sizes[b])
        self.address.update((b, moves[b]) for b in old)
        self.moved_from.update(old)

    def compact(self, i: int, step: StepFacts, needs: Sequence[Need]) -> list[int]:
        """Addresses of the needs of step ``i`` when nothing more can leave: resident buffers move to make room.

        Leaves the free list out of date. ``CapacityError`` if the step needs more than the pool.
        """
        facts, ends = self._facts, dict(step.ends)
        resident = [b for b in sorted(self.address) if b not in facts.slot and facts.size_bytes[b]]
        blocks = [
            StepBlock(
                size_bytes=facts.size_bytes[b],
                first=Phase.READ,
                last=ends.get(b, Phase.WRITE),
                address=self.address[b],
            )
            for b in resident
        ] + [StepBlock(size_bytes=need.size_bytes, first=need.first, last=need.last) for need in needs]
        demand = max(sum(b.size_bytes for b in blocks if b.first <= phase <= b.last) for phase in Phase)
        if demand > self.pool[1] - self.pool[0]:
            raise self.no_space(f"operator '{self._program.steps[i].name}'", demand)
        addresses = compact(blocks, self.pool)
        for b, address in zip(resident, addresses, strict=False):
            if address != self.address[b]:
                self.moved_from.setdefault(b, self.address[b])
                self.address[b] = address
        return addresses[len(resident) :]

    def no_space(self, what: str, nbytes: int) -> CapacityError:
        """The error for something that needs more than the pool has."""
        reserved = self.pool[0]
        beside = f", beside {format_size_exact(reserved)} that are reserved" if reserved else ""
        left = format_size_exact(self.pool[1] - reserved)
        return CapacityError(
            f"{what} cannot fit even after spilling: {format_size_exact(nbytes)} are needed at once{beside}",
            where=[f"{left} are left after what is reserved, the rest is pinned or in use"],
            hint="pin less, keep inputs on demand (--inputs on-demand), or give more --sram",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBlock:
    """Space that a step needs in the phases ``first`` to ``last``. ``address`` is None if it is not placed yet."""

    size_bytes: int
    first: Phase
    last: Phase
    address: int | None = None


def compact(blocks: Sequence[StepBlock], pool: tuple[int, int]) -> list[int]:
    """Addresses in ``pool`` for all blocks: moves one placed block if that is enough, else lays all out anew.

    Always succeeds if no phase needs more than the pool: blocks held throughout the step lie at the bottom, those held
    to its end above them, and those held from its beginning at the top. So blocks of READ alone find one hole between
    bottom and top, and blocks of WRITE alone find one above those held to the end.
    """
    return _move_one(blocks, pool) or _lay_out(blocks, pool)


def _move_one(blocks: Sequence[StepBlock], pool: tuple[int, int]) -> list[int] | None:
    placed = {k: block.address for k, block in enumerate(blocks) if block.address is not None}
    fresh = sorted((k for k, b in enumerate(blocks) if b.address is None), key=lambda k: (-blocks[k].size_bytes, k))
    free = FreeList(*pool)
    for k, address in placed.items():
        free.take(address, blocks[k].size_bytes)
    in_vain: set[tuple[int, int, int]] = set()  # failed hole sizes: nothing else decides what fits
    for moved in sorted(placed, key=lambda k: (blocks[k].size_bytes, k)):
        size, address = blocks[moved].size_bytes, placed[moved]
        free.give(address, size)
        sizes = (size, *_free_around(free, address, size))
        if sizes not in in_vain:
            wanted = [*fresh, moved]
            taken = _best_fits(free, [blocks[k].size_bytes for k in wanted])
            if taken is not None:
                addresses = placed | dict(zip(wanted, taken, strict=True))
                return [addresses[k] for k in range(len(blocks))]
            in_vain.add(sizes)
        free.take(address, size)
    return None


def _free_around(free: FreeList, address: int, size: int) -> tuple[int, int]:
    """Free bytes on either side of a block that was just freed, the fewer first."""
    if not size:
        return 0, 0
    start, end = free.hole_at(address)
    below, above = address - start, end - address - size
    return min(below, above), max(below, above)


def _best_fits(free: FreeList, sizes: Sequence[int]) -> list[int] | None:
    """Addresses allocated one after another by best fit. None, and nothing allocated, if one finds no hole."""
    taken: list[int] = []
    for size in sizes:
        address = free.best_fit(size)
        if address is None:
            for back, given in zip(taken, sizes, strict=False):
                free.give(back, given)
            return None
        free.take(address, size)
        taken.append(address)
    return taken


def _lay_out(blocks: Sequence[StepBlock], pool: tuple[int, int]) -> list[int]:
    addresses = [0] * len(blocks)
    bottom, top = pool
    for k, block in enumerate(blocks):
        if block.first is Phase.READ and block.last is Phase.WRITE:
            addresses[k], bottom = bottom, bottom + block.size_bytes
    above = bottom
    for k, block in enumerate(blocks):
        if block.first is Phase.COMPUTE and block.last is Phase.WRITE:
            addresses[k], above = above, above + block.size_bytes
        elif block.first is Phase.READ and block.last is Phase.COMPUTE:
            addresses[k], top = top - block.size_bytes, top - block.size_bytes
    next_by_phase = {Phase.READ: bottom, Phase.COMPUTE: above, Phase.WRITE: above}
    for k, block in enumerate(blocks):
        if block.first is block.last:
            addresses[k] = next_by_phase[block.first]
            next_by_phase[block.first] += block.size_bytes
    return addresses
