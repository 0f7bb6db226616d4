"""What every HTML page shares: templates, assets, the content security policy, Markdown documents, and tables.

A page runs and styles with what it carries, by hash, and loads nothing. What the policy does not name does not run,
even if a name from a model got into the page as markup. The first rows of a table are HTML, all rows are JSON that
the page sorts and filters.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from spillprof.ir.units import format_rate, format_size, format_size_exact, format_time
from spillprof.report.scales import MISSING, Scale, energy_scale, part_percent, size_scale, time_scale
from spillprof.report.text import count_of, label

_ALONE = "base-uri 'none'; form-action 'none'"
BOLD = "font-weight:bold"
"""The style attribute that plotly writes for ``<b>`` in a label; pages need no other."""


def policy(scripts: Sequence[str], styles: Sequence[str], attributes: Sequence[str] = ()) -> Markup:
    """Returns the policy of a page with exactly these scripts, style sheets and style attributes.

    There is no 'unsafe-inline', so that no other attribute holds style: ``share_classes`` do. What scripts set
    on ``element.style`` is not inline for a browser, nor are the rules that plotly inserts into a sheet of its own. It
    begins empty, which needs the hash of nothing.
    """
    script = f"script-src {_hashes(scripts)}" if scripts else "script-src 'none'"
    style = f"style-src {_hashes(styles)}"
    if attributes:
        style += f"; style-src-attr 'unsafe-hashes' {_hashes(attributes)}"
    images = "img-src data: blob:" if scripts else "img-src data:"  # blob: what a chart is saved from
    return Markup(f"default-src 'none'; {script}; {style}; {images}; {_ALONE}")


def share_classes(percent: float) -> str:
    """Returns classes that set the custom properties ``--whole`` and ``--tenth``, whose sum is the percentage."""
    tenths = round(10 * min(max(percent, 0.0), 100.0))
    return f"w{tenths // 10} t{tenths % 10}"


def share_rules() -> Markup:
    """Returns the CSS rules of ``share_classes``: one for each whole percentage and each tenth."""
    wholes = [f".w{whole} {{ --whole: {whole}; }}" for whole in range(101)]
    tenths = [f".t{tenth} {{ --tenth: 0.{tenth}; }}" for tenth in range(10)]
    return Markup("\n".join([*wholes, *tenths, ""]))


def environment() -> Environment:
    """Returns the jinja2 environment: autoescaping on, undefined names are errors, filters for units."""
    made = Environment(
        loader=FileSystemLoader(templates_dir()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        size=format_size,
        size_exact=format_size_exact,
        time=format_time,
        rate=format_rate,
        share=part_percent,
        share_classes=share_classes,
        name=label,
    )
    made.globals.update(count_of=count_of, html_rows=HTML_ROWS, policy=policy, bold=BOLD, theme=asset("theme.js"))
    return made


def templates_dir() -> Path:
    """Returns the folder of templates: inside the installed package, or in the checkout."""
    packaged = Path(__file__).parents[1] / "templates"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "templates"


def method_html() -> Markup:
    """Renders the glossary and cost model (docs/model.md); empty if the file is missing."""
    candidates = (templates_dir() / "model.md", Path(__file__).parents[2] / "docs" / "model.md")
    path = next((path for path in candidates if path.is_file()), None)
    return Markup(to_html(path.read_text("utf-8"), top_level=3)) if path else Markup()


def script_json(value: Any) -> Markup:
    """JSON that is safe between ``<script>`` tags: no ``<``, ``>``, ``&``, and ASCII only."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=lambda array: array.tolist())
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def stylesheet() -> Markup:
    """Returns the style sheet that all pages share."""
    return asset("report.css") + share_rules()


def library(name: str) -> Markup:
    """Returns a vendored JavaScript library, safe between script tags. plotly.js is its cartesian part."""
    return Markup(asset(f"vendor/{name}").replace("</script", "<\\/script"))


def scripts(*names: str) -> Markup:
    """Concatenates the page's own scripts."""
    return Markup("\n").join(asset(name) for name in names)


def asset(name: str) -> Markup:
    """Reads a file among the templates, unescaped."""
    return Markup((templates_dir() / name).read_text("utf-8"))


def to_html(text: str, *, top_level: int) -> str:
    """Renders a Markdown document as HTML; its ``#`` becomes ``<h{top_level}>``.

    HTML in it is text. Links and images are reduced to their words: the page loads nothing.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    for name in ("link_open", "link_close", "image"):
        parser.add_render_rule(name, _words_of_link)
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + top_level - 1, 6)}"
        if token.type in ("th_open", "td_open"):  # alignment would be a style attribute, which the policy forbids
            token.attrs = {"scope": "col"} if token.type == "th_open" else {}
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html


def _words_of_link(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    if token.type == "image":
        return escape(token.content)
    return "<span>" if token.type == "link_open" else "</span>"


def _hashes(texts: Sequence[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'" for text in texts)


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
    columns: str,
    items: Sequence[Any],
    row: Callable[[Any], tuple[Any, ...]],
    *,
    limit: int = MAX_ROWS,
    total: int | None = None,
) -> DataTable:
    """Makes a table of one row an item, at most ``limit``, with one unit in each column of sizes or times.

    ``columns`` are titles with their kinds, ``step:count, operator, written:size``; a column without one is text.
    """
    rows = tuple(row(item) for item in items[:limit])
    scales = {Cell.SIZE: size_scale, Cell.TIME: time_scale, Cell.ENERGY: energy_scale}
    described = tuple(
        HtmlColumn(title=title, kind=kind, scale=scales[kind]([r[i] for r in rows]) if kind in scales else None)
        for i, (title, _, word) in enumerate(column.partition(":") for column in columns.split(", ") if column)
        for kind in [Cell(word or "text")]
    )
    return DataTable(caption=caption, columns=described, rows=rows, total=len(items) if total is None else total)
