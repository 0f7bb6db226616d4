"""Index of blocks by tick: which blocks are live together with a given one, and for how many ticks."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Ints
from spillprof.planning.blocks import Ticks

Int32s = npt.NDArray[np.int32]

_BUCKET_TICKS = 96
_MOST_CACHED = 8_000_000  # entries of cached answers: 12 bytes each
_MOST_NEWER = 50  # blocks compared one by one before an answer is looked up anew


def shared_ticks(a: Ticks, b: Ticks) -> int:
    """The number of ticks in both."""
    return sum(max(0, min(e, f) - max(s, t)) for s, e in a for t, f in b)


class TickIndex:
    """Blocks are numbered as they are added; the last ones can be removed again.

    Each interval of a block is listed in the bucket of ticks where it begins, and in the O(log n) nodes of a segment
    tree that make up the buckets after that. So a query costs about as much as it finds.
    """

    def __init__(self, n_ticks: int) -> None:
        self._n = 1 << (n_ticks // _BUCKET_TICKS + 1).bit_length()
        self._begins: list[list[int]] = [[] for _ in range(self._n)]
        self._covers: dict[int, list[int]] = {}
        self._ticks: list[Ticks] = []
        self._bounds: Ints = np.zeros((1024, 4), dtype=np.int64)  # start, end of one interval or two (0, 0: none)
        self._settled = 0
        self._any_in_two = False
        self._cached: dict[int, tuple[Ints, Int32s, int]] = {}  # answers, and the number of blocks they cover
        self._n_cached = 0
        self._latest: dict[int, tuple[Ints, Int32s, int]] = {}  # the same, until a block is removed

    def __len__(self) -> int:
        return len(self._ticks)

    def add(self, ticks: Ticks) -> None:
        """Add the next block, of one or two intervals."""
        k = len(self._ticks)
        if k == len(self._bounds):
            self._bounds = np.concatenate([self._bounds, np.zeros_like(self._bounds)])
        self._bounds[k] = (*ticks[0], *(ticks[1] if len(ticks) > 1 else (0, 0)))
        self._ticks.append(ticks)
        self._any_in_two |= len(ticks) > 1
        for start, end in ticks:
            self._begins[start // _BUCKET_TICKS].append(k)
            for node in self._nodes(start, end):
                self._covers.setdefault(node, []).append(k)

    def remove_last(self) -> None:
        """Remove the last block."""
        self._latest.clear()
        k = len(self._ticks) - 1
        for start, end in self._ticks.pop():
            self._begins[start // _BUCKET_TICKS].pop()
            for node in self._nodes(start, end):
                self._covers[node].pop()
        self._forget(k)

    def settle(self) -> None:
        """Commit all blocks: only those added from now on may be removed."""
        self._latest.clear()
        self._settled = len(self._ticks)

    def meeting(self, k: int) -> tuple[Ints, Int32s]:
        """(blocks, ticks shared with block ``k``) of all that share some, itself included."""
        n = len(self._ticks)
        latest = self._latest.get(k)
        if latest is None or latest[2] < n:
            latest = self._latest[k] = (*self._looked_up(k, n), n)
        return latest[:2]

    def _looked_up(self, k: int, n: int) -> tuple[Ints, Int32s]:
        cached = self._cached.get(k)
        if cached is None or self._settled > cached[2] + _MOST_NEWER:
            return self._cache(k, *self._found(k))
        ids, shared, known = cached
        newer = [
            (other, ticks) for other in range(known, n) if (ticks := shared_ticks(self._ticks[k], self._ticks[other]))
        ]
        if newer:
            ids = np.concatenate([ids, np.array([other for other, _ in newer])])
            shared = np.concatenate([shared, np.array([ticks for _, ticks in newer], dtype=np.int32)])
        if known < self._settled:
            self._cache(k, ids, shared)
        return ids, shared

    def bounds(self, ids: Ints) -> tuple[Ints, Ints]:
        """First ticks of blocks, and the ticks after their last; gaps between two intervals are ignored."""
        bounds = self._bounds[ids]
        return bounds[:, 0], np.maximum(bounds[:, 1], bounds[:, 3])

    def at(self, tick: int) -> list[int]:
        """Blocks that are live at a tick."""
        return [k for k in self._near(tick, tick + 1) if any(start <= tick < end for start, end in self._ticks[k])]

    def _near(self, start: int, end: int) -> list[int]:
        """Blocks that may be live in the interval; those of two intervals may come twice."""
        found: list[int] = []
        node = start // _BUCKET_TICKS + self._n
        while node:
            found += self._covers.get(node, ())
            node >>= 1
        for bucket in range(start // _BUCKET_TICKS, (end - 1) // _BUCKET_TICKS + 1):
            found += self._begins[bucket]
        return found

    def _found(self, k: int) -> tuple[Ints, Int32s]:
        found = [other for start, end in self._ticks[k] for other in self._near(start, end)]
        near = np.array(found, dtype=np.int64)
        if self._any_in_two:
            near = np.unique(near)
        ticks = self._shared(k, near)
        return near[ticks > 0], ticks[ticks > 0]

    def _shared(self, k: int, ids: Ints) -> Int32s:
        total = np.zeros(len(ids), dtype=np.int64)
        bounds = self._bounds[ids]
        for start, end in self._ticks[k]:
            for column in (0, 2) if self._any_in_two else (0,):
                ticks = np.minimum(bounds[:, column + 1], end) - np.maximum(bounds[:, column], start)
                total += np.maximum(ticks, 0)
        return total.astype(np.int32)

    def _cache(self, k: int, ids: Ints, shared: Int32s) -> tuple[Ints, Int32s]:
        """Cache an answer, without blocks that may be removed."""
        self._forget(k)
        if self._n_cached > _MOST_CACHED:
            self._cached.clear()
            self._n_cached = 0
        if k < self._settled:
            stays = ids < self._settled
            self._cached[k] = (ids[stays], shared[stays], self._settled)
            self._n_cached += int(stays.sum())
        return ids, shared

    def _forget(self, k: int) -> None:
        cached = self._cached.pop(k, None)
        if cached is not None:
            self._n_cached -= len(cached[0])

    def _nodes(self, start: int, end: int) -> Iterator[int]:
        """Tree nodes that make up the buckets after the one where the interval begins."""
        left, right = start // _BUCKET_TICKS + 1 + self._n, (end - 1) // _BUCKET_TICKS + 1 + self._n
        while left < right:
            if left & 1:
                yield left
                left += 1
            if right & 1:
                right -= 1
                yield right
            left >>= 1
            right >>= 1
