"""Blocks by the ticks in which they are held: which of them meet a given one, and for how long."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Ints
from spillprof.planning.blocks import Ticks

Int32s = npt.NDArray[np.int32]

_BUCKET_TICKS = 96
_MOST_KEPT = 8_000_000  # entries of kept answers: 12 bytes each
_MOST_NEWER = 50  # blocks that are compared one by one before an answer is looked up anew


def shared_ticks(a: Ticks, b: Ticks) -> int:
    """Ticks in both."""
    return sum(max(0, min(e, f) - max(s, t)) for s, e in a for t, f in b)


class TickIndex:
    """Blocks are numbered as they are added, and the last ones can be taken away again.

    A block is noted in the bucket of ticks where each of its intervals begins, and in the O(log n) nodes of a segment
    tree that make up the buckets after it. So a look at what an interval meets costs what is found there.
    """

    def __init__(self, n_ticks: int) -> None:
        self._n = 1 << (n_ticks // _BUCKET_TICKS + 1).bit_length()
        self._begins: list[list[int]] = [[] for _ in range(self._n)]
        self._covers: dict[int, list[int]] = {}
        self._ticks: list[Ticks] = []
        self._bounds: Ints = np.zeros((1024, 4), dtype=np.int64)  # start, end; start, end (0, 0 if there is but one)
        self._settled = 0
        self._any_in_two = False
        self._kept: dict[int, tuple[Ints, Int32s, int]] = {}  # answers, and how many blocks they tell of
        self._n_kept = 0
        self._latest: dict[int, tuple[Ints, Int32s, int]] = {}  # the same, until any block is taken away

    def __len__(self) -> int:
        return len(self._ticks)

    def add(self, ticks: Ticks) -> None:
        """The next block. It is held in one interval, or in two."""
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
        """Take the last block away."""
        self._latest.clear()
        k = len(self._ticks) - 1
        for start, end in self._ticks.pop():
            self._begins[start // _BUCKET_TICKS].pop()
            for node in self._nodes(start, end):
                self._covers[node].pop()
        self._forget(k)

    def settle(self) -> None:
        """All blocks stay: only those that are added from now on may be taken away."""
        self._latest.clear()
        self._settled = len(self._ticks)

    def meeting(self, k: int) -> tuple[Ints, Int32s]:
        """(blocks, ticks that they share with block ``k``) of all that share some, itself included."""
        n = len(self._ticks)
        latest = self._latest.get(k)
        if latest is None or latest[2] < n:
            latest = self._latest[k] = (*self._looked_up(k, n), n)
        return latest[:2]

    def _looked_up(self, k: int, n: int) -> tuple[Ints, Int32s]:
        kept = self._kept.get(k)
        if kept is None or self._settled > kept[2] + _MOST_NEWER:
            return self._keep(k, *self._found(k))
        ids, shared, known = kept
        newer = [
            (other, ticks) for other in range(known, n) if (ticks := shared_ticks(self._ticks[k], self._ticks[other]))
        ]
        if newer:
            ids = np.concatenate([ids, np.array([other for other, _ in newer])])
            shared = np.concatenate([shared, np.array([ticks for _, ticks in newer], dtype=np.int32)])
        if known < self._settled:
            self._keep(k, ids, shared)
        return ids, shared

    def bounds(self, ids: Ints) -> tuple[Ints, Ints]:
        """First ticks of blocks, and the ticks after their last: one stretch, also of what is held in two."""
        bounds = self._bounds[ids]
        return bounds[:, 0], np.maximum(bounds[:, 1], bounds[:, 3])

    def at(self, tick: int) -> list[int]:
        """Blocks that are held at a tick."""
        return [k for k in self._near(tick, tick + 1) if any(start <= tick < end for start, end in self._ticks[k])]

    def _near(self, start: int, end: int) -> list[int]:
        """Blocks that may be held in the interval, some of them twice if any is held in two."""
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

    def _keep(self, k: int, ids: Ints, shared: Int32s) -> tuple[Ints, Int32s]:
        """Keep an answer for later, without blocks that may be taken away."""
        self._forget(k)
        if self._n_kept > _MOST_KEPT:
            self._kept.clear()
            self._n_kept = 0
        if k < self._settled:
            stays = ids < self._settled
            self._kept[k] = (ids[stays], shared[stays], self._settled)
            self._n_kept += int(stays.sum())
        return ids, shared

    def _forget(self, k: int) -> None:
        kept = self._kept.pop(k, None)
        if kept is not None:
            self._n_kept -= len(kept[0])

    def _nodes(self, start: int, end: int) -> Iterator[int]:
        """Nodes that make up the buckets after the one where the interval begins."""
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
