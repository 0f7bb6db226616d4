"""State of ejection search: addresses of blocks, blocks that wait for one, gaps off-chip, and moves inside SRAM.

Every change can be undone.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

from spillprof.ir.arrays import Floats, Ints
from spillprof.ir.program import PHASES_PER_STEP, Program
from spillprof.planning.blocks import BlockBuilder, ResidencyBlock, covers, overlap
from spillprof.planning.ejection.neighbours import Neighbours, TimedAddress
from spillprof.planning.ejection.tick_index import TickIndex
from spillprof.planning.gaps import GapKey, GapOption, WriteBacks, gap_options
from spillprof.planning.options import PlanningOptions

_WAITING = -1
_GONE = -2

_ADDRESS, _REMOVED, _ADDED, _GAP, _MOVE = range(5)  # kinds of changes in the undo log

ChainMove = tuple[int, int]
"""(first buffer of a chain, tick at which its block moves inside SRAM): the start of a step."""


class PackingState:
    """All blocks of a program. ``move_cost``: DRAM bytes that cost as much as a byte moved inside SRAM."""

    def __init__(
        self,
        program: Program,
        builder: BlockBuilder,
        options: PlanningOptions,
        off: Iterable[GapKey],
        move_cost: float = float("inf"),
    ) -> None:
        if program.capacity_bytes is None:
            raise ValueError("infinite memory needs no packing")
        self._program, self._builder = program, builder
        self._write_backs = WriteBacks(program, options.writeback)
        self.gaps = {gap.key: gap for gap in gap_options(program, options)}
        self.off: set[GapKey] = set()
        self._spent: dict[int, int] = {}  # gaps off-chip, by buffer
        self.spill_bytes = 0
        self.moved_bytes = 0
        self.move_cost = move_cost
        self._moves_at_all = move_cost < float("inf")
        self._moves: dict[int, set[int]] = {}  # ticks by chain
        for gap in off:
            self.spill_bytes += self.price(self.gaps[gap]) if gap in self.gaps else 0
            self.off.add(gap)
            self._spent[gap[0]] = self._spent.get(gap[0], 0) + 1
        self._low = program.reserved_bytes
        self._high = program.capacity_bytes - program.capacity_bytes % program.alignment_bytes
        self.blocks: list[ResidencyBlock] = []
        self._times = TickIndex(PHASES_PER_STEP * len(program.steps))
        self._of_chain: dict[int, list[int]] = {}
        self._in_use: Ints = np.zeros(PHASES_PER_STEP * len(program.steps), dtype=np.int64)  # by tick, with waiting
        self._cuts: dict[int, list[GapOption]] = {}
        self._sizes: Ints = np.zeros(1024, dtype=np.int64)
        self._address: Ints = np.full(1024, _WAITING, dtype=np.int64)
        self._weights: Floats = np.zeros(1024)  # bytes x ticks
        self._failures: Floats = np.zeros(1024)  # how often a block found no hole
        self._waiting: list[tuple[int, int]] = []
        self._log: list[tuple[int, int, int, GapKey | ChainMove | None]] | None = None
        self._before = (0, 0)  # bytes spilled, bytes moved
        for block in builder.all_blocks(self.off):
            self._add(block, _WAITING)
        self._times.settle()

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def cost(self) -> float:
        """Bytes that gaps move to and from DRAM, plus the cost of moves inside SRAM."""
        return self.spill_bytes + (self.move_cost * self.moved_bytes if self.moved_bytes else 0)

    def is_there(self, k: int) -> bool:
        """Whether a block exists with the current gaps, placed or waiting."""
        return int(self._address[k]) != _GONE

    # --- what waits

    def next_waiting(self) -> int | None:
        """Pop the longest-lived waiting block; None if there is none."""
        while self._waiting:
            k = heappop(self._waiting)[1]
            if k < len(self.blocks) and self._address[k] == _WAITING:
                return k
        return None

    def wait(self, k: int) -> None:
        """Make a block wait for an address."""
        heappush(self._waiting, (-self.blocks[k].duration, k))

    # --- bytes

    def lacking(self, k: int) -> tuple[int, int]:
        """(bytes over capacity, tick) at the fullest tick of block ``k``, counting placed and waiting blocks."""
        fullest = [start + int(self._in_use[start:end].argmax()) for start, end in self.blocks[k].ticks]
        tick = max(fullest, key=self._in_use.__getitem__)
        return int(self._in_use[tick]) - (self._high - self._low), tick

    def idle_at(self, tick: int) -> list[GapOption]:
        """Gaps that would take a block off-chip at a tick."""
        return [
            gap
            for k in dict.fromkeys(self._times.at(tick))
            if self.is_there(k)
            and (gap := self._builder.cut_over(self.blocks[k], ((tick, tick + 1),), self.off)) is not None
        ]

    # --- places

    def neighbours(self, k: int) -> Neighbours:
        """The placed blocks that are live together with block ``k``."""
        ids, shared = self._times.meeting(k)
        starts = self._address[ids]
        placed = (starts >= 0).nonzero()[0]
        order = placed[starts[placed].argsort(kind="stable")]
        ids, starts = ids[order], starts[order]
        return Neighbours(ids, starts, starts + self._sizes[ids], shared[order], (self._low, self._high))

    def eject(self, k: int, near: Neighbours) -> None:
        """Place block ``k`` and eject what lies there: small, short-lived blocks that seldom failed to find a hole."""
        self._failures[k] += 1
        size = self.blocks[k].size_bytes
        place, _ = near.cheapest(size, self._weights[near.ids] * (1 + self._failures[near.ids]))
        for other in near.inside(place, size):
            self.place(other, _WAITING)
            self.wait(other)
        self.place(k, place)

    def place(self, k: int, address: int) -> None:
        """Give block ``k`` a free address, or make it wait again (``_WAITING``)."""
        self._note(_ADDRESS, k)
        self._address[k] = address

    # --- gaps

    def cuts(self, k: int) -> list[GapOption]:
        """Gaps at which block ``k`` can be split."""
        found = self._cuts.get(k)
        if found is None:
            found = self._cuts[k] = list(self._builder.cuts(self.blocks[k], self.off))
        return found

    def cut_beside(self, k: int, other: int, tabu: GapKey | None) -> GapOption | None:
        """The gap of a block that covers all ticks it shares with block ``k``; None if it is used in one, or tabu."""
        shared = overlap(self.blocks[k].ticks, self.blocks[other].ticks)
        gap = self._builder.cut_over(self.blocks[other], shared, self.off)
        return None if gap is None or gap.key == tabu else gap

    def price(self, gap: GapOption) -> int:
        """Bytes that the gap adds when spent off-chip, or saves when taken back."""
        others = self._spent.get(gap.buffer, 0) - (gap.key in self.off)
        writes = self._write_backs.adds_write(gap.buffer, evicted_before=others > 0)
        return gap.moved_bytes * ((gap.next_use is not None) + writes)

    def take_off(self, gap: GapOption) -> None:
        """Split a block at a gap. Its parts keep its address, or wait as it did."""
        self.spill_bytes += self.price(gap)
        self._turn(gap.key)
        self._renew(self._builder.chain_of(gap.buffer))

    def take_back(self, gap: GapOption) -> None:
        """Take a gap back: the blocks before and after it become one, which waits."""
        self.spill_bytes -= self.price(gap)
        self._turn(gap.key)
        self._renew(self._builder.chain_of(gap.buffer))

    # --- moves inside SRAM

    def move_bytes(self, k: int) -> int:
        """Bytes of one move of block ``k``; scratch is never moved."""
        chain = self.blocks[k].chain
        return self.blocks[k].size_bytes if chain is None else self._program.buffers[chain].moved_bytes

    @property
    def moves(self) -> list[ChainMove]:
        """All of them, in order of time."""
        return sorted(((c, tick) for c, ticks in self._moves.items() for tick in ticks), key=lambda m: (m[1], m[0]))

    def has(self, move: ChainMove) -> bool:
        """Whether the move is made."""
        return move[1] in self._moves.get(move[0], ())

    def move_beside(self, k: int, other: int) -> ChainMove | None:
        """The move of a block out of the way when block ``k`` begins; None if it cannot move or begins later."""
        block = self.blocks[other]
        tick = self.blocks[k].start - self.blocks[k].start % PHASES_PER_STEP
        if block.chain is None or not self._moves_at_all or len(self.blocks[k].ticks) > 1:
            return None
        is_inside = block.start < tick < block.ticks[-1][1]
        return (block.chain, tick) if is_inside and self._builder.can_move(block) else None

    def move_away(self, move: ChainMove) -> None:
        """Split the block of a chain at a tick: the part before keeps its address, the part after waits."""
        chain, tick = move
        self._turn_move(move)
        self._renew(chain)
        for piece in self._of_chain[chain]:
            if self.is_there(piece) and self.blocks[piece].start == tick:
                self.place(piece, _WAITING)
                self.wait(piece)

    def pieces(self, k: int, near: Neighbours) -> list[TimedAddress]:
        """Holes in which block ``k`` can lie one after the other; empty if there are none."""
        if not self._moves_at_all or not self._builder.can_move(self.blocks[k]):
            return []
        return near.pieces(self.blocks[k], *self._times.bounds(near.ids))

    def place_pieces(self, k: int, places: list[TimedAddress]) -> None:
        """Give block ``k`` one address after the other, with a move at each tick but the first."""
        chain, (start, end) = self.blocks[k].chain, self.blocks[k].ticks[0]
        if chain is None:
            raise ValueError("scratch does not move")
        for tick, _ in places[1:]:
            self._turn_move((chain, tick))
        self._renew(chain)
        address = dict([(start, places[0][1]), *places[1:]])
        for piece in self._of_chain[chain]:
            at = self.blocks[piece].start
            if at in address and self.is_there(piece) and self.blocks[piece].ticks[-1][1] <= end:
                self.place(piece, address[at])

    def join(self, move: ChainMove) -> None:
        """Drop a move: the parts before and after it become one block, which waits."""
        self._turn_move(move)
        self._renew(move[0])

    def _renew(self, chain: int) -> None:
        """Rebuild the blocks of a chain after its gaps or moves changed. Parts of a block keep its address."""
        after: list[ResidencyBlock] = []
        ticks = self._moves.get(chain)
        for block in self._builder.chain_blocks(chain, self.off):
            inside = sorted(t for t in ticks if block.start < t < block.ticks[-1][1]) if ticks else ()
            after += self._builder.pieces(block, inside) if inside else (block,)
        for tick in sorted((ticks or set()) - {block.start for block in after if block.is_moved}):
            self._turn_move((chain, tick))
        before = {self.blocks[k]: k for k in self._of_chain.get(chain, ()) if self._address[k] != _GONE}
        gone = [(before[block], int(self._address[before[block]])) for block in before.keys() - set(after)]
        for k, _ in gone:
            self._remove(k)
        for block in after:
            if block not in before:
                kept = (at for k, at in gone if covers(self.blocks[k].ticks, block.ticks))
                self._add(block, next(kept, _WAITING))

    def _turn_move(self, move: ChainMove) -> None:
        self._note(_MOVE, 0, move)
        chain, tick = move
        ticks = self._moves.setdefault(chain, set())
        sign = -1 if tick in ticks else 1
        ticks ^= {tick}
        self.moved_bytes += sign * self._program.buffers[chain].moved_bytes

    # --- undoing

    def begin(self) -> None:
        """Log changes from now on, for ``undo``."""
        self._times.settle()
        self._log, self._before = [], (self.spill_bytes, self.moved_bytes)

    def keep(self) -> None:
        """Commit: the changes since ``begin`` stay."""
        self._log = None

    def undo(self) -> None:
        """Roll back to ``begin``."""
        log, self._log = self._log or [], None
        for what, k, address, turned in reversed(log):
            if turned is not None:
                (self._turn if what == _GAP else self._turn_move)(turned)
            elif what == _ADDED:
                self._take_away()
            else:
                if what == _REMOVED:
                    self._use(k, 1)
                self._address[k] = address
        self._waiting.clear()
        self.spill_bytes, self.moved_bytes = self._before

    def addresses(self) -> dict[int, int]:
        """Addresses of the placed blocks, by block."""
        return {k: address for k, address in enumerate(self._address[: len(self.blocks)].tolist()) if address >= 0}

    # --- logged changes

    def _note(self, what: int, k: int, turned: GapKey | ChainMove | None = None) -> None:
        if self._log is not None:
            self._log.append((what, k, int(self._address[k]), turned))

    def _remove(self, k: int) -> None:
        self._note(_REMOVED, k)
        self._address[k] = _GONE
        self._use(k, -1)

    def _use(self, k: int, sign: int) -> None:
        for start, end in self.blocks[k].ticks:
            self._in_use[start:end] += sign * self.blocks[k].size_bytes

    def _turn(self, gap: GapKey) -> None:
        self._note(_GAP, 0, gap)
        if gap in self.off:
            self.off.remove(gap)
            self._spent[gap[0]] -= 1
        else:
            self.off.add(gap)
            self._spent[gap[0]] = self._spent.get(gap[0], 0) + 1

    def _add(self, block: ResidencyBlock, address: int) -> None:
        k = len(self.blocks)
        self.blocks.append(block)
        self._times.add(block.ticks)
        if block.chain is not None:
            self._of_chain.setdefault(block.chain, []).append(k)
        if k == len(self._sizes):
            self._sizes, self._address = (np.concatenate([c, np.zeros_like(c)]) for c in (self._sizes, self._address))
            self._weights, self._failures = (
                np.concatenate([c, np.zeros_like(c)]) for c in (self._weights, self._failures)
            )
        self._sizes[k], self._weights[k] = block.size_bytes, float(block.size_bytes) * block.duration
        self._address[k], self._failures[k] = address, 0
        self._note(_ADDED, k)
        self._use(k, 1)
        if address == _WAITING:
            self.wait(k)

    def _take_away(self) -> None:
        self._use(len(self.blocks) - 1, -1)
        block = self.blocks.pop()
        self._times.remove_last()
        if block.chain is not None:
            self._of_chain[block.chain].pop()
        self._cuts.pop(len(self.blocks), None)
