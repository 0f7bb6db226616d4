"""Target: the machine. One on-chip memory, one DRAM, one compute unit, DMA channels between them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from spillprof.errors import UsageError
from spillprof.units import parse_rate, parse_size, parse_time


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


_PARSERS = {"_bytes": parse_size, "_bytes_per_s": parse_rate, "_s": parse_time}


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
        raise UsageError(
            f"unknown target '{name_or_path}'",
            hint=f"built in: {', '.join(builtin_target_names())}; or give the path of a .toml file",
        )
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
    known = {f.name for f in fields(Target)}
    values: dict[str, Any] = {"name": name}
    for key, value in table.items():
        if key not in known:
            raise UsageError(f"target '{name}' has an unknown key '{key}'", hint=f"known: {', '.join(sorted(known))}")
        values[key] = _parse_field(key, value)
    try:
        target = Target(**values)
    except TypeError as error:
        raise UsageError(f"target '{name}' is incomplete", where=[str(error)]) from None
    _check(target)
    return target


def _parse_field(key: str, value: object) -> object:
    if isinstance(value, str):
        for suffix, parse in sorted(_PARSERS.items(), key=lambda item: -len(item[0])):
            if key.endswith(suffix):
                return parse(value)
    return value


def _check(target: Target) -> None:
    positive = ("sram_bytes", "alignment_bytes", "channel_align", "dram_read_bytes_per_s",
                "dram_write_bytes_per_s", "dram_burst_bytes", "sram_bytes_per_s", "utilisation")  # fmt: skip
    for key in positive:
        value = getattr(target, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise UsageError(f"target '{target.name}': {key} must be a positive number, got {value!r}")
    if "default" not in target.macs_per_s:
        raise UsageError(f"target '{target.name}': macs_per_s needs a 'default' rate")
