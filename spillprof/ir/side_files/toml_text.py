"""TOML within limits: the parser recurses into brackets, and its memory grows with the square of the dots in a key."""

import re
from typing import Any

from spillprof.ir.errors import SpillprofError
from spillprof.ir.side_files.kinds import MOST_DEPTH, MOST_DIGITS, MOST_DOTS, FileKind

_MOST_DOTS_IN_ALL = 100_000
_opaque = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
"""Strings and comments, terminated or not: broken text is scanned once."""

_brackets = re.compile(r"[\[\]{}]")
_long_key = re.compile(rf"(?<![\w.-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MOST_DOTS + 1}}}", re.ASCII)
_long_number = re.compile(rf"(?<![\w.-])[+-]?(?:\d\w{{{MOST_DIGITS}}}|[\d_]*\.[\d_]{{{MOST_DIGITS + 1}}})", re.ASCII)


def parse_toml(text: str, kind: FileKind, shown: str) -> dict[str, Any]:
    """The parsed document. An error of the kind if it is not valid TOML, or exceeds a limit."""
    bare = _opaque.sub(_blank, text)
    _check_depth(bare, kind, shown)
    for pattern, what in (
        (_long_key, f"has a key of more than {MOST_DOTS} dots"),
        (_long_number, f"has a number of more than {MOST_DIGITS} digits"),
    ):
        found = pattern.search(bare)
        if found:
            raise _beyond(what, bare, found.start(), kind, shown)
    if bare.count(".") > _MOST_DOTS_IN_ALL:
        raise kind.error(f"{kind.what} has more than {_MOST_DOTS_IN_ALL:,} dots", where=(shown,), hint=kind.hint)
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError, OverflowError) as error:
        raise kind.error(f"{kind.what} is not valid TOML", where=(f"{shown}: {error}",), hint=kind.hint) from None


def _blank(match: "re.Match[str]") -> str:
    """Same length and lines: a comment as spaces, a string as a word, since it may be part of a key."""
    return re.sub(r"[^\n]", " " if match[0][0] == "#" else "q", match[0])


def _check_depth(bare: str, kind: FileKind, shown: str) -> None:
    depth = 0
    for match in _brackets.finditer(bare):
        depth = depth + 1 if match[0] in "[{" else max(0, depth - 1)
        if depth > MOST_DEPTH:
            raise _beyond(f"is nested more than {MOST_DEPTH} deep", bare, match.start(), kind, shown)


def _beyond(what: str, text: str, at: int, kind: FileKind, shown: str) -> SpillprofError:
    place = f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"
    return kind.error(f"{kind.what} {what}", where=(f"{shown}: {place}",), hint=kind.hint or "is it the right file?")
