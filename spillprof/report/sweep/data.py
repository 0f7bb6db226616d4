"""A sweep as JSON, CSV and Parquet: integers are bytes or counts, floats seconds or joules."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.report.text import printable, spreadsheet_safe
from spillprof.studies.sweep.result import Sweep
from spillprof.studies.sweep.rows import Row

_FIRST = ("model", "target", "strategy", "placement", "sram_bytes", "dims")
_WHOLE = (
    "spill_bytes", "spill_write_bytes", "spill_read_bytes", "streamed_bytes", "spill_count", "compaction_count",
    "peak_bytes", "spill_bytes_lower",
)  # fmt: skip
_REAL = ("latency_s", "spill_time_s", "energy_j", "ideal_latency_s")
_LAST = ("status", "key")


def render_json(sweep: Sweep) -> str:
    """The sweep as JSON text (schema ``spillprof-sweep/1``), ASCII, one line a row."""
    data = _plain(sweep)
    lines = []
    for key, value in {"schema": data.pop("schema"), **data}.items():
        if isinstance(value, list):
            items = ",\n".join(f"  {json.dumps(item, allow_nan=False)}" for item in value)
            lines.append(f"{json.dumps(key)}: [\n{items}\n ]" if value else f"{json.dumps(key)}: []")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def render_csv(sweep: Sweep) -> str:
    """One row a point, a column for each varied target field; cells that a spreadsheet would run are defused."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    settings = _settings(sweep.rows)
    writer.writerow(_header(settings))
    for row in sweep.rows:
        writer.writerow([_cell(value) for value in _values(row, settings)])
    return text.getvalue()


def require_parquet() -> None:
    """``UsageError`` where the library for Parquet files is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError(
            "a Parquet file needs pyarrow, which is not installed", hint="pip install 'spillprof[parquet]'"
        ) from None


def render_parquet(sweep: Sweep) -> bytes:
    """The rows of the CSV as one Parquet table."""
    require_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    settings = _settings(sweep.rows)
    columns = list(zip(*(_values(row, settings) for row in sweep.rows), strict=True)) or [()] * len(_header(settings))
    arrays = {}
    for name, values in zip(_header(settings), columns, strict=True):
        arrays[name] = pa.array(values, type=_arrow_type(pa, name, values))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _arrow_type(pa: Any, name: str, values: Sequence[Any]) -> Any:
    if name in ("sram_bytes", *_WHOLE):
        return pa.int64()
    if name in _REAL:
        return pa.float64()
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def _header(settings: Sequence[str]) -> list[str]:
    return [*_FIRST, *settings, *_WHOLE, *_REAL, *_LAST]


def _settings(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.settings))


def _values(row: Row, settings: Sequence[str]) -> list[Any]:
    dims = " ".join(f"{printable(name)}={size}" for name, size in row.dims.items())
    return [
        printable(row.model), printable(row.target), row.strategy, row.placement, row.sram_bytes, dims,
        *(row.settings.get(name) for name in settings),
        *(getattr(row, name) for name in (*_WHOLE, *_REAL)),
        printable(row.status), row.key,
    ]  # fmt: skip


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return spreadsheet_safe(value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
