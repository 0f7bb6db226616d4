"""Uses and segments as NumPy columns, one row each, with the vectorised look-ups that the rules need."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Ints
from spillprof.ir.plan import Segment

FlagColumn = npt.NDArray[np.bool_]


def field_column(entries: Collection[Any], field: str) -> Ints:
    """One field of each entry."""
    return int_column(map(attrgetter(field), entries), len(entries))


def int_column(values: Iterable[int], count: int = -1) -> Ints:
    """A column of integers."""
    return np.fromiter(values, dtype=np.int64, count=count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepUses:
    """Steps that use a buffer in one way, in program order."""

    step: Ints
    buffer: Ints
    _ordinals: Ints  # buffer, then step, in one number; ascending
    _span: int

    def following(self, buffers: Ints, steps: Ints) -> Ints:
        """The first use of each buffer from a step on; -1 where there is none."""
        return self._at(buffers, np.searchsorted(self._ordinals, buffers * self._span + steps))

    def preceding(self, buffers: Ints, steps: Ints) -> Ints:
        """The last use of each buffer before a step; -1 where there is none."""
        return self._at(buffers, np.searchsorted(self._ordinals, buffers * self._span + steps) - 1)

    def of(self, buffer: int) -> list[int]:
        """The steps that use one buffer, ascending."""
        low, high = np.searchsorted(self._ordinals, (buffer * self._span, (buffer + 1) * self._span)).tolist()
        steps: list[int] = (self._ordinals[low:high] - buffer * self._span).tolist()
        return steps

    def split(self, streamed: Collection[tuple[int, int]]) -> "tuple[StepUses, StepUses]":
        """(those that are no (step, buffer) of a set, those that are)."""
        among = int_column(b * self._span + i for i, b in streamed)
        is_streamed = np.isin(self.buffer * self._span + self.step, among)
        loaded, passing = (_uses(self.step[k], self.buffer[k], self._span) for k in (~is_streamed, is_streamed))
        return loaded, passing

    def _at(self, buffers: Ints, places: Ints) -> Ints:
        if not len(self._ordinals):
            return np.full(len(buffers), -1)
        found = self._ordinals[np.clip(places, 0, len(self._ordinals) - 1)]
        is_there = (places >= 0) & (places < len(self._ordinals)) & (found // self._span == buffers)
        return np.where(is_there, found % self._span, -1)


def uses(by_step: Sequence[Sequence[int]]) -> StepUses:
    """The uses, from the buffers of each step."""
    counts = int_column(map(len, by_step), len(by_step))
    step = np.repeat(np.arange(len(by_step)), counts)
    return _uses(step, int_column(chain.from_iterable(by_step), len(step)), len(by_step) + 2)


def _uses(step: Ints, buffer: Ints, span: int) -> StepUses:
    return StepUses(step=step, buffer=buffer, _ordinals=np.sort(buffer * span + step), _span=span)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentRows:
    """The segments of a plan, sorted by buffer, then start: one row each."""

    segment: Ints  # index into Plan.segments
    buffer: Ints
    start: Ints
    end: Ints
    address: Ints
    row_of: Ints  # by index into Plan.segments
    before: Ints  # row of the segment of the same buffer that started last before; -1: none did
    _ordinals: Ints  # buffer, then start, in one number; ascending
    _span: int

    def covering(self, buffers: Ints, starts: Ints, ends: Ints) -> Ints:
        """The row that holds each buffer all through ticks ``[start, end)``; -1 where none does."""
        rows = np.searchsorted(self._ordinals, buffers * self._span + starts, side="right") - 1
        return np.where(self._is_of(rows, buffers) & (self.end[rows] >= ends), rows, -1) if len(self.end) else rows

    def touches(self, buffers: Ints, starts: Ints, ends: Ints) -> FlagColumn:
        """Whether each buffer is on-chip at some tick in ``[start, end)``."""
        rows = np.searchsorted(self._ordinals, buffers * self._span + ends) - 1
        return self._is_of(rows, buffers) & (self.end[rows] > starts) if len(self.end) else rows >= 0

    def firsts(self) -> Ints:
        """The first row of each buffer that has one."""
        return np.flatnonzero(np.diff(self.buffer, prepend=-1))

    def is_early(self) -> FlagColumn:
        """Whether a row starts before those of its buffer above it have ended."""
        ends = np.maximum.accumulate(self.buffer * self._span + self.end)
        return np.concatenate([[False], self._ordinals[1:] < ends[:-1]]) if len(ends) else ends > 0

    def _is_of(self, rows: Ints, buffers: Ints) -> FlagColumn:
        is_of: FlagColumn = (rows >= 0) & (self.buffer[rows] == buffers)
        return is_of


def segment_rows(segments: Sequence[Segment], n_ticks: int) -> SegmentRows:
    """The segments of a plan, sorted."""
    buffer, start = field_column(segments, "buffer"), field_column(segments, "start")
    span = n_ticks + 2
    order = np.argsort(buffer * span + start, kind="stable")
    row_of = np.empty(len(order), dtype=np.int64)
    row_of[order] = np.arange(len(order))
    buffer, start = buffer[order], start[order]
    ordinals = buffer * span + start
    before = np.searchsorted(ordinals, ordinals) - 1
    return SegmentRows(
        segment=order,
        buffer=buffer,
        start=start,
        end=field_column(segments, "end")[order],
        address=field_column(segments, "address")[order],
        row_of=row_of,
        before=np.where((before >= 0) & (buffer[before] == buffer), before, -1) if len(before) else before,
        _ordinals=ordinals,
        _span=span,
    )
