"""Copies of growing sizes between two memories, timed."""

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Protocol

from spillprof.ir.errors import UsageError
from spillprof.ir.units import format_size


class Direction(StrEnum):
    """Which way the bytes go."""

    READ = "read"  # from the large memory, as a reload
    WRITE = "write"  # into it, as a write-back
    BOTH = "both"  # as many bytes each way, at once


class Copier(Protocol):
    """A machine that copies and tells how long it took."""

    @property
    def device(self) -> str:
        """What was measured, in words."""

    @property
    def method(self) -> tuple[str, ...]:
        """How: one remark each."""

    def seconds(self, direction: Direction, size_bytes: int) -> float:
        """Seconds of one copy of so many bytes (for ``BOTH``: so many each way)."""

    def close(self) -> None:
        """Give the buffers back."""


FEWEST_REPETITIONS = 3
"""Of each copy, even where they take longer than the budget: fewer tell nothing."""
_FEWEST_FITTED = 4
_LARGEST_BYTES = 2**40
_SMALLEST_BYTES = 1024
_GRAIN_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCopies:
    """The repetitions of one copy."""

    direction: Direction
    size_bytes: int
    held_out: bool  # kept from the fit, to judge it
    seconds: tuple[float, ...]

    @property
    def min_s(self) -> float:
        """The least disturbed repetition: what the curve is fitted to, and judged by."""
        return min(self.seconds)

    @property
    def median_s(self) -> float:
        """What other work on the machine makes of it."""
        return statistics.median(self.seconds)


Prepare = Callable[[Copier, Direction, int], object]
"""Runs right before a timed copy: sweeps the caches, or makes the same copy to fill them."""


def same_copy_before(copier: Copier, direction: Direction, size_bytes: int) -> None:
    """Leave the caches as this very copy leaves them: what a loop over one size would measure."""
    copier.seconds(direction, size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of copies: doubling ones that are fitted, and those half-way between that are held out."""

    fitted: tuple[int, ...]
    held_out: tuple[int, ...]


def copy_sizes(low_bytes: int, high_bytes: int) -> Sizes:
    """Sizes from ``low_bytes`` to ``high_bytes``, each about twice the last. ``UsageError`` if that makes too few."""
    if high_bytes > _LARGEST_BYTES:
        raise UsageError(f"{format_size(high_bytes)} is larger than what can be copied", hint="take 256KB..256MB")
    if low_bytes < _SMALLEST_BYTES:
        raise UsageError(f"copies of {low_bytes} B are too small to be timed", hint="take 256KB..256MB")
    octaves = round(math.log2(high_bytes / low_bytes)) if high_bytes > low_bytes else 0
    fitted = [_grained(low_bytes * (high_bytes / low_bytes) ** (i / octaves)) for i in range(octaves + 1) if octaves]
    if len(fitted) < _FEWEST_FITTED:
        raise UsageError(
            f"from {format_size(low_bytes)} to {format_size(high_bytes)} there are too few sizes for a curve",
            hint="the largest must be eight times the smallest, or more: 256KB..256MB",
        )
    held_out = [_grained(math.sqrt(a * b)) for a, b in pairwise(fitted)]
    return Sizes(fitted=tuple(fitted), held_out=tuple(held_out))


def _grained(size_bytes: float) -> int:
    return round(size_bytes / _GRAIN_BYTES) * _GRAIN_BYTES


def measure_copies(
    copier: Copier,
    sizes: Sizes,
    *,
    prepare: Prepare,
    budget_s: float,
    most_repetitions: int,
    progress: Callable[[], object] = lambda: None,
) -> tuple[TimedCopies, ...]:
    """Each copy measured until the budget is spent or every one has ``most_repetitions``.

    Copies of all sizes and directions take turns in an order that changes from round to round, so that a slow spell of
    the machine touches all of them a little. Both directions at once are measured at the larger half of the fitted
    sizes: only the bandwidth that they share is wanted.
    """
    one_way = (*((size, False) for size in sizes.fitted), *((size, True) for size in sizes.held_out))
    copies = [(way, size, held) for way in (Direction.READ, Direction.WRITE) for size, held in one_way]
    copies += [(Direction.BOTH, size, False) for size in sizes.fitted[len(sizes.fitted) // 2 :]]
    taken: dict[tuple[Direction, int, bool], list[float]] = {copy: [] for copy in copies}
    start_s = time.monotonic()
    for repetition, (direction, size, held) in _turns(copies, most_repetitions):
        if repetition >= FEWEST_REPETITIONS and time.monotonic() - start_s >= budget_s:
            break
        progress()
        prepare(copier, direction, size)
        taken[direction, size, held].append(copier.seconds(direction, size))
    series = (
        TimedCopies(direction=direction, size_bytes=size, held_out=held, seconds=tuple(seconds))
        for (direction, size, held), seconds in taken.items()
    )
    return tuple(sorted(series, key=lambda each: (list(Direction).index(each.direction), each.size_bytes)))


def _turns(copies: list[tuple[Direction, int, bool]], rounds: int) -> Iterable[tuple[int, tuple[Direction, int, bool]]]:
    """(round, copy), every copy once a round, in an order of its own each time."""
    mixer = random.Random(0)
    for number in range(rounds):
        for copy in mixer.sample(copies, len(copies)):
            yield number, copy
