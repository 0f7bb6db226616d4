"""Target: the machine. One on-chip memory, one DRAM, compute units that share both, DMA channels between them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.side_files.kinds import TARGET
from spillprof.ir.side_files.opening import read_text
from spillprof.ir.side_files.toml_text import parse_toml
from spillprof.ir.target_fields import (
    DEFAULT_KIND,
    FieldRow,
    or_nothing,
    read_conv_factors,
    read_count,
    read_count_from_1,
    read_curve,
    read_duration,
    read_energies_by_dtype,
    read_frequency,
    read_name,
    read_number,
    read_positive,
    read_rate,
    read_rate_from_0,
    read_rates_by_dtype,
    read_shares_by_kind,
    read_size,
    read_sources,
    read_switch,
    read_whole,
    row,
)
from spillprof.ir.units import format_rate

_BUILT_IN = Path(__file__).with_name("targets")

MOST_PARENTS = 16
"""Longest chain of ``inherit``."""

TransferCurve = tuple[tuple[int, float], ...]
"""Calibrated points (bytes, seconds) of a transfer time: linear between points, extrapolated from the outer pieces."""


def _whole() -> dict[str, float]:
    return {DEFAULT_KIND: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Capacity, bandwidths, set-up times, compute rates and energies of a machine. Each field is a row of a registry.

    ``UsageError`` if the fields contradict each other.
    """

    # fmt: off
    name: str = field(metadata=row(read_name, "", "what reports call the machine", not_set="it changes no result"))
    sram_bytes: int = field(metadata=row(read_size, "bytes", "on-chip memory", short="sram", not_set="use --sram"))
    reserved_bytes: int = field(default=0, metadata=row(read_whole, "bytes",
        "of it, kept by the runtime", in_profile=False))
    alignment_bytes: int = field(default=64, metadata=row(read_size, "bytes",
        "buffer sizes are rounded up to it", short="align"))
    channel_align: int = field(default=1, metadata=row(read_size, "channels",
        "channels of feature maps are rounded up to it (below)"))
    dram_read_bytes_per_s: float = field(metadata=row(read_rate, "bytes/s",
        "one transfer alone, from DRAM", replaces="dram_read_curve"))
    dram_write_bytes_per_s: float = field(metadata=row(read_rate, "bytes/s",
        "one transfer alone, to DRAM", replaces="dram_write_curve"))
    dram_read_setup_s: float = field(metadata=row(read_duration, "s",
        "fixed cost of a transfer from DRAM", replaces="dram_read_curve"))
    dram_write_setup_s: float = field(metadata=row(read_duration, "s",
        "fixed cost of a transfer to DRAM", replaces="dram_write_curve"))
    dram_burst_bytes: int = field(default=64, metadata=row(read_size, "bytes", "bytes on the bus are rounded up to it"))
    dram_read_curve: TransferCurve = field(default=(), metadata=row(read_curve, "[bytes, s]",
        "calibrated points, instead of set-up + bytes / bandwidth: "
        "linear between them, beyond them the nearest piece continues",
        left_out="none", not_set="give dram-read and dram-read-setup"))
    dram_write_curve: TransferCurve = field(default=(), metadata=row(read_curve, "[bytes, s]",
        "the same, to DRAM", left_out="none", not_set="give dram-write and dram-write-setup"))
    dram_bus_bytes_per_s: float | None = field(default=None, metadata=row(or_nothing(read_rate), "bytes/s",
        "shared by all transfers of both directions", left_out="directions do not limit each other"))
    background_bytes_per_s: float = field(default=0.0, metadata=row(read_rate_from_0, "bytes/s",
        "other traffic, always on that bus"))
    dram_outstanding: int | None = field(default=None, metadata=row(or_nothing(read_count_from_1), "transfers",
        "most in flight at once", left_out="as many as channels"))
    dma_read_channels: int = field(default=1, metadata=row(read_count_from_1, "channels", "that read from DRAM"))
    dma_write_channels: int = field(default=1, metadata=row(read_count_from_1, "channels", "that write to DRAM"))
    dma_shared_channels: int = field(default=0, metadata=row(read_count, "channels",
        "if any, they serve both directions, and the two fields above are ignored"))
    sram_bytes_per_s: float = field(metadata=row(read_rate, "bytes/s",
        "on-chip bandwidth of operators", short="sram-rate"))
    cores: int = field(default=1, metadata=row(read_count_from_1, "", "compute units that share SRAM and bus"))
    clock_hz: float | None = field(default=None, metadata=row(or_nothing(read_frequency), "Hz",
        "of the compute units", left_out="not stated"))
    macs_per_s: Mapping[str, float] = field(default_factory=dict, metadata=row(read_rates_by_dtype, "MAC/s",
        "table by element type, of one core; `default` for the rest",
        left_out="this or the next is required", replaces="macs_per_cycle", has_default_row=True))
    macs_per_cycle: Mapping[str, float] = field(default_factory=dict, metadata=row(read_rates_by_dtype, "MAC",
        "the same as a multiple of `clock_hz`",
        left_out="this or the one above is required", replaces="macs_per_s", has_default_row=True, in_profile=False))
    utilisation: Mapping[str, float] = field(default_factory=_whole, metadata=row(read_shares_by_kind, "share",
        "of that rate that products reach: a number, or a table by kind (below)", left_out="1", has_default_row=True))
    array_rows: int = field(default=0, metadata=row(read_count, "channels",
        "of its input that a product sums at once: tiles of fewer leave units idle", left_out="no tile is too narrow"))
    array_columns: int = field(default=0, metadata=row(read_count, "channels",
        "of its result that a product computes at once, likewise", left_out="no tile is too narrow"))
    vector_ops_per_s: float | None = field(default=None, metadata=row(or_nothing(read_positive), "1/s",
        "operations of the vector unit of one core, which runs what is no product (below)",
        left_out="what is no product takes the time of its SRAM bytes alone"))
    conv_time_factors: Mapping[str, float] = field(default_factory=dict, metadata=row(read_conv_factors, "",
        "relative time of a convolution's multiply-accumulates by `direct`, `im2col`, `winograd` "
        "([which are taken](model.md#from-the-model-to-a-program))",
        left_out="1 each", not_set="it is a table: write a target of its own"))
    launch_overhead_s: float = field(default=0.0, metadata=row(read_duration, "s",
        "of each step, and of each block of a convolution that comes in blocks"))
    weight_staging_bytes: int | None = field(default=None, metadata=row(or_nothing(read_whole), "bytes",
        "staging area of weights", left_out="1/8 of the SRAM", in_profile=False))
    stream_staging_bytes: int | None = field(default=None, metadata=row(or_nothing(read_whole), "bytes",
        "staging area of operands that are tiled", left_out="1/16 of the SRAM", in_profile=False))
    shared_workspace: bool = field(default=True, metadata=row(read_switch, "switch",
        "one block for all workspaces, as large as the largest of them", in_profile=False))
    accumulator_bytes_per_output: int = field(default=0, metadata=row(read_whole, "bytes",
        "of accumulators in SRAM, per element of an output", left_out="0: none lie there", in_profile=False))
    strided_views: bool = field(default=False, metadata=row(read_switch, "switch",
        "Slice, Split and Transpose share their input's buffer; Concat always copies", in_profile=False))
    sram_j_per_byte: float = field(default=0.0, metadata=row(read_number, "J/byte", "energy of a byte on-chip"))
    dram_read_j_per_byte: float = field(default=0.0, metadata=row(read_number, "J/byte", "energy of a byte from DRAM"))
    dram_write_j_per_byte: float = field(default=0.0, metadata=row(read_number, "J/byte", "energy of a byte to DRAM"))
    mac_j: float = field(default=0.0, metadata=row(read_number, "J", "energy of a multiply-accumulate"))
    mac_j_by_dtype: Mapping[str, float] = field(default_factory=dict, metadata=row(read_energies_by_dtype, "J",
        "the same, by element type", left_out="`mac_j`", not_set="give mac-j"))
    sources: Mapping[str, str] = field(default_factory=dict, metadata=row(read_sources, "text",
        "where each number comes from", left_out="none", not_set="they change no result"))
    # fmt: on

    def __post_init__(self) -> None:
        _check(self)

    def macs_rate(self, dtype: str, kind: str = DEFAULT_KIND) -> float:
        """MACs per second that products of this element type and kind reach on one core, utilisation included."""
        return self.peak_macs_per_s(dtype) * self.utilisation.get(kind, self.utilisation[DEFAULT_KIND])

    def peak_macs_per_s(self, dtype: str) -> float:
        """MACs per second of one core for this element type when every unit is busy."""
        rates, per_s = (self.macs_per_s, 1.0) if self.macs_per_s else (self.macs_per_cycle, self.clock_hz or math.nan)
        return rates.get(dtype, rates["default"]) * per_s

    def mac_energy_j(self, dtype: str) -> float:
        """Joules of one multiply-accumulate of this element type."""
        return self.mac_j_by_dtype.get(dtype, self.mac_j)

    def resolved(self) -> "Target":
        """The same machine with its MAC rates per second, whichever way they were given."""
        rates = self.macs_per_s or self.macs_per_cycle
        return replace(self, macs_per_s={each: self.peak_macs_per_s(each) for each in rates}, macs_per_cycle={})

    def with_overrides(self, **changes: Any) -> "Target":
        """A copy with some fields replaced.

        Sources of the changed fields are dropped, and so are fields that say the same in another way (a curve, once its
        bandwidth is set). The bus is widened to a bandwidth that exceeds it.
        """
        changes = _with_bus(self.dram_bus_bytes_per_s, changes)
        void = {name: type(getattr(self, name))() for name in _made_void(changes) - changes.keys()}
        changed = {name for name, value in changes.items() if value != getattr(self, name)}
        sources = {k: v for k, v in self.sources.items() if k not in changed and k not in void}
        return replace(self, **{"sources": sources, **void, **changes})


ROWS: Mapping[str, FieldRow] = MappingProxyType({column.name: column.metadata["row"] for column in fields(Target)})
"""What is registered of each target field, in order."""

PROFILE_FIELDS = tuple(name for name, registered in ROWS.items() if registered.in_profile)
"""Fields of a target that the JSON of a Profile holds as they are."""


def read_fields(table: Mapping[str, object], *, name: str) -> dict[str, Any]:
    """Fields of a Target from TOML values, strings with units included. ``UsageError`` if one is unknown or wrong."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in ROWS:
            full = {short_name(each): each for each in ROWS}
            near = nearest(key, ROWS) or [full[each] for each in nearest(key.replace("_", "-"), full)]
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(ROWS)}"
            raise UsageError(f"target '{name}' has an unknown key '{key}'", hint=hint)
        try:
            values[key] = ROWS[key].read(value)
        except UsageError as error:
            raise UsageError(f"target '{name}': {key}: {error.message}", hint=error.hint) from None
    return values


UNITS = ("_bytes_per_s", "_bytes", "_s", "_j_per_byte", "_j")
"""Suffixes of field names that are units."""


def short_name(field: str) -> str:
    """A target field as options name it: - for _, and without its unit if no other field has that name."""
    unit = next((unit for unit in UNITS if field.endswith(unit)), "")
    plain = field.removesuffix(unit)
    meant = next(plain + each for each in ("", *UNITS) if plain + each in ROWS)
    return (plain if meant == field and field != "sram_bytes_per_s" else field).replace("_", "-")


def _with_bus(bus_bytes_per_s: float | None, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, and a wider bus if they set a bandwidth that exceeds it."""
    widest = max(changes.get("dram_read_bytes_per_s", 0.0), changes.get("dram_write_bytes_per_s", 0.0))
    if bus_bytes_per_s is None or "dram_bus_bytes_per_s" in changes or widest <= bus_bytes_per_s:
        return changes
    return {**changes, "dram_bus_bytes_per_s": widest}


def _made_void(changed: Iterable[str]) -> set[str]:
    return {ROWS[name].replaces for name in changed if name in ROWS} - {""}


def _check(target: Target) -> None:
    """``UsageError`` if fields contradict each other."""
    where = f"target '{target.name}'"
    if not target.macs_per_s and not target.macs_per_cycle:
        raise UsageError(f"{where} does not give macs_per_s", hint="give macs_per_s, or macs_per_cycle and clock_hz")
    if not target.macs_per_s and target.clock_hz is None:
        raise UsageError(f"{where} gives macs_per_cycle but no clock_hz", hint="add clock_hz = 1e9")
    if DEFAULT_KIND not in target.utilisation:
        raise UsageError(f"{where}: utilisation has no row 'default'", hint="add default = 0.5")
    bus, background = target.dram_bus_bytes_per_s, target.background_bytes_per_s
    if background and bus is None:
        raise UsageError(
            f"{where} has background traffic but no bus to carry it", hint="add dram_bus_bytes_per_s = '60GB/s'"
        )
    if bus is not None and background >= bus:
        raise UsageError(
            f"{where}: background traffic of {format_rate(background)} leaves nothing of a bus of {format_rate(bus)}"
        )


def builtin_target_names() -> tuple[str, ...]:
    """Names of the targets that ship with the package, sorted."""
    return tuple(sorted(p.stem for p in _BUILT_IN.glob("*.toml")))


def load_target(name_or_path: str) -> Target:
    """The built-in target of that name, else the TOML file at that path. ``UsageError`` if neither works."""
    return _made(_values_of(name_or_path, ()))


def parse_target(text: str, *, name: str, folder: Path | None = None) -> Target:
    """A Target from TOML text. ``UsageError`` if malformed.

    ``inherit`` names the target that supplies the missing fields: a built-in one, or a file relative to ``folder``.
    """
    return _made(_values(text, name=name, folder=folder or Path(), chain=()))


def _made(values: dict[str, Any]) -> Target:
    missing = [f.name for f in fields(Target) if f.name not in values and _is_required(f)]
    if not {"macs_per_s", "macs_per_cycle"} & values.keys():
        missing.append("macs_per_s")  # without rates there are no times
    if missing:
        raise UsageError(
            f"target '{values['name']}' does not give {', '.join(missing)}", hint="every target needs them"
        )
    return Target(**values)


def _values_of(name_or_path: str, chain: tuple[str, ...]) -> dict[str, Any]:
    """Fields of a target, inherited ones included; ``chain``: names of the targets that inherit from it."""
    if name_or_path in builtin_target_names():
        text = (_BUILT_IN / f"{name_or_path}.toml").read_text("utf-8")
        return _values(text, name=name_or_path, folder=Path(), chain=chain)
    path = Path(name_or_path)
    if not name_or_path.endswith(".toml"):
        names = builtin_target_names()
        near = nearest(name_or_path, names)
        hint = f"did you mean '{near[0]}'? " if near else ""
        hint += f"Built in: {', '.join(names)}; or give the path of a .toml, .ini or .mpool file"
        raise UsageError(f"unknown target '{name_or_path}'", hint=hint[:1].lower() + hint[1:])
    if len(chain) > MOST_PARENTS:
        raise UsageError(
            f"a target inherits through more than {MOST_PARENTS} others", where=(chain[0], "...", name_or_path),
            hint="say in one file what several of them say",
        )  # fmt: skip
    text = read_text(path, TARGET)
    return _values(text, name=path.stem, folder=path.parent, chain=chain, shown=name_or_path)


def _values(text: str, *, name: str, folder: Path, chain: tuple[str, ...], shown: str = "") -> dict[str, Any]:
    table = parse_toml(text, TARGET, shown or f"target '{name}'")
    parent = table.pop("inherit", None)
    own = {"name": name, **read_fields(table, name=name)}
    if parent is None:
        return own
    if not isinstance(parent, str) or not parent:
        raise UsageError(f"target '{name}': inherit: {parent!r} is not a name", hint="write it in quotes")
    if parent.endswith(".toml"):
        parent = str((folder / parent).resolve())
    if parent in chain:
        raise UsageError(
            f"target '{name}' inherits from itself", where=[*chain, parent], hint="break the circle of inherit"
        )
    return _on_top(_values_of(parent, (*chain, parent)), own)


def _on_top(below: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Fields of a target on top of those that it inherits."""
    own = _with_bus(below.get("dram_bus_bytes_per_s"), own)
    kept = {name: value for name, value in below.items() if name not in _made_void(own)}
    sources = {name: text for name, text in kept.get("sources", {}).items() if name in kept and name not in own}
    return {**kept, **own, "sources": {**sources, **own.get("sources", {})}}


def _is_required(column: "Field[Any]") -> bool:
    return column.default is MISSING and column.default_factory is MISSING
