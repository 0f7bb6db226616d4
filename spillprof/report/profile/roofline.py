"""The roofline: MACs per byte and per second of each step, and what bounds it."""

import html
from collections.abc import Sequence
from typing import Any

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import StepFact
from spillprof.ir.units import format_size, format_time
from spillprof.report.page import BRIEF_ROWS, DataTable, make_table
from spillprof.report.profile.step_figures import BLUE, GREY, MAX_POINTS, ORANGE, TEAL, Figure
from spillprof.report.scales import part_percent
from spillprof.report.text import count_of, label

_STYLE = {"compute": (BLUE, "circle"), "SRAM": (TEAL, "square"), "DRAM": (ORANGE, "diamond"), "launch": (GREY, "x")}
"""Colour and marker by what bounds a step."""


def roofline_figure(profile: Profile) -> Figure:
    """Plots MACs per second over MACs per SRAM byte of each step, below the roof of each element type."""
    multiplying = [(i, s) for i, s in enumerate(profile.steps) if s.macs and s.macs_per_sram_byte and _alone_s(s) > 0]
    shown = sorted(multiplying, key=lambda item: (-_alone_s(item[1]), item[0]))[:MAX_POINTS]
    traces = [_roof(profile, dtype, [s for _, s in shown]) for dtype in sorted({s.mac_dtype for _, s in shown})]
    for bound, (color, symbol) in _STYLE.items():
        own = [(i, step) for i, step in shown if step.bound == bound]
        if own:
            traces.append({
                "type": "scatter", "mode": "markers", "name": f"bound by {bound}",
                "x": [step.macs_per_sram_byte for _, step in own], "y": [step.macs / _alone_s(step) for _, step in own],
                "text": [_hover(i, step) for i, step in own], "hovertemplate": "%{text}<extra></extra>",
                "marker": {"color": color, "symbol": symbol, "size": 7, "opacity": 0.8},
            })  # fmt: skip
    layout = {
        "xaxis": {"type": "log", "title": {"text": "MACs per SRAM byte"}, "zeroline": False},
        "yaxis": {"type": "log", "title": {"text": "MACs per second"}, "zeroline": False, "exponentformat": "SI"},
        "hovermode": "closest",
    }
    left_out = len(multiplying) - len(shown)
    note = f"{len(shown):,} of {len(multiplying):,} steps, the longest, are drawn." if left_out else ""
    return Figure(key="roofline", traces=traces if shown else [], layout=layout, note=note)


def roofline_table(profile: Profile) -> DataTable:
    """Lists the longest steps, each taken alone."""
    ranked = sorted(enumerate(profile.steps), key=lambda item: (-_alone_s(item[1]), item[0]))
    return make_table(
        "The longest steps, taken alone",
        "step:count, operator, type, MACs:count, SRAM bytes:size, DRAM bytes:size, MACs per SRAM byte, "
        "MACs per DRAM byte, takes:time, bound by",
        ranked[:BRIEF_ROWS],
        lambda item: (item[0], label(item[1].name, 48), label(item[1].op_type, 24), item[1].macs, item[1].sram_bytes,
                      item[1].dram_bytes, _ratio(item[1].macs_per_sram_byte), _ratio(item[1].macs_per_dram_byte),
                      _alone_s(item[1]), item[1].bound),
        total=len(ranked),
    )  # fmt: skip


def roofline_summary(profile: Profile) -> str:
    """States the share of time by what bounds the steps."""
    total_s = sum(map(_alone_s, profile.steps))
    if not total_s:
        return "No step takes any time."
    shares = {bound: sum(_alone_s(step) for step in profile.steps if step.bound == bound) / total_s for bound in _STYLE}
    ranked = sorted((item for item in shares.items() if item[1] > 0), key=lambda item: -item[1])
    parts = ", ".join(f"{part_percent(share)} by {bound}" for bound, share in ranked)
    steps = count_of(len(profile.steps), "step")
    return f"The time of {steps}, each taken alone and nothing spilled, is bound {parts}."


def _roof(profile: Profile, dtype: str, steps: Sequence[StepFact]) -> dict[str, Any]:
    """Returns the roof: SRAM bandwidth up to the MAC rate of the element type, at the best utilisation of any kind."""
    target = profile.target
    rate = target.macs_per_s.get(dtype, target.macs_per_s.get("default", 0.0)) * max(target.utilisation.values())
    ratios = [step.macs_per_sram_byte or 0.0 for step in steps]
    bend = rate / target.sram_bytes_per_s
    x = [min(*ratios, bend) / 2, bend, max(*ratios, bend) * 2]
    return {
        "type": "scatter", "mode": "lines", "name": f"roof, {html.escape(label(dtype, 16))}", "x": x,
        "y": [min(rate, ratio * target.sram_bytes_per_s) for ratio in x],
        "line": {"color": GREY, "width": 1.5, "dash": "dash"}, "hoverinfo": "skip",
    }  # fmt: skip


def _alone_s(step: StepFact) -> float:
    return max(step.compute_s, step.dram_s)


def _ratio(macs_per_byte: float | None) -> str | None:
    return None if macs_per_byte is None else f"{macs_per_byte:.3g}"


def _hover(i: int, step: StepFact) -> str:
    name = html.escape(label(step.name, 40)).replace("%{", "%&#123;").replace("$", "&#36;")
    return (
        f"<b>{name}</b><br>step {i}, {step.macs:,} MACs, {format_time(_alone_s(step))}<br>"
        f"{format_size(step.sram_bytes)} on-chip, {format_size(step.dram_bytes)} of DRAM"
    )
