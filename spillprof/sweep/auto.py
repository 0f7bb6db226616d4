"""Sizes of the SRAM for ``--sram auto``: a coarse grid, then more of them where a curve bends."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log2

from spillprof.sweep.curves import curves
from spillprof.sweep.rows import Case, Row

FIRST_SIZES = 9
MOST_SIZES = 25
_A_ROUND = 4  # sizes that are added at once
_CLOSE = 1.02  # neighbours nearer than this are not parted
_FLAT = 0.01  # of a curve's height: less is no bend


def next_sizes(cases: Sequence[Case], rows: Sequence[Row]) -> list[int]:
    """Sizes to simulate next, in bytes; none when the curves are known well enough. All cases share them."""
    readable = [case for case in cases if case.graph is not None]
    if not readable:
        return []
    unit = max(case.target.alignment_bytes for case in readable)
    known = sorted({row.sram_bytes for row in rows})
    if not known:
        low = min(case.min_sram_bytes for case in readable)
        return _geometric(low, max(case.ideal_peak_bytes for case in readable), unit)
    bends = _bends(rows)
    gaps = []
    for low, high in pairwise(known):
        middle = _aligned((low * high) ** 0.5, unit)
        if low < middle < high and high / low > _CLOSE:
            gaps.append((max(bends.get(low, 0.0), bends.get(high, 0.0)), log2(high / low), middle))
    worth = sorted((gap for gap in gaps if gap[0] > _FLAT), key=lambda gap: (-gap[0] * gap[1], gap[2]))
    return sorted(middle for _, _, middle in worth[: min(_A_ROUND, MOST_SIZES - len(known))])


def _geometric(low: int, high: int, unit: int) -> list[int]:
    steps = FIRST_SIZES - 1
    return sorted({_aligned(low * (high / low) ** (k / steps), unit) for k in range(FIRST_SIZES)})


def _aligned(nbytes: float, unit: int) -> int:
    return -(-round(nbytes) // unit) * unit


def _bends(rows: Sequence[Row]) -> dict[int, float]:
    """By size, how far a curve lies off the line between its neighbours there: the largest share of its height."""
    found: dict[int, float] = {}
    for curve in curves(rows):
        for values in (curve.values("spill_bytes"), curve.values("latency_s")):
            for size, bend in _bends_of(curve.sizes, values):
                found[size] = max(found.get(size, 0.0), bend)
    return found


def _bends_of(sizes: Sequence[int], values: Sequence[float]) -> Iterable[tuple[int, float]]:
    height = max(values) - min(values)
    if height <= 0:
        return
    for k in range(1, len(sizes) - 1):
        share = log2(sizes[k] / sizes[k - 1]) / log2(sizes[k + 1] / sizes[k - 1])
        straight = values[k - 1] + share * (values[k + 1] - values[k - 1])
        yield sizes[k], abs(values[k] - straight) / height
