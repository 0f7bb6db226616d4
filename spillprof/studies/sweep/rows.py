"""Rows of a sweep: one for each point, with what it costs or why it failed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spillprof.ir.result import Totals
from spillprof.ir.target import Target
from spillprof.studies.fingerprint import digest

OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCase:
    """A model with its dimensions bound, on a machine but for the size of its SRAM: one set of curves."""

    model: str  # path
    sha256: str
    dims: Mapping[str, int]  # those that are swept
    settings: Mapping[str, Any]  # target fields and options that are swept
    target: Target  # settings applied
    run: int | None  # index into Study.runs; None: it could not be read
    error: str = ""  # why not
    min_sram_bytes: int = 0  # the smallest capacity at which no operator is oversized
    ideal_peak_bytes: int = 0  # SRAM that the ideal run uses
    digest: str = ""  # of all that its results depend on, but for SRAM, strategy and placement

    def row_key(self, sram_bytes: int, placement: str, strategy: str) -> str:
        """A fingerprint of the point: equal for equal work, whoever does it. 16 hexadecimal digits."""
        return digest([self.digest, sram_bytes, placement, strategy])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One point. Figures are None where it failed; ``status`` then says why."""

    model: str
    target: str
    strategy: str
    placement: str
    sram_bytes: int
    dims: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    spill_bytes: int | None = None
    spill_write_bytes: int | None = None
    spill_read_bytes: int | None = None
    streamed_bytes: int | None = None
    spill_count: int | None = None
    compaction_count: int | None = None
    peak_bytes: int | None = None
    latency_s: float | None = None
    spill_time_s: float | None = None  # over the ideal, or over the fastest strategy if that beats it
    energy_j: float | None = None
    ideal_latency_s: float | None = None
    spill_bytes_lower: int | None = None  # proven: no plan of this model in this memory spills less
    status: str = OK
    key: str = ""

    @property
    def ok(self) -> bool:
        """Whether it has figures."""
        return self.status == OK


FIGURES = tuple(name for name in Totals.__dataclass_fields__ if name in Row.__dataclass_fields__)
"""Fields of a row that a simulation fills; ``spill_time_s`` follows when all strategies are known."""


def make_row(case: SweepCase, sram_bytes: int, placement: str, strategy: str, **figures: Any) -> Row:
    """The row of a point."""
    return Row(
        model=case.model,
        target=case.target.name,
        strategy=strategy,
        placement=placement,
        sram_bytes=sram_bytes,
        dims=case.dims,
        settings=case.settings,
        key=case.row_key(sram_bytes, placement, strategy),
        **figures,
    )
