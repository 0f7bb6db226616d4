"""Curves over the SRAM size, with their knees and cliffs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Any

from spillprof.studies.sweep.rows import Row

METRICS = ("spill_bytes", "latency_s")
_KNEE_DEPTH = 0.1  # of the unit square: a flatter curve has no knee
_NOISE = 1e-3  # a latency that rises by less is no cliff


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCurve:
    """The points of one case, placement and strategy, by size, without those that failed."""

    rows: tuple[Row, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """SRAM in bytes, ascending."""
        return tuple(row.sram_bytes for row in self.rows)

    def values(self, metric: str) -> tuple[Any, ...]:
        """One figure of each point."""
        return tuple(getattr(row, metric) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """Where more memory stops paying: the point farthest below the line from the curve's first point to its last."""

    model: str
    dims: Mapping[str, int]
    settings: Mapping[str, Any]
    placement: str
    strategy: str
    metric: str
    sram_bytes: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cliff:
    """Two neighbouring sizes of which the larger is worse, and the cause (None: not searched for)."""

    model: str
    dims: Mapping[str, int]
    settings: Mapping[str, Any]
    placement: str
    strategy: str
    metric: str
    sram_bytes: int
    larger_sram_bytes: int
    value: float
    larger_value: float
    buffer: str | None = None  # whose spill bytes rise most
    buffer_bytes: int | None = None  # its size
    buffer_spill_bytes: int | None = None
    larger_buffer_spill_bytes: int | None = None
    step: int | None = None  # that forces it out, or waits for it
    operator: str | None = None
    cause: str | None = None

    @property
    def place(self) -> tuple[Any, ...]:
        """Key of its location, independent of strategy and placement."""
        return (
            self.model, tuple(self.dims.items()), tuple(self.settings.items()), self.sram_bytes,
            self.larger_sram_bytes, self.metric,
        )  # fmt: skip

    @property
    def rise(self) -> float:
        """Relative increase; infinite from zero."""
        return (self.larger_value - self.value) / self.value if self.value else float("inf")


def curves(rows: Sequence[Row]) -> Iterator[SweepCurve]:
    """One curve for each case, placement and strategy that has a point, in the order of their first rows."""
    grouped: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.ok:
            grouped.setdefault((*scenario(row), row.model, row.placement, row.strategy), []).append(row)
    for own in grouped.values():
        yield SweepCurve(rows=tuple(sorted(own, key=lambda row: row.sram_bytes)))


def scenario(row: Row) -> tuple[Any, ...]:
    """Key of the other swept values: dimensions, target fields and options."""
    return tuple(row.dims.items()), tuple(row.settings.items())


def knees(rows: Sequence[Row]) -> tuple[Knee, ...]:
    """At most one knee a curve and metric, over the logarithm of the size (the Kneedle rule of Satopaa et al., 2011).

    In the unit square of curve and axis the knee is the point farthest below the falling diagonal.
    """
    found = []
    for curve in curves(rows):
        for metric in METRICS:
            at = _knee(curve.sizes, curve.values(metric))
            if at is not None:
                row = curve.rows[at]
                found.append(
                    Knee(
                        model=row.model, dims=row.dims, settings=row.settings, placement=row.placement,
                        strategy=row.strategy, metric=metric, sram_bytes=row.sram_bytes, value=getattr(row, metric),
                    )
                )  # fmt: skip
    return tuple(found)


def cliffs(rows: Sequence[Row]) -> tuple[Cliff, ...]:
    """Every pair of neighbouring sizes whose larger one spills more bytes or takes longer, worst first.

    A latency counts as longer only as far as its spill time grows. An increase that infinite memory has too (a larger
    memory may wait longer for its first weights) is not caused by spills.
    """
    found = []
    for curve in curves(rows):
        for metric in METRICS:
            for low, high in pairwise(curve.rows):
                before, after = getattr(low, metric), getattr(high, metric)
                grows = after - before
                if metric == "latency_s":
                    grows = min(grows, (high.spill_time_s or 0.0) - (low.spill_time_s or 0.0)) - _NOISE * before
                if grows > 0:
                    found.append(
                        Cliff(
                            model=low.model, dims=low.dims, settings=low.settings, placement=low.placement,
                            strategy=low.strategy, metric=metric, sram_bytes=low.sram_bytes,
                            larger_sram_bytes=high.sram_bytes, value=before, larger_value=after,
                        )
                    )  # fmt: skip
    return tuple(sorted(found, key=lambda cliff: (-cliff.rise, -(cliff.larger_value - cliff.value))))


def _knee(sizes: Sequence[int], values: Sequence[float]) -> int | None:
    low, high = min(values), max(values)
    if len(sizes) < 3 or high <= low or values[0] <= values[-1]:
        return None
    width = log2(sizes[-1] / sizes[0])
    depth = [
        1 - log2(size / sizes[0]) / width - (value - low) / (high - low)
        for size, value in zip(sizes, values, strict=True)
    ]
    best = max(range(1, len(sizes) - 1), key=lambda k: depth[k])
    return best if depth[best] >= _KNEE_DEPTH else None
