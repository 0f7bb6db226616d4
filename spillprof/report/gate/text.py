"""The gate as text, in the log of a GitHub job with at most five annotations, and as a Markdown comment.

The job summary is the Markdown; the command line appends it to the file that the platform names. A hidden marker lets
a job update the comment in place.
"""

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
from spillprof.report.table import Table
from spillprof.report.text import code, label, plain, printable, shorten_middle
from spillprof.studies.gate.values import GateCheck, GateReport, Verdict

_QUIET = (Verdict.UNCHANGED, Verdict.NEW, Verdict.REMOVED)

MOST_ANNOTATIONS = 5
"""GitHub shows ten of each level and step; this leaves room for other tools."""

_WARNINGS = (Verdict.NEW, Verdict.REMOVED, Verdict.IMPROVED)


def render(report: GateReport) -> str:
    """The page, newline at the end."""
    return "\n".join(_lines(report)) + "\n"


def render_github(report: GateReport) -> str:
    """The page of ``render`` and the workflow commands, newline at the end."""
    loud = [check for check in worst_first(report.checks) if _level(report, check)]
    commands = [_annotation(report, check) for check in loud[:MOST_ANNOTATIONS]]
    page = "".join(f"{_inert(line)}\n" for line in render(report).splitlines())
    return page + "".join(f"{command}\n" for command in commands)


def escape_data(text: str) -> str:
    """Escapes the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escapes a property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _lines(report: GateReport) -> Iterator[str]:
    rows = [(f"{_word(report, c):<4}", str(c.verdict), label(c.key, 60), headline(c)) for c in report.checks]
    for check, line in zip(report.checks, Table(cells=rows, align="llll").lines(), strict=True):
        yield line
        if check.failure is not None:
            yield from (f"{'':8}--> {shorten_middle(printable(place), 200)}" for place in check.failure.where)
            if check.failure.hint:
                yield f"{'':8}hint: {shorten_middle(printable(check.failure.hint), 300)}"
        elif check.verdict not in _QUIET:
            yield from (f"{'':8}{line}" for line in reasons(check))
    yield f"{summary(report)}; baseline {label(report.baseline, 80)}{', written' if report.updated else ''}"
    yield from advice(report)


def _word(report: GateReport, check: GateCheck) -> str:
    if report.unjudged(check):
        return "ERROR"
    if report.fails(check):
        return "FAIL"
    if check.accepted and check.verdict is not Verdict.UNCHANGED:
        return "taken"
    return "warn" if check.verdict in (Verdict.NEW, Verdict.REMOVED) else "ok"


def _annotation(report: GateReport, check: GateCheck) -> str:
    properties = {"title": f"spillprof: {label(check.key, 100)} {check.verdict}"}
    if check.location is not None:
        properties = {"file": check.location.file, "line": str(check.location.line), **properties}
    listed = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    return f"::{_level(report, check)} {listed}::{escape_data(headline(check))}"


def _level(report: GateReport, check: GateCheck) -> str:
    if report.unjudged(check) or report.fails(check):
        return "error"
    if check.accepted or check.verdict not in _WARNINGS:
        return ""
    return "notice" if check.verdict is Verdict.IMPROVED else "warning"


def _inert(line: str) -> str:
    """Defuses a line that GitHub would read as a workflow command: names come from models."""
    start = line.lstrip()
    return line if not start.startswith(("::", "##[")) else f"| {line}"


MARKER = "<!-- spillprof:gate -->"
LONGEST = 60_000
"""Limit in characters; GitHub allows 65,536 in a comment."""

_SYMBOLS = {"FAIL": "❌", "ERROR": "⚠️", "warn": "🆕", "ok": "✅"}


def render_markdown(report: GateReport) -> str:
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
