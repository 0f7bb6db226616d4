"""SRAM sizes at which to sample a curve: a coarse grid, then midpoints next to its bends.

Sizes lie on a logarithmic axis.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import log2

Round = Callable[[float], int]
"""Rounds a size to one that can be simulated."""

_CLOSE = 1.02  # neighbours nearer than this get no midpoint
_FLAT = 0.01  # share of the curve's height below which it counts as straight


def coarse_sizes(low: int, high: int, count: int, rounded: Round) -> list[int]:
    """At most ``count`` sizes from ``low`` to ``high`` in a geometric progression."""
    return sorted({rounded(low * (high / low) ** (k / (count - 1))) for k in range(count)})


def refining_sizes(known: Sequence[int], bends: dict[int, float], most: int, rounded: Round) -> list[int]:
    """At most ``most`` midpoints between known sizes (ascending): wide gaps next to sharp bends first."""
    gaps = []
    for low, high in pairwise(known):
        middle = rounded((low * high) ** 0.5)
        if low < middle < high and high / low > _CLOSE:
            gaps.append((max(bends.get(low, 0.0), bends.get(high, 0.0)), log2(high / low), middle))
    worth = sorted((gap for gap in gaps if gap[0] > _FLAT), key=lambda gap: (-gap[0] * gap[1], gap[2]))
    return sorted(middle for _, _, middle in worth[:most])


def sharpest_bends(curves: Iterable[tuple[Sequence[int], Sequence[float]]]) -> dict[int, float]:
    """By size, the sharpest bend there of any of the curves (sizes, values)."""
    bends: dict[int, float] = {}
    for sizes, values in curves:
        for size, bend in _curvatures(sizes, values):
            bends[size] = max(bends.get(size, 0.0), bend)
    return bends


def _curvatures(sizes: Sequence[int], values: Sequence[float]) -> Iterator[tuple[int, float]]:
    """By size, the distance of the curve from the chord of its neighbours, as a share of its height."""
    height = max(values) - min(values)
    if height <= 0:
        return
    for k in range(1, len(sizes) - 1):
        share = log2(sizes[k] / sizes[k - 1]) / log2(sizes[k + 1] / sizes[k - 1])
        straight = values[k - 1] + share * (values[k + 1] - values[k - 1])
        yield sizes[k], abs(values[k] - straight) / height
