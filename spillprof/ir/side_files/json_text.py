"""JSON within limits: depth, digits and the number of values are checked before parsing."""

import re
from collections.abc import Iterator
from typing import Any

from spillprof.ir.errors import SpillprofError
from spillprof.ir.side_files.kinds import MOST_DEPTH, MOST_DIGITS, FileKind

_CHUNK = 1 << 20
_LONG, _LARGE = rf"\d{{{MOST_DIGITS + 1},}}", r"\d[eE]\+?0*[1-9]\d\d"
_escapes = re.compile(r"\\.", re.DOTALL)
_numbers = re.compile(f"{_LONG}|{_LARGE}".encode())
_tokens = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'  # a string, terminated or not: broken text is scanned once
    rf"|(?P<long>{_LONG})|(?P<large>{_LARGE})"
    r"|(?P<constant>-?Infinity|NaN)|(?P<open>[\[{])|(?P<close>[\]}])",
    re.DOTALL,
)
_as_square = bytes.maketrans(b"{}", b"[]")
_no_brackets = bytes(set(range(256)) - set(b"[]{}"))
_digits_alike = bytes.maketrans(b"123456789E", b"000000000e")


def parse_json(text: str, kind: FileKind, shown: str, *, hint: str | None = None) -> Any:
    """The parsed value. An error of the kind if the text is not JSON, or exceeds a limit.

    NaN, infinity and numbers that overflow to infinity, which Python accepts, are refused.
    """
    _check_limits(text, kind, shown)
    import json

    try:
        return json.loads(text, parse_constant=_refuse)
    except _Constant as constant:
        place = _place(text, _first(text, "constant"))
        raise kind.error(
            f"{kind.what} has a number that is not finite", where=(f"{shown}: {constant}, {place}",), hint=kind.hint
        ) from None
    except (ValueError, RecursionError) as error:
        raise kind.error(f"{kind.what} is no JSON", where=(f"{shown}: {error}",), hint=hint or kind.hint) from None


class _Constant(Exception):
    """NaN or an infinity."""


def _refuse(name: str) -> Any:
    raise _Constant(name)


def _check_limits(text: str, kind: FileKind, shown: str) -> None:
    brackets = text.count("[") + text.count("{")
    if brackets + text.count(",") > kind.most_values:
        raise kind.error(f"{kind.what} has more than {kind.most_values:,} values", where=(shown,), hint=kind.hint)
    depth, has_numbers = _surveyed(text)
    if depth > MOST_DEPTH:
        raise _beyond(f"is nested more than {MOST_DEPTH} deep", text, _too_deep(text), kind, shown)
    if has_numbers:
        at = _first(text, "long")
        if at is not None:
            raise _beyond(f"has a number of more than {MOST_DIGITS} digits", text, at, kind, shown)
        raise _beyond("has a number beyond 1e99", text, _first(text, "large"), kind, shown)


def _beyond(what: str, text: str, at: int | None, kind: FileKind, shown: str) -> SpillprofError:
    return kind.error(f"{kind.what} {what}", where=(f"{shown}: {_place(text, at)}",), hint=kind.hint)


def _surveyed(text: str) -> tuple[int, bool]:
    """(nesting depth, exact up to the limit; whether a number is too long or large).

    Contents of strings do not count. Scanning is faster than parsing, also for hundreds of megabytes.
    """
    pieces = []
    has_numbers = False
    end = b""  # of the previous chunk: a number may span the cut
    for outside in _outside_of_strings(text):
        pieces.append(outside.translate(_as_square, _no_brackets))
        joined = end + outside
        alike = joined.translate(_digits_alike)
        if b"0" * (MOST_DIGITS + 1) in alike or b"e000" in alike or b"e+000" in alike:
            has_numbers = has_numbers or _numbers.search(joined) is not None
        end = outside[-2 * MOST_DIGITS :]
    left = b"".join(pieces)
    depth = 0
    while depth <= MOST_DEPTH:  # each round removes the innermost pairs
        fewer = left.replace(b"[]", b"")
        if len(fewer) == len(left):
            break
        left, depth = fewer, depth + 1
    return depth + left.count(b"["), has_numbers


def _outside_of_strings(text: str) -> Iterator[bytes]:
    """The text chunk by chunk, without its strings."""
    at, is_inside = 0, False
    while at < len(text):
        end = min(at + _CHUNK, len(text))
        while end < len(text) and text[end - 1] == "\\":  # keeps an escape in one chunk
            end += 1
        chunk = text[at:end]
        if "\\" in chunk:
            chunk = _escapes.sub("", chunk)
        parts = chunk.split('"')
        yield '"'.join(parts[is_inside::2]).encode("ascii", "replace")
        is_inside ^= len(parts) % 2 == 0
        at = end


def _too_deep(text: str) -> int | None:
    depth = 0
    for match in _tokens.finditer(text):
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if depth > MOST_DEPTH:
            return match.start()
    return None


def _first(text: str, group: str) -> int | None:
    """Place of the first such token."""
    return next(_starts(text, group), None)


def _starts(text: str, group: str) -> Iterator[int]:
    return (match.start() for match in _tokens.finditer(text) if match.lastgroup == group)


def _place(text: str, at: int | None) -> str:
    if at is None:
        return "somewhere in it"
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"
