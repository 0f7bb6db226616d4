"""Writes the registered target fields into docs/targets.md. ``python docs/make_targets.py``; a test checks it."""

import dataclasses
from pathlib import Path

from spillprof.ir.fingerprint import default_of, has_default
from spillprof.ir.target import ROWS, Target

PAGE = Path(__file__).with_name("targets.md")
HEAD = "| field | unit | meaning | if left out |\n| --- | --- | --- | --- |\n"


def render(page: str) -> str:
    """The page with the table of today's fields."""
    before, _, rest = page.partition(HEAD)
    after = rest[rest.index("\n\n") :]
    rows = [_row(column) for column in dataclasses.fields(Target) if column.name != "name"]
    return before + HEAD + "\n".join(rows) + after


def _row(column: "dataclasses.Field[object]") -> str:
    registered = ROWS[column.name]
    left_out = registered.left_out or (_shown(default_of(column)) if has_default(column) else "required")
    name = f"[{column.name}]" if column.name == "sources" else column.name
    cells = (f"`{name}`", registered.unit, registered.doc, left_out)
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text("utf-8")), "utf-8")
