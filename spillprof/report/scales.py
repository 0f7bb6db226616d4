"""Numbers as text: columns with one unit and number of decimals each, shares, and fields of a target."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spillprof.ir.units import format_energy, format_frequency, format_rate, format_size, format_size_exact, format_time

_SIZE_UNITS = (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40), ("PiB", 2**50), ("EiB", 2**60))
_TIME_UNITS = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
_ENERGY_UNITS = (("pJ", 1e-12), ("nJ", 1e-9), ("µJ", 1e-6), ("mJ", 1e-3), ("J", 1.0))
MISSING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Unit and decimals of one column."""

    unit: str
    factor: float  # value in base units that makes 1 of ``unit``
    decimals: int

    def text(self, value: float | None) -> str:
        """``21.40 MiB``. Zero is ``0``, None is ``-``, less than the last digit is ``<0.01 MiB``."""
        if value is None:
            return MISSING
        if value == 0:
            return "0"
        scaled = value / self.factor
        if 0 < scaled < 0.5 * 10**-self.decimals:
            return f"<{10**-self.decimals:.{self.decimals}f} {self.unit}"
        return f"{scaled:,.{self.decimals}f} {self.unit}".replace("-", "−")


def size_scale(sizes_bytes: Sequence[int | None]) -> Scale:
    """Picks the unit of the largest size, and 0, 1 or 2 decimals."""
    return _scale(sizes_bytes, _SIZE_UNITS, threshold=1023.5)


def time_scale(times_s: Sequence[float | None]) -> Scale:
    """Picks the unit of the largest time, and 0, 1 or 2 decimals."""
    return _scale(times_s, _TIME_UNITS, threshold=999.5)


def energy_scale(energies_j: Sequence[float | None]) -> Scale:
    """Picks the unit of the largest energy, and 0, 1 or 2 decimals."""
    return _scale(energies_j, _ENERGY_UNITS, threshold=999.5)


def size_column(sizes_bytes: Sequence[int | None]) -> tuple[str, ...]:
    """Formats sizes in the unit of the largest."""
    scale = size_scale(sizes_bytes)
    return tuple(scale.text(size) for size in sizes_bytes)


def time_column(times_s: Sequence[float | None]) -> tuple[str, ...]:
    """Formats times in the unit of the largest."""
    scale = time_scale(times_s)
    return tuple(scale.text(time) for time in times_s)


def comparison_size_column(sizes_bytes: Sequence[int | None]) -> tuple[str, ...]:
    """Formats sizes as ``size_column``, or all in bytes where different sizes would print alike."""
    column = size_column(sizes_bytes)
    known = [size for size in sizes_bytes if size is not None]
    if len(set(known)) == len({text for text, size in zip(column, sizes_bytes, strict=True) if size is not None}):
        return column
    return tuple(MISSING if size is None else f"{size:,} B" if size else "0" for size in sizes_bytes)


def signed_time(delta_s: float) -> str:
    """``+5.01 ms``, ``−5.01 ms`` or ``0``."""
    return "0" if delta_s == 0 else f"{'−' if delta_s < 0 else '+'}{format_time(abs(delta_s))}"


def percent(share: float | None) -> str:
    """``61 %``; a small share keeps a digit: ``0.4 %``; what is not 0 never looks so: ``<0.1 %``; None is ``-``."""
    return MISSING if share is None else _percent(share, decimals=1 if abs(share) < 0.0995 else 0)


def part_percent(share: float) -> str:
    """``61.2 %``: a digit whatever the size, so that the parts of a whole add up to 100 %, but for that digit."""
    return _percent(share, decimals=1)


def _percent(share: float, *, decimals: int) -> str:
    if abs(share) < 1e-9:  # what rounding leaves of the difference of two equal times
        return "0 %"
    if abs(share) < 0.0005:
        return "<0.1 %"
    return f"{'−' if share < 0 else ''}{abs(100 * share):,.{decimals}f} %"


def _scale(values: Sequence[float | None], units: Sequence[tuple[str, float]], *, threshold: float) -> Scale:
    known = [v for v in values if v is not None]
    largest = max((abs(v) for v in known), default=0.0)
    unit, factor = next(((unit, factor) for unit, factor in units if largest < threshold * factor), units[-1])
    whole = all(v / factor == int(v / factor) for v in known)
    return Scale(unit=unit, factor=factor, decimals=0 if whole else 1 if largest >= 99.95 * factor else 2)


def field_text(field: str, value: Any, *, size: Callable[[int], str] = format_size_exact) -> str:
    """Formats a value with the unit that the field's name ends in; ``none`` if it is unset."""
    if value is None or value in ((), [], {}):
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {field_text(field, item)}" for name, item in value.items())
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, list | tuple):
        return ", ".join(f"{format_size(nbytes)} {format_time(seconds)}" for nbytes, seconds in value)
    if field.endswith("_bytes_per_s"):
        return format_rate(value)
    if field in ("macs_per_s", "vector_ops_per_s"):
        return f"{value / 1e12:.3g}·10¹²"
    if field.endswith("_hz"):
        return format_frequency(value)
    if field.startswith("mac_j") or field.endswith("_j_per_byte"):
        return format_energy(value)
    if field.endswith("_bytes") and isinstance(value, int):
        return size(value)
    if field.endswith("_s") and isinstance(value, float):
        return format_time(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
