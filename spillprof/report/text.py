"""Names from models are untrusted text: here they are made safe to show, and short enough."""

from unicodedata import category, east_asian_width

BARS = "▁▂▃▄▅▆▇█"
"""Heights of a line of bars. Where they cannot be encoded, the command line writes others."""


def printable(name: str) -> str:
    r"""``name`` with every character that could steer a terminal or hide itself written as an escape.

    Control characters, bidirectional overrides, zero-width and unassigned characters, line separators and lone
    surrogates become ``\x1b``, ``\u202e``, ...; spaces and everything with a glyph stay.
    """
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def cells(text: str) -> int:
    """Columns of a terminal that a printable text takes: wide characters two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def ljust(text: str, width: int) -> str:
    """``text`` with blanks behind it, ``width`` columns in all."""
    return text + " " * (width - cells(text))


def rjust(text: str, width: int) -> str:
    """``text`` with blanks before it, ``width`` columns in all."""
    return " " * (width - cells(text)) + text


def shorten_middle(name: str, width: int) -> str:
    """``name`` in at most ``width`` columns and characters, cut in the middle: ``/model.2…/conv``."""
    if len(name) <= width and cells(name) <= width:
        return name
    tail = width // 2
    return f"{_start_of(name, width - tail - 1)}…{_start_of(name[::-1], tail)[::-1]}"


def label(name: str, width: int = 80) -> str:
    """What reports call an operator or buffer: printable, shortened, never empty."""
    return shorten_middle(printable(name), width) or "(unnamed)"


def count_of(count: int, singular: str, plural: str | None = None) -> str:
    """``1 buffer``, ``1,204 buffers``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def _start_of(name: str, width: int) -> str:
    """As much of the start as fits."""
    start = name[:width]
    while cells(start) > width:
        start = start[:-1]
    return start


def _cells_of(character: str) -> int:
    return 0 if category(character) in ("Mn", "Me") else 2 if east_asian_width(character) in "WF" else 1
