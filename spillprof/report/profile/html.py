"""The HTML report: one file, no request, nothing in it that a model's names could run."""

from pathlib import PurePath
from typing import Any

from spillprof.analysis.main_result import bytes_by_cause
from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.units import format_energy, format_size, format_time
from spillprof.report.page import environment, library, method_html, script_json, scripts, stylesheet
from spillprof.report.profile import html_sections as tables
from spillprof.report.profile import step_figures as figures
from spillprof.report.profile.bound_words import bound_scope, proof_sentence, proof_word, search_sentences, shortly
from spillprof.report.profile.chart_words import chart_sentences, live_summary, trend_summary
from spillprof.report.profile.demand import padding_share
from spillprof.report.profile.html_sections import page_sections
from spillprof.report.profile.page_data import has_graph, limits_note, page_data
from spillprof.report.profile.roofline import roofline_figure, roofline_summary, roofline_table
from spillprof.report.profile.size_figures import enough
from spillprof.report.profile.time_figures import bus_table, time_figures, waits_table
from spillprof.report.profile.verdict import (
    TIME_WORDS,
    above_bound,
    energy_parts,
    lead_result,
    meaning,
    time_parts,
    verdict,
)
from spillprof.report.scales import comparison_size_column, field_text, percent, time_column
from spillprof.report.text import count_of, label

_MAX_TITLE = 60
_EXPORTERS_NAMES = ("", "main_graph", "main", "torch_jit", "torch-jit-export", "tf2onnx", "graph")


def render(profile: Profile) -> str:
    """Renders the report. Deterministic: it holds no date and no host."""
    return environment().get_template("report.html.jinja").render(_context(profile))


def _context(profile: Profile) -> dict[str, Any]:
    lead = lead_result(profile)
    feasible = [result for result in profile.results if result.feasible]
    views = [_view(profile, result, index, is_lead=result is lead) for index, result in enumerate(feasible)]
    parts = page_sections(profile)
    common = (
        figures.trend_figure(profile, feasible),
        figures.live_figure(profile),
        roofline_figure(profile),
        *(figure for part in parts for figure, _, _ in part.figures),
    )
    drawn = {f"all/{f.key}": f for f in common} | {f"{v['index']}/{f.key}": f for v in views for f in v["figures"]}
    named = {step for figure in drawn.values() for step in figure.named_steps}
    data = page_data(profile, feasible, lead, named) | {
        "figures": {key: {"data": f.traces, "layout": f.layout, "axis": f.axis} for key, f in drawn.items()},
        "tables": {
            f"{v['index']}/{key}": v[key].to_json()
            for v in views
            for key in ("operators", "buffers", "spills")
            if v[key].rows
        },
    }
    return {
        "profile": profile,
        "model": profile.model,
        "target": profile.target,
        "lead": lead,
        "verdict": verdict(profile),
        "bound_scope": bound_scope(profile),
        "proof": proof_sentence(profile),
        "ended_early": search_sentences(profile),
        "heading": _heading(profile, 80),
        "title": _title(profile, lead),
        "cards": _cards(profile, lead),
        "strategies": _strategy_rows(profile, lead),
        "views": views,
        "trend": common[0],
        "live": common[1],
        "roofline": common[2],
        "roofline_summary": roofline_summary(profile),
        "roofline_table": roofline_table(profile),
        "trend_summary": trend_summary(profile, feasible),
        "live_summary": live_summary(profile),
        "live_table": tables.live_table(profile),
        "sections": parts,
        "settings": _settings(profile),
        "method": method_html(),
        "style": stylesheet(),
        "script": scripts("report.js", "charts.js", "step.js", "graph.js"),
        "plotly": library("plotly-cartesian.min.js"),
        "dagre": library("dagre.min.js"),
        "limits": limits_note(profile, feasible),
        "has_clock": any(result.times for result in feasible),
        "has_graph": has_graph(profile),
        "data": script_json(data),
    }


def _title(profile: Profile, lead: Result | None) -> str:
    spilled = "infeasible" if lead is None else f"{format_size(lead.spill_bytes)} spilled"
    return f"spillprof – {_heading(profile, _MAX_TITLE)} – {spilled}"


def _heading(profile: Profile, width: int) -> str:
    """Returns the model's name, or its file's where exporters give all models one name."""
    name = profile.model.name
    stem = PurePath(profile.model.path).stem
    return label(stem if name in _EXPORTERS_NAMES and stem not in ("", "-") else name, width)


def _view(profile: Profile, result: Result, index: int, *, is_lead: bool) -> dict[str, Any]:
    """Collects all that the page shows of one strategy."""
    chart_tables = {
        "memory": tables.memory_table(profile, result),
        "spills": tables.spills_table(result),
        "addresses": tables.addresses_table(result),
        "bus": bus_table(result),
        "waits": waits_table(profile, result),
    }
    drawings = (*figures.timeline_figures(profile, result), *time_figures(profile, result))
    causes = bytes_by_cause(result)
    total = sum(nbytes for _, nbytes in causes)
    return {
        "index": index,
        "strategy": result.strategy,
        "lead": is_lead,
        "result": result,
        "causes": [
            {
                "cause": cause,
                "key": cause.replace(" ", "-"),
                "bytes": nbytes,
                "share": nbytes / total if total else 0.0,
                "meaning": meaning(cause, result),
            }
            for cause, nbytes in causes
        ],
        "time": [
            {
                "part": part,
                "s": s,
                "share": s / result.latency_s if result.latency_s else 0.0,
                "meaning": TIME_WORDS[part],
            }
            for part, s in (time_parts(result.breakdown) if result.breakdown else ())
        ],
        "energy": [
            {"level": level, "text": format_energy(j), "share": j / (result.energy_j or 1.0)}
            for level, j in (energy_parts(result.energy) if result.energy else ())
        ],
        "figures": drawings if profile.steps else (),
        "summaries": chart_sentences(profile, result),
        "chart_tables": chart_tables,
        "spills": tables.arcs_table(result),
        "operators": tables.operators_table(result),
        "buffers": tables.buffers_table(result),
        "oscillations": tables.oscillations_table(result),
    }


def _settings(profile: Profile) -> list[tuple[str, str, str]]:
    """(what, value, where it comes from) of target and configuration."""
    sources, rows = profile.target.sources, []
    for key, value in profile.machine.items():
        if key == "sources":
            continue
        rows.append(
            (
                f"target {key}",
                label(field_text(key, value), 200),
                label(sources.get(key, ""), 200) if key in sources else "",
            )
        )
    for key, value in profile.config.items():
        value = "as in the file" if value is None else value
        text = ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
        rows.append((label(key, 40), label(text, 200), ""))
    return rows


def _cards(profile: Profile, lead: Result | None) -> list[tuple[str, str, str]]:
    """(what, figure, one line below it)."""
    model, target = profile.model, profile.target
    ratio = model.peak_live_bytes / target.sram_bytes
    needs = [
        ("peak of live activations", format_size(model.peak_live_bytes),
         f"{ratio:.2f} × the SRAM, at step {model.peak_step:,}; {padding_share(profile)}"),
        *_enough(profile),
        ("smallest SRAM without tiling", format_size(model.min_sram_bytes), f"step {model.min_sram_step:,} needs it"),
    ]  # fmt: skip
    if lead is None:
        return needs
    ideal = profile.ideal.latency_s
    share = f"{percent(lead.spill_time_s / ideal)} over the ideal {format_time(ideal)}" if ideal > 0 else ""
    tiled = count_of(len(profile.oversized), "operator")
    moved = profile.ideal.compulsory_read_bytes + profile.ideal.compulsory_write_bytes
    worst = max((r for r in profile.results), key=lambda r: len(r.oscillations))
    bound = profile.bounds
    bounds = [("lower bound", format_size(bound.spill_bytes_lower), shortly(bound) or bound.proven_by)] if bound else []
    return [
        ("spill bytes", format_size(lead.spill_bytes), f"on top of {format_size(moved)} that must move anyway"),
        *bounds,
        ("spill time", format_time(lead.spill_time_s), share),
        ("spills", f"{lead.spill_count:,}", f"{count_of(lead.reload_count, 'reload')}, "
         f"{lead.clean_eviction_count:,} without a write"),
        *([] if lead.hidden_share is None else [
            ("hidden behind compute", percent(lead.hidden_share), f"of {format_time(lead.serial_cost_s)} of transfers")
        ]),
        *needs,
        ("streamed", format_size(lead.streamed_bytes),
         f"by the tiles of {tiled}" if profile.oversized else "every operator fits"),
        ("oscillating buffers", f"{len(lead.oscillations):,}",
         f"under {lead.strategy}; {len(worst.oscillations):,} under {worst.strategy}"
         if worst is not lead and worst.oscillations else f"under {lead.strategy}"),
    ]  # fmt: skip


def _strategy_rows(profile: Profile, lead: Result | None) -> list[dict[str, Any]]:
    """Rows of the table of strategies. ``bar``: the ideal and the spill time, in percent of the slowest run."""
    rows = [r for r in profile.results if r.strategy != "none"]
    shown = [r if r.feasible else None for r in rows]
    ideal = profile.ideal
    latency = time_column([ideal.latency_s, *(r.latency_s if r else None for r in shown)])
    spill_time = time_column([None, *(r.spill_time_s if r else None for r in shown)])
    bound = profile.bounds.spill_bytes_lower if profile.bounds else None
    spilled = comparison_size_column([0, *(r.spill_bytes if r else None for r in shown), bound])
    peak = comparison_size_column([ideal.peak_bytes, *(r.peak_bytes if r else None for r in shown)])
    energies = [ideal.energy_j, *(r.energy_j if r else None for r in shown)]
    energy = [f"{1e3 * joules:.3g} mJ" if joules else "-" for joules in energies]
    header = {"name": "no spill (ideal)", "reason": "", "lead": False}
    slowest = max([ideal.latency_s, *(r.latency_s for r in rows if r.feasible)]) or 1.0
    table = [
        {
            **header,
            "bar": (100 * ideal.latency_s / slowest, 0.0),
            "cells": (latency[0], "-", "-", "0", "-", "0", "0", peak[0], energy[0]),
        }
    ]
    for i, r in enumerate(rows, start=1):
        cells = (
            latency[i], spill_time[i], percent(r.hidden_share), spilled[i], above_bound(profile, r),
            f"{r.spill_count:,}", f"{r.reload_count:,}", peak[i], energy[i],
        )  # fmt: skip
        reason = "" if r.feasible else label(r.reason or "no reason given", 400)
        bar = (100 * (r.latency_s - r.spill_time_s) / slowest, 100 * r.spill_time_s / slowest)
        table.append({"name": r.strategy, "reason": reason, "lead": r is lead, "cells": cells, "bar": bar})
    if profile.bounds is not None:
        cells = ("", "", "", spilled[-1], proof_word(profile.bounds), "", "", "", "")
        table.append({"name": "lower bound", "reason": "", "lead": False, "cells": cells, "bar": None})
    return table


def _enough(profile: Profile) -> list[tuple[str, str, str]]:
    found = enough(profile)
    if found is None:
        return []
    sram_bytes, strategy = found
    return [
        ("enough for no spill", format_size(sram_bytes),
         f"{sram_bytes / profile.target.sram_bytes:.2f} × the SRAM, under {strategy}; of the sizes drawn below")
    ]  # fmt: skip
