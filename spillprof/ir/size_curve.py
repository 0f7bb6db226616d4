"""The same run in larger and smaller memories: spill bytes and latency over the size of the SRAM."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePoint:
    """One strategy in one size of SRAM. Figures are None where it cannot run."""

    sram_bytes: int
    strategy: str
    spill_bytes: int | None
    latency_s: float | None
    spill_bytes_lower: int | None  # proven, by quick methods: no plan in this memory spills less
    reason: str | None = None  # why it cannot run


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCurve:
    """Points by size, then strategy; none where they were not simulated."""

    points: tuple[SizePoint, ...] = ()
    left_out: str = ""  # why there are no points
