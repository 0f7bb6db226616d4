"""The gate as SARIF 2.1.0, for code scanning: one result for each check that asks for attention."""

import hashlib
import json
from typing import Any
from urllib.parse import quote

from spillprof.report.gate.wording import headline, reasons
from spillprof.report.text import printable
from spillprof.studies.gate.values import GateCheck, GateReport, Verdict

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


def render(report: GateReport) -> str:
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
