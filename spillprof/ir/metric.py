"""What a gate judges of a run, and the limits of a model."""

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """What a gate judges."""

    SPILL_BYTES = "spill-bytes"
    LATENCY = "latency"
    PEAK = "peak"
    ENERGY = "energy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Absolute limits of one model on one target; None: no limit."""

    spill_bytes: int | None = None
    latency_s: float | None = None
    peak_bytes: int | None = None  # live activations, as stored, without weights
    energy_j: float | None = None
