"""The gate on a terminal: one line a check, the verdict first, and below it what moved."""

from collections.abc import Iterator

from spillprof.report.gate.wording import advice, headline, reasons, summary
from spillprof.report.table import Table
from spillprof.report.text import label, printable, shorten_middle
from spillprof.studies.gate.values import GateCheck, GateReport, Verdict

_QUIET = (Verdict.UNCHANGED, Verdict.NEW, Verdict.REMOVED)


def render(report: GateReport) -> str:
    """The page, newline at the end."""
    return "\n".join(_lines(report)) + "\n"


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
