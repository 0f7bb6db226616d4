"""Rows of a sweep: one per point, with its figures or the reason why it failed; and the reader of earlier rows."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.result import Totals
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import SWEEP
from spillprof.ir.side_files.opening import read_text
from spillprof.ir.side_files.tables import check_table, table_lines
from spillprof.ir.target import Target
from spillprof.studies.fingerprint import digest

OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCase:
    """A model with its dimensions bound, on a machine without its SRAM size: one set of curves."""

    model: str  # path
    sha256: str
    dims: Mapping[str, int]  # swept ones
    settings: Mapping[str, Any]  # swept target fields and options
    target: Target  # settings applied
    run: int | None  # index into Study.runs; None: it could not be read
    error: str = ""  # why not
    min_sram_bytes: int = 0  # the smallest capacity at which no operator is oversized
    ideal_peak_bytes: int = 0  # peak SRAM of the ideal run
    digest: str = ""  # of all that its results depend on, except SRAM, strategy and placement

    def row_key(self, sram_bytes: int, placement: str, strategy: str) -> str:
        """Key of the point: equal for equal work in any sweep. 16 hexadecimal digits."""
        return digest([self.digest, sram_bytes, placement, strategy])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One point. If it failed, its figures are None and ``status`` is the reason."""

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
    spill_time_s: float | None = None  # over the ideal, or over the fastest strategy if that is faster
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
"""Fields of a row that a simulation fills; ``spill_time_s`` is computed once all strategies are known."""


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


_WHOLE = (
    "sram_bytes", "spill_bytes", "spill_write_bytes", "spill_read_bytes", "streamed_bytes", "spill_count",
    "compaction_count", "peak_bytes", "spill_bytes_lower",
)  # fmt: skip
_REAL = ("latency_s", "energy_j", "ideal_latency_s")
MAX_FIGURE = 1 << 80
"""Above any byte count, time or energy of a sweep; NaN and infinity are rejected too."""

_TEXT = ("model", "target", "strategy", "placement", "status", "key")
_FIGURES = tuple(name for name in (*_WHOLE, *_REAL) if name not in ("sram_bytes", "spill_bytes_lower"))


def read_rows(path: str) -> dict[str, Row]:
    """Rows of a sweep's JSON or CSV file, by key. ``UsageError`` if it is not one."""
    text = read_text(path, SWEEP)
    try:
        records = _from_json(text, path) if Path(path).suffix.lower() == ".json" else _from_csv(text, path)
        return {row.key: row for row in map(_row, records)}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, csv.Error) as error:
        raise UsageError(
            f"'{path}' is no result of a sweep",
            where=[f"{type(error).__name__}: {error}"],
            hint=SWEEP.hint,
        ) from None


def _from_json(text: str, path: str) -> Iterable[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = parse_json(text, SWEEP, path)["rows"]
    return rows


def _from_csv(text: str, path: str) -> Iterable[Mapping[str, Any]]:
    check_table(text, SWEEP, path)
    reader = csv.DictReader(table_lines(text))
    if "key" not in (reader.fieldnames or ()):
        raise ValueError("there is no column 'key'")
    return reader


def _row(record: Mapping[str, Any]) -> Row:
    values: dict[str, Any] = {name: str(record[name]) for name in _TEXT}
    values |= {name: _number(record[name], int) for name in _WHOLE}
    values |= {name: _number(record[name], float) for name in _REAL}
    if values["sram_bytes"] is None or (values["status"] == OK and any(values[name] is None for name in _FIGURES)):
        raise ValueError(f"a row that lacks figures: {values['key']}")
    if values["status"] != OK and values["latency_s"] is not None:
        raise ValueError(f"a row that failed has figures: {values['key']}")
    return Row(**values)


def _number(value: Any, kind: type[int] | type[float]) -> Any:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is no number")
    number = kind(value)
    if not 0 <= number <= MAX_FIGURE:
        raise ValueError(f"{number!r} is no figure of a sweep")
    return number
