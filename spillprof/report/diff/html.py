"""The page of a comparison: one file, no request, nothing in it that a model's names could run."""

from typing import Any

from spillprof import __version__
from spillprof.ir.metric import Metric
from spillprof.ir.units import format_size
from spillprof.report.diff.charts import delta_chart, live_chart
from spillprof.report.diff.heads import (
    alone,
    both_run,
    buffers_title,
    operators_title,
    run_heads,
    source_parts,
    step_of,
    strategy_figures,
)
from spillprof.report.diff.wording import (
    OUTCOMES,
    buffer_reason,
    diff_verdict,
    difference_words,
    figure_rows,
    matching_sentence,
    operator_reason,
    path_labels,
    shown_differences,
    source_sentence,
    strategy_title,
)
from spillprof.report.gate.wording import figures, growth
from spillprof.report.html_table import Cell, DataTable, make_table
from spillprof.report.page import asset, environment, script_json, stylesheet
from spillprof.report.text import label
from spillprof.studies.diff import ProfileDiff, StrategyChange

_MAX_SOURCES, _MAX_ALONE = 8, 200


def render(comparison: ProfileDiff) -> str:
    """Renders the page. Deterministic."""
    return environment().get_template("diff.html.jinja").render(_context(comparison))


def _context(comparison: ProfileDiff) -> dict[str, Any]:
    views = [_view(comparison, change, index) for index, change in enumerate(comparison.strategies)]
    names = path_labels(comparison, 60)
    data = {
        "figures": {},
        "names": {},
        "tables": {
            f"{view['index']}/{key}": view[key].to_json()
            for view in views
            for key in ("operators", "buffers")
            if view[key].rows
        },
        "strategies": [view["title"] for view in views],
    }
    return {
        "comparison": comparison,
        "version": __version__,
        "title": f"spillprof – {names[0]} → {names[1]}",
        "heading": names[0] if names[0] == names[1] else f"{names[0]} → {names[1]}",
        "verdict": diff_verdict(comparison),
        "runs": run_heads(comparison, 60),
        "cards": _cards(comparison),
        "strategies": [_strategy_row(change) for change in comparison.strategies],
        "views": views,
        "chart": live_chart(comparison),
        "matching": matching_sentence(comparison),
        "alone": [
            (word.capitalize(),
             [f"#{each.step} {label(each.name, 64)} ({label(each.op_type, 24)})" for each in found[:_MAX_ALONE]],
             len(found))
            for word, found in alone(comparison)
        ],
        "differences": [difference_words(difference) for difference in shown_differences(comparison)],
        "style": stylesheet(),
        "script": asset("report.js"),
        "data": script_json(data),
    }  # fmt: skip


def _cards(comparison: ProfileDiff) -> list[tuple[str, str, str]]:
    """(what, figure after, change)."""
    if not comparison.strategies:
        return []
    lead = comparison.strategies[0]
    if not both_run(lead):
        return []
    rows = {name: (before, after, change) for name, before, after, change in figure_rows(comparison, lead)}
    shown = ("spill bytes", "latency", "energy", "peak of live activations")
    return [
        (name, after, "as before" if change == "0" else f"{change}; before {before}")
        for name in shown
        for before, after, change in [rows[name]]
    ]


def _strategy_row(change: StrategyChange) -> dict[str, Any]:
    reasons = [each.reason for each in (change.before, change.after) if not each.feasible]
    return {
        "title": strategy_title(change),
        "outcome": OUTCOMES[change.outcome],
        "reason": label(reasons[0] or "no reason given", 200) if reasons else "",
        "cells": sum(strategy_figures(change), ()) if both_run(change) else (),
    }


def _view(comparison: ProfileDiff, change: StrategyChange, index: int) -> dict[str, Any]:
    """Collects all that the page shows of one strategy."""
    return {
        "index": index,
        "lead": index == 0,
        "title": strategy_title(change),
        "figures": figure_rows(comparison, change) if both_run(change) else [],
        "causes": [
            (cause.cause, *figures(Metric.PEAK, cause.before_bytes, cause.after_bytes),
             growth(Metric.PEAK, cause.before_bytes, cause.after_bytes))
            for cause in change.causes if cause.before_bytes or cause.after_bytes
        ],
        "sources": [
            (words, format_size(total), [
                (format_size(source.share_bytes), source.share_bytes / total, source_sentence(source))
                for source in found[:_MAX_SOURCES]
            ], max(0, len(found) - _MAX_SOURCES))
            for words, total, found in source_parts(change)
        ],
        "delta": delta_chart(comparison, change),
        "operators": _operators_table(change),
        "buffers": _buffers_table(change),
    }  # fmt: skip


def _operators_table(change: StrategyChange) -> DataTable:
    return make_table(
        operators_title(change),
        (("step", Cell.COUNT), ("operator", Cell.TEXT), ("type", Cell.TEXT), ("spill bytes before", Cell.SIZE),
         ("after", Cell.SIZE), ("change", Cell.SIZE), ("stall", Cell.TIME), ("what", Cell.TEXT)),
        change.operators,
        lambda c: (step_of(c), label(c.name, 56), label(c.op_type, 24),
                   c.spill_bytes_before, c.spill_bytes_after, c.delta_bytes, c.delta_s, operator_reason(c) or None),
    )  # fmt: skip


def _buffers_table(change: StrategyChange) -> DataTable:
    return make_table(
        buffers_title(change),
        (("buffer", Cell.TEXT), ("kind", Cell.TEXT), ("size", Cell.SIZE), ("spill bytes before", Cell.SIZE),
         ("after", Cell.SIZE), ("change", Cell.SIZE), ("spills", Cell.TEXT), ("what", Cell.TEXT)),
        change.buffers,
        lambda c: (label(c.name, 56), c.kind, c.size_bytes_before if c.size_bytes_after is None else c.size_bytes_after,
                   c.spill_bytes_before, c.spill_bytes_after, c.delta_bytes,
                   f"{c.spill_count_before:,} → {c.spill_count_after:,}", buffer_reason(c)),
    )  # fmt: skip
