"""Files with measured times of operators: plain CSV, ONNX Runtime's profile, Vela's CSV of layers."""

import csv
import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.op_times import OpTimes, TimeUnit
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import TIMES
from spillprof.ir.side_files.opening import read_text
from spillprof.ir.side_files.tables import check_table, table_lines
from spillprof.ir.units import LARGEST_FIGURE, parse_time


def read_op_times(path: str) -> OpTimes:
    """The times in a file of any of these formats, recognized by content. ``UsageError`` if malformed."""
    text = read_text(path, TIMES)
    is_json = text.lstrip()[:1] in ("[", "{")
    times = read_profile(text, path) if is_json else read_csv(text, path)
    if not times.times:
        raise UsageError("there is no time in the file", where=(path,))
    return times


_NAMES = ("name", "node", "node_name", "operator", "op", "op_name", "layer")
_UNITS = {
    "s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip
_HINT = "the header names an operator column and a time column with its unit, like name,time_us"


def read_csv(text: str, path: str) -> OpTimes:
    """Times from CSV text; the median of an operator's rows. A CSV of Vela is recognized by its header."""
    check_table(text, TIMES, path)
    rows = _rows(text, path)
    _, first = next(rows, (0, None))
    if first is None:
        raise UsageError("there is no time in the file", where=(path,), hint=_HINT)
    header = [cell.strip() for cell in first]
    if {"Name", "Op Cycles"} <= set(header):
        return _vela(header, rows, path)
    return _plain(header, rows, path)


def _rows(text: str, path: str) -> Iterator[tuple[int, Sequence[str]]]:
    """(line on which it ends, cells) of every row that is not empty."""
    first = next((line for line in table_lines(text) if line.strip()), "")
    reader = csv.reader(table_lines(text), delimiter=max(",;\t", key=first.count))
    try:
        for row in reader:
            if any(row):
                yield reader.line_num, row
    except csv.Error as error:
        raise UsageError("the file of times is no CSV", where=(f"{path}:{reader.line_num}: {error}",)) from None


def _plain(header: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]], path: str) -> OpTimes:
    words = [re.sub(r"[^a-zµμ]+", "_", cell.lower()).strip("_") for cell in header]
    names = [i for i, word in enumerate(words) if word in _NAMES]
    units = {i: _UNITS.get(word.rpartition("_")[2]) for i, word in enumerate(words) if i not in names}
    timed = {i: unit for i, unit in units.items() if unit is not None or words[i] in ("time", "duration", "latency")}
    if not names or not timed:
        raise UsageError("no column of names, or none of times", where=(f"{path}: {', '.join(header)}",), hint=_HINT)
    if len(timed) > 1:
        listed = ", ".join(header[i] for i in timed)
        raise UsageError("several columns give times", where=(f"{path}: {listed}",), hint="keep one of them")
    ((column, unit),) = timed.items()
    found: dict[str, list[float]] = defaultdict(list)
    for line, row in rows:
        if len(row) <= max(column, names[0]):
            raise UsageError("a line has too few columns", where=(f"{path}:{line}",))
        found[row[names[0]]].append(_time(row[column], unit, f"{path}:{line}"))
    return OpTimes(source=path, times=tuple((name, median(values)) for name, values in found.items()))


def _vela(header: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]], path: str) -> OpTimes:
    """Compute cycles of each layer: the larger of NPU and SRAM cycles. Off-chip transfers are simulated instead.

    Lines of an operator that Vela split are added up. Names are the last column and may contain commas.
    """
    parts = [i for i, cell in enumerate(header) if cell in ("NPU", "SRAM AC")] or [header.index("Op Cycles")]
    name_at = header.index("Name")
    found: dict[str, float] = defaultdict(float)
    for line, row in rows:
        if len(row) < len(header):
            raise UsageError("a line has too few columns", where=(f"{path}:{line}",))
        if [cell.strip() for cell in row] != list(header):  # the header, repeated for each part of the network
            name = ",".join(row[name_at:]) if name_at == len(header) - 1 else row[name_at]
            found[name] += max(_figure(row[i], f"{path}:{line}") for i in parts)
    return OpTimes(source=path, times=tuple(found.items()), unit=TimeUnit.CYCLES)


def _time(text: str, unit: float | None, where: str) -> float:
    if unit is not None:
        return _figure(text, where) * unit
    try:
        return parse_time(text)
    except UsageError as error:
        raise UsageError(error.message, where=(where,), hint=error.hint) from None


def _figure(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= LARGEST_FIGURE:
        raise UsageError(f"'{text}' is no time", where=(where,), hint="write numbers from 0 up, the unit in the header")
    return value


_KERNEL = "_kernel_time"


def read_profile(text: str, path: str) -> OpTimes:
    """Kernel seconds of each node per run, the median over the runs.

    Events of one run are added up: a node in a loop body has several.
    """
    document = parse_json(text, TIMES, path, hint="a profile is complete only after end_profiling()")
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise UsageError("the times are no profile of ONNX Runtime", where=(path,), hint="it is a list of events")
    known = [event for event in events if isinstance(event, dict)]
    starts = sorted(
        _microseconds(event, "ts", path)
        for event in known
        if event.get("cat") == "Session" and event.get("name") == "model_run"
    )
    by_run: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for name, event in _kernels(known):
        run = bisect_right(starts, _microseconds(event, "ts", path)) if starts else len(by_run[name])
        by_run[name][run] += _microseconds(event, "dur", path) * 1e-6
    if not by_run:
        raise UsageError(
            "the profile has no event of a node",
            where=(path,),
            hint="set enable_profiling of the session, and run the model at least once",
        )
    return OpTimes(source=path, times=tuple((name, median(runs.values())) for name, runs in by_run.items()))


def _kernels(events: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for event in events:
        name = event.get("name")
        if event.get("cat") == "Node" and isinstance(name, str) and name.endswith(_KERNEL):
            yield name.removesuffix(_KERNEL), event


def _microseconds(event: Mapping[str, Any], key: str, path: str) -> float:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UsageError(f"an event of '{event.get('name')}' has {key} = {value!r}", where=(path,))
    return float(value)
