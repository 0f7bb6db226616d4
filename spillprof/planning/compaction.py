"""Addresses for one step whose operands cannot be placed although the free bytes suffice."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillprof.model.program import Phase
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
    placed = [k for k, block in enumerate(blocks) if block.address is not None]
    fresh = sorted((k for k, b in enumerate(blocks) if b.address is None), key=lambda k: (-blocks[k].size_bytes, k))
    free = FreeList(*pool)
    for k in placed:
        free.take(_address(blocks[k]), blocks[k].size_bytes)
    for moved in sorted(placed, key=lambda k: (blocks[k].size_bytes, k)):
        free.give(_address(blocks[moved]), blocks[moved].size_bytes)
        found: dict[int, int] = {}
        for k in [*fresh, moved]:
            address = free.best_fit(blocks[k].size_bytes)
            if address is None:
                break
            free.take(address, blocks[k].size_bytes)
            found[k] = address
        else:
            return [found[k] if k in found else _address(block) for k, block in enumerate(blocks)]
        for k, address in found.items():
            free.give(address, blocks[k].size_bytes)
        free.take(_address(blocks[moved]), blocks[moved].size_bytes)
    return None


def _address(block: Block) -> int:
    assert block.address is not None
    return block.address


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
