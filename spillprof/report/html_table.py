"""Tables of HTML pages: the first rows are HTML, all rows are JSON that the page sorts and filters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spillprof.report.scales import MISSING, Scale, energy_scale, size_scale, time_scale

HTML_ROWS = 100
"""Rows written as HTML: visible without JavaScript and in print."""
MAX_ROWS = 500
"""Maximum rows of an interactive table; the page says what is left out, and JSON and CSV have it."""
BRIEF_ROWS = 20
"""Rows of the table view of a figure."""


class Cell(StrEnum):
    """Type of a column: decides how values are written and sorted."""

    TEXT = "text"
    COUNT = "count"
    SIZE = "size"  # bytes
    TIME = "time"  # seconds
    ENERGY = "energy"  # joules


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlColumn:
    """A column; ``scale`` is that of sizes, times and energies."""

    title: str
    kind: Cell
    scale: Scale | None

    @property
    def is_name(self) -> bool:
        """Whether the cells are names of operators or buffers, which get a wider column."""
        return self.title in ("operator", "buffer")

    def text(self, value: Any) -> str:
        """Formats a cell."""
        if value is None:
            return MISSING
        if self.scale is not None:
            return self.scale.text(value)
        return f"{value:,}" if self.kind is Cell.COUNT else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """Rows of raw values: names made printable, sizes in bytes, times in seconds, energies in joules."""

    caption: str
    columns: tuple[HtmlColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int  # rows before the cut

    def to_json(self) -> dict[str, Any]:
        """Returns columns and all rows for the page's script."""
        columns = [
            {"title": c.title, "kind": str(c.kind), "name": c.is_name}
            | ({"unit": c.scale.unit, "factor": c.scale.factor, "decimals": c.scale.decimals} if c.scale else {})
            for c in self.columns
        ]
        return {"columns": columns, "rows": self.rows}


def make_table(
    caption: str,
    columns: Sequence[tuple[str, Cell]],
    items: Sequence[Any],
    row: Callable[[Any], tuple[Any, ...]],
    *,
    limit: int = MAX_ROWS,
    total: int | None = None,
) -> DataTable:
    """Makes a table of one row an item, at most ``limit``, with one unit in each column of sizes or times."""
    rows = tuple(row(item) for item in items[:limit])
    scales = {Cell.SIZE: size_scale, Cell.TIME: time_scale, Cell.ENERGY: energy_scale}
    described = tuple(
        HtmlColumn(title=title, kind=kind, scale=scales[kind]([r[i] for r in rows]) if kind in scales else None)
        for i, (title, kind) in enumerate(columns)
    )
    return DataTable(caption=caption, columns=described, rows=rows, total=len(items) if total is None else total)
