"""Fits a continuous piecewise-linear curve of seconds by size, with least relative error."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spillprof.ir.target import TransferCurve

_Floats = NDArray[np.float64]

MOST_BENDS = 3
_SLOWEST_RISE = 1e-4  # least slope, as a share of the least measured seconds per byte
_EXACT = 1e-7  # relative error of rounding alone
_DRAWS = 500
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """95 % confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFit:
    """A curve, its set-up and slope, and their confidence intervals (None: too few sizes)."""

    curve: TransferCurve  # (bytes, seconds) at 0 bytes, at each bend, at the largest size
    setup_s: float  # the curve at 0 bytes
    s_per_byte: float  # slope of the last piece: one over the bandwidth of large copies
    setup_interval_s: Interval | None
    slope_interval: Interval | None

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth of large copies."""
        return 1 / self.s_per_byte

    def seconds(self, size_bytes: _Floats) -> _Floats:
        """Seconds at these sizes; beyond the last point, the last piece continues. Shape as given."""
        x, y = (np.array(column, dtype=np.float64) for column in zip(*self.curve, strict=True))
        beyond = np.maximum(size_bytes - x[-1], 0.0)
        return np.asarray(np.interp(size_bytes, x, y) + beyond * self.s_per_byte, dtype=np.float64)


def fit_curve(size_bytes: tuple[int, ...], seconds: tuple[float, ...], *, most_bends: int = MOST_BENDS) -> CostFit:
    """The curve of least squared relative error, with at most ``most_bends`` bends, each at one of the sizes.

    Its set-up is not negative, and its slopes are positive. A greedy search adds the best bend, then moves bends while
    that helps; of the curves with 0, 1, 2, ... bends, the information criterion selects one. Sizes ascend; seconds > 0.
    """
    x, y = np.array(size_bytes, dtype=np.float64), np.array(seconds, dtype=np.float64)
    bends: tuple[int, ...] = ()
    best, best_score = bends, _score(_residuals(x, y, bends), bends)
    for _ in range(min(most_bends, len(x) - 3)):
        bends = _moved(x, y, _with_one_more(x, y, bends))
        score = _score(_residuals(x, y, bends), bends)
        if score < best_score:
            best, best_score = bends, score
    coefficients = _coefficients(x, y, best)
    setup, slope = _intervals(x, y, best, coefficients)
    return CostFit(
        curve=_points(x, best, coefficients),
        setup_s=float(coefficients[0]),
        s_per_byte=float(coefficients[-1]),
        setup_interval_s=setup,
        slope_interval=slope,
    )


def _with_one_more(x: _Floats, y: _Floats, bends: tuple[int, ...]) -> tuple[int, ...]:
    free = [i for i in range(1, len(x) - 1) if i not in bends]
    return min((tuple(sorted((*bends, i))) for i in free), key=lambda each: _error(_residuals(x, y, each)))


def _moved(x: _Floats, y: _Floats, bends: tuple[int, ...]) -> tuple[int, ...]:
    """Moves each bend in turn to where it fits best, until none moves."""
    error = _error(_residuals(x, y, bends))
    while True:
        before = error
        for bend in bends:
            others = tuple(each for each in bends if each != bend)
            other = _with_one_more(x, y, others)
            other_error = _error(_residuals(x, y, other))
            if other_error < error * (1 - 1e-9):
                bends, error = other, other_error
                break
        if error >= before:
            return bends


def _score(residuals: _Floats, bends: tuple[int, ...]) -> float:
    """Akaike's information criterion, corrected for few observations (Hurvich and Tsai, Biometrika 76, 1989).

    A bend has two parameters: its position and a slope. Infinite if there are too few sizes.
    """
    n, parameters = len(residuals), 2 + 2 * len(bends)
    spare = n - parameters - 1
    if spare < 1:
        return math.inf
    correction = 2 * parameters * (parameters + 1) / spare
    return n * math.log(max(_error(residuals) / n, _EXACT**2)) + 2 * parameters + correction


def _error(residuals: _Floats) -> float:
    return float(residuals @ residuals)


def _residuals(x: _Floats, y: _Floats, bends: tuple[int, ...]) -> _Floats:
    """Relative errors of the best curve with these bends. Shape (n_sizes,)."""
    return _lengths(x, x[list(bends)]) @ _coefficients(x, y, bends) / y - 1


def _lengths(x: _Floats, bends: _Floats) -> _Floats:
    """Design matrix: 1, and the part of each size on each piece. Shape (n_sizes, 2 + n_bends)."""
    starts = np.concatenate([[0.0], bends])
    ends = np.concatenate([bends, [np.inf]])
    on_piece = np.clip(x[:, None], starts, ends) - starts
    return np.concatenate([np.ones((len(x), 1)), on_piece], axis=1)


def _coefficients(x: _Floats, y: _Floats, bends: tuple[int, ...]) -> _Floats:
    """Set-up and slope of each piece. Shape (2 + n_bends,)."""
    rows = _lengths(x, x[list(bends)]) / y[:, None]
    least = np.full(rows.shape[1], _SLOWEST_RISE * float(np.min(y / x)))
    least[0] = 0.0
    return least + not_negative_least_squares(rows, 1 - rows @ least)


def not_negative_least_squares(matrix: _Floats, wanted: _Floats) -> _Floats:
    """``argmin |matrix @ c - wanted|`` over c >= 0. Shape (n_columns,).

    Active sets: C. L. Lawson and R. J. Hanson, Solving Least Squares Problems, 1974, chapter 23.
    """
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    columns = matrix / scale
    found = np.zeros(columns.shape[1])
    free = np.zeros(columns.shape[1], dtype=bool)
    for _ in range(10 * columns.shape[1]):
        pull = columns.T @ (wanted - columns @ found)
        pull[free] = -np.inf
        if pull.max() <= 1e-12 * max(1.0, float(np.linalg.norm(wanted))):
            break
        free[int(pull.argmax())] = True
        while True:
            best = np.zeros_like(found)
            best[free] = np.linalg.lstsq(columns[:, free], wanted, rcond=None)[0]
            falling = free & (best <= 0)
            if not falling.any():
                break
            steps = found[falling] / np.maximum(found[falling] - best[falling], 1e-300)
            found = found + float(steps.min()) * (best - found)
            free &= found > 1e-15
            found[~free] = 0.0
        found = best
    return np.asarray(found / scale, dtype=np.float64)


def _points(x: _Floats, bends: tuple[int, ...], coefficients: _Floats) -> TransferCurve:
    """The curve at 0 bytes, at its bends, and at the largest size."""
    at = np.array([0.0, *x[list(bends)], x[-1]])
    seconds = _lengths(at, x[list(bends)]) @ coefficients
    return tuple((int(size), float(value)) for size, value in zip(at, seconds, strict=True))


def _intervals(
    x: _Floats, y: _Floats, bends: tuple[int, ...], coefficients: _Floats
) -> tuple[Interval | None, Interval | None]:
    """Intervals of set-up and last slope: residual bootstrap of the curve with fixed bends."""
    residuals = y / (_lengths(x, x[list(bends)]) @ coefficients) - 1
    spare = len(x) - len(coefficients)
    if spare < 1:
        return None, None
    residuals = (residuals - residuals.mean()) * math.sqrt(len(x) / spare)
    draws = np.random.default_rng(0).choice(residuals, size=(_DRAWS, len(x)))
    fitted = _lengths(x, x[list(bends)]) @ coefficients
    refitted = np.array([_coefficients(x, fitted * np.maximum(1 + draw, 0.01), bends) for draw in draws])
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(refitted, [tail, 1 - tail], axis=0)
    return (
        Interval(low=float(low[0]), high=float(high[0])),
        Interval(low=float(low[-1]), high=float(high[-1])),
    )


def inner_bends(curve: TransferCurve) -> tuple[int, ...]:
    """Sizes at which the slope changes."""
    return tuple(size for (size, _), _ in pairwise(curve) if size)
