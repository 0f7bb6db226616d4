"""Measured operator times, by name: they replace estimates from MACs and bytes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property


class TimeUnit(StrEnum):
    """Unit of the figures of a file."""

    SECONDS = "seconds"
    CYCLES = "cycles"  # of the target's clock


@dataclass(frozen=True, kw_only=True)
class OpTimes:
    """One figure per operator. ``times``: (name, figure in ``unit``), each name once."""

    source: str  # where they come from, as the user named it
    times: tuple[tuple[str, float], ...]
    unit: TimeUnit = TimeUnit.SECONDS

    @cached_property
    def digest(self) -> str:
        """Digest of the times, independent of the file name."""
        return hashlib.sha256(repr((self.times, str(self.unit))).encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def __hash__(self) -> int:
        return hash(self.digest)

    def seconds(self, clock_hz: float | None) -> Mapping[str, float]:
        """Seconds by name. Figures in cycles need the clock."""
        if self.unit is TimeUnit.SECONDS:
            return dict(self.times)
        assert clock_hz is not None
        return {name: cycles / clock_hz for name, cycles in self.times}
