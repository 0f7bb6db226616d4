"""Sizes, rates, times and energies: parsed from text and formatted as text.

Sizes are binary: ``32MB``, ``32M`` and ``32MiB`` all mean 33,554,432 bytes. Rates are decimal: ``60GB/s`` is
6e10 bytes per second.
"""

import re
from fractions import Fraction

from spillprof.ir.errors import UsageError

_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*(?:([kmgt])(?:i?b)?|b)?", re.IGNORECASE | re.ASCII)
_RATE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([kmgt]?)(i?)b/s", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*(s|ms|us|µs|μs|ns)", re.ASCII)  # micro sign and Greek mu
_ENERGY = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([munµμp]?)J", re.ASCII)
_FREQUENCY = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([kmgt]?)hz", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*%", re.ASCII)
_SIZE_HINT = "write it like 32MB, 1.5MiB or 4096 (bytes)"
LARGEST_FIGURE = 1e30  # of a rate, time or energy: sums and products of a few stay finite
LARGEST_SIZE = 2**60  # bytes: every sum of sizes stays exact in JSON readers and numpy columns
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_JOULES = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12}
_BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def parse_size(text: str) -> int:
    """Bytes from ``32MB``, ``1.5 MiB``, ``4096``; ``UsageError`` if malformed, or a fraction of bytes.

    ``0.8GB`` is rounded to 858,993,459 bytes: decimal fractions are rarely whole in binary units. ``1.5`` is refused:
    its unit was probably forgotten.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a size", hint=_SIZE_HINT)
    unit: int = 1024 ** _POWER[(match[2] or "").lower()]
    exact = Fraction(match[1]) * unit
    if unit == 1 and exact.denominator != 1:
        hint = f"did you mean {match[1]}MB? Otherwise {_SIZE_HINT}"
        raise UsageError(f"'{text}' is no whole number of bytes", hint=hint)
    nbytes = round(exact)
    if nbytes <= 0:
        raise UsageError(f"'{text}' is not a positive size", hint=_SIZE_HINT)
    if nbytes > LARGEST_SIZE:
        raise UsageError(f"'{text}' is larger than any memory", hint=_SIZE_HINT)
    return nbytes


def parse_rate(text: str) -> float:
    """Bytes per second from ``60GB/s`` (decimal) or ``4GiB/s`` (binary). ``UsageError`` if it is not a rate."""
    match = _RATE.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"'{text}' is not a bandwidth", hint="write it like 60GB/s or 800MB/s")
    unit: int = (1024 if match[3] else 1000) ** _POWER[match[2].lower()]
    return float(match[1]) * unit


def parse_time(text: str) -> float:
    """Seconds from ``1.3us``, ``500ns``, ``2ms``. ``UsageError`` if it is not a time."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a time", hint="write it like 1.3us, 500ns or 2ms")
    return float(match[1]) * _SECONDS[match[2]]


def parse_frequency(text: str) -> float:
    """Hertz from ``1GHz``, ``500 MHz``. ``UsageError`` if it is not a frequency."""
    match = _FREQUENCY.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"'{text}' is not a frequency", hint="write it like 500MHz or 1.3GHz")
    unit: int = 1000 ** _POWER[match[2].lower()]
    return float(match[1]) * unit


def parse_energy(text: str) -> float:
    """Joules from ``1.5mJ``, ``20uJ``, ``300nJ``. ``UsageError`` if it is not an energy."""
    match = _ENERGY.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not an energy", hint="write it like 1.5mJ, 20uJ or 300nJ")
    return float(match[1]) * _JOULES[match[2]]


def parse_share(text: str) -> Fraction:
    """0.01, exactly, from ``1%``. ``UsageError`` if it is not a percentage."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a percentage", hint="write it like 1% or 0.5%")
    return Fraction(match[1]) / 100


def format_size(nbytes: int) -> str:
    """``22.4 MiB``: three significant digits, binary unit, ``0`` for nothing."""
    if nbytes == 0:
        return "0"
    if abs(nbytes) < 1024:
        return f"{nbytes} B"
    value, unit = float(nbytes), 0
    while abs(value) >= 1023.5 and unit < len(_BINARY_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{_three_digits(value)} {_BINARY_UNITS[unit]}"


def format_size_exact(nbytes: int) -> str:
    """``32 MiB (33,554,432 B)``; just ``96 B`` below one KiB."""
    return f"{nbytes} B" if abs(nbytes) < 1024 else f"{format_size(nbytes)} ({nbytes:,} B)"


def format_size_pair(first: int, second: int) -> tuple[str, str]:
    """Two sizes to compare: in bytes if they differ but would be rounded to the same text."""
    a, b = format_size(first), format_size(second)
    return (f"{first:,} B", f"{second:,} B") if a == b and first != second else (a, b)


def size_word(nbytes: int) -> str:
    """An exact size that options accept: ``36MiB``, ``1536KiB`` or ``70000``."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes % factor == 0:
            return f"{nbytes // factor}{unit}"
    return str(nbytes)


def format_rate(bytes_per_s: float) -> str:
    """``60 GB/s``: three significant digits, decimal unit."""
    value, unit = bytes_per_s, 0
    while value >= 999.5 and unit < 4:
        value, unit = value / 1000, unit + 1
    return f"{_three_digits(value)} {('B', 'KB', 'MB', 'GB', 'TB')[unit]}/s"


def format_frequency(hertz: float) -> str:
    """``1.3 GHz``: three significant digits."""
    return format_rate(hertz).replace("B/s", "Hz")


def format_time(seconds: float) -> str:
    """``10.2 ms``: three significant digits, from ns to s; ``0`` for nothing."""
    if seconds == 0:
        return "0"
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if abs(seconds) < limit * 0.9995:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def format_energy(joules: float) -> str:
    """``1.53 mJ``: three significant digits, from pJ to J; ``0`` for nothing."""
    if joules == 0:
        return "0"
    for limit, factor, unit in ((1e-9, 1e12, "pJ"), (1e-6, 1e9, "nJ"), (1e-3, 1e6, "µJ"), (1.0, 1e3, "mJ")):
        if abs(joules) < limit * 0.9995:
            return f"{_three_digits(joules * factor)} {unit}"
    return f"{_three_digits(joules)} J"


def _three_digits(value: float) -> str:
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
