"""Offline packing: an address for every residency block, placed one by one in a greedy order, with repair.

Where a block finds no hole, the cheapest extra spill makes one: either the blocks in its way are idle meanwhile and
leave for that gap, or the block itself leaves in a gap of its own and its parts are placed separately.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from spillprof.ir.program import Program
from spillprof.planning.blocks import BlockBuilder, ResidencyBlock, overlap
from spillprof.planning.free_list import Fit
from spillprof.planning.gaps import GapKey, GapOption, WriteBacks
from spillprof.planning.placements import Owner

_Priority = Callable[[ResidencyBlock], tuple[int, ...]]

PACKING_ORDERS: dict[str, _Priority] = {
    "size": lambda b: (-b.size_bytes, b.start),
    "area": lambda b: (-b.size_bytes * b.duration, b.start),
    "duration": lambda b: (-b.duration, b.start),
    "start": lambda b: (b.start, -b.size_bytes),
}
"""Greedy orders: sort keys of the block placed next, smallest first."""

IN_TIME_ORDER = "start"
"""The order for very many blocks: it compares a block only with those still live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Addresses of blocks, and the gaps off-chip: those given and those that repair added."""

    addresses: dict[Owner, list[int]] = field(default_factory=dict)
    moves: dict[int, dict[int, int]] = field(default_factory=dict)  # step before which -> buffer -> its next address
    off: dict[GapKey, int] = field(default_factory=dict)  # gap -> the step that forces it
    complete: bool = True  # False: some block found no place whatever leaves
    extra_bytes: int = 0  # moved by the gaps that repair added
    repaired: tuple[int, ...] = ()  # chains (by first buffer) whose blocks found no hole


def pack(
    program: Program,
    builder: BlockBuilder,
    off: dict[GapKey, int],
    order: str,
    fit: Fit,
    urgency: Mapping[int, int] | None = None,
) -> Packing:
    """Place all blocks in the given order, spilling more where nothing fits.

    ``urgency``: by the first buffer of a chain; the blocks of more urgent chains come before all others.
    """
    return _Packer(program, builder, off, order, fit, urgency or {}).run()


class _Packer:
    def __init__(
        self,
        program: Program,
        builder: BlockBuilder,
        off: dict[GapKey, int],
        order: str,
        fit: Fit,
        urgency: Mapping[int, int],
    ) -> None:
        if program.capacity_bytes is None:
            raise ValueError("infinite memory needs no packing")
        self._program = program
        self._builder = builder
        self._off = dict(off)
        self._off_gaps = set(off)
        self._written = {b for b, _ in off}
        self._write_backs = WriteBacks(program, builder.options.writeback)
        self._low, self._high = program.reserved_bytes, program.capacity_bytes
        self._order, self._urgency = PACKING_ORDERS[order], urgency
        self._in_time_order = order == IN_TIME_ORDER and not urgency
        self._fit = fit
        blocks = builder.all_blocks(self._off_gaps)
        self._queue = [(*self._priority(block), k) for k, block in enumerate(blocks)]
        heapify(self._queue)
        self._blocks = blocks
        self._placed = _PlacedPieces(len(blocks))
        self._address: dict[int, int] = {}
        self._complete = True
        self._extra_bytes = 0
        self._repaired: list[int] = []

    def run(self) -> Packing:
        while self._queue:
            k = heappop(self._queue)[-1]
            block = self._blocks[k]
            if self._in_time_order:
                self._placed.forget_before(block.start)
            neighbours = self._placed.overlapping(block)
            address = self._hole(block, neighbours)
            if address is not None:
                self._place(k, address)
            else:
                if block.chain is not None:
                    self._repaired.append(block.chain)
                if not self._repair(k, neighbours):
                    self._complete = False
        addresses: dict[Owner, list[int]] = {}
        for k, address in sorted(self._address.items()):
            for owner in self._blocks[k].owners:
                addresses.setdefault(owner, []).append(address)
        return Packing(
            addresses=addresses,
            off=self._off,
            complete=self._complete,
            extra_bytes=self._extra_bytes,
            repaired=tuple(self._repaired),
        )

    def _priority(self, block: ResidencyBlock) -> tuple[int, ...]:
        urgency = 0 if block.chain is None else self._urgency.get(block.chain, 0)
        return -urgency, *self._order(block)

    def _hole(self, block: ResidencyBlock, neighbours: list[int]) -> int | None:
        """The address of the hole that the fit picks; None if no hole is large enough."""
        address = self._low
        best: tuple[int, int] | None = None
        for start, end in [*self._spans(neighbours), (self._high, self._high)]:
            room = start - address
            if room >= block.size_bytes and (best is None or room < best[0]):
                if self._fit is Fit.FIRST:
                    return address
                best = (room, address)
            address = max(address, end)
        return None if best is None else best[1]

    def _spans(self, neighbours: list[int]) -> list[tuple[int, int]]:
        return sorted((self._address[k], self._address[k] + self._blocks[k].size_bytes) for k in neighbours)

    def _place(self, k: int, address: int) -> None:
        self._address[k] = address
        self._placed.add(k, self._blocks[k])

    # --- repair

    def _repair(self, k: int, neighbours: list[int]) -> bool:
        """Spill more so that block ``k`` can be placed now, or its parts later; False if no gap helps."""
        block = self._blocks[k]
        window = self._cheapest_window(block, neighbours)
        own = min(self._builder.cuts(block, self._off_gaps), key=self._cut_key, default=None)
        if window is not None and (own is None or window[0] <= self._bytes_moved(own)):
            _, address, cuts = window
            for neighbour, gap in cuts:
                self._cut(neighbour, gap, forced_by=block.start // 3)
            self._place(k, address)
            return True
        if own is None:
            return False
        self._cut(k, own, forced_by=self._fullest_step(own))
        return True

    def _cut_key(self, gap: GapOption) -> tuple[int, int, int, int]:
        return self._bytes_moved(gap), -gap.length, gap.buffer, gap.last_use

    def _bytes_moved(self, gap: GapOption) -> int:
        writes = self._write_backs.adds_write(gap.buffer, evicted_before=gap.buffer in self._written)
        return gap.moved_bytes * ((gap.next_use is not None) + writes)

    def _fullest_step(self, gap: GapOption) -> int:
        return gap.ranges[0][0]

    def _cheapest_window(
        self, block: ResidencyBlock, neighbours: list[int]
    ) -> tuple[int, int, list[tuple[int, GapOption]]] | None:
        """(bytes moved, address, [(neighbour, its gap)]) of the cheapest address from which all neighbours can leave.

        Ties: the lowest. The sum over neighbours in the way is that of all that start below the block's end, less that
        of all that end by its start: two prefix sums.
        """
        gaps = [self._gap_beside(block, k) for k in neighbours]
        start = np.array([self._address[k] for k in neighbours], dtype=np.int64)
        end = start + np.array([self._blocks[k].size_bytes for k in neighbours], dtype=np.int64)
        moved = np.array([0 if gap is None else self._bytes_moved(gap) for gap in gaps], dtype=np.int64)
        stays = np.array([gap is None for gap in gaps], dtype=np.int64)
        addresses = np.unique(np.concatenate(([self._low], end, start - block.size_bytes)))
        addresses = addresses[(addresses >= self._low) & (addresses + block.size_bytes <= self._high)]
        by_start, by_end = np.argsort(start), np.argsort(end)
        begun = np.searchsorted(start[by_start], addresses + block.size_bytes, side="left")
        over = np.searchsorted(end[by_end], addresses, side="right")

        def in_the_way(figure: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            upto_start, upto_end = (np.concatenate(([0], np.cumsum(figure[order]))) for order in (by_start, by_end))
            return upto_start[begun] - upto_end[over]

        free = np.flatnonzero(in_the_way(stays) == 0)
        if not len(free):
            return None
        costs = in_the_way(moved)[free]
        address = int(addresses[free[np.argmin(costs)]])
        leaving = (start < address + block.size_bytes) & (end > address)
        cuts = sorted((start[at], end[at], neighbours[at], at) for at in np.flatnonzero(leaving).tolist())
        return int(costs.min()), address, [(k, gap) for *_, k, at in cuts if (gap := gaps[at]) is not None]

    def _gap_beside(self, block: ResidencyBlock, k: int) -> GapOption | None:
        """The gap of block ``k`` that covers all ticks it shares with ``block``; None if it is used in one."""
        other = self._blocks[k]
        return self._builder.cut_over(other, overlap(block.ticks, other.ticks), self._off_gaps)

    def _cut(self, k: int, gap: GapOption, *, forced_by: int) -> None:
        """Split block ``k`` at a gap. Parts of a placed block keep its address."""
        block = self._blocks[k]
        self._extra_bytes += self._bytes_moved(gap)
        self._off[gap.key] = forced_by
        self._off_gaps.add(gap.key)
        self._written.add(gap.buffer)
        address = self._address.pop(k, None)
        if address is not None:
            self._placed.remove(k)
        if block.chain is None:
            raise ValueError("scratch has no gaps")
        for part in self._builder.chain_blocks(block.chain, self._off_gaps):
            if all(any(s <= start and end <= e for s, e in block.ticks) for start, end in part.ticks):
                self._blocks.append(part)
                new = len(self._blocks) - 1
                if address is not None:
                    self._place(new, address)
                else:
                    heappush(self._queue, (*self._priority(part), new))


class _PlacedPieces:
    """Tick intervals of placed blocks, to find those that overlap a block."""

    def __init__(self, capacity: int) -> None:
        self._start: npt.NDArray[np.int64] = np.zeros(2 * capacity + 16, dtype=np.int64)
        self._end = np.zeros_like(self._start)
        self._block = np.zeros_like(self._start)
        self._count = 0
        self._clean_from = 64

    def add(self, k: int, block: ResidencyBlock) -> None:
        for start, end in block.ticks:
            if self._count == len(self._start):
                self._start, self._end, self._block = (
                    np.concatenate([column, np.zeros_like(column)]) for column in (self._start, self._end, self._block)
                )
            self._start[self._count], self._end[self._count], self._block[self._count] = start, end, k
            self._count += 1

    def forget_before(self, tick: int) -> None:
        """Drop intervals that ended by ``tick``, now and then. Later queries must begin at or after it."""
        if self._count < self._clean_from:
            return
        alive = np.flatnonzero(self._end[: self._count] > tick)
        for column in (self._start, self._end, self._block):
            column[: len(alive)] = column[alive]
        self._count = len(alive)
        self._clean_from = 2 * self._count + 64

    def remove(self, k: int) -> None:
        self._end[: self._count][self._block[: self._count] == k] = -1  # an interval that overlaps nothing

    def overlapping(self, block: ResidencyBlock) -> list[int]:
        found: set[int] = set()
        n = self._count
        for start, end in block.ticks:
            found.update(self._block[:n][(self._start[:n] < end) & (self._end[:n] > start)].tolist())
        return sorted(found)
