"""Sizes of the SRAM for ``--sram auto``: a coarse grid, then more of them where a curve bends."""

from collections.abc import Sequence

from spillprof.analysis.size_grid import coarse_sizes, curvatures, refining_sizes
from spillprof.studies.sweep.curves import curves
from spillprof.studies.sweep.rows import Row, SweepCase

_FIRST_SIZES = 9
_MOST_SIZES = 25
_A_ROUND = 4  # sizes that are added at once


def next_sizes(cases: Sequence[SweepCase], rows: Sequence[Row]) -> list[int]:
    """Sizes to simulate next, in bytes; none when the curves are known well enough. All cases share them."""
    readable = [case for case in cases if case.run is not None]
    if not readable:
        return []
    unit = max(case.target.alignment_bytes for case in readable)

    def aligned(nbytes: float) -> int:
        return -(-round(nbytes) // unit) * unit

    known = sorted({row.sram_bytes for row in rows})
    if not known:
        low = min(case.min_sram_bytes for case in readable)
        return coarse_sizes(low, max(case.ideal_peak_bytes for case in readable), _FIRST_SIZES, aligned)
    return refining_sizes(known, _bends(rows), min(_A_ROUND, _MOST_SIZES - len(known)), aligned)


def _bends(rows: Sequence[Row]) -> dict[int, float]:
    """By size, the sharpest bend that a curve has there."""
    found: dict[int, float] = {}
    for curve in curves(rows):
        for values in (curve.values("spill_bytes"), curve.values("latency_s")):
            for size, bend in curvatures(curve.sizes, values):
                found[size] = max(found.get(size, 0.0), bend)
    return found
