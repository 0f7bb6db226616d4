"""The HTML report: one file, no request, nothing in it that a model's names could run."""

import json
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from spillprof.analysis.why import why_parts
from spillprof.model.profile import Profile, Result
from spillprof.report import data_table as tables
from spillprof.report import figures
from spillprof.report.columns import comparison_size_column, percent, time_column
from spillprof.report.plain_markdown import to_html
from spillprof.report.roofline import roofline_figure, roofline_summary, roofline_table
from spillprof.report.story import story_paragraphs
from spillprof.report.target_words import field_text
from spillprof.report.text import count_of, label
from spillprof.report.time_words import TIME_WORDS, energy_parts, time_parts
from spillprof.report.verdict import (
    CAUSE_WORDS,
    above_bound,
    bound_scope,
    lead_result,
    recompute_sentences,
    verdict,
)
from spillprof.units import format_energy, format_rate, format_size, format_size_exact, format_time

MAX_TITLE = 60


def render(profile: Profile) -> str:
    """The report as HTML text. The same Profile gives the same text: it holds no date and no host."""
    return environment().get_template("report.html.jinja").render(_context(profile))


def environment() -> Environment:
    """Templates with everything escaped, and the filters that they use."""
    made = Environment(
        loader=FileSystemLoader(templates_dir()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        size=format_size, size_exact=format_size_exact, time=format_time, rate=format_rate, percent=percent, name=label
    )
    made.globals.update(count_of=count_of, html_rows=tables.HTML_ROWS)
    return made


def templates_dir() -> Path:
    """The folder of templates: inside an installed package, else that of the checkout."""
    packaged = Path(__file__).parents[1] / "templates"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "templates"


def method_html() -> Markup:
    """Glossary and cost model (docs/model.md), from the package or the checkout."""
    candidates = (templates_dir() / "model.md", Path(__file__).parents[2] / "docs" / "model.md")
    path = next((path for path in candidates if path.is_file()), None)
    return Markup(to_html(path.read_text("utf-8"), top_level=3)) if path else Markup()


def script_json(value: Any) -> Markup:
    """JSON that is safe between ``<script>`` tags: no ``<``, ``>``, ``&``, and ASCII only."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=lambda array: array.tolist())
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _context(profile: Profile) -> dict[str, Any]:
    lead = lead_result(profile)
    feasible = [result for result in profile.results if result.feasible]
    views = [_view(profile, result, index, is_lead=result is lead) for index, result in enumerate(feasible)]
    common = (figures.trend_figure(profile, feasible), figures.live_figure(profile), roofline_figure(profile))
    data = {
        "n_steps": len(profile.steps),
        "names": {
            step: f"{label(profile.steps[step].name, 48)}, {label(profile.steps[step].op_type, 24)}"
            for step in sorted({step for v in views for f in v["figures"] for step in f.named_steps})
        },
        "figures": {f"all/{f.key}": {"data": f.traces, "layout": f.layout} for f in common}
        | {f"{v['index']}/{f.key}": {"data": f.traces, "layout": f.layout} for v in views for f in v["figures"]},
        "tables": {
            f"{v['index']}/{key}": v[key].to_json() for v in views for key in ("operators", "buffers") if v[key].rows
        },
        "strategies": [result.strategy for result in feasible],
    }
    return {
        "profile": profile,
        "model": profile.model,
        "target": profile.target,
        "lead": lead,
        "verdict": verdict(profile),
        "bound_scope": bound_scope(profile),
        "recompute": recompute_sentences(profile),
        "recomputed_table": tables.recomputed_table(profile),
        "title": _title(profile, lead),
        "cards": _cards(profile, lead),
        "strategies": _strategy_rows(profile, lead),
        "views": views,
        "trend": common[0],
        "live": common[1],
        "roofline": common[2],
        "roofline_summary": roofline_summary(profile),
        "roofline_table": roofline_table(profile),
        "live_table": tables.live_table(profile),
        "oversized_table": tables.oversized_table(profile),
        "story": [
            {"title": title, "sentences": sentences, "table": tables.absences_table(title, absences)}
            for title, sentences, absences in (story_paragraphs(profile.why) if profile.why else ())
        ],
        "suggestions_table": tables.suggestions_table(profile),
        "settings": _settings(profile),
        "method": method_html(),
        "style": asset("report.css"),
        "script": asset("report.js"),
        "plotly": plotly_bundle(),
        "data": script_json(data),
    }


def plotly_bundle() -> Markup:
    """The part of plotly.js that draws on two axes: a third of the whole."""
    return Markup(asset("vendor/plotly-cartesian.min.js").replace("</script", "<\\/script"))


def asset(name: str) -> Markup:
    """A file among the templates, as it stands."""
    return Markup((templates_dir() / name).read_text("utf-8"))


def _title(profile: Profile, lead: Result | None) -> str:
    spilled = "infeasible" if lead is None else f"{format_size(lead.spill_bytes)} spilled"
    return f"spillprof – {label(profile.model.name, MAX_TITLE)} – {spilled}"


def _cards(profile: Profile, lead: Result | None) -> list[tuple[str, str, str]]:
    """(what, figure, one line below it)."""
    model, target = profile.model, profile.target
    ratio = model.peak_live_bytes / target.sram_bytes
    cards = [
        ("peak of live activations", format_size(model.peak_live_bytes),
         f"{ratio:.2f} × the SRAM, at step {model.peak_step:,}"),
        ("smallest SRAM without tiling", format_size(model.min_sram_bytes), f"step {model.min_sram_step:,} needs it"),
    ]  # fmt: skip
    if lead is None:
        return cards
    ideal = profile.ideal.latency_s
    share = f"{percent(lead.spill_time_s / ideal)} over the ideal {format_time(ideal)}" if ideal > 0 else ""
    oversized = count_of(len(profile.oversized), "operator")
    moved = profile.ideal.compulsory_read_bytes + profile.ideal.compulsory_write_bytes
    worst = max((r for r in profile.results), key=lambda r: len(r.oscillations))
    return [
        ("spill bytes", format_size(lead.spill_bytes), f"on top of {format_size(moved)} that must move anyway"),
        ("spill time", format_time(lead.spill_time_s), share),
        ("spills", f"{lead.spill_count:,}", f"{count_of(lead.reload_count, 'reload')}, "
         f"{lead.clean_eviction_count:,} without a write"),
        ("hidden behind compute", percent(lead.hidden_share), f"of {format_time(lead.serial_cost_s)} of transfers"),
        *cards,
        ("streamed", format_size(lead.streamed_bytes),
         f"{oversized} too large for the memory" if profile.oversized else "every operator fits"),
        ("oscillating buffers", f"{len(lead.oscillations):,}",
         f"under {lead.strategy}; {len(worst.oscillations):,} under {worst.strategy}"
         if worst is not lead and worst.oscillations else f"under {lead.strategy}"),
    ]  # fmt: skip


def _strategy_rows(profile: Profile, lead: Result | None) -> list[dict[str, Any]]:
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
    table = [{**header, "cells": (latency[0], "-", "-", "0", "-", "0", "0", peak[0], energy[0])}]
    for i, r in enumerate(rows, start=1):
        cells = (
            latency[i], spill_time[i], percent(r.hidden_share), spilled[i], above_bound(profile, r),
            f"{r.spill_count:,}", f"{r.reload_count:,}", peak[i], energy[i],
        )  # fmt: skip
        reason = "" if r.feasible else label(r.reason or "no reason given", 400)
        table.append({"name": r.strategy, "reason": reason, "lead": r is lead, "cells": cells})
    if profile.bounds is not None:
        cells = ("", "", "", spilled[-1], "proven", "", "", "", "")
        table.append({"name": "lower bound", "reason": "", "lead": False, "cells": cells})
    return table


def _view(profile: Profile, result: Result, index: int, *, is_lead: bool) -> dict[str, Any]:
    """Everything that the page shows of one strategy."""
    chart_tables = {
        "memory": tables.memory_table(profile, result),
        "spills": tables.spills_table(result),
        "arcs": tables.arcs_table(result),
        "addresses": tables.addresses_table(result),
    }
    causes = why_parts(result)
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
                "meaning": CAUSE_WORDS[cause],
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
        "figures": figures.strategy_figures(profile, result) if profile.steps else (),
        "summaries": {
            "memory": _memory_summary(profile, result),
            "spills": _spills_summary(result),
            "arcs": _arcs_summary(result),
            "addresses": _addresses_summary(result),
        },
        "chart_tables": chart_tables,
        "operators": tables.operators_table(result),
        "buffers": tables.buffers_table(result),
        "oscillations": tables.oscillations_table(result),
    }


def _memory_summary(profile: Profile, result: Result) -> str:
    if not result.in_use_bytes:
        return "No step runs."
    capacity = profile.target.sram_bytes
    most = max(result.in_use_bytes)
    step = result.in_use_bytes.index(most)
    over = sum(wanted > capacity for wanted in figures.wanted_bytes(profile))
    live = "What is live, with weight staging,"
    excess = f"{live} exceeds the memory at {count_of(over, 'step')}" if over else f"{live} never exceeds it by itself"
    return (
        f"At most {format_size(most)} of {format_size(capacity)} are in use, at step {step:,}, "
        f"{label(profile.steps[step].name, 48)}. {excess}."
    )


def _spills_summary(result: Result) -> str:
    if result.spill_bytes == 0:
        return "Nothing spills."
    streamed = f", {format_size(result.streamed_bytes)} are streamed" if result.streamed_bytes else ""
    return (
        f"{count_of(len(result.operators), 'step')} of the run cost something: "
        f"{format_size(result.spill_write_bytes)} are written back (up), {format_size(result.spill_read_bytes)} "
        f"reloaded (down){streamed}. Bytes are drawn at the step that forced the buffer out."
    )


def _arcs_summary(result: Result) -> str:
    if not result.arcs:
        return "No buffer leaves the memory while it is still to be read."
    between = [max(arc.needed_step - arc.evict_step - 1, 0) for arc in result.arcs]
    waited = [arc.wait_s for arc in result.arcs if arc.wait_s > 0]
    waits = (
        f"{len(waited):,} of them are waited for, {format_time(sum(waited))} in all" if waited else "none is waited for"
    )
    return (
        f"{count_of(len(result.arcs), 'spill')}, each an arc from eviction to next use, as high as the buffer is "
        f"large. {count_of(int(median(between)), 'step')} lie between in the median, {max(between):,} at most; {waits}."
    )


def _addresses_summary(result: Result) -> str:
    if result.times is None:
        return "The profile was saved without events (--events), so it does not say what lay where."
    text = f"{count_of(len(result.residencies), 'residency', 'residencies')}: who lies where, and for how long."
    if result.fragmentation_spill_bytes:
        return f"{text} {format_size(result.fragmentation_spill_bytes)} spilled although the free bytes sufficed."
    return f"{text} No byte spilled for want of one free piece."


def _settings(profile: Profile) -> list[tuple[str, str, str]]:
    """(what, value, where it comes from) of target and configuration."""
    target, rows = profile.target, []
    for key in target.__dataclass_fields__:
        if key == "sources":
            continue
        rows.append(
            (
                f"target {key}",
                label(field_text(key, getattr(target, key)), 200),
                label(target.sources.get(key, ""), 200) if key in target.sources else "",
            )
        )
    for key, value in profile.config.items():
        value = "as in the file" if value is None else value
        text = ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
        rows.append((label(key, 40), label(text, 200), ""))
    return rows
