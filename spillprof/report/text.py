"""Names from models are untrusted text: here they are made safe to show, and short enough."""


def printable(name: str) -> str:
    r"""``name`` with every character that could steer a terminal or hide itself written as an escape.

    Control characters, bidirectional overrides, zero-width and unassigned characters, line separators and lone
    surrogates become ``\x1b``, ``\u202e``, ...; spaces and everything with a glyph stay.
    """
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def shorten_middle(name: str, width: int) -> str:
    """``name`` in at most ``width`` characters, cut in the middle: ``/model.2…/conv``."""
    if len(name) <= width:
        return name
    tail = width // 2
    return f"{name[: width - tail - 1]}…{name[len(name) - tail :] if tail else ''}"


def label(name: str, width: int = 80) -> str:
    """What reports call an operator or buffer: printable, shortened, never empty."""
    return shorten_middle(printable(name), width) or "(unnamed)"


def count_of(count: int, singular: str, plural: str | None = None) -> str:
    """``1 buffer``, ``1,204 buffers``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
