"""What a calibration found: curves of each direction, and how far off they are at sizes that they have not seen."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spillprof.frontends.calibration.copier import Copier, Direction
from spillprof.frontends.calibration.fit import Fit, fit_curve
from spillprof.frontends.calibration.measure import Prepare, Series, Sizes, measure
from spillprof.ir.errors import UsageError

ONE_WAY = (Direction.READ, Direction.WRITE)
_NO_LIMIT = 0.98  # of the sum of both bandwidths: as good as all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Measured copies under one state of the caches, and the curves fitted to them."""

    series: tuple[Series, ...]
    fits: dict[Direction, Fit]

    def of(self, direction: Direction) -> tuple[Series, ...]:
        """The series of a direction, by size."""
        return tuple(each for each in self.series if each.direction is direction)

    def fitted_s(self, series: Series) -> float:
        """Seconds that the curve says for the copy of a series."""
        return float(self.fits[series.direction].seconds(np.array([series.size_bytes], dtype=np.float64))[0])

    def relative_error(self, series: Series) -> float:
        """Curve over measurement, less one."""
        return self.fitted_s(series) / series.min_s - 1

    def heldout_median_relative_error(self, *directions: Direction) -> float:
        """Median size of the relative errors at held-out sizes, of reads and writes unless told."""
        wanted = directions or ONE_WAY
        errors = [abs(self.relative_error(each)) for each in self.series if each.held_out and each.direction in wanted]
        return statistics.median(errors)

    def judged_by(self, other: "Calibration") -> float:
        """Median size of the relative errors of these curves at the held-out sizes of another calibration."""
        return replace(other, fits=self.fits).heldout_median_relative_error()

    @property
    def repetitions(self) -> int:
        """Of each copy, at least."""
        return min(len(each.seconds) for each in self.series)

    @property
    def disturbance(self) -> float:
        """How much longer than the least a middling repetition took: what other work on the machine did. A share."""
        return statistics.median(each.median_s / each.min_s - 1 for each in self.series)

    @property
    def bus_bytes_per_s(self) -> float | None:
        """What both directions at once share; None if they do not limit each other."""
        read, write = (self.fits[way].bytes_per_s for way in ONE_WAY)
        both = 2 * self.fits[Direction.BOTH].bytes_per_s
        return None if both >= _NO_LIMIT * (read + write) else max(both, read, write)


def calibrate(
    copier: Copier,
    sizes: Sizes,
    *,
    prepare: Prepare,
    budget_s: float,
    most_repetitions: int,
    progress: Callable[[], object] = lambda: None,
) -> Calibration:
    """Measure copies of these sizes, and fit a curve of each direction to the fitted ones.

    ``prepare`` comes right before each copy.
    """
    series = measure(
        copier,
        sizes,
        prepare=prepare,
        budget_s=budget_s,
        most_repetitions=most_repetitions,
        progress=progress,
    )
    return fitted(series)


def fitted(series: tuple[Series, ...]) -> Calibration:
    """The calibration of these measurements. ``UsageError`` if a copy took no time that the clock could tell."""
    timeless = next((each for each in series if not each.min_s > 0), None)
    if timeless is not None:
        raise UsageError(
            f"a copy of {timeless.size_bytes:,} bytes is too short for the clock of this machine",
            hint="measure larger copies: --sizes 256KB..256MB",
        )
    fits = {}
    for direction in Direction:
        seen = [each for each in series if each.direction is direction and not each.held_out]
        # both at once: a straight line, since only its slope, the shared bandwidth, is wanted
        bends = {} if direction in ONE_WAY else {"most_bends": 0}
        fits[direction] = fit_curve(tuple(s.size_bytes for s in seen), tuple(s.min_s for s in seen), **bends)
    return Calibration(series=series, fits=fits)
