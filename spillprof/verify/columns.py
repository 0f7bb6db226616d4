"""Uses and segments as columns, one row each, with the look-ups that the rules need: all rows of a rule at once."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from spillprof.ir.plan import Segment

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def column(entries: Collection[Any], field: str) -> Integers:
    """One field of each entry."""
    return integers(map(attrgetter(field), entries), len(entries))


def integers(values: Iterable[int], count: int = -1) -> Integers:
    """A column of integers."""
    return np.fromiter(values, dtype=np.int64, count=count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uses:
    """Steps that use a buffer in one way, in program order."""

    step: Integers
    buffer: Integers
    _ordinals: Integers  # buffer, then step, in one number; ascending
    _span: int

    def following(self, buffers: Integers, steps: Integers) -> Integers:
        """The first use of each buffer from a step on; -1 where there is none."""
        return self._at(buffers, np.searchsorted(self._ordinals, buffers * self._span + steps))

    def preceding(self, buffers: Integers, steps: Integers) -> Integers:
        """The last use of each buffer before a step; -1 where there is none."""
        return self._at(buffers, np.searchsorted(self._ordinals, buffers * self._span + steps) - 1)

    def of(self, buffer: int) -> list[int]:
        """The steps that use one buffer, ascending."""
        low, high = np.searchsorted(self._ordinals, (buffer * self._span, (buffer + 1) * self._span)).tolist()
        steps: list[int] = (self._ordinals[low:high] - buffer * self._span).tolist()
        return steps

    def split(self, streamed: Collection[tuple[int, int]]) -> "tuple[Uses, Uses]":
        """(those that are no (step, buffer) of a set, those that are)."""
        among = integers(b * self._span + i for i, b in streamed)
        is_streamed = np.isin(self.buffer * self._span + self.step, among)
        loaded, passing = (_uses(self.step[k], self.buffer[k], self._span) for k in (~is_streamed, is_streamed))
        return loaded, passing

    def _at(self, buffers: Integers, places: Integers) -> Integers:
        if not len(self._ordinals):
            return np.full(len(buffers), -1)
        found = self._ordinals[np.clip(places, 0, len(self._ordinals) - 1)]
        is_there = (places >= 0) & (places < len(self._ordinals)) & (found // self._span == buffers)
        return np.where(is_there, found % self._span, -1)


def uses(by_step: Sequence[Sequence[int]]) -> Uses:
    """The uses, given the buffers of each step."""
    counts = integers(map(len, by_step), len(by_step))
    step = np.repeat(np.arange(len(by_step)), counts)
    return _uses(step, integers(chain.from_iterable(by_step), len(step)), len(by_step) + 2)


def _uses(step: Integers, buffer: Integers, span: int) -> Uses:
    return Uses(step=step, buffer=buffer, _ordinals=np.sort(buffer * span + step), _span=span)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stays:
    """The segments of a plan by buffer, then start. Places in this order are called rows."""

    segment: Integers  # index into Plan.segments
    buffer: Integers
    start: Integers
    end: Integers
    address: Integers
    row_of: Integers  # by index into Plan.segments
    before: Integers  # row of the segment of the same buffer that started last before; -1: none did
    _ordinals: Integers  # buffer, then start, in one number; ascending
    _span: int

    def covering(self, buffers: Integers, starts: Integers, ends: Integers) -> Integers:
        """The row that holds each buffer all through ticks ``[start, end)``; -1 where none does."""
        rows = np.searchsorted(self._ordinals, buffers * self._span + starts, side="right") - 1
        return np.where(self._is_of(rows, buffers) & (self.end[rows] >= ends), rows, -1) if len(self.end) else rows

    def touches(self, buffers: Integers, starts: Integers, ends: Integers) -> Flags:
        """Whether each buffer is on-chip at some tick in ``[start, end)``."""
        rows = np.searchsorted(self._ordinals, buffers * self._span + ends) - 1
        return self._is_of(rows, buffers) & (self.end[rows] > starts) if len(self.end) else rows >= 0

    def firsts(self) -> Integers:
        """The first row of each buffer that has one."""
        return np.flatnonzero(np.diff(self.buffer, prepend=-1))

    def is_early(self) -> Flags:
        """Whether a row starts before those of its buffer above it have ended."""
        ends = np.maximum.accumulate(self.buffer * self._span + self.end)
        return np.concatenate([[False], self._ordinals[1:] < ends[:-1]]) if len(ends) else ends > 0

    def _is_of(self, rows: Integers, buffers: Integers) -> Flags:
        is_of: Flags = (rows >= 0) & (self.buffer[rows] == buffers)
        return is_of


def stays(segments: Sequence[Segment], n_ticks: int) -> Stays:
    """The segments of a plan, sorted."""
    buffer, start = column(segments, "buffer"), column(segments, "start")
    span = n_ticks + 2
    order = np.argsort(buffer * span + start, kind="stable")
    row_of = np.empty(len(order), dtype=np.int64)
    row_of[order] = np.arange(len(order))
    buffer, start = buffer[order], start[order]
    ordinals = buffer * span + start
    before = np.searchsorted(ordinals, ordinals) - 1
    return Stays(
        segment=order,
        buffer=buffer,
        start=start,
        end=column(segments, "end")[order],
        address=column(segments, "address")[order],
        row_of=row_of,
        before=np.where((before >= 0) & (buffer[before] == buffer), before, -1) if len(before) else before,
        _ordinals=ordinals,
        _span=span,
    )
