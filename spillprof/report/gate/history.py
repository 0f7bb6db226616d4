"""A history as text, JSON and HTML: each figure over the commits, and the commits at which it changed."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from spillprof import __version__
from spillprof.ir.metric import Metric
from spillprof.report.gate.wording import METRIC_NAMES, figure, figures, growth
from spillprof.report.page import environment, stylesheet
from spillprof.report.table import Table
from spillprof.report.text import BARS, count_of, label
from spillprof.studies.history import FigureStep, RecordedRun, RunSeries, steps

_MOST_BARS = 60
_WIDTH, _HEIGHT = 640, 120
"""Size of a chart in SVG units."""

_REASONS = {
    "model": "the model changed",
    "configuration": "configuration or simulator revision changed: not the model's doing alone",
    "neither": "neither model nor configuration changed",
}


def text(series: Sequence[RunSeries], metrics: Sequence[Metric], *, top: int) -> str:
    """Renders the trend for a terminal, at most ``top`` changes of each figure, newest first."""
    return "\n".join(line for each in series for line in _lines(each, metrics, top)) + "\n"


def history_json(series: Sequence[RunSeries], metrics: Sequence[Metric]) -> str:
    """Renders runs and changes as JSON; figures are integers: bytes, nanoseconds, picojoules."""
    data = {
        "schema": "spillprof-history/1",
        "series": [
            {
                "model": each.model,
                "target": each.target,
                "runs": [
                    {"commit": run.commit, "verdict": run.verdict, **{str(m): run.of(m) for m in Metric}}
                    for run in each.runs
                ],
                "changes": {
                    str(m): [
                        {"commit": s.commit, "before": s.before, "after": s.after, "reason": s.reason}
                        for s in steps(each.runs, m)
                    ]
                    for m in metrics
                },
            }
            for each in series
        ],
    }
    return json.dumps(data, indent=2) + "\n"


def html(series: Sequence[RunSeries], metrics: Sequence[Metric]) -> str:
    """Renders one HTML file without scripts or requests. Deterministic."""
    template = environment().get_template("history.html.jinja")
    return template.render(
        style=stylesheet(),
        version=__version__,
        width=_WIDTH,
        height=_HEIGHT,
        series=[
            {
                "title": f"{label(each.model)} @ {label(each.target)}",
                "runs": len(each.runs),
                "charts": [_chart(each, metric) for metric in metrics],
            }
            for each in series
        ],
    )


def _lines(each: RunSeries, metrics: Sequence[Metric], top: int) -> Iterator[str]:
    yield f"{label(each.model)} @ {label(each.target)}   {count_of(len(each.runs), 'commit')}"
    rows = []
    for metric in metrics:
        values = [run.of(metric) for run in each.runs]
        first, last = figures(metric, values[0], values[-1])
        trend = f"{first} → {last}" if values[0] != values[-1] else f"{last}, as at first"
        rows.append((METRIC_NAMES[metric], _sparkline(values), trend))
    for metric, line in zip(metrics, Table(cells=rows, align="lll").lines(indent=2), strict=True):
        yield line
        found = steps(each.runs, metric)
        yield from (f"    {_sentence(metric, step)}" for step in found[::-1][:top])
        if len(found) > top:
            yield f"    and {count_of(len(found) - top, 'change')} before"
    yield ""


def _sentence(metric: Metric, step: FigureStep) -> str:
    before, after = figures(metric, step.before, step.after)
    return (
        f"{label(step.commit, 12)}  {before} → {after}, {growth(metric, step.before, step.after)}; "
        f"{_REASONS[step.reason]}"
    )


def _sparkline(values: Sequence[int]) -> str:
    """Draws the last values as bars from 0 to the largest."""
    shown = values[-_MOST_BARS:]
    largest = max(max(shown), 1)
    return "".join(BARS[(len(BARS) - 1) * value // largest] for value in shown)


def _chart(each: RunSeries, metric: Metric) -> dict[str, Any]:
    """One figure as a step line over the commits, from 0 up, and its changes as a table."""
    values = [run.of(metric) for run in each.runs]
    largest = max(max(values), 1)
    across = _WIDTH / len(values)
    ups = [_HEIGHT - (_HEIGHT - 8) * value / largest for value in values]
    corners = [f"{x * across:.1f},{y:.1f} {(x + 1) * across:.1f},{y:.1f}" for x, y in enumerate(ups)]
    found = steps(each.runs, metric)
    changed = {step.commit for step in found}
    return {
        "name": METRIC_NAMES[metric],
        "points": " ".join(corners),
        "marks": [
            {"x": f"{x * across:.1f}", "title": f"{label(run.commit, 40)}: {figure(metric, run.of(metric))}"}
            for x, run in enumerate(each.runs)
            if run.commit in changed
        ],
        "summary": _summary(metric, each.runs, found),
        "rows": [
            {
                "commit": label(step.commit, 40),
                "before": figures(metric, step.before, step.after)[0],
                "after": figures(metric, step.before, step.after)[1],
                "growth": growth(metric, step.before, step.after),
                "reason": _REASONS[step.reason],
            }
            for step in found[::-1]
        ],
    }


def _summary(metric: Metric, runs: Sequence[RecordedRun], found: Sequence[FigureStep]) -> str:
    first, last = figures(metric, runs[0].of(metric), runs[-1].of(metric))
    if not found:
        return f"{last} at each of {count_of(len(runs), 'commit')}."
    latest = f"the last of {count_of(len(found), 'change')} at {label(found[-1].commit, 12)}"
    if runs[0].of(metric) == runs[-1].of(metric):
        return f"{last}, as at first, over {count_of(len(runs), 'commit')}; {latest}."
    return f"From {first} to {last} over {count_of(len(runs), 'commit')}; {latest}."
