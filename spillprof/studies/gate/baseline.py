"""The baseline file: entries by model and target, byte-stable and mergeable.

Keys are sorted, numbers whole, and it holds no date, host or absolute path. The first and last lines of an entry never
change, so git merges changes to neighbouring entries without conflict.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import BASELINE
from spillprof.ir.side_files.opening import read_text
from spillprof.studies.gate.values import BufferRow, Entry, Figures, OperatorRow

BASELINE_SCHEMA = "spillprof-baseline/1"
_CONFLICT = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
MOST_FIGURE = 10**30
"""Larger than any count of bytes, nanoseconds or picojoules."""

TOP_ROWS = 50
"""Most operators, and most buffers, that an entry stores."""

_FIGURES = tuple(Figures.__dataclass_fields__)


def baseline_text(entries: Mapping[str, Entry]) -> str:
    """Text of the file: equal entries give equal bytes."""
    data = {"schema": BASELINE_SCHEMA, "entries": {key: _to_json(entry) for key, entry in entries.items()}}
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"


def parse_baseline(text: str, shown: str) -> dict[str, Entry]:
    """Entries by ``model@target``. ``UsageError`` if the text is no baseline; ``shown``: its name in errors."""
    hint = "take one side of it, then run 'spillprof gate --update'"
    if _CONFLICT.search(text):
        raise UsageError("the baseline has a merge conflict", where=(shown,), hint=hint)
    data = parse_json(text, BASELINE, shown, hint=hint)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != BASELINE_SCHEMA:
        raise UsageError(
            f"this is no baseline of schema {BASELINE_SCHEMA}",
            where=(f"{shown}: schema {schema!r}",),
            hint="make a new one with 'spillprof gate --update', in another file or after deleting this one",
        )
    try:
        return {str(key): _from_json(value) for key, value in data["entries"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            "the baseline cannot be understood",
            where=(f"{shown}: {type(error).__name__}: {error}",),
            hint=BASELINE.hint,
        ) from None


def read_baseline(path: Path) -> dict[str, Entry]:
    """Entries of the file; none if there is no file. ``UsageError`` for a dangling link."""
    if not os.path.lexists(path):
        return {}
    return parse_baseline(read_text(path, BASELINE), str(path))


def merged(
    before: Mapping[str, Entry], mine: Mapping[str, Entry], now: Mapping[str, Entry], *, shown: str
) -> dict[str, Entry]:
    """Three-way merge: changes from ``before`` to ``mine``, applied to ``now``, which others may have changed.

    ``UsageError`` if both changed an entry to different values.
    """
    was, own, other = ({key: _to_json(entry) for key, entry in each.items()} for each in (before, mine, now))
    changed = {key for key in {**was, **own} if was.get(key) != own.get(key)}
    for key in sorted(changed):
        if other.get(key) not in (was.get(key), own.get(key)):
            raise UsageError(
                f"'{key}' was changed in the baseline while it was measured",
                where=(shown,),
                hint="another 'gate --update' wrote other figures of it: run this one again",
            )
    kept = {key: entry for key, entry in now.items() if key not in changed}
    return {**kept, **{key: entry for key, entry in mine.items() if key in changed}}


def _to_json(entry: Entry) -> dict[str, Any]:
    operators = [row for row in entry.operators if row.spill_bytes or row.stall_ns][:TOP_ROWS]
    return {
        "config": dict(entry.config),
        "model_sha256": entry.model_sha256,
        "operators": [{**asdict(row), "victims": list(row.victims)} for row in operators],
        "buffers": [asdict(row) for row in entry.buffers[:TOP_ROWS]],
        "totals": asdict(entry.totals),
    }


def _from_json(value: Any) -> Entry:
    return Entry(
        config=_settings(value["config"]),
        model_sha256=str(value["model_sha256"]),
        totals=Figures(**{name: _whole(value["totals"][name]) for name in _FIGURES}),
        operators=tuple(
            OperatorRow(
                name=str(row["name"]),
                op_type=str(row["op_type"]),
                spill_bytes=_whole(row["spill_bytes"]),
                stall_ns=_whole(row["stall_ns"]),
                cause=_name_or_none(row["cause"]),
                victims=tuple(map(str, row["victims"])),
            )
            for row in value["operators"]
        ),
        buffers=tuple(
            BufferRow(
                name=str(row["name"]),
                size_bytes=_whole(row["size_bytes"]),
                spill_bytes=_whole(row["spill_bytes"]),
                needed_by=_name_or_none(row["needed_by"]),
            )
            for row in value["buffers"]
        ),
    )


def _settings(value: Any) -> dict[str, str | int | bool | None]:
    if not isinstance(value, dict) or not all(isinstance(v, str | int | float | None) for v in value.values()):
        raise ValueError(f"{value!r} is no configuration")
    return value


def _name_or_none(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{value!r} is no name")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_FIGURE:
        raise ValueError(f"{value!r} is no whole number from 0 up")
    return value
