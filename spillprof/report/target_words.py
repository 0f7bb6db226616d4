"""Formats the fields of a target."""

from collections.abc import Callable
from typing import Any

from spillprof.ir.units import format_energy, format_frequency, format_rate, format_size, format_size_exact, format_time


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
    if field == "macs_per_s":
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
