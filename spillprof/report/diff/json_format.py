"""A comparison as JSON: one line a row."""

import json
from importlib import resources
from typing import Any

from spillprof.report.diff.wording import verdict
from spillprof.report.json_text import json_text
from spillprof.studies.diff import ProfileDiff


def render(comparison: ProfileDiff) -> str:
    """The comparison as JSON text (schema ``spillprof-diff/1``), ASCII, newline at the end."""
    data = dict(comparison.to_json())
    return json_text({"schema": data.pop("schema"), "verdict": verdict(comparison), **data})


def schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of the JSON of a comparison."""
    text = (resources.files("spillprof.report") / "diff.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
