"""Target: the machine. One on-chip memory, one DRAM, one compute unit, DMA channels between them."""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from spillprof.errors import UsageError
from spillprof.units import LARGEST_SIZE, parse_rate, parse_size, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Capacity, bandwidths, set-up times, compute rates and energies of a machine."""

    name: str
    sram_bytes: int
    alignment_bytes: int = 64
    channel_align: int = 1  # C of an NCHW activation is stored rounded up to this many
    dram_read_bytes_per_s: float
    dram_write_bytes_per_s: float
    dram_read_setup_s: float  # fixed cost of one transfer
    dram_write_setup_s: float
    dram_burst_bytes: int = 64  # bytes on the bus are rounded up to this
    sram_bytes_per_s: float
    macs_per_s: Mapping[str, float] = field(default_factory=dict)  # by element type; "default" for the rest
    utilisation: float = 1.0  # share of the peak MAC rate that operators reach
    launch_overhead_s: float = 0.0  # per step
    weight_staging_bytes: int | None = None  # None: an eighth of the SRAM
    stream_staging_bytes: int | None = None  # None: a sixteenth of the SRAM
    shared_workspace: bool = True  # one block for all workspaces, sized by the largest
    accumulator_bytes_per_output: int = 0  # > 0: accumulators lie in SRAM, this many bytes per output element
    strided_views: bool = False  # reads Slice, Split, Transpose and Concat as views
    sram_j_per_byte: float = 0.0
    dram_read_j_per_byte: float = 0.0
    dram_write_j_per_byte: float = 0.0
    mac_j: float = 0.0
    sources: Mapping[str, str] = field(default_factory=dict)  # where each number comes from

    def macs_rate(self, dtype: str) -> float:
        """MACs per second that operators of this element type reach, utilisation included."""
        return self.macs_per_s.get(dtype, self.macs_per_s["default"]) * self.utilisation

    def with_overrides(self, **changes: Any) -> "Target":
        """A copy with some fields replaced (single flags override a target)."""
        return replace(self, **changes)


def builtin_target_names() -> tuple[str, ...]:
    """Names of the targets that ship with the package, sorted."""
    folder = resources.files("spillprof.model") / "targets"
    return tuple(sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")))


def load_target(name_or_path: str) -> Target:
    """The built-in target of that name, else the TOML file at that path. ``UsageError`` if neither works."""
    if name_or_path in builtin_target_names():
        text = (resources.files("spillprof.model") / "targets" / f"{name_or_path}.toml").read_text("utf-8")
        return parse_target(text, name=name_or_path)
    path = Path(name_or_path)
    if not name_or_path.endswith(".toml"):
        names = builtin_target_names()
        near = get_close_matches(name_or_path, names, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        hint += f"Built in: {', '.join(names)}; or give the path of a .toml file"
        raise UsageError(f"unknown target '{name_or_path}'", hint=hint[:1].lower() + hint[1:])
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read target file '{name_or_path}'", where=[str(error)]) from None
    return parse_target(text, name=path.stem)


def parse_target(text: str, *, name: str) -> Target:
    """A Target from TOML text. Sizes, rates and times may be strings with units. ``UsageError`` if malformed."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"target '{name}' is not valid TOML", where=[str(error)]) from None
    values = {"name": name, **read_fields(table, name=name)}
    missing = [f.name for f in fields(Target) if f.name not in values and _is_required(f)]
    if missing:
        raise UsageError(f"target '{name}' does not give {', '.join(missing)}", hint="every target needs them")
    return Target(**values)


def field_names() -> tuple[str, ...]:
    """What a target file may say."""
    return tuple(_READERS)


def read_fields(table: Mapping[str, object], *, name: str) -> dict[str, Any]:
    """Fields of a Target from TOML values, strings with units included. ``UsageError`` if one is unknown or wrong."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READERS:
            near = get_close_matches(key, _READERS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(_READERS)}"
            raise UsageError(f"target '{name}' has an unknown key '{key}'", hint=hint)
        try:
            values[key] = _READERS[key](value)
        except UsageError as error:
            raise UsageError(f"target '{name}': {key}: {error.message}", hint=error.hint) from None
    return values


def _whole(value: object, *, minimum: int = 0) -> int:
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= LARGEST_SIZE:
        raise UsageError(f"{value!r} is not a whole number from {minimum} up", hint="write it like 64 or '32MB'")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UsageError(f"{value!r} is not a number from 0 up", hint="write it like 1.6e-12")
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


def _mac_rates(value: object) -> dict[str, float]:
    if not isinstance(value, dict) or "default" not in value:
        raise UsageError("no 'default' rate is given", hint="write a table [macs_per_s] with default = 8e12")
    return {str(dtype): _positive(rate) for dtype, rate in value.items()}


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} is not a table", hint="write a table [sources] of texts")
    return {str(key): _text(text) for key, text in value.items()}


_one_or_more = partial(_whole, minimum=1)
_READERS: dict[str, Callable[[object], object]] = {
    "name": _text,
    "sram_bytes": _one_or_more,
    "alignment_bytes": _one_or_more,
    "channel_align": _one_or_more,
    "dram_read_bytes_per_s": _rate,
    "dram_write_bytes_per_s": _rate,
    "dram_read_setup_s": _time,
    "dram_write_setup_s": _time,
    "dram_burst_bytes": _one_or_more,
    "sram_bytes_per_s": _rate,
    "macs_per_s": _mac_rates,
    "utilisation": _positive,
    "launch_overhead_s": _time,
    "weight_staging_bytes": _whole,
    "stream_staging_bytes": _whole,
    "shared_workspace": _flag,
    "accumulator_bytes_per_output": _whole,
    "strided_views": _flag,
    "sram_j_per_byte": _number,
    "dram_read_j_per_byte": _number,
    "dram_write_j_per_byte": _number,
    "mac_j": _number,
    "sources": _texts,
}
"""What a target file may say, field by field."""


def _is_required(column: "Field[Any]") -> bool:
    no_default = column.default is MISSING and column.default_factory is MISSING
    return no_default or column.name == "macs_per_s"  # without rates there are no times
