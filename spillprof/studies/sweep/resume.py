"""Rows of an earlier sweep, from its JSON or CSV."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import SWEEP
from spillprof.ir.side_files.opening import read_text
from spillprof.ir.side_files.tables import check_table, table_lines
from spillprof.studies.sweep.rows import OK, Row

_WHOLE = (
    "sram_bytes", "spill_bytes", "spill_write_bytes", "spill_read_bytes", "streamed_bytes", "spill_count",
    "compaction_count", "peak_bytes", "spill_bytes_lower",
)  # fmt: skip
_REAL = ("latency_s", "energy_j", "ideal_latency_s")
MAX_FIGURE = 1 << 80
"""Above any byte count, time or energy of a sweep; NaN and infinity are none either."""

_TEXT = ("model", "target", "strategy", "placement", "status", "key")
_FIGURES = tuple(name for name in (*_WHOLE, *_REAL) if name not in ("sram_bytes", "spill_bytes_lower"))


def read_rows(path: str) -> dict[str, Row]:
    """Rows by key. ``UsageError`` if the file is no result of a sweep."""
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
