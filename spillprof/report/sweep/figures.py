"""Curves of a sweep over the size of the SRAM, as plotly figures."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log2, log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from spillprof.ir.units import format_size
from spillprof.report.profile.step_figures import BLUE, GREY, ORANGE, PURPLE, SHADE, TEAL, Figure
from spillprof.report.sweep.wording import METRIC_WORDS
from spillprof.report.text import label
from spillprof.studies.sweep.curves import Cliff, Knee, SweepCurve, curves
from spillprof.studies.sweep.rows import Row

MAX_CURVES = 12
_COLORS = (BLUE, ORANGE, TEAL, GREY, PURPLE)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def _style(k: int) -> dict[str, Any]:
    """Returns the style of the ``k``-th curve; periods of colour and dash differ, so that combinations repeat late."""
    return {"color": _COLORS[k % len(_COLORS)], "width": 1.6, "dash": _DASHES[k % len(_DASHES)]}


_SCALES: dict[str, tuple[str, float]] = {
    "spill_bytes": ("MiB", 2**20),
    "latency_s": ("ms", 1e-3),
    "energy_j": ("mJ", 1e-3),
}
_UNTIL_TILED = "rgba(224,130,31,0.10)"


def curve_figure(
    tiles_below: int | None, rows: Sequence[Row], metric: str, knees: Sequence[Knee], cliffs: Sequence[Cliff]
) -> Figure:
    """Plots one metric over the size of the SRAM, a line for each strategy and placement, with knees and cliffs.

    ``tiles_below``: the size in less than which operators are tiled through DRAM; None: not known.
    """
    unit, factor = _SCALES[metric]
    drawn = list(curves(rows))
    several = len({curve.rows[0].placement for curve in drawn}) > 1
    traces: list[Any] = [_line(curve, metric, factor, k, several=several) for k, curve in enumerate(drawn[:MAX_CURVES])]
    if metric == "latency_s":
        below = {r.sram_bytes: r.latency_s - r.spill_time_s for r in rows if r.latency_s and r.spill_time_s is not None}
        traces += _floor("ideal", below, factor)
    if metric == "spill_bytes":
        proven = {r.sram_bytes: float(r.spill_bytes_lower) for r in rows if r.spill_bytes_lower is not None}
        traces += _floor("lower bound", proven, factor)
    for what, marks, symbol, color in (("knee", knees, "diamond-open", BLUE), ("cliff", cliffs, "x-thin", ORANGE)):
        points = _marks([mark for mark in marks if mark.metric == metric], factor)
        if points:
            x, y, texts = (list(column) for column in zip(*points, strict=True))
            traces.append(go.Scatter(
                x=x, y=y, text=texts, mode="markers", name=what, hovertemplate=f"%{{text}}<extra>{what}</extra>",
                marker={"symbol": symbol, "size": 11, "color": color, "line": {"width": 2, "color": color}},
            ))  # fmt: skip
    sizes = [row.sram_bytes for row in rows]
    regions = _regions(tiles_below, rows)
    layout = {
        "xaxis": {"title": {"text": "SRAM"}, "type": "log", **_ticks(sizes)},
        "yaxis": {"title": {"text": unit}, "rangemode": "tozero"},
        "hovermode": "closest",
        "shapes": [_region(start, end, color) for start, end, color, _ in regions],
        "annotations": [_region_words(start, words) for start, _, _, words in regions],
    }
    left = len(drawn) - MAX_CURVES
    packed: list[dict[str, Any]] = go.Figure(data=traces).to_plotly_json()["data"]
    note = f"{MAX_CURVES} of {len(drawn)} curves are drawn." if left > 0 else ""
    return Figure(key=metric, traces=packed if drawn else [], layout=layout, note=note)


def _line(curve: SweepCurve, metric: str, factor: float, k: int, *, several: bool) -> go.Scatter:
    first = curve.rows[0]
    name = f"{first.strategy}, {first.placement}" if several else first.strategy
    return go.Scatter(
        x=list(curve.sizes), y=np.array(curve.values(metric), dtype=np.float64) / factor, mode="lines+markers",
        name=label(name, 40), line=_style(k), marker={"size": 4},
        text=[format_size(size) for size in curve.sizes], hovertemplate="%{text}: %{y:.3f}",
    )  # fmt: skip


def _floor(name: str, values: Mapping[int, float], factor: float) -> list[go.Scatter]:
    """Draws a lower bound by size."""
    sizes = sorted(values)
    if not sizes:
        return []
    y = [values[size] / factor for size in sizes]
    line = {"color": GREY, "width": 1, "dash": "dot"}
    return [go.Scatter(x=sizes, y=y, mode="lines", name=name, line=line, hovertemplate="%{y:.3f}")]


def _marks(marks: Sequence[Knee | Cliff], factor: float) -> list[tuple[int, float, str]]:
    return [
        (m.larger_sram_bytes, m.larger_value / factor, f"{m.strategy} {m.placement}, {METRIC_WORDS[m.metric]}")
        if isinstance(m, Cliff)
        else (m.sram_bytes, m.value / factor, f"{m.strategy} {m.placement}, {METRIC_WORDS[m.metric]}")
        for m in marks
    ]


def _regions(tiles_below: int | None, rows: Sequence[Row]) -> list[tuple[int, int, str, str]]:
    """Returns (from, to, colour, words) of sizes where nothing runs (grey) or operators are tiled (orange)."""
    sizes = [row.sram_bytes for row in rows]
    runs = [row.sram_bytes for row in rows if row.ok]
    regions = []
    start, least = min(sizes), min(runs, default=max(sizes))
    if start < least:
        regions.append((start, least, SHADE, "does not run"))
    if tiles_below is not None and least < tiles_below:
        regions.append((least, min(tiles_below, max(sizes)), _UNTIL_TILED, "operators are tiled"))
    return regions


def _region(start: int, end: int, color: str) -> dict[str, Any]:
    return {"type": "rect", "xref": "x", "yref": "paper", "x0": start, "x1": end, "y0": 0, "y1": 1,
            "fillcolor": color, "line": {"width": 0}, "layer": "below"}  # fmt: skip


def _region_words(start: int, words: str) -> dict[str, Any]:
    """Places a label at the lower left of a region, where curves are high."""
    return {"xref": "x", "yref": "paper", "x": log10(start), "y": 0, "text": words, "showarrow": False,
            "xanchor": "left", "xshift": 3, "yanchor": "bottom"}  # fmt: skip


def _ticks(sizes: Sequence[int]) -> dict[str, Any]:
    """Returns about a dozen ticks: powers of two, with quarters between over a narrow range."""
    low, high = floor(log2(min(sizes))), ceil(log2(max(sizes)))
    stride = max(1, -(-(high - low) // 12))
    at = [2**k for k in range(low, high + 1, stride)]
    if high - low <= 3:
        at = [2**k * quarters // 4 for k in range(low, high) for quarters in (4, 5, 6, 7)] + [2**high]
    return {"tickvals": at, "ticktext": [format_size(size) for size in at]}
