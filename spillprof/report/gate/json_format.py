"""The gate as JSON, schema ``spillprof-gate/1``. Figures are whole: bytes, nanoseconds, picojoules."""

import json
from typing import Any

from spillprof.report.gate.wording import headline, reasons
from spillprof.studies.gate.values import GateCheck, GateReport, MetricChange

_SCHEMA = "spillprof-gate/1"


def render(report: GateReport) -> str:
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
        "changes": [_change(change) for change in check.changes],
        "moved": [
            {
                "kind": m.kind,
                "name": m.name,
                "op_type": m.op_type,
                "metric": str(m.metric),
                "before": m.before,
                "after": m.after,
                "cause": m.cause,
                "victims": list(m.victims),
                "needed_by": m.needed_by,
            }
            for m in check.moved
        ],
        "reasons": reasons(check),
        "mismatches": list(check.mismatches),
        "model_changed": check.model_changed,
        "error": None
        if failure is None
        else {"message": failure.message, "where": list(failure.where), "hint": failure.hint},
        "location": None if location is None else {"file": location.file, "line": location.line},
    }


def _change(change: MetricChange) -> dict[str, Any]:
    return {
        "metric": str(change.metric),
        "before": change.before,
        "after": change.after,
        "allowed": change.allowed,
        "budget": change.budget,
        "over_budget": change.over_budget,
        "regressed": change.regressed,
        "improved": change.improved,
    }
