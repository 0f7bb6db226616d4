"""What a target file may say: field by field, how a value is read and checked.

Sizes, rates, times and frequencies may be texts with units.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.units import LARGEST_FIGURE, LARGEST_SIZE, parse_frequency, parse_rate, parse_size, parse_time


def field_names() -> tuple[str, ...]:
    """What a target file may say."""
    return tuple(_READERS)


def read_fields(table: Mapping[str, object], *, name: str) -> dict[str, Any]:
    """Fields of a Target from TOML values, strings with units included. ``UsageError`` if one is unknown or wrong."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READERS:
            full = {short_name(each): each for each in field_names()}
            near = nearest(key, _READERS) or [full[each] for each in nearest(key.replace("_", "-"), full)]
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(_READERS)}"
            raise UsageError(f"target '{name}' has an unknown key '{key}'", hint=hint)
        try:
            values[key] = _READERS[key](value)
        except UsageError as error:
            raise UsageError(f"target '{name}': {key}: {error.message}", hint=error.hint) from None
    return values


UNITS = ("_bytes_per_s", "_bytes", "_s", "_j_per_byte", "_j")
"""How names of fields end: with their unit."""


def short_name(field: str) -> str:
    """A target field as options name it: with - for _, and without its unit where it is the one that is meant."""
    unit = next((unit for unit in UNITS if field.endswith(unit)), "")
    plain = field.removesuffix(unit)
    meant = next(plain + each for each in ("", *UNITS) if plain + each in _READERS)
    return (plain if meant == field and field != "sram_bytes_per_s" else field).replace("_", "-")


def _whole(value: object, *, minimum: int = 0) -> int:
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= LARGEST_SIZE:
        raise UsageError(f"{value!r} is not a whole number from {minimum} up", hint="write it like 64 or '32MB'")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UsageError(f"{value!r} is not a number from 0 up", hint="write it like 1.6e-12")
    if value and not 1 / LARGEST_FIGURE <= value <= LARGEST_FIGURE:
        raise UsageError(f"{value!r} is beyond what any machine has", hint="figures lie between 1e-30 and 1e30")
    return float(value)


def _positive(value: object) -> float:
    number = _number(value)
    if number == 0:
        raise UsageError("0 is not a positive number", hint="write it like 8e12")
    return number


def _rate(value: object) -> float:
    return parse_rate(value) if isinstance(value, str) else _positive(value)


def _time(value: object) -> float:
    return parse_time(value) if isinstance(value, str) else _number(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{value!r} is not a switch", hint="write true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{value!r} is not a text", hint="write it in quotes")
    return value


def _rate_or_nothing(value: object) -> float:
    return parse_rate(value) if isinstance(value, str) else _number(value)


def _frequency(value: object) -> float:
    return parse_frequency(value) if isinstance(value, str) else _positive(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise UsageError(f"{value!r} is not a whole number from 0 to {_MOST}", hint="write it like 2")
    return value


def _count_from_1(value: object) -> int:
    if _count(value) == 0:
        raise UsageError("0 is too few", hint="write it like 2")
    return _count(value)


def _table(value: object, read: Callable[[object], float], hint: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} is not a table", hint=hint)
    return {str(key): read(each) for key, each in value.items()}


def _rates_by_dtype(value: object) -> dict[str, float]:
    hint = "write a table with default = 8e12"
    rates = _table(value, _positive, hint)
    if "default" not in rates:
        raise UsageError("no 'default' rate is given", hint=hint)
    return rates


def _factors(value: object) -> dict[str, float]:
    factors = _table(value, _positive, "write a table with im2col = 1.2")
    unknown = next((name for name in factors if name not in CONV_ALGORITHMS), None)
    if unknown is not None:
        raise UsageError(f"there is no algorithm '{unknown}'", hint=f"there are {', '.join(CONV_ALGORITHMS)}")
    return factors


def _curve(value: object) -> tuple[tuple[int, float], ...]:
    """Points (bytes, seconds): more bytes take no less time, and nothing takes less than none."""
    hint = "write points of bytes and seconds, like [['64KB', '3us'], ['1MB', '20us']]"
    if not isinstance(value, list) or not all(isinstance(point, list) and len(point) == 2 for point in value):
        raise UsageError(f"{value!r} is not a list of points", hint=hint)
    points = tuple((_whole(nbytes), _time(seconds)) for nbytes, seconds in value)
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


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} is not a table", hint="write a table [sources] of texts")
    return {str(key): _text(text) for key, text in value.items()}


def _or_none(read: Callable[[object], Any], value: object) -> Any:
    """A field that may be without a value; ``"none"`` takes back what a target inherits."""
    return None if value == "none" else read(value)


CONV_ALGORITHMS = ("direct", "im2col", "winograd")
_MOST = 1_000_000  # of channels, transfers in flight, cores
_one_or_more = partial(_whole, minimum=1)
_READERS: dict[str, Callable[[object], object]] = {
    "name": _text,
    "sram_bytes": _one_or_more,
    "reserved_bytes": _whole,
    "alignment_bytes": _one_or_more,
    "channel_align": _one_or_more,
    "dram_read_bytes_per_s": _rate,
    "dram_write_bytes_per_s": _rate,
    "dram_read_setup_s": _time,
    "dram_write_setup_s": _time,
    "dram_burst_bytes": _one_or_more,
    "dram_read_curve": _curve,
    "dram_write_curve": _curve,
    "dram_bus_bytes_per_s": partial(_or_none, _rate),
    "background_bytes_per_s": _rate_or_nothing,
    "dram_outstanding": partial(_or_none, _count_from_1),
    "dma_read_channels": _count_from_1,
    "dma_write_channels": _count_from_1,
    "dma_shared_channels": _count,
    "sram_bytes_per_s": _rate,
    "cores": _count_from_1,
    "clock_hz": partial(_or_none, _frequency),
    "macs_per_s": _rates_by_dtype,
    "macs_per_cycle": _rates_by_dtype,
    "utilisation": _positive,
    "conv_time_factors": _factors,
    "launch_overhead_s": _time,
    "weight_staging_bytes": partial(_or_none, _whole),
    "stream_staging_bytes": partial(_or_none, _whole),
    "shared_workspace": _flag,
    "accumulator_bytes_per_output": _whole,
    "strided_views": _flag,
    "sram_j_per_byte": _number,
    "dram_read_j_per_byte": _number,
    "dram_write_j_per_byte": _number,
    "mac_j": _number,
    "mac_j_by_dtype": partial(_table, read=_number, hint="write a table with int8 = 2e-13"),
    "sources": _texts,
}
"""What a target file may say, field by field."""
