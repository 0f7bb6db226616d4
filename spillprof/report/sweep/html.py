"""The page of a sweep: curves over the size of the SRAM, and what follows from them. One file, no request."""

from collections.abc import Callable, Sequence
from typing import Any

from spillprof import __version__
from spillprof.ir.units import format_size_exact
from spillprof.report.page import DataTable, environment, library, make_table, script_json, scripts, stylesheet
from spillprof.report.scales import field_text
from spillprof.report.sweep.figures import curve_figure
from spillprof.report.sweep.terminal import rows_of
from spillprof.report.sweep.wording import (
    METRIC_WORDS,
    answer_sentence,
    by_place,
    cliff_sentence,
    knee_words,
    title_of,
    unfinished,
)
from spillprof.report.text import count_of, label
from spillprof.studies.sweep.result import CaseFacts, Sweep
from spillprof.studies.sweep.rows import Row

MAX_CASES = 12
MAX_CLIFFS = 100
TITLES = {"spill_bytes": "Spill bytes", "latency_s": "Latency", "energy_j": "Energy"}


def render(sweep: Sweep) -> str:
    """Renders the page. Deterministic."""
    return environment().get_template("sweep.html.jinja").render(_context(sweep))


def _context(sweep: Sweep) -> dict[str, Any]:
    cases = [_case(sweep, case, k) for k, case in enumerate(sweep.cases[:MAX_CASES])]
    table = _points_table(sweep.rows)
    places = by_place(sweep.cliffs)
    data = {
        "figures": {
            f"{case['index']}/{figure.key}": {"data": figure.traces, "layout": figure.layout}
            for case in cases
            for figure, _ in case["figures"]
        },
        "tables": {"all/points": table.to_json()} if table.rows else {},
        "strategies": [],
        "names": {},
    }
    models = list(dict.fromkeys(case.model for case in sweep.cases))
    return {
        "sweep": sweep,
        "version": __version__,
        "title": f"spillprof sweep – {label(models[0], 40)}{' and more' if len(models) > 1 else ''}",
        "heading": label(models[0], 80) if len(models) == 1 else f"{len(models)} models",
        "verdict": _verdict(sweep),
        "cases": cases,
        "hidden_cases": len(sweep.cases) - len(cases),
        "for_all": [
            f"{title_of('', a.dims, a.settings)}: {answer_sentence(a)}" if a.dims or a.settings else answer_sentence(a)
            for a in sweep.smallest
            if a.model is None
        ],
        "cliffs": [cliff_sentence(cliff, others) for cliff, others in places[:MAX_CLIFFS]],
        "hidden_cliffs": max(0, len(places) - MAX_CLIFFS),
        "pareto_table": _pareto_table(sweep),
        "points_table": table,
        "failures": sum(not row.ok for row in sweep.rows),
        "settings": [
            *((label(key, 40), label(field_text(key, value), 200)) for key, value in sweep.target.items()),
            *((label(key, 40), label(_option_text(value), 200)) for key, value in sweep.config.items()),
        ],
        "style": stylesheet(),
        "script": scripts("report.js", "charts.js"),
        "plotly": library("plotly-cartesian.min.js"),
        "data": script_json(data),
    }


def _verdict(sweep: Sweep) -> str:
    sizes = sorted({row.sram_bytes for row in sweep.rows})
    strategies = list(dict.fromkeys(row.strategy for row in sweep.rows))
    text = (
        f"{count_of(len(sweep.rows), 'point')}: {count_of(len(sizes), 'size')} of SRAM under {', '.join(strategies)}."
    )
    overall = [a for a in sweep.smallest if a.model is None] or list(sweep.smallest)
    if overall:
        answer = answer_sentence(overall[0])
        text += f" {answer[:1].upper()}{answer[1:]}."
    return text if sweep.complete else f"{unfinished(sweep)}. {text}"


def _case(sweep: Sweep, case: CaseFacts, index: int) -> dict[str, Any]:
    """Collects all that the page shows of one set of curves."""
    rows = rows_of(sweep, case)
    own = (case.model, case.dims, case.settings)
    knees = [k for k in sweep.knees if (k.model, k.dims, k.settings) == own]
    cliffs = [c for c in sweep.cliffs if (c.model, c.dims, c.settings) == own]
    shown = (
        [(curve_figure(case.min_sram_bytes, rows, metric, knees, cliffs), _summary(rows, metric)) for metric in TITLES]
        if rows
        else []
    )
    return {
        "index": index,
        "title": title_of(*own),
        "figures": shown,
        "knees": knee_words(knees),
        "answers": [answer_sentence(a) for a in sweep.smallest if (a.model, a.dims, a.settings) == own],
        "min_sram": None if case.min_sram_bytes is None else format_size_exact(case.min_sram_bytes),
        "ideal_peak": None if case.ideal_peak_bytes is None else format_size_exact(case.ideal_peak_bytes),
        "error": "" if any(row.ok for row in rows) else label(rows[0].status, 300) if rows else "nothing was finished",
    }


def _summary(rows: Sequence[Row], metric: str) -> str:
    """States the minimum and maximum, as text alternative of the chart."""
    real = [row for row in rows if row.ok]
    if not real:
        return "No point could be simulated."
    worst = max(real, key=lambda row: getattr(row, metric))
    best = min(real, key=lambda row: (getattr(row, metric), row.sram_bytes))
    text = METRIC_WORDS.get(metric, "energy")
    return (
        f"Most {text} at {format_size_exact(worst.sram_bytes)} under {worst.strategy}, "
        f"least from {format_size_exact(best.sram_bytes)} under {best.strategy}."
    )


def _points_table(rows: Sequence[Row]) -> DataTable:
    return make_table(
        "All points",
        "model, SRAM:size, strategy, placement, spill bytes:size, latency:time, spill time:time, spills:count, "
        "peak in use:size, status",
        rows,
        lambda r: (title_of(r.model, r.dims, r.settings), r.sram_bytes, r.strategy, r.placement, r.spill_bytes,
                   r.latency_s, r.spill_time_s, r.spill_count, r.peak_bytes, label(r.status, 120)),
    )  # fmt: skip


def _pareto_table(sweep: Sweep) -> DataTable:
    row: Callable[[Any], tuple[Any, ...]] = lambda c: (  # noqa: E731
        title_of("", c.dims, c.settings) or "-", c.sram_bytes, c.strategy, c.placement, c.latency_s,
        f"{1e3 * c.energy_j:.4g} mJ",
    )  # fmt: skip
    columns = "swept, SRAM:size, strategy, placement, latency:time, energy"  # fmt: skip
    return make_table("Choices that no other beats", columns, sweep.pareto, row)


def _option_text(value: Any) -> str:
    if value is None:
        return "as in the file"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
