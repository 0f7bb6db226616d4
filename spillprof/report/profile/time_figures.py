"""Charts over time: bus traffic, transfers that queue for a DMA channel, and stalls of steps."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from spillprof.ir.arrays import Floats
from spillprof.ir.profile import Profile
from spillprof.ir.result import Event, Result
from spillprof.ir.units import format_size, format_time
from spillprof.report.page import BRIEF_ROWS, DataTable, make_table
from spillprof.report.profile.page_data import MAX_WAITS, Wait, waits
from spillprof.report.profile.step_figures import BLUE, GREY, ORANGE, PURPLE, TEAL, Figure, shared_figure
from spillprof.report.scales import percent, time_scale
from spillprof.report.text import count_of, label

_MAX_MOMENTS = 1200
"""Points of a curve over time; a longer one is reduced to its mean (queue: maximum) in equal slices."""
GIGA = 1e9
READS = frozenset({"fetch", "reload", "weights", "stream-in"})
WRITES = frozenset({"write-back", "drain", "stream-out"})
WAIT_STYLE = {
    "reload": ("a reload", BLUE, ""),
    "write-back": ("a write-back", ORANGE, "/"),
    "fetch": ("a first load", TEAL, "x"),
    "weights": ("streamed weights", GREY, "\\"),
    "streamed": ("a streamed operand", PURPLE, "."),
    "move": ("a compaction move", ORANGE, "-"),
    "other": ("something else", GREY, "+"),
}


def time_figures(profile: Profile, result: Result) -> tuple[Figure, ...]:
    """Returns the charts of bus and stalls; none for a result that was saved without times."""
    if result.times is None or not profile.steps:
        return ()
    return bus_figure(profile, result), waits_figure(profile, result)


def bus_figure(profile: Profile, result: Result) -> Figure:
    """Stacks bytes per second by direction; below, the number of transfers that wait for a channel."""
    times = result.times
    assert times is not None
    moments, end_s = np.asarray(times.bus_time_s, dtype=np.float64), result.latency_s
    columns = (
        ("read", times.bus_read_bytes_per_s, BLUE, ""),
        ("write", times.bus_write_bytes_per_s, ORANGE, "/"),
        ("background", times.bus_background_bytes_per_s, GREY, "."),
    )
    traces: list[Any] = []
    note = ""
    for name, rates, color, shape in columns:
        if not any(rates):
            continue
        x, y = _thinned_mean(moments, np.asarray(rates, dtype=np.float64) / GIGA, end_s)
        note = note or _sliced(len(moments), end_s)
        pattern = {"fillpattern": {"shape": shape, "size": 6, "solidity": 0.35}} if shape else {}
        traces.append(_trace("scatter", x=x, y=_narrow(y), mode="lines", name=name, stackgroup="bus",
                             line={"color": color, "width": 0.8, "shape": "hv"}, **pattern,
                             hovertemplate="%{y:.2f} GB/s"))  # fmt: skip
    limit = _bus_limit(profile) / GIGA
    traces.append(_trace("scatter", x=np.array([0.0, end_s]), y=[limit, limit], mode="lines", name="limit",
                             line={"color": ORANGE, "width": 1.5, "dash": "dash"}, hoverinfo="skip"))  # fmt: skip
    at_s, waiting = queue(result.events)
    layout: dict[str, Any] = {}
    if len(at_s):
        x, y = _thinned_greatest(at_s, waiting, end_s)
        traces.append(_trace("scatter", x=x, y=y.astype(np.int32), mode="lines", name="queue",
                                 yaxis="y2", fill="tozeroy", fillcolor="rgba(138,99,201,0.25)",
                                 line={"color": PURPLE, "width": 1.2, "shape": "hv", "dash": "dot"},
                                 hovertemplate="%{y}"))  # fmt: skip
        layout = {"yaxis2": {"domain": [0, 0.24], "title": {"text": "queue"}, "rangemode": "tozero", "nticks": 3}}
    figure = shared_figure("bus", traces, "GB/s", profile, note=note, axis="time", **layout)
    figure.layout["legend"] = {"traceorder": "normal"}
    if layout:
        figure.layout["yaxis"]["domain"] = [0.34, 1]
        figure.layout["xaxis"]["anchor"] = "y2"
    return figure


def waits_figure(profile: Profile, result: Result) -> Figure:
    """Draws the stall before each step, by kind of the transfer that ended last."""
    found = waits(result)
    rows = [(wait.step, wait.seconds, _style_of(wait)) for wait in found]
    scale = time_scale([s for _, s, _ in rows])
    width = max(1.0, len(profile.steps) / 400)
    traces = [
        _trace("bar", x=np.array([step + 0.5 for step, _, k in rows if k == kind], dtype=np.float32),
               y=np.array([s / scale.factor for _, s, k in rows if k == kind], dtype=np.float32),
               width=width, name=name,
               marker={"color": color, "line": {"width": 0}, "pattern": {"shape": shape, "size": 6, "solidity": 0.45}},
               hovertemplate=f"%{{y:.3f}} {scale.unit}")
        for kind, (name, color, shape) in WAIT_STYLE.items() if any(k == kind for _, _, k in rows)
    ]  # fmt: skip
    total = sum(s > 0 for s in result.times.stall_s) if result.times else 0
    note = f"{MAX_WAITS:,} of {total:,} waits, the longest, are drawn." if total > MAX_WAITS else ""
    return shared_figure("waits", traces, scale.unit, profile, note=note, barmode="overlay", bargap=0)


def queue(events: Sequence[Event]) -> tuple[Floats, Floats]:
    """Returns (moments, queue length from then on): transfers that are issued but have no channel yet."""
    waited = [
        (e.issued_s, e.start_s) for e in events
        if e.issued_s is not None and e.start_s is not None and e.start_s > e.issued_s and e.kind in READS | WRITES
    ]  # fmt: skip
    if not waited:
        return np.zeros(0), np.zeros(0)
    issued, started = np.sort(np.array(waited, dtype=np.float64), axis=0).T
    moments = np.unique(np.concatenate([[0.0], issued, started]))
    counts = np.searchsorted(issued, moments, side="right") - np.searchsorted(started, moments, side="right")
    return moments, counts.astype(np.float64)


def bus_summary(profile: Profile, result: Result) -> str:
    """Sums up bus traffic, utilisation, and the longest queue."""
    times, end_s = result.times, result.latency_s
    if times is None or end_s <= 0:
        return ""
    edges = np.append(np.asarray(times.bus_time_s, dtype=np.float64), end_s)
    spans = np.diff(edges)
    read, write = (np.asarray(c, dtype=np.float64) for c in (times.bus_read_bytes_per_s, times.bus_write_bytes_per_s))
    if not (read.any() or write.any()):
        return "The bus carries nothing."
    busy = float(spans[(read + write) > 0].sum()) / end_s
    target = profile.target
    shares = (
        f"{percent(float((read * spans).sum()) / end_s / target.dram_read_bytes_per_s)} of the read bandwidth",
        f"{percent(float((write * spans).sum()) / end_s / target.dram_write_bytes_per_s)} of the write bandwidth",
    )
    most = int(max(queue(result.events)[1], default=0))
    queued = f"Up to {count_of(most, 'transfer')} at once had to queue" if most else "No transfer had to queue"
    return (
        f"Something is on the bus in {percent(busy)} of the run: {format_size(int((read * spans).sum()))} read and "
        f"{format_size(int((write * spans).sum()))} written use {shares[0]} and {shares[1]}. {queued}."
    )


def waits_summary(profile: Profile, result: Result) -> str:
    """Sums up stalls: total, main cause, and the longest."""
    found = waits(result)
    if not found or result.times is None:
        return "The compute unit never waits for a transfer."
    total = sum(result.times.stall_s)
    by_kind: dict[str, float] = {}
    for wait in found:
        by_kind[_style_of(wait)] = by_kind.get(_style_of(wait), 0.0) + wait.seconds
    kind, most = max(by_kind.items(), key=lambda item: item[1])
    longest = found[0]
    share = f" ({percent(total / result.latency_s)} of the run)" if result.latency_s > 0 else ""
    return (
        f"The compute unit waits {format_time(total)}{share}, mostly for {WAIT_STYLE[kind][0]} ({format_time(most)}). "
        f"The longest wait, {format_time(longest.seconds)}, is before step {longest.step:,}, "
        f"{label(profile.steps[longest.step].name, 48)}, for {longest.words}."
    )


def bus_table(result: Result) -> DataTable:
    """Tabulates bytes in equal stretches of the run."""
    if result.times is None or result.latency_s <= 0:
        return make_table("", "", (), lambda _: ())
    edges = np.linspace(0, result.latency_s, BRIEF_ROWS + 1)
    moments = np.asarray(result.times.bus_time_s, dtype=np.float64)
    reads, writes = (
        np.diff(_integral(moments, np.asarray(c, dtype=np.float64), result.latency_s, edges))
        for c in (result.times.bus_read_bytes_per_s, result.times.bus_write_bytes_per_s)
    )
    rows = [(a, b, round(r), round(w)) for (a, b), r, w in zip(pairwise(edges.tolist()), reads, writes, strict=True)]
    columns = "from:time, to:time, read:size, written:size"
    return make_table("DRAM bytes by stretch of the run", columns, rows, lambda row: row)


def waits_table(profile: Profile, result: Result) -> DataTable:
    """Tabulates the longest stalls."""
    found = waits(result)
    return make_table(
        "The longest waits",
        "step:count, operator, waits:time, for",
        found,
        lambda wait: (wait.step, label(profile.steps[wait.step].name, 48), wait.seconds, wait.words),
        limit=BRIEF_ROWS,
    )


def _trace(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, **properties}


def _style_of(wait: Wait) -> str:
    """Returns the key of WAIT_STYLE."""
    return "streamed" if wait.kind.startswith("stream-") else wait.kind if wait.kind in WAIT_STYLE else "other"


def _bus_limit(profile: Profile) -> float:
    target = profile.target
    both = target.dram_read_bytes_per_s + target.dram_write_bytes_per_s
    return both if target.dram_bus_bytes_per_s is None else min(both, target.dram_bus_bytes_per_s)


def _integral(moments: Floats, values: Floats, end_s: float, at: Floats) -> Floats:
    """Integrates a step function from 0 up to each of some moments."""
    edges = np.append(moments, max(end_s, float(moments[-1]) if len(moments) else 0.0))
    total = np.concatenate([[0.0], np.cumsum(values * np.diff(edges))])
    result: Floats = np.interp(at, edges, total)
    return result


def _thinned_mean(moments: Floats, values: Floats, end_s: float) -> tuple[Floats, Floats]:
    if len(moments) <= _MAX_MOMENTS:
        return np.append(moments, end_s), np.append(values, values[-1])
    edges = np.linspace(0, end_s, _MAX_MOMENTS // 2 + 1)
    means = np.diff(_integral(moments, values, end_s, edges)) / np.diff(edges)
    return edges, np.append(means, means[-1])


def _thinned_greatest(moments: Floats, values: Floats, end_s: float) -> tuple[Floats, Floats]:
    if len(moments) <= _MAX_MOMENTS:
        return np.append(moments, end_s), np.append(values, values[-1])
    edges = np.linspace(0, end_s, _MAX_MOMENTS // 2 + 1)
    merged = np.union1d(moments, edges[:-1])
    held = values[np.maximum(np.searchsorted(moments, merged, side="right") - 1, 0)]
    greatest = np.maximum.reduceat(held, np.searchsorted(merged, edges[:-1]))
    return edges, np.append(greatest, greatest[-1])


def _sliced(moments: int, end_s: float) -> str:
    if moments <= _MAX_MOMENTS:
        return ""
    return f"Drawn as the mean (queue: the greatest value) of slices of {format_time(end_s / (_MAX_MOMENTS // 2))}."


def _narrow(values: Floats) -> npt.NDArray[np.float32]:
    return values.astype(np.float32)
