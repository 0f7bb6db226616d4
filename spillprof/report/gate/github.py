"""The gate in the log of a GitHub job: the text page, then at most five annotations.

The job summary is the Markdown of the gate; the command line appends it to the file that the platform names.
"""

from spillprof.report.gate.text_format import render as render_text
from spillprof.report.gate.wording import headline, worst_first
from spillprof.report.text import label
from spillprof.studies.gate.values import GateCheck, GateReport, Verdict

MOST_ANNOTATIONS = 5
"""The platform shows ten of each level and step, and other tools want some of them."""

_WARNINGS = (Verdict.NEW, Verdict.REMOVED, Verdict.IMPROVED)


def render(report: GateReport) -> str:
    """The page and the workflow commands, newline at the end."""
    loud = [check for check in worst_first(report.checks) if _level(report, check)]
    commands = [_annotation(report, check) for check in loud[:MOST_ANNOTATIONS]]
    page = "".join(f"{_inert(line)}\n" for line in render_text(report).splitlines())
    return page + "".join(f"{command}\n" for command in commands)


def escape_data(text: str) -> str:
    """Text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Text as a property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


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
    """A line of the page that the platform cannot take for a command, whatever a model calls its operators."""
    start = line.lstrip()
    return line if not start.startswith(("::", "##[")) else f"| {line}"
