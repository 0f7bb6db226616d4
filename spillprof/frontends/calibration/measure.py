"""Times copies of growing sizes between two memories."""

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
    """Direction of a copy."""

    READ = "read"  # from the large memory, as a reload
    WRITE = "write"  # into it, as a write-back
    BOTH = "both"  # equal bytes each way, at once


class Copier(Protocol):
    """A machine that times copies."""

    @property
    def device(self) -> str:
        """Name of the measured device."""

    @property
    def method(self) -> tuple[str, ...]:
        """How copies are measured, one remark each."""

    def seconds(self, direction: Direction, size_bytes: int) -> float:
        """Seconds of one copy of ``size_bytes`` (``BOTH``: that many each way)."""

    def close(self) -> None:
        """Frees the buffers."""


FEWEST_REPETITIONS = 3
"""Least repetitions of each copy, even beyond the budget."""
_FEWEST_FITTED = 4
_LARGEST_BYTES = 2**40
_SMALLEST_BYTES = 1024
_GRAIN_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCopies:
    """The repetitions of one copy."""

    direction: Direction
    size_bytes: int
    held_out: bool  # not fitted: judges the fit
    seconds: tuple[float, ...]

    @property
    def min_s(self) -> float:
        """The fastest repetition, which the curve is fitted to and judged by."""
        return min(self.seconds)

    @property
    def median_s(self) -> float:
        """The median repetition, with other work on the machine."""
        return statistics.median(self.seconds)


Prepare = Callable[[Copier, Direction, int], object]
"""Runs right before a timed copy: sweeps the caches, or makes the same copy to fill them."""


def same_copy_before(copier: Copier, direction: Direction, size_bytes: int) -> None:
    """Leaves the caches as this copy leaves them, as in a loop over one size."""
    copier.seconds(direction, size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of copies: fitted ones, which double, and held-out ones half-way between."""

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
    """Measures every copy until the budget is spent or each has ``most_repetitions``.

    Each round times all sizes and directions in a new random order, which spreads disturbances over all of them. Both
    directions at once are measured at the larger half of the fitted sizes, enough for their shared bandwidth.
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
    """(round, copy): every copy once a round, in a new random order."""
    mixer = random.Random(0)
    for number in range(rounds):
        for copy in mixer.sample(copies, len(copies)):
            yield number, copy
