"""Eviction candidates, and the victim among them: ranked all at once as columns, or one by one in a heap."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Floats
from spillprof.planning.traffic import TransferCosts

_Rule = Callable[[Any], tuple[Any, ...]]
"""An eviction rule: see ``spillprof.planning.strategies``, which names the columns of this module."""


class Candidates:
    """The eviction candidates when ``need_bytes`` found no hole at step ``now``, one a row.

    Columns have shape (n_candidates,) and are gathered on access.
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
        """Step of the last read or write; below 0 if that was in the inference before."""
        return self._table.last_use[self._rows]

    @property
    def next_use(self) -> Floats:
        """Step of the next read; in the next inference, + n_steps; 2 n_steps + 1 if there is none."""
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
        """1 where eviction costs an extra DRAM write, else 0."""
        return self._table.dirty[self._rows]

    @property
    def read_cost_s(self) -> Floats:
        """Seconds of the reload, run alone."""
        return self._table.read_cost_s[self._rows]

    @property
    def write_cost_s(self) -> Floats:
        """Seconds of a write-back, run alone."""
        return self._table.write_cost_s[self._rows]


class Evictable(Protocol):
    """The set of eviction candidates. The rule picks the victim."""

    def add(self, buffer: int, *, last_use: int, next_use: int, dirty: bool) -> None:
        """Make a buffer of more than 0 bytes a candidate."""

    def remove(self, buffer: int) -> None:
        """Make a buffer no candidate any longer, if it was one."""

    def choose(self, *, now: int, need_bytes: int) -> int | None:
        """The victim: the buffer that the rule ranks first; None if there is no candidate."""


@dataclass(slots=True)
class Candidate:
    """One eviction candidate, as a standing rule ranks it."""

    size_bytes: float
    last_use: int
    next_use: int
    dirty: bool


class CandidateQueue:
    """Candidates of a standing rule: a heap in which each buffer is ranked once, when added; removal is lazy."""

    def __init__(self, rule: _Rule, size_bytes: Floats) -> None:
        self._rule = rule
        self._size_bytes: list[float] = size_bytes.tolist()
        self._entries: dict[int, tuple[float, ...]] = {}
        self._heap: list[tuple[float, ...]] = []  # negated keys, then the buffer; entries may be stale

    def add(self, buffer: int, *, last_use: int, next_use: int, dirty: bool) -> None:
        """See ``Evictable``."""
        keys = self._rule(Candidate(self._size_bytes[buffer], last_use, next_use, dirty))
        entry = self._entries[buffer] = (*(-key for key in keys), buffer)
        heappush(self._heap, entry)

    def remove(self, buffer: int) -> None:
        """See ``Evictable``."""
        self._entries.pop(buffer, None)

    def choose(self, *, now: int, need_bytes: int) -> int | None:
        """See ``Evictable``."""
        while self._heap:
            buffer = int(self._heap[0][-1])
            if self._entries.get(buffer) is self._heap[0]:
                return buffer
            heappop(self._heap)
        return None


class CandidateTable:
    """Candidates of any rule: columns over all buffers, and the rows of the candidates. Add and remove are O(1)."""

    def __init__(self, rule: _Rule, size_bytes: Floats, costs: TransferCosts) -> None:
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
        """See ``Evictable``."""
        self.last_use[buffer] = last_use
        self.next_use[buffer] = next_use
        self.dirty[buffer] = dirty
        self._rows[self._count] = buffer
        self._position[buffer] = self._count
        self._count += 1

    def remove(self, buffer: int) -> None:
        """See ``Evictable``."""
        position = self._position.pop(buffer, None)
        if position is None:
            return
        self._count -= 1
        if position < self._count:
            moved = int(self._rows[self._count])
            self._rows[position] = moved
            self._position[moved] = position

    def choose(self, *, now: int, need_bytes: int) -> int | None:
        """See ``Evictable``."""
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
