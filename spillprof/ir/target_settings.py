"""Fields of a target as options name them: ``dram-read=30GB/s``."""

from collections.abc import Mapping
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.target import ROWS, UNITS, Target, read_fields, short_name


def parse_target_setting(text: str) -> tuple[str, Any]:
    """``(target field, value)`` of ``dram-read=30GB/s``. ``UsageError`` for an unknown field or a malformed value."""
    name, separator, value = text.partition("=")
    if not separator or not value.strip():
        raise UsageError(f"'{text}' sets nothing", hint="write it like --set dram-read=30GB/s")
    field = target_field(name)
    return field, target_value(field, value.strip(), "--set")


def with_fields(target: Target, fields: Mapping[str, Any]) -> Target:
    """The target with these fields set. A single MAC rate applies to every element type, a utilisation to all kinds."""
    return target.with_overrides(**{k: {"default": v} if ROWS[k].has_default_row else v for k, v in fields.items()})


def unit_doubts(target: Target) -> list[str]:
    """Questions about figures so small that a unit was probably forgotten: ``dram-read is 3 B/s``."""
    doubts = []
    if target.sram_bytes < _LEAST_SRAM_BYTES:
        doubts.append(f"the SRAM has {target.sram_bytes} B; did you mean {target.sram_bytes}MB?")
    for field in ROWS:
        rate = getattr(target, field) if field.endswith("_bytes_per_s") else None
        if rate and rate < _LEAST_BYTES_PER_S:
            doubts.append(f"{short_name(field)} is {rate:g} B/s; did you mean {rate:g}GB/s?")
    return doubts


_LEAST_SRAM_BYTES = 1 << 10
_LEAST_BYTES_PER_S = 1e6
"""Smaller values are implausible for any machine that runs models."""


def target_field(name: str) -> str:
    """The target field of a name: as in target files, with - for _, with or without its unit."""
    plain = name.strip().lower().replace("-", "_")
    units = ("_bytes",) if plain == "sram" else ("", *UNITS)  # not the bandwidth sram_bytes_per_s
    field = next((plain + unit for unit in units if plain + unit in ROWS), None)
    if field is None:
        settable = [name for name, registered in ROWS.items() if not registered.not_set]
        near = nearest(plain.replace("_", "-"), map(short_name, settable)) or nearest(plain, ROWS)
        raise UsageError(
            f"a target has no field '{name}'",
            hint=f"did you mean '{near[0]}'?" if near else f"there are {', '.join(settable)}",
        )
    if ROWS[field].not_set:
        raise UsageError(f"target field '{field}' takes no single value", hint=ROWS[field].not_set)
    return field


def target_value(field: str, text: str, name: str) -> Any:
    """A value from a number, ``true``, ``false`` or a text with a unit; ``name``: the option, for errors."""
    value: object = {"true": True, "false": False}.get(text, text)
    for number in (int, float):
        try:
            value = number(text)
            break
        except ValueError:
            continue
    try:
        if ROWS[field].has_default_row:
            return read_fields({field: {"default": value}}, name=name)[field]["default"]
        return read_fields({field: value}, name=name)[field]
    except UsageError as error:  # option values are written without quotes
        raise UsageError(error.message, hint=error.hint and error.hint.replace("'", "")) from None
