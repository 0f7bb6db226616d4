"""The gate as JSON, JUnit XML and SARIF, for CI systems. Figures are whole: bytes, nanoseconds, picojoules."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from spillprof.report.gate.wording import change_sentence, headline, reasons
from spillprof.report.text import label, printable
from spillprof.studies.gate.values import GateCheck, GateReport, MetricChange, Moved, Verdict

_SCHEMA = "spillprof-gate/1"
_CHANGE_FIELDS = ("metric", "before", "after", "allowed", "budget", "over_budget", "regressed", "improved")
_MOVED_FIELDS = ("kind", "name", "op_type", "metric", "before", "after", "cause")


def render_json(report: GateReport) -> str:
    """JSON text, ASCII, newline at the end."""
    return json.dumps(to_json(report), indent=2, allow_nan=False) + "\n"


def to_json(report: GateReport) -> dict[str, Any]:
    """The report as JSON values."""
    return {
        "schema": _SCHEMA,
        "spillprof_version": report.spillprof_version,
        "simulator_revision": report.simulator_revision,
        "baseline": report.baseline,
        "updated": report.updated,
        "exit_code": report.exit_code,
        "checks": [_check(report, check) for check in report.checks],
    }


def _check(report: GateReport, check: GateCheck) -> dict[str, Any]:
    failure, location = check.failure, check.location
    return {
        "model": check.model,
        "target": check.target,
        "verdict": str(check.verdict),
        "fails": report.fails(check),
        "accepted": check.accepted,
        "message": headline(check),
        "changes": [_values(change, _CHANGE_FIELDS) for change in check.changes],
        "moved": [
            {**_values(m, _MOVED_FIELDS), "victims": list(m.victims), "needed_by": m.needed_by} for m in check.moved
        ],
        "reasons": reasons(check),
        "mismatches": list(check.mismatches),
        "model_changed": check.model_changed,
        "error": None
        if failure is None
        else {"message": failure.message, "where": list(failure.where), "hint": failure.hint},
        "location": None if location is None else {"file": location.file, "line": location.line},
    }


def _values(record: MetricChange | Moved, fields: Sequence[str]) -> dict[str, Any]:
    return {field: getattr(record, field) for field in fields}


def render_junit(report: GateReport) -> str:
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


VERSION = "2.1.0"
SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
RULES = {
    Verdict.OVER_BUDGET: ("error", "A model passes an absolute limit of its spill cost."),
    Verdict.REGRESSED: ("error", "A model's spill cost grew over the baseline by more than is tolerated."),
    Verdict.INCOMPARABLE: ("error", "The baseline was made with another configuration or simulator revision."),
    Verdict.ERROR: ("error", "A model could not be evaluated."),
    Verdict.NEW: ("warning", "A model on a target is not in the baseline."),
    Verdict.REMOVED: ("note", "The baseline holds a model on a target that is no longer watched."),
    Verdict.IMPROVED: ("note", "A model's spill cost is lower than in the baseline."),
}


def render_sarif(report: GateReport) -> str:
    """SARIF text, newline at the end."""
    rules = [
        {
            "id": rule_id(verdict),
            "name": "".join(word.title() for word in verdict.split("-")),
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": level},
        }
        for verdict, (level, text) in RULES.items()
    ]
    loud = [check for check in report.checks if check.verdict in RULES and (not check.accepted or check.over_budget)]
    driver = {"name": "spillprof", "semanticVersion": report.spillprof_version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, check) for check in loud],
    }
    return json.dumps({"$schema": SCHEMA_URI, "version": VERSION, "runs": [run]}, indent=2) + "\n"


def rule_id(verdict: Verdict) -> str:
    """Returns the SARIF rule of a verdict; it is never renamed."""
    return f"spillprof/{verdict}"


def _result(report: GateReport, check: GateCheck) -> dict[str, Any]:
    level = "error" if report.fails(check) else RULES[check.verdict][0]
    text = f"{printable(check.key)}: {headline(check)}"
    place = check.location
    physical: dict[str, Any] = {
        "artifactLocation": {"uri": quote(place.file if place else check.model, errors="replace")}
    }
    if place is not None:
        physical["region"] = {"startLine": place.line}
    return {
        "ruleId": rule_id(check.verdict),
        "ruleIndex": list(RULES).index(check.verdict),
        "level": level,
        "message": {"text": "\n".join([text, *reasons(check)])},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"spillprofCheck/v1": _fingerprint(check)},
    }


def _fingerprint(check: GateCheck) -> str:
    """Hashes rule, model, target and the operator that moved most, so that a finding keeps its fingerprint."""
    operator = next((m.name for m in check.moved if m.kind == "operator"), "")
    text = "\0".join((check.verdict, check.model, check.target, operator))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
