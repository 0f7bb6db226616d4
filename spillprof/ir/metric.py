"""What a gate judges of a run, and the limits of a model."""

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """What a gate judges."""

    SPILL_BYTES = "spill-bytes"
    LATENCY = "latency"
    PEAK = "peak"
    ENERGY = "energy"

    def whole(self, value: float) -> int:
        """A figure in bytes, seconds or joules as whole bytes, nanoseconds or picojoules."""
        return round(value * {Metric.LATENCY: 1e9, Metric.ENERGY: 1e12}.get(self, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Absolute limits of one model on one target; None: no limit."""

    spill_bytes: int | None = None
    latency_s: float | None = None
    peak_bytes: int | None = None  # live activations, as stored, without weights
    energy_j: float | None = None
