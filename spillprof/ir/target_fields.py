"""Rows of the target registry: how a field of a target is read and checked, and what the documentation says of it.

Sizes, rates, times and frequencies may be texts with units.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.units import LARGEST_FIGURE, LARGEST_SIZE, parse_frequency, parse_rate, parse_size, parse_time

CONV_ALGORITHMS = ("direct", "im2col", "winograd")

PRODUCT_KINDS = ("conv", "few_channels", "pointwise", "depthwise", "grouped", "matmul", "fully_connected")
"""Kinds of products that machines run at different shares of their peak. Others are of kind ``default``."""

DEFAULT_KIND = "default"
"""The row of a table by kind that stands for kinds without a row, and the kind of products that are none of them."""
_MOST = 1_000_000  # of channels, transfers in flight, cores


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """What is registered of one target field, besides its name, type and default."""

    read: Callable[[object], Any]  # value of a TOML file or an option; ``UsageError`` if malformed or out of bounds
    unit: str  # "" for a number without a unit
    doc: str  # one line of docs/targets.md
    left_out: str = ""  # what an absent field means; "": its default says it
    replaces: str = ""  # the field that says the same in another way: setting this one on top of a target clears it
    not_set: str = ""  # why ``--set`` and ``--vary`` refuse it; "": they take it
    short: str = ""  # what configurations call it besides its name with and without unit
    has_default_row: bool = False  # a table with a row `default`; a single number is that row
    in_profile: bool = True  # False: a Profile holds what follows from it instead


def row(read: Callable[[object], Any], unit: str, doc: str, **more: Any) -> Mapping[str, FieldRow]:
    """Metadata that registers a dataclass field as a target field; ``more``: other fields of ``FieldRow``."""
    return {"row": FieldRow(read=read, unit=unit, doc=doc, **more)}


def read_whole(value: object, *, minimum: int = 0) -> int:
    """A whole number of at least ``minimum``, or a size with a unit."""
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= LARGEST_SIZE:
        raise UsageError(f"{value!r} is not a whole number from {minimum} up", hint="write it like 64 or '32MB'")
    return value


def read_number(value: object) -> float:
    """A finite number from 0 up."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UsageError(f"{value!r} is not a number from 0 up", hint="write it like 1.6e-12")
    if value and not 1 / LARGEST_FIGURE <= value <= LARGEST_FIGURE:
        raise UsageError(f"{value!r} is beyond what any machine has", hint="figures lie between 1e-30 and 1e30")
    return float(value)


def read_positive(value: object) -> float:
    """A finite number above 0."""
    number = read_number(value)
    if number == 0:
        raise UsageError("0 is not a positive number", hint="write it like 8e12")
    return number


def read_rate(value: object) -> float:
    """Bytes per second above 0, or a text like ``60GB/s``."""
    return parse_rate(value) if isinstance(value, str) else read_positive(value)


def read_duration(value: object) -> float:
    """Seconds from 0 up, or a text like ``1.3us``."""
    return parse_time(value) if isinstance(value, str) else read_number(value)


def read_switch(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(f"{value!r} is not a switch", hint="write true or false")
    return value


def read_name(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise UsageError(f"{value!r} is not a text", hint="write it in quotes")
    return value


def read_rate_from_0(value: object) -> float:
    """As ``read_rate``; 0 too."""
    return parse_rate(value) if isinstance(value, str) else read_number(value)


def read_frequency(value: object) -> float:
    """Hertz above 0, or a text like ``1.3GHz``."""
    return parse_frequency(value) if isinstance(value, str) else read_positive(value)


def read_count(value: object) -> int:
    """A whole number from 0 to a million."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise UsageError(f"{value!r} is not a whole number from 0 to {_MOST}", hint="write it like 2")
    return value


def read_count_from_1(value: object) -> int:
    """A whole number from 1 to a million."""
    if read_count(value) == 0:
        raise UsageError("0 is too few", hint="write it like 2")
    return read_count(value)


def _table(value: object, read: Callable[[object], float], hint: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} is not a table", hint=hint)
    return {str(key): read(each) for key, each in value.items()}


def read_rates_by_dtype(value: object) -> dict[str, float]:
    """Positive rates by element type, one of them for ``default``."""
    hint = "write a table with default = 8e12"
    rates = _table(value, read_positive, hint)
    if "default" not in rates:
        raise UsageError("no 'default' rate is given", hint=hint)
    return rates


def read_shares_by_kind(value: object) -> dict[str, float]:
    """Positive shares of the peak by kind of product, one of them for ``default``; a single number is that one."""
    if not isinstance(value, dict):
        return {DEFAULT_KIND: read_positive(value)}
    hint = "write a table like { default = 0.5, depthwise = 0.05 }"
    shares = _table(value, read_positive, hint)
    if DEFAULT_KIND not in shares:
        raise UsageError("no 'default' share is given", hint=hint)
    unknown = next((kind for kind in shares if kind not in (DEFAULT_KIND, *PRODUCT_KINDS)), None)
    if unknown is not None:
        raise UsageError(f"there is no kind '{unknown}'", hint=f"there are {', '.join((DEFAULT_KIND, *PRODUCT_KINDS))}")
    return shares


def read_conv_factors(value: object) -> dict[str, float]:
    """Positive factors by convolution algorithm."""
    factors = _table(value, read_positive, "write a table with im2col = 1.2")
    unknown = next((name for name in factors if name not in CONV_ALGORITHMS), None)
    if unknown is not None:
        raise UsageError(f"there is no algorithm '{unknown}'", hint=f"there are {', '.join(CONV_ALGORITHMS)}")
    return factors


def read_curve(value: object) -> tuple[tuple[int, float], ...]:
    """Points (bytes, seconds) of a transfer time that never falls and never is negative."""
    hint = "write points of bytes and seconds, like [['64KB', '3us'], ['1MB', '20us']]"
    if not isinstance(value, list) or not all(isinstance(point, list) and len(point) == 2 for point in value):
        raise UsageError(f"{value!r} is not a list of points", hint=hint)
    points = tuple((read_whole(nbytes), read_duration(seconds)) for nbytes, seconds in value)
    if len(points) == 1:
        raise UsageError("one point makes no curve", hint=hint)
    for (bytes_0, seconds_0), (bytes_1, seconds_1) in pairwise(points):
        if bytes_1 <= bytes_0 or seconds_1 < seconds_0:
            raise UsageError(
                f"the points do not rise: {seconds_0:g} s for {bytes_0} bytes, then {seconds_1:g} s for {bytes_1}",
                hint="sort them; more bytes cannot take less time",
            )
    if points:
        (bytes_0, seconds_0), (bytes_1, seconds_1) = points[:2]
        if seconds_0 * (bytes_1 - bytes_0) < (seconds_1 - seconds_0) * bytes_0:
            raise UsageError("the first piece goes below no time for no bytes", hint="add a point [0, '1us'] in front")
        if points[-1][1] <= points[-2][1]:
            raise UsageError("the last piece does not rise", hint="larger transfers would take no longer at all")
    return points


def read_sources(value: object) -> dict[str, str]:
    """Texts by field."""
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} is not a table", hint="write a table [sources] of texts")
    return {str(key): read_name(text) for key, text in value.items()}


def read_energies_by_dtype(value: object) -> dict[str, float]:
    """Joules by element type."""
    return _table(value, read_number, "write a table with int8 = 2e-13")


def or_nothing(read: Callable[[object], Any]) -> Callable[[object], Any]:
    """Reads ``"none"`` too, which takes back what a target inherits."""
    return lambda value: None if value == "none" else read(value)


read_size = partial(read_whole, minimum=1)
