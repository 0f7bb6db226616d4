"""JSON within limits: depth, digits and the number of values are counted before the parser makes anything of them."""

import re
from collections.abc import Iterator
from typing import Any

from spillprof.errors import SpillprofError
from spillprof.side_files.kinds import MOST_DEPTH, MOST_DIGITS, Kind

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'  # without its end, so that what is broken is passed over once
_strings = re.compile(_STRING, re.DOTALL)
_no_brackets = re.compile(r"[^\[\]{}]+")
_number = rf"(?P<long>\d{{{MOST_DIGITS + 1},}})|(?P<large>\d[eE]\+?0*[1-9]\d\d)"
_suspect = re.compile(rf"\d{{{MOST_DIGITS + 1}}}|(?<=[\[:,\s-])[\d.]++[eE]\+?\d{{3}}")
_tokens = re.compile(rf"{_STRING}|{_number}|(?P<constant>-?Infinity|NaN)|(?P<open>[\[{{])|(?P<close>[\]}}])", re.DOTALL)


def parse_json(text: str, kind: Kind, shown: str, *, hint: str | None = None) -> Any:
    """The value that the text stands for. An error of the kind if it is no JSON, or goes beyond a limit.

    NaN and infinity, which Python takes, are no JSON, and nor is a number that only an infinity could stand for.
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


def _check_limits(text: str, kind: Kind, shown: str) -> None:
    brackets = text.count("[") + text.count("{")
    if brackets + text.count(",") > kind.most_values:
        raise kind.error(f"{kind.what} has more than {kind.most_values:,} values", where=(shown,), hint=kind.hint)
    if brackets > MOST_DEPTH and _depth(text) > MOST_DEPTH:
        raise _beyond(f"is nested more than {MOST_DEPTH} deep", text, _too_deep(text), kind, shown)
    if not _suspect.search(text):
        return
    for group, what in (("long", f"of more than {MOST_DIGITS} digits"), ("large", "beyond 1e99")):
        at = _first(text, group)  # strings may hold any number
        if at is not None:
            raise _beyond(f"has a number {what}", text, at, kind, shown)


def _beyond(what: str, text: str, at: int | None, kind: Kind, shown: str) -> SpillprofError:
    return kind.error(f"{kind.what} {what}", where=(f"{shown}: {_place(text, at)}",), hint=kind.hint)


def _depth(text: str) -> int:
    """How deep brackets lie in each other, or more than the limit; brackets in strings do not count."""
    left = _no_brackets.sub("", _strings.sub("", text)).replace("{", "[").replace("}", "]")
    depth = 0
    while depth <= MOST_DEPTH:  # each round takes the innermost pairs away
        fewer = left.replace("[]", "")
        if len(fewer) == len(left):
            break
        left, depth = fewer, depth + 1
    return depth + left.count("[")


def _too_deep(text: str) -> int | None:
    depth = 0
    for match in _tokens.finditer(text):
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if depth > MOST_DEPTH:
            return match.start()
    return None


def _first(text: str, group: str) -> int | None:
    """Where the first token of that kind stands."""
    return next(_starts(text, group), None)


def _starts(text: str, group: str) -> Iterator[int]:
    return (match.start() for match in _tokens.finditer(text) if match.lastgroup == group)


def _place(text: str, at: int | None) -> str:
    if at is None:
        return "somewhere in it"
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"
