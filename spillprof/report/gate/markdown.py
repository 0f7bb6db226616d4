"""The gate as a Markdown comment: a table, then what moved. A hidden marker lets a job update it in place."""

from collections.abc import Iterator

from spillprof.report.gate.wording import (
    METRIC_NAMES,
    advice,
    change_sentence,
    figure,
    growth,
    headline,
    reasons,
    shown_changes,
    summary,
    worst_first,
)
from spillprof.report.markdown import code, plain
from spillprof.report.table import Table
from spillprof.studies.gate.values import GateCheck, GateReport, Verdict

MARKER = "<!-- spillprof:gate -->"
LONGEST = 60_000
"""Limit in characters; GitHub allows 65,536 in a comment."""

_SYMBOLS = {"FAIL": "❌", "ERROR": "⚠️", "warn": "🆕", "ok": "✅"}


def render(report: GateReport) -> str:
    """Renders the comment, newline at the end, at most LONGEST characters."""
    checks = worst_first(report.checks)
    head = [MARKER, f"### spillprof gate: {plain(summary(report))}", ""]
    heads = ("", "model @ target", "verdict", "figure", "change")
    table = Table(heads=heads, cells=[_row(report, check) for check in checks], align="lllrr").markdown()
    body = [line for check in checks for line in _details(check)]
    foot = [
        "",
        *(f"- {plain(line)}" for line in advice(report)),
        "",
        f"<sub>compared with {code(report.baseline)}, spillprof {report.spillprof_version}</sub>",
    ]
    cut = ["", "The rest is left out here; the JSON of the gate has all of it."]
    room = LONGEST - _length([*head, *foot, *cut])
    kept, complete = _fitting([*table, *body], room)
    return "\n".join([*head, *kept, *([] if complete else cut), *foot]) + "\n"


def _row(report: GateReport, check: GateCheck) -> tuple[str, ...]:
    word = "ERROR" if report.unjudged(check) else "FAIL" if report.fails(check) else "ok"
    if word == "ok" and check.verdict in (Verdict.NEW, Verdict.REMOVED):
        word = "warn"
    shown = shown_changes(check)
    values = "<br>".join(f"{METRIC_NAMES[c.metric]} {figure(c.metric, c.after)}" for c in shown)
    deltas = "<br>".join("-" if c.before is None else growth(c.metric, c.before, c.after) for c in shown)
    return (
        f"{_SYMBOLS[word]} {word}",
        f"{code(check.model)} @ {code(check.target)}",
        str(check.verdict),
        plain(values, "<br>") or "-",
        plain(deltas, "<br>") or "-",
    )


def _details(check: GateCheck) -> Iterator[str]:
    if check.verdict in (Verdict.UNCHANGED, Verdict.OK):
        return
    yield ""
    yield f"**{code(check.model)} @ {code(check.target)}**: {plain(headline(check))}"
    lines = [] if check.verdict in (Verdict.NEW, Verdict.REMOVED) else reasons(check)
    if check.failure is not None:
        lines = [*check.failure.where, *([check.failure.hint] if check.failure.hint else [])]
    if lines:
        yield ""
        yield from (f"- {plain(line[:600])}" for line in lines)
    others = [c for c in check.changes if c not in shown_changes(check)]
    if others:
        yield ""
        yield f"<sub>{plain('; '.join(map(change_sentence, others)))}</sub>"


def _length(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _fitting(lines: list[str], room: int) -> tuple[list[str], bool]:
    """Returns (the lines that fit, whether all did)."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return kept, False
        kept.append(line)
    return kept, True
