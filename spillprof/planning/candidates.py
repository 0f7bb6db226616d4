"""The buffers that may be evicted: as columns, so that a rule ranks all of them at once, or ranked as they come."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Floats
from spillprof.planning.traffic import TransferCosts


class Candidates:
    """A view of the evictable buffers, one a row, when ``need_bytes`` found no hole at step ``now``.

    Columns have shape (n_candidates,) and are gathered when asked for.
    """

    __slots__ = ("_rows", "_table", "need_bytes", "now")

    def __init__(self, table: "CandidateTable", rows: npt.NDArray[np.int64], now: int, need_bytes: int) -> None:
        self._table = table
        self._rows = rows
        self.now = now
        self.need_bytes = need_bytes

    @property
    def size_bytes(self) -> Floats:
        """Bytes that eviction frees."""
        return self._table.size_bytes[self._rows]

    @property
    def last_use(self) -> Floats:
        """Step of the last read or write."""
        return self._table.last_use[self._rows]

    @property
    def next_use(self) -> Floats:
        """Step of the next read."""
        return self._table.next_use[self._rows]

    @property
    def distance(self) -> Floats:
        """Steps to the next read."""
        return self._table.next_use[self._rows] - self.now

    @property
    def useful_bytes(self) -> Floats:
        """Bytes that eviction frees, at most those needed."""
        return np.minimum(self._table.size_bytes[self._rows], self.need_bytes)

    @property
    def dirty(self) -> Floats:
        """1 where eviction costs a write that is not made anyway, else 0."""
        return self._table.dirty[self._rows]

    @property
    def read_cost_s(self) -> Floats:
        """Time of the reload, alone."""
        return self._table.read_cost_s[self._rows]

    @property
    def write_cost_s(self) -> Floats:
        """Time of a write-back, alone."""
        return self._table.write_cost_s[self._rows]


EvictionRule = Callable[[Any], tuple[Any, ...]]
"""Sort keys, of ``Candidates`` or of one ``Candidate``."""


class Evictable(Protocol):
    """What may leave now."""

    def add(self, buffer: int, *, last_use: int, next_use: int, dirty: bool) -> None:
        """The buffer, which must not be empty, may be evicted from now on."""

    def remove(self, buffer: int) -> None:
        """The buffer may not be evicted any more, or is gone. Nothing happens if it was no candidate."""

    def choose(self, *, now: int, need_bytes: int) -> int | None:
        """The buffer that the rule evicts first; None if there is no candidate."""


@dataclass(slots=True)
class Candidate:
    """One evictable buffer, for a rule that does not look at anything else."""

    size_bytes: float
    last_use: int
    next_use: int
    dirty: bool


class CandidateQueue:
    """For a standing rule: each buffer is ranked once, when it is added."""

    def __init__(self, rule: EvictionRule, size_bytes: Floats) -> None:
        self._rule = rule
        self._size_bytes: list[float] = size_bytes.tolist()
        self._entries: dict[int, tuple[float, ...]] = {}
        self._heap: list[tuple[float, ...]] = []  # keys, the largest first, and the buffer; of some it no longer holds

    def add(self, buffer: int, *, last_use: int, next_use: int, dirty: bool) -> None:
        """As ``Evictable`` says."""
        keys = self._rule(Candidate(self._size_bytes[buffer], last_use, next_use, dirty))
        entry = self._entries[buffer] = (*(-key for key in keys), buffer)
        heappush(self._heap, entry)

    def remove(self, buffer: int) -> None:
        """As ``Evictable`` says."""
        self._entries.pop(buffer, None)

    def choose(self, *, now: int, need_bytes: int) -> int | None:
        """As ``Evictable`` says."""
        while self._heap:
            buffer = int(self._heap[0][-1])
            if self._entries.get(buffer) is self._heap[0]:
                return buffer
            heappop(self._heap)
        return None


class CandidateTable:
    """For any rule: columns over all buffers, and which are evictable now. Adding and removing take constant time."""

    def __init__(self, rule: EvictionRule, size_bytes: Floats, costs: TransferCosts) -> None:
        n = len(size_bytes)
        self._rule = rule
        self.size_bytes = size_bytes
        self.last_use = np.zeros(n)
        self.next_use = np.zeros(n)
        self.dirty = np.zeros(n)
        self.read_cost_s = costs.read_s
        self.write_cost_s = costs.write_s
        self._rows = np.zeros(n, dtype=np.int64)
        self._count = 0
        self._position: dict[int, int] = {}

    def add(self, buffer: int, *, last_use: int, next_use: int, dirty: bool) -> None:
        """As ``Evictable`` says."""
        self.last_use[buffer] = last_use
        self.next_use[buffer] = next_use
        self.dirty[buffer] = dirty
        self._rows[self._count] = buffer
        self._position[buffer] = self._count
        self._count += 1

    def remove(self, buffer: int) -> None:
        """As ``Evictable`` says."""
        position = self._position.pop(buffer, None)
        if position is None:
            return
        self._count -= 1
        if position < self._count:
            moved = int(self._rows[self._count])
            self._rows[position] = moved
            self._position[moved] = position

    def choose(self, *, now: int, need_bytes: int) -> int | None:
        """As ``Evictable`` says."""
        if not self._count:
            return None
        rows = self._rows[: self._count]
        first, *others = self._rule(Candidates(self, rows, now, need_bytes))
        best = (first == first.max()).nonzero()[0]
        for key in others:
            if len(best) == 1:
                break
            best = best[key[best] == key[best].max()]
        return int(rows[best].min())
