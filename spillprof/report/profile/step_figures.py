"""Figures of the HTML report. Each is an info step (plain arrays from the Profile), then a plot step (plotly).

A figure has a handful of traces, never one a buffer, and numpy columns, which plotly writes as packed bytes.
"""

import html
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from spillprof.ir.arrays import Floats
from spillprof.ir.profile import Profile
from spillprof.ir.result import Residency, Result, SpillArc
from spillprof.ir.units import format_size, format_time
from spillprof.report.profile.demand import wanted_bytes
from spillprof.report.text import label

MAX_POINTS = 1200
"""Points of a line and rectangles that a figure shows at most; what is left out is said beside it."""
MAX_BARS = 700
"""Steps with bars: each may have three, and every zoom draws them anew."""
MAX_ARCS = 120
MAX_LIVE = 40
MIB = 1 << 20

BLUE, ORANGE, GREY, TEAL, PURPLE = "#3b7dd8", "#e0821f", "#8b929c", "#35a79c", "#8a63c9"
"""Distinct for every common colour blindness and on both themes; dashes and hatching are the second channel."""
SHADE = "rgba(139,146,156,0.22)"
KIND_STYLE = {
    "activation": (BLUE, ""), "input": (TEAL, "/"), "output": (ORANGE, "x"), "weight": (GREY, "\\"),
}  # fmt: skip

_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plotly figure as plain JSON values, and what a reader of the text learns."""

    key: str  # "memory", "spills", "arcs", "addresses", "bus", "waits", "trend", "live" or "roofline"
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    note: str  # what was left out; empty if nothing was
    named_steps: tuple[int, ...] = ()  # steps whose operators the page names when they are pointed at
    axis: str = ""  # what x is given in, where charts share it: "step", "time" (seconds), or "run": steps of all
    # strategies, which have no common clock; empty: an axis of its own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThinnedCurve:
    """Values over steps, thinned to ``MAX_POINTS`` so that the least and greatest of each stretch stay."""

    steps: _Indices
    values: Floats
    total: int  # points before thinning


def timeline_figures(profile: Profile, result: Result) -> tuple[Figure, ...]:
    """The figures of one strategy that share the step axis, top to bottom."""
    return (
        memory_figure(profile, result),
        spills_figure(profile, result),
        arcs_figure(profile, result),
        addresses_figure(profile, result),
    )


def memory_figure(profile: Profile, result: Result) -> Figure:
    """SRAM in use at most within each step, the capacity, and what is live behind."""
    in_use, live = curve(result.in_use_bytes), curve(wanted_bytes(profile))
    capacity = profile.target.sram_bytes / MIB
    end = max(len(profile.steps), 1)
    traces = [
        _steps_line(live, "live", {"color": GREY, "width": 1}, fill="tozeroy", fillcolor=SHADE),
        _steps_line(in_use, "in use", {"color": BLUE, "width": 1.6}, meta="names"),
        go.Scatter(x=[0, end], y=[capacity, capacity], mode="lines", name="capacity",
                   line={"color": ORANGE, "width": 1.5, "dash": "dash"}, hoverinfo="skip"),
    ]  # fmt: skip
    named = tuple(in_use.steps.tolist())
    return shared_figure("memory", traces, "MiB", profile, note=_thinned(in_use, "steps"), named_steps=named)


def spills_figure(profile: Profile, result: Result) -> Figure:
    """Spill bytes of each step that forced them: writes up, reloads down, streamed hatched on top."""
    rows = result.operators[:MAX_BARS]  # dearest first
    steps = np.array([o.step for o in rows], dtype=np.int64)
    columns = (
        ("written back", [o.spill_write_bytes for o in rows], ORANGE, ""),
        ("reloaded", [-o.spill_read_bytes for o in rows], BLUE, ""),
        ("streamed", [o.streamed_bytes for o in rows], GREY, "x"),
    )
    width = max(1.0, len(profile.steps) / 400)  # thin bars would vanish on a long axis
    traces = [
        go.Bar(x=_packed(steps + 0.5), y=_mib(values), width=width, name=name,
               marker={"color": color, "line": {"width": 0}, "pattern": _pattern(shape)},
               hovertemplate="%{y:.3f} MiB")
        for name, values, color, shape in columns if any(values)
    ]  # fmt: skip
    note = _left_out(len(rows), len(result.operators), "steps, the dearest")
    return shared_figure("spills", traces, "MiB", profile, note=note, barmode="relative", bargap=0)


ARC_STYLE = (
    ("written back", ORANGE, "solid", "circle"),
    ("clean copy", BLUE, "dot", "diamond"),
    ("after a streamed use", GREY, "dash", "square"),
)
"""(what, colour, dash, marker) of the arcs."""


def _arc_kind(arc: SpillArc) -> str:
    if not arc.evicted:
        return "after a streamed use"
    return "written back" if arc.written else "clean copy"


def arcs_figure(profile: Profile, result: Result) -> Figure:
    """Each spill, and each stretch off-chip after a streamed use, as an arc to the next use, as high as its buffer."""
    arcs = largest_arcs(result)
    traces = []
    for name, color, dash, symbol in ARC_STYLE:
        chosen = [arc for arc in arcs if _arc_kind(arc) == name]
        if not chosen:
            continue
        x, y = arc_outline(chosen)
        traces.append(go.Scatter(x=_packed(x), y=_packed(y), mode="lines", name=name, legendgroup=name,
                                 line={"color": color, "width": 1.3, "dash": dash, "shape": "spline"},
                                 hoverinfo="skip"))  # fmt: skip
        traces.append(go.Scatter(
            x=_packed(np.array([(arc.evict_step + arc.needed_step) / 2 for arc in chosen])),
            y=_mib([arc.size_bytes for arc in chosen]), mode="markers", legendgroup=name, showlegend=False,
            marker={"color": color, "size": 5, "symbol": symbol},
            text=[_hover_text(arc) for arc in chosen], hovertemplate="%{text}<extra></extra>",
        ))  # fmt: skip
    note = _left_out(len(arcs), len(result.arcs), "stretches off-chip, the largest")
    return shared_figure("arcs", traces, "MiB", profile, note=note, hovermode="closest")


def addresses_figure(profile: Profile, result: Result) -> Figure:
    """Residencies as rectangles, step x address."""
    shown = largest_residencies(result)
    traces = []
    if profile.reserved.reserved_bytes:
        span, height = np.array([float(len(profile.steps))]), np.array([float(profile.reserved.reserved_bytes)])
        traces.append(_rectangles("reserved", GREY, ".", np.zeros(1), span, np.zeros(1), height, ["reserved"]))
    for kind, (color, shape) in KIND_STYLE.items():
        rows = [r for r in shown if r.kind == kind]
        if rows:
            traces.append(_rectangles(
                kind, color, shape, np.array([r.start_step for r in rows]), np.array([r.end_step for r in rows]),
                np.array([float(r.address) for r in rows]), np.array([float(r.size_bytes) for r in rows]),
                [_escaped(r.buffer, 28) for r in rows],
            ))  # fmt: skip
    note = _left_out(len(shown), len(result.residencies), "residencies, the largest areas")
    figure = shared_figure("addresses", traces, "address, MiB", profile, note=note, barmode="overlay", bargap=0,
                           hovermode="closest")  # fmt: skip
    figure.layout["yaxis"]["range"] = [0, profile.target.sram_bytes / MIB]
    return figure


def trend_figure(profile: Profile, results: Sequence[Result]) -> Figure:
    """The highest SRAM use so far, step by step, of live bytes and of each strategy."""
    dashes = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
    colors = (BLUE, ORANGE, TEAL, GREY)
    traces = [_steps_line(peak_curve(wanted_bytes(profile)), "live", {"color": GREY, "width": 1},
                          fill="tozeroy", fillcolor=SHADE)]  # fmt: skip
    for i, result in enumerate(results):
        line = {"color": colors[i % len(colors)], "width": 1.6, "dash": dashes[i % len(dashes)]}
        traces.append(_steps_line(peak_curve(result.in_use_bytes), result.strategy, line))
    return shared_figure("trend", traces, "MiB", profile, note="", axis="run")


def live_figure(profile: Profile) -> Figure:
    """Buffers live at the peak step, largest on top; those that only wait are hatched."""
    rows = profile.peak_buffers[:MAX_LIVE]
    traces = []
    for used, name, color, shape in ((True, "used here", BLUE, ""), (False, "waits for a later step", ORANGE, "/")):
        chosen = [(i, b) for i, b in enumerate(rows) if b.used_here is used]
        if chosen:
            traces.append(go.Bar(
                orientation="h", name=name, x=_mib([b.size_bytes for _, b in chosen]), y=[i for i, _ in chosen],
                width=0.75,  # or each trace takes its own from the distances of its bars
                marker={"color": color, "pattern": _pattern(shape)},
                text=[
                    f"{_escaped(b.name, 40)}: {format_size(b.size_bytes)}, steps {b.start} to {b.end}"
                    for _, b in chosen
                ],
                textposition="none", hovertemplate="%{text}<extra></extra>",
            ))  # fmt: skip
    axis = {
        "range": [len(rows) - 0.4, -0.6], "tickmode": "array", "tickvals": list(range(len(rows))),
        "ticktext": [_escaped(b.name, 14) for b in rows], "showgrid": False, "zeroline": False,
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "MiB"}, "rangemode": "tozero"}, "yaxis": axis, "hovermode": "closest",
        "barmode": "overlay", "bargap": 0.25, "height": 90 + 22 * max(len(rows), 2),
    }  # fmt: skip
    plain = [trace.to_plotly_json() for trace in traces]
    return Figure(
        key="live", traces=plain, layout=layout, note=_left_out(len(rows), len(profile.peak_buffers), "buffers")
    )


def shared_figure(
    key: str,
    traces: list[Any],
    unit: str,
    profile: Profile,
    *,
    note: str,
    axis: str = "step",
    hovermode: str = "x unified",
    named_steps: tuple[int, ...] = (),
    **layout: Any,
) -> Figure:
    """A figure on the axis that charts share."""
    base = {
        "xaxis": {"title": {"text": "step"}, "range": [0, max(len(profile.steps), 1)], "zeroline": False},
        "yaxis": {"title": {"text": unit}, "rangemode": "tozero" if key != "spills" else "normal"},
        "hovermode": hovermode,
        **layout,
    }
    return Figure(key=key, traces=_plain(traces), layout=base, note=note, named_steps=named_steps, axis=axis)


def curve(values: Sequence[int]) -> ThinnedCurve:
    """Bytes over steps, thinned: of each stretch the least and the greatest value stay, in order."""
    column = np.asarray(values, dtype=np.float64)
    total = len(column)
    if total <= MAX_POINTS:
        return ThinnedCurve(steps=np.arange(total), values=column, total=total)
    edges = np.linspace(0, total, MAX_POINTS // 2 + 1).astype(np.int64)
    kept: list[int] = []
    for start, end in pairwise(edges):
        piece = column[start:end]
        kept += sorted({int(start + piece.argmin()), int(start + piece.argmax())})
    chosen = np.array(kept)
    return ThinnedCurve(steps=chosen, values=column[chosen], total=total)


def peak_curve(values: Sequence[int]) -> ThinnedCurve:
    """The greatest value up to each step, at the steps where it rises."""
    peaks = np.maximum.accumulate(np.asarray(values, dtype=np.float64))
    rises = np.flatnonzero(np.diff(peaks, prepend=-1.0))
    return ThinnedCurve(steps=rises, values=peaks[rises], total=len(peaks))


def largest_arcs(result: Result) -> list[SpillArc]:
    """At most ``MAX_ARCS`` stretches off-chip, those with the most bytes x steps, in time order."""
    by_weight = sorted(result.arcs, key=lambda a: -a.size_bytes * (a.needed_step - a.evict_step + 1))
    return sorted(by_weight[:MAX_ARCS], key=lambda a: (a.evict_step, a.needed_step))


def largest_residencies(result: Result) -> list[Residency]:
    """At most ``MAX_POINTS`` residencies, those with the largest area, in time order."""
    by_area = sorted(result.residencies, key=lambda r: -r.size_bytes * (r.end_step - r.start_step))
    return sorted(by_area[:MAX_POINTS], key=lambda r: (r.start_step, r.address))


def arc_outline(arcs: Sequence[SpillArc]) -> tuple[Floats, Floats]:
    """Outline of all arcs as one line, NaN between two. Steps and MiB, shape (10 x arcs,)."""
    t = np.linspace(0, 1, 9)
    start = np.array([a.evict_step for a in arcs], dtype=np.float64)[:, None]
    end = np.array([a.needed_step for a in arcs], dtype=np.float64)[:, None]
    size = np.array([a.size_bytes for a in arcs], dtype=np.float64)[:, None] / MIB
    gap = np.full((len(arcs), 1), np.nan)
    x = np.hstack([start + (end - start) * t, gap])
    y = np.hstack([size * 4 * t * (1 - t), gap])
    return x.ravel(), y.ravel()


def _steps_line(points: ThinnedCurve, name: str, line: dict[str, Any], **options: Any) -> go.Scatter:
    """A staircase: each value holds to the next step, the last one to the end of the run."""
    steps, values = points.steps, points.values
    if points.total:
        steps, values = np.append(steps, points.total), np.append(values, values[-1])
    return go.Scatter(x=_packed(steps), y=_mib(values), mode="lines", name=name, line={**line, "shape": "hv"},
                      hovertemplate="%{y:.2f} MiB", **options)  # fmt: skip


def _rectangles(name: str, color: str, shape: str, start: Floats, end: Floats, address: Floats, size: Floats,
                texts: list[str]) -> go.Bar:  # fmt: skip
    return go.Bar(
        orientation="h", name=name, base=_packed(start), x=_packed(end - start), y=_mib(address + size / 2),
        width=_mib(size), text=texts, textposition="none",
        marker={"color": color, "opacity": 0.75, "line": {"width": 0.5, "color": "rgba(255,255,255,0.7)"},
                "pattern": _pattern(shape)},
        hovertemplate=f"%{{text}}<br>steps %{{base:.0f}} to %{{x:.0f}}<br>%{{width:.3f}} MiB<extra>{name}</extra>",
    )  # fmt: skip


def _hover_text(arc: SpillArc) -> str:
    between = arc.needed_step - arc.evict_step - 1
    what = "written back" if arc.written else "clean: a valid copy was in DRAM"
    return (
        f"<b>{_escaped(arc.buffer, 40)}</b><br>{format_size(arc.size_bytes)}, steps {arc.evict_step} to "
        f"{arc.needed_step}, {max(between, 0)} between<br>idle {format_time(arc.idle_s)}, waited "
        f"{format_time(arc.wait_s)}, {arc.cause}<br>{what}"
    )


def _pattern(shape: str) -> dict[str, Any]:
    return {"shape": shape, "size": 6, "fillmode": "replace", "solidity": 0.45}


def _plain(traces: list[Any]) -> list[dict[str, Any]]:
    """Traces as JSON values, columns as packed bytes. A plotly figure would check and copy each trace once more."""
    plain = (trace if isinstance(trace, dict) else trace.to_plotly_json() for trace in traces)
    return [{key: _bytes(value) for key, value in trace.items()} for trace in plain]


def _bytes(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "if":
        return value
    return {"dtype": value.dtype.str[1:], "bdata": b64encode(value.tobytes()).decode("ascii")}


def _escaped(name: str, width: int) -> str:
    """A name for plotly, which reads labels as a small HTML and as templates."""
    return html.escape(label(name, width)).replace("%{", "%&#123;").replace("$", "&#36;")


def _packed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in the narrowest type that charts need: four bytes each."""
    return values.astype(np.int32 if values.dtype.kind == "i" else np.float32)


def _mib(values: Sequence[int] | Floats) -> npt.NDArray[Any]:
    return (np.asarray(values, dtype=np.float64) / MIB).astype(np.float32)


def _thinned(points: ThinnedCurve, what: str) -> str:
    shown = len(points.steps)
    return (
        f"{shown:,} of {points.total:,} {what} are drawn: the least and greatest of each stretch."
        if shown < points.total
        else ""
    )


def _left_out(shown: int, total: int, what: str) -> str:
    return f"{shown:,} of {total:,} {what}, are drawn." if shown < total else ""
