"""JSON text: integers exact, keys in a fixed order, one line a row, so that files can be compared by line."""

import json
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

from spillprof.ir.profile import Profile
from spillprof.ir.target import PROFILE_FIELDS, ROWS

if TYPE_CHECKING:
    from spillprof.studies.diff import ProfileDiff


def profile_json(profile: Profile, *, events: bool | None) -> str:
    """The Profile as JSON text (schema ``spillprof-profile/1``), ASCII, newline at the end.

    ``events`` adds the times of steps and transfers; None: if a result has them.
    """
    timed = any(result.times is not None for result in profile.results) if events is None else events
    return json_text(profile.to_json(events=timed))


def diff_json(comparison: "ProfileDiff") -> str:
    """The comparison as JSON text (schema ``spillprof-diff/1``), ASCII, newline at the end."""
    from spillprof.report.diff.wording import diff_verdict

    data = dict(comparison.to_json())
    return json_text({"schema": data.pop("schema"), "verdict": diff_verdict(comparison), **data})


def json_text(data: Any) -> str:
    """JSON values as text: rows on a line each, newline at the end."""
    return "".join(_pieces(data, 0)) + "\n"


def published_schema(subject: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the JSON of a ``profile``, ``diff``, ``sweep`` or ``gate``."""
    text = (resources.files("spillprof.report") / f"{subject}.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    if subject == "profile":  # fields of the target are described where they are registered
        machine = loaded["$defs"]["TargetFacts"]["properties"]
        for name in PROFILE_FIELDS:
            machine.setdefault(name, {"description": ROWS[name].doc})
    return loaded


def _pieces(value: Any, depth: int) -> Iterator[str]:
    """JSON text of ``value``: rows of tables and arrays of scalars on one line each, the rest indented by two."""
    if _is_row(value, depth):
        yield json.dumps(value, allow_nan=False)
        return
    inner, outer = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    items: Iterator[tuple[str, Any]]
    if isinstance(value, dict):
        opening, closing = "{", "}"
        items = ((f"{json.dumps(key)}: ", item) for key, item in value.items())
    else:
        opening, closing = "[", "]"
        items = (("", item) for item in value)
    yield opening
    for position, (prefix, item) in enumerate(items):
        yield ("," if position else "") + inner + prefix
        yield from _pieces(item, depth + 1)
    yield outer + closing


def _is_row(value: Any, depth: int) -> bool:
    """Whether ``value`` fits on a line: a scalar, an array of scalars, or a small object of such values."""
    if isinstance(value, list):
        return all(_is_scalar(item) for item in value)
    if isinstance(value, dict):
        return not value or (
            depth > 1 and all(_is_scalar(v) or _is_row(v, 0) for v in value.values()) and len(value) <= 12
        )
    return True


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)
