"""The HTML report: one file, no request, nothing in it that a model's names could run."""

import json
from pathlib import Path, PurePath
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from spillprof.analysis.main_result import bytes_by_cause
from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.units import (
    format_energy,
    format_rate,
    format_size,
    format_size_exact,
    format_time,
)
from spillprof.report import html_table as tables
from spillprof.report.page_policy import BOLD, policy, share_classes, share_rules
from spillprof.report.plain_markdown import to_html
from spillprof.report.profile import step_figures as figures
from spillprof.report.profile.bound_words import bound_scope, proof_sentence, search_sentences
from spillprof.report.profile.chart_words import chart_sentences, live_summary, trend_summary
from spillprof.report.profile.overview import cards, strategy_rows
from spillprof.report.profile.page_data import has_graph, limits_note, page_data
from spillprof.report.profile.part_words import meaning
from spillprof.report.profile.roofline import roofline_figure, roofline_summary, roofline_table
from spillprof.report.profile.size_figures import size_section
from spillprof.report.profile.story import story_paragraphs
from spillprof.report.profile.sweep_command import sweep_command
from spillprof.report.profile.time_figures import bus_table, time_figures, waits_table
from spillprof.report.profile.time_words import TIME_WORDS, energy_parts, time_parts
from spillprof.report.profile.verdict import (
    lead_result,
    recompute_sentences,
    verdict,
)
from spillprof.report.scales import part_percent
from spillprof.report.target_words import field_text
from spillprof.report.text import count_of, label

MAX_TITLE = 60
EXPORTERS_NAMES = ("", "main_graph", "main", "torch_jit", "torch-jit-export", "tf2onnx", "graph")


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
        size=format_size,
        size_exact=format_size_exact,
        time=format_time,
        rate=format_rate,
        share=part_percent,
        share_classes=share_classes,
        name=label,
    )
    made.globals.update(
        count_of=count_of, html_rows=tables.HTML_ROWS, policy=policy, bold=BOLD, theme=asset("theme.js")
    )
    return made


def templates_dir() -> Path:
    """The folder of templates: inside an installed package, else that of the checkout."""
    packaged = Path(__file__).parents[2] / "templates"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "templates"


def method_html() -> Markup:
    """Glossary and cost model (docs/model.md), from the package or the checkout."""
    candidates = (templates_dir() / "model.md", Path(__file__).parents[3] / "docs" / "model.md")
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
    sizes = size_section(profile)
    common = (
        figures.trend_figure(profile, feasible),
        figures.live_figure(profile),
        roofline_figure(profile),
        *(figure for figure, _, _ in sizes.figures),
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
        "recompute": recompute_sentences(profile),
        "recomputed_table": tables.recomputed_table(profile),
        "heading": _heading(profile, 80),
        "title": _title(profile, lead),
        "cards": cards(profile, lead),
        "strategies": strategy_rows(profile, lead),
        "views": views,
        "trend": common[0],
        "live": common[1],
        "roofline": common[2],
        "roofline_summary": roofline_summary(profile),
        "roofline_table": roofline_table(profile),
        "trend_summary": trend_summary(profile, feasible),
        "live_summary": live_summary(profile),
        "live_table": tables.live_table(profile),
        "oversized_table": tables.oversized_table(profile),
        "story": [
            {"title": title, "sentences": sentences, "table": tables.absences_table(title, absences)}
            for title, sentences, absences in (story_paragraphs(profile.why) if profile.why else ())
        ],
        "suggestions_table": tables.suggestions_table(profile),
        "sizes": sizes,
        "sweep_command": sweep_command(profile),
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


def stylesheet() -> Markup:
    """The sheet that all pages share."""
    return asset("report.css") + share_rules()


def library(name: str) -> Markup:
    """A library that the page carries, as text between script tags. plotly.js: the part that draws on two axes."""
    return Markup(asset(f"vendor/{name}").replace("</script", "<\\/script"))


def scripts(*names: str) -> Markup:
    """The page's own scripts, one after the other."""
    return Markup("\n").join(asset(name) for name in names)


def asset(name: str) -> Markup:
    """A file among the templates, as it stands."""
    return Markup((templates_dir() / name).read_text("utf-8"))


def _title(profile: Profile, lead: Result | None) -> str:
    spilled = "infeasible" if lead is None else f"{format_size(lead.spill_bytes)} spilled"
    return f"spillprof – {_heading(profile, MAX_TITLE)} – {spilled}"


def _heading(profile: Profile, width: int) -> str:
    """The model's name, or that of its file where an exporter gave all models one name."""
    name = profile.model.name
    stem = PurePath(profile.model.path).stem
    return label(stem if name in EXPORTERS_NAMES and stem not in ("", "-") else name, width)


def _view(profile: Profile, result: Result, index: int, *, is_lead: bool) -> dict[str, Any]:
    """Everything that the page shows of one strategy."""
    chart_tables = {
        "memory": tables.memory_table(profile, result),
        "spills": tables.spills_table(result),
        "addresses": tables.addresses_table(result),
        "bus": bus_table(result),
        "waits": waits_table(profile, result),
    }
    drawings = (*figures.strategy_figures(profile, result), *time_figures(profile, result))
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
