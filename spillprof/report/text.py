"""Untrusted text made printable and short for terminals, spreadsheets and Markdown; display width and line breaks."""

import re
from unicodedata import category, east_asian_width

DEFAULT_WIDTH = 100
"""Width of a page that is not printed on a terminal."""

BARS = "▁▂▃▄▅▆▇█"
"""Heights of a line of bars. The command line replaces those that stdout cannot encode."""

GLUE = "\ufdd0"
"""Stands for a blank at which no line may break, until lines are broken. It is not printable, so no name has it."""

_BEFORE_A_UNIT = re.compile(
    r"(?<=\d) (?=(?:[KMGTPE]iB|[kMGT]?B(?:/s)?|[nµm]?s|[nµmp]?J|%)(?![A-Za-z]))|(?<=\bopset) (?=\d)"
)


def printable(name: str) -> str:
    r"""``name`` with every character that could steer a terminal or hide itself written as an escape.

    Control characters, bidirectional overrides, zero-width and unassigned characters, line separators and lone
    surrogates become ``\x1b``, ``\u202e``, ...; spaces and everything with a glyph stay.
    """
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def display_width(text: str) -> int:
    """Columns of a terminal that a printable text takes: 2 for a wide character, 0 for a combining mark."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


def glued(text: str) -> str:
    """``text``, of the same length, with GLUE for each blank between a number and its unit."""
    return _BEFORE_A_UNIT.sub(GLUE, text)


def wrapped(text: str, width: int, *, first: str = "", others: str = "") -> list[str]:
    """``text`` in lines of ``width`` columns, broken at no blank between a number and its unit.

    ``first`` and ``others`` are the indentation of the first line and of the others.
    """
    from textwrap import wrap

    lines = wrap(glued(text), width, initial_indent=first, subsequent_indent=others)
    return [line.replace(GLUE, " ") for line in lines]


def ljust(text: str, width: int) -> str:
    """``text`` padded on the right to ``width`` columns."""
    return text + " " * (width - display_width(text))


def rjust(text: str, width: int) -> str:
    """``text`` padded on the left to ``width`` columns."""
    return " " * (width - display_width(text)) + text


def shorten_middle(name: str, width: int) -> str:
    """``name`` in at most ``width`` columns and characters, cut in the middle: ``/model.2…/conv``."""
    if len(name) <= width and display_width(name) <= width:
        return name
    tail = width // 2
    return f"{_start_of(name, width - tail - 1)}…{_start_of(name[::-1], tail)[::-1]}"


def label(name: str, width: int = 80) -> str:
    """Names an operator or buffer in reports: printable, shortened, never empty."""
    return shorten_middle(printable(name), width) or "(unnamed)"


def spreadsheet_safe(cell: str) -> str:
    """A cell of CSV that no spreadsheet runs as a formula: what would start one begins with an apostrophe."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def count_of(count: int, singular: str, plural: str | None = None) -> str:
    """``1 buffer``, ``1,204 buffers``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def _start_of(name: str, width: int) -> str:
    """The longest prefix of at most ``width`` columns."""
    start = name[:width]
    while display_width(start) > width:
        start = start[:-1]
    return start


def _width_of(character: str) -> int:
    return 0 if category(character) in ("Mn", "Me") else 2 if east_asian_width(character) in "WF" else 1


def code(name: str, limit: int = 60) -> str:
    """``name`` as inline code that is safe within a table cell, whatever it contains."""
    shown = label(name, limit)
    if not any(c in shown for c in "`|\\"):
        return f"`{shown}`"
    return f"<code>{''.join(c if c.isalnum() else f'&#{ord(c)};' for c in shown)}</code>"


def plain(sentence: str, *kept: str) -> str:
    """Text in which nothing is markup, and no character hides; but each of ``kept`` stays as it is."""
    for mark in kept:
        if mark in sentence:
            return mark.join(plain(part) for part in sentence.split(mark))
    return "".join(f"&#{ord(c)};" if c in "\\`*_[]<>&|#~@" else c for c in printable(sentence))
