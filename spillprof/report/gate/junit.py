"""The gate as JUnit XML: a test suite for each target, a test case for each model."""

from xml.etree import ElementTree

from spillprof.report.gate.wording import change_sentence, headline, reasons
from spillprof.report.text import label, printable
from spillprof.studies.gate.values import GateCheck, GateReport


def render(report: GateReport) -> str:
    """XML text with its declaration, newline at the end."""
    targets = list(dict.fromkeys(check.target for check in report.checks))
    root = ElementTree.Element("testsuites", {"name": "spillprof gate", **_counts(report, list(report.checks))})
    for target in targets:
        checks = [check for check in report.checks if check.target == target]
        suite = ElementTree.SubElement(
            root, "testsuite", {"name": f"spillprof gate {label(target)}", **_counts(report, checks)}
        )
        for check in checks:
            _case(suite, report, check)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _counts(report: GateReport, checks: list[GateCheck]) -> dict[str, str]:
    errors = sum(map(report.unjudged, checks))
    failures = sum(report.fails(check) and not report.unjudged(check) for check in checks)
    return {
        "tests": str(len(checks)), "failures": str(failures), "errors": str(errors), "skipped": "0", "time": "0",
    }  # fmt: skip


def _case(suite: ElementTree.Element, report: GateReport, check: GateCheck) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", name=label(check.model, 200), classname=label(check.target), time="0"
    )
    details = [change_sentence(change) for change in check.changes] + reasons(check)
    if check.failure is not None:
        details += [printable(place) for place in check.failure.where]
        details += [printable(check.failure.hint)] if check.failure.hint else []
    if report.unjudged(check) or report.fails(check):
        tag = "error" if report.unjudged(check) else "failure"
        found = ElementTree.SubElement(case, tag, message=headline(check), type=str(check.verdict))
        found.text = "\n".join(details)
    else:
        ElementTree.SubElement(case, "system-out").text = "\n".join([f"{check.verdict}: {headline(check)}", *details])
