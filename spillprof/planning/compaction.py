"""Addresses for one step whose operands cannot be placed although the free bytes suffice."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillprof.ir.program import Phase
from spillprof.planning.free_list import FreeList


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Space that the step needs in the phases ``first`` to ``last``. ``address`` is None if it is not placed yet."""

    size_bytes: int
    first: Phase
    last: Phase
    address: int | None = None


def compact(blocks: Sequence[Block], pool: tuple[int, int]) -> list[int]:
    """Addresses in ``pool`` for all blocks, moving one placed block if that is enough, else laying all out anew.

    Always succeeds if no phase needs more than the pool: blocks held all through the step lie at the bottom, above
    them those held to its end, and those held from its beginning at the top. So what lives in READ alone finds
    one hole between bottom and top, and what lives in WRITE alone finds one above those held to the end.
    """
    return _move_one(blocks, pool) or _lay_out(blocks, pool)


def _move_one(blocks: Sequence[Block], pool: tuple[int, int]) -> list[int] | None:
    placed = {k: block.address for k, block in enumerate(blocks) if block.address is not None}
    fresh = sorted((k for k, b in enumerate(blocks) if b.address is None), key=lambda k: (-blocks[k].size_bytes, k))
    free = FreeList(*pool)
    for k, address in placed.items():
        free.take(address, blocks[k].size_bytes)
    in_vain: set[tuple[int, int, int]] = set()  # what fits depends on the sizes of the holes alone
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
    """Free bytes on either side of a block that was just given back, the fewer first."""
    if not size:
        return 0, 0
    start, end = free.hole_at(address)
    below, above = address - start, end - address - size
    return min(below, above), max(below, above)


def _best_fits(free: FreeList, sizes: Sequence[int]) -> list[int] | None:
    """Addresses taken one after another in the smallest hole. None, and nothing taken, if one finds no hole."""
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


def _lay_out(blocks: Sequence[Block], pool: tuple[int, int]) -> list[int]:
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
