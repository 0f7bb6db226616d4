"""A comparison as JSON: one line a row."""

from spillprof.report.diff.wording import diff_verdict
from spillprof.report.json_text import json_text
from spillprof.studies.diff import ProfileDiff


def render(comparison: ProfileDiff) -> str:
    """The comparison as JSON text (schema ``spillprof-diff/1``), ASCII, newline at the end."""
    data = dict(comparison.to_json())
    return json_text({"schema": data.pop("schema"), "verdict": diff_verdict(comparison), **data})
