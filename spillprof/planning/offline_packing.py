"""The best addresses for the residency blocks of a plan: laid out whole if they fit, else with the cheapest repair.

First the blocks are laid out like any static placement (``planning.layout``): greedy orders, interval colouring, a few
runs of beam search. Where no layout fits, blocks are placed one by one in several orders, and where one finds no hole,
more is spilled. Then the order learns: chains that had to be repaired come first in the next round, as in "squeaky
wheel" optimisation (Joslin and Clements, JAIR 10, 1999), and the round that spills least wins.
"""

from collections.abc import Sequence

from spillprof.ir.layout_problem import LayoutBuffer, LayoutProblem
from spillprof.ir.program import PHASES_PER_STEP, Program
from spillprof.planning.blocks import Block, BlockBuilder
from spillprof.planning.gaps import Gap
from spillprof.planning.layout.search import Effort, lay_out, most_live_bytes
from spillprof.planning.packing import IN_TIME_ORDER, ORDERS, Fit, Packing, pack
from spillprof.planning.placement.owner import Owner

MANY_BLOCKS = 6_000
"""Beyond, blocks are placed in order of time only: the other orders compare all blocks with all."""

_LAID_OUT = 2_000  # blocks: beyond, no layout of the whole is tried
_EFFORT = Effort(runs=6, work=400_000)  # of the beam, tenths of a second: what so many do not find, more seldom do
_ROUND_BUDGET = 2_000  # blocks x rounds in which the order learns
_MOST_ROUNDS = 8


def best_packings(program: Program, builder: BlockBuilder, off: dict[Gap, int]) -> list[Packing]:
    """One or two to choose from: addresses of all blocks, the gaps in ``off``, and as few more as could be found.

    Which is better, only the assembled plans show: a block may have found no place whatever leaves.
    """
    blocks = builder.all_blocks(set(off))
    if len(blocks) <= _LAID_OUT:
        addresses = _laid_out(program, blocks)
        if addresses is not None:
            return [Packing(addresses=addresses, off=dict(off))]
    tries = [(IN_TIME_ORDER, Fit.BEST)]
    if len(blocks) <= MANY_BLOCKS:
        tries += [(order, Fit.FIRST) for order in ORDERS]
    packings = [(pack(program, builder, off, order, fit), order, fit) for order, fit in tries]
    first, order, fit = min(packings, key=lambda found: _preference(found[0]))
    squeaks: dict[int, int] = {}
    best = last = first
    for _ in range(min(_MOST_ROUNDS, _ROUND_BUDGET // max(len(blocks), 1))):
        for chain in last.repaired:
            squeaks[chain] = squeaks.get(chain, 0) + 1
        last = pack(program, builder, off, order, fit, squeaks)
        best = min(best, last, key=_preference)
        if not best.extra_bytes and best.complete:
            break
    return [first] if best is first else [first, best]


def _preference(packing: Packing) -> tuple[bool, int]:
    return not packing.complete, packing.extra_bytes


def _laid_out(program: Program, blocks: Sequence[Block]) -> dict[Owner, list[int]] | None:
    """Addresses at which all blocks fit; None if none were found.

    A block that stays for the next inference is taken to be there all the time: a little more than it needs.
    """
    if program.capacity_bytes is None:
        raise ValueError("infinite memory needs no packing")
    end = PHASES_PER_STEP * len(program.steps)
    problem = LayoutProblem(
        buffers=tuple(
            LayoutBuffer(
                name=str(k),
                lower=block.start if len(block.ticks) == 1 else 0,
                upper=block.ticks[-1][1] if len(block.ticks) == 1 else end,
                size_bytes=block.size_bytes,
            )
            for k, block in enumerate(blocks)
        ),
    )
    pool_bytes = program.capacity_bytes - program.reserved_bytes
    if most_live_bytes(problem) > pool_bytes:
        return None
    layout = lay_out(problem, pool_bytes, _EFFORT)
    if layout.peak_bytes > pool_bytes:
        return None
    addresses: dict[Owner, list[int]] = {}
    for block, offset in zip(blocks, layout.offsets, strict=True):
        for owner in block.owners:
            addresses.setdefault(owner, []).append(program.reserved_bytes + offset)
    return addresses
