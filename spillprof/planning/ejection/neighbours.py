"""Where a block can lie among its placed neighbours: a hole, the cheapest address to clear, a chain of holes."""

from operator import itemgetter

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Ints
from spillprof.ir.program import PHASES_PER_STEP
from spillprof.planning.blocks import ResidencyBlock
from spillprof.planning.ejection.tick_index import Int32s

TimedAddress = tuple[int, int]
"""(tick, address from then on)."""

_MOST_PIECES = 8
_MOST_BESIDE = 2_000  # blocks: with more, chains of holes, which compare all pairs, are not looked for


class Neighbours:
    """The placed blocks that are live together with a block, by address, in the ``pool`` of addresses.

    Columns of shape (n,): ``ids``, ``starts`` and ``ends`` of addresses, and ``shared`` ticks.
    """

    __slots__ = ("_high", "_low", "ends", "ids", "shared", "starts")

    def __init__(self, ids: Ints, starts: Ints, ends: Ints, shared: Int32s, pool: tuple[int, int]) -> None:
        self.ids, self.starts, self.ends, self.shared = ids, starts, ends, shared
        self._low, self._high = pool

    def inside(self, address: int, size: int) -> list[int]:
        """Blocks that overlap ``[address, address + size)``."""
        found: list[int] = self.ids[(self.starts < address + size) & (self.ends > address)].tolist()
        return found

    def hole(self, block: ResidencyBlock) -> int | None:
        """The address in a hole where the block touches its neighbours most; None if no hole is large enough."""
        size, n = block.size_bytes, len(self.ids)
        lows, highs = np.full(n + 1, self._low), np.full(n + 1, self._high)
        np.maximum.accumulate(self.ends, out=lows[1:])
        highs[:n] = self.starts
        wide = (highs - lows >= size).nonzero()[0]
        if not len(wide):
            return None
        places = np.unique(np.concatenate([lows[wide], highs[wide] - size]))
        if len(places) == 1:
            return int(places[0])
        touched = [
            int(self.shared[(self.ends == place) | (self.starts == place + size)].sum())
            + (block.duration if place == self._low or place + size == self._high else 0)
            for place in places.tolist()
        ]
        return int(places[np.argmax(touched)])

    def cheapest(self, size: int, prices: npt.NDArray[np.float64] | Ints) -> tuple[int, float]:
        """(address, price) where the sum of ``prices`` of the blocks overlapped by so many bytes is least."""
        starts, n = self.starts, len(self.ids)
        by_end = self.ends.argsort(kind="stable")
        ends = self.ends[by_end]
        begun, over = np.zeros((2, n + 1), dtype=prices.dtype)  # prices of what begins, and of what ends, so far
        prices.cumsum(out=begun[1:])
        prices[by_end].cumsum(out=over[1:])
        # Candidates: the bottom, on top of each block, beneath each block. Of blocks that end at the same address the
        # last counts, of those that begin at the same the first; the others only look dearer.
        above = int(ends.searchsorted(self._high - size, "right"))
        below = int(starts.searchsorted(self._low + size, "left"))
        on_top = begun[starts.searchsorted(ends[:above] + size, "left")] - over[1 : above + 1]
        beneath = begun[below:n] - over[ends.searchsorted(starts[below:] - size, "right")]
        found = [(float(begun[below]), self._low)]
        if above:
            best = int(on_top.argmin())
            found.append((float(on_top[best]), int(ends[best])))
        if below < n:
            best = int(beneath.argmin())
            found.append((float(beneath[best]), int(starts[below + best]) - size))
        price, place = min(found, key=itemgetter(0))
        return place, price

    def pieces(self, block: ResidencyBlock, begins: Ints, ends: Ints) -> list[TimedAddress]:
        """Holes in which the block can lie one after the other, with fewest moves; empty if there are none.

        Greedy: always the address that stays free longest; the piece ends with the last step that begins before it is
        taken. ``begins``, ``ends``: live ranges of the neighbours.
        """
        if len(self.ids) > _MOST_BESIDE:
            return []
        ((tick, end),), size = block.ticks, block.size_bytes
        places = np.unique(np.concatenate([[self._low, self._high - size], self.ends, self.starts - size]))
        places = places[(places >= self._low) & (places + size <= self._high)]
        is_in_way = (self.starts < places[:, None] + size) & (self.ends > places[:, None])
        found: list[TimedAddress] = []
        while len(places) and len(found) < _MOST_PIECES:
            blocked = np.where(is_in_way & (ends > tick), np.maximum(begins, tick), end).min(axis=1, initial=end)
            best = int(blocked.argmax())
            until = int(blocked[best])
            found.append((tick, int(places[best])))
            if until >= end:
                return found
            until -= until % PHASES_PER_STEP
            if until <= tick:
                break
            tick = until
        return []
