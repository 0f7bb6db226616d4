"""Target: the machine. One on-chip memory, one DRAM, compute units that share both, DMA channels between them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.side_files.kinds import TARGET
from spillprof.ir.side_files.opening import read_text
from spillprof.ir.side_files.toml_text import parse_toml
from spillprof.ir.target_fields import read_fields
from spillprof.ir.units import format_rate

_BUILT_IN = Path(__file__).with_name("targets")

MOST_PARENTS = 16
"""Targets that one may inherit through."""

Curve = tuple[tuple[int, float], ...]
"""Calibrated points (bytes, seconds) of a transfer time: linear between points, beyond them as the nearest piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Capacity, bandwidths, set-up times, compute rates and energies of a machine.

    ``UsageError`` if the fields contradict each other.
    """

    name: str
    sram_bytes: int
    reserved_bytes: int = 0  # of the SRAM, what the runtime keeps for itself
    alignment_bytes: int = 64
    channel_align: int = 1  # C of an NCHW activation is stored rounded up to this many
    dram_read_bytes_per_s: float
    dram_write_bytes_per_s: float
    dram_read_setup_s: float  # fixed cost of one transfer
    dram_write_setup_s: float
    dram_burst_bytes: int = 64  # bytes on the bus are rounded up to this
    dram_read_curve: Curve = ()  # not empty: takes the place of set-up + bytes / bandwidth
    dram_write_curve: Curve = ()
    dram_bus_bytes_per_s: float | None = None  # what both directions share; None: they do not limit each other
    background_bytes_per_s: float = 0.0  # other traffic that is always on that bus
    dram_outstanding: int | None = None  # most transfers in flight at once; None: as many as channels
    dma_read_channels: int = 1
    dma_write_channels: int = 1
    dma_shared_channels: int = 0  # > 0: so many serve both directions, and those of one direction do not count
    sram_bytes_per_s: float
    cores: int = 1  # compute units that share SRAM and bus
    clock_hz: float | None = None
    macs_per_s: Mapping[str, float] = field(default_factory=dict)  # by element type; "default" for the rest
    macs_per_cycle: Mapping[str, float] = field(default_factory=dict)  # the same, as a multiple of the clock
    utilisation: float = 1.0  # share of the peak MAC rate that operators reach
    conv_time_factors: Mapping[str, float] = field(default_factory=dict)  # by algorithm; 1 where not given
    launch_overhead_s: float = 0.0  # per step
    weight_staging_bytes: int | None = None  # None: an eighth of the SRAM
    stream_staging_bytes: int | None = None  # None: a sixteenth of the SRAM
    shared_workspace: bool = True  # one block for all workspaces, sized by the largest
    accumulator_bytes_per_output: int = 0  # > 0: accumulators lie in SRAM, this many bytes per output element
    strided_views: bool = False  # reads Slice, Split and Transpose as views; Concat always copies
    sram_j_per_byte: float = 0.0
    dram_read_j_per_byte: float = 0.0
    dram_write_j_per_byte: float = 0.0
    mac_j: float = 0.0
    mac_j_by_dtype: Mapping[str, float] = field(default_factory=dict)  # ``mac_j`` where not given
    sources: Mapping[str, str] = field(default_factory=dict)  # where each number comes from

    def __post_init__(self) -> None:
        _check(self)

    def macs_rate(self, dtype: str) -> float:
        """MACs per second that operators of this element type reach on one core, utilisation included."""
        return self.peak_macs_per_s(dtype) * self.utilisation

    def peak_macs_per_s(self, dtype: str) -> float:
        """MACs per second of one core for this element type when every unit is busy."""
        rates, per_s = (self.macs_per_s, 1.0) if self.macs_per_s else (self.macs_per_cycle, self.clock_hz or math.nan)
        return rates.get(dtype, rates["default"]) * per_s

    def mac_energy_j(self, dtype: str) -> float:
        """Joules of one multiply-accumulate of this element type."""
        return self.mac_j_by_dtype.get(dtype, self.mac_j)

    def with_overrides(self, **changes: Any) -> "Target":
        """A copy with some fields replaced (single flags override a target).

        What the changed fields make void goes: their sources, and what said the same in another way. The bus widens
        to a bandwidth that it could not carry.
        """
        changes = _with_bus(self.dram_bus_bytes_per_s, changes)
        void = {name: type(getattr(self, name))() for name in _made_void(changes) - changes.keys()}
        changed = {name for name, value in changes.items() if value != getattr(self, name)}
        sources = {k: v for k, v in self.sources.items() if k not in changed and k not in void}
        return replace(self, **{"sources": sources, **void, **changes})


_VOID = {
    "macs_per_s": "macs_per_cycle",
    "macs_per_cycle": "macs_per_s",
    "dram_read_bytes_per_s": "dram_read_curve",
    "dram_read_setup_s": "dram_read_curve",
    "dram_write_bytes_per_s": "dram_write_curve",
    "dram_write_setup_s": "dram_write_curve",
}
"""Fields, and what they make void when they are set on top of another target: the same, said in another way."""


def _with_bus(bus_bytes_per_s: float | None, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, with a bus of the target below them that carries the bandwidths that they set."""
    widest = max(changes.get("dram_read_bytes_per_s", 0.0), changes.get("dram_write_bytes_per_s", 0.0))
    if bus_bytes_per_s is None or "dram_bus_bytes_per_s" in changes or widest <= bus_bytes_per_s:
        return changes
    return {**changes, "dram_bus_bytes_per_s": widest}


def _made_void(changed: Iterable[str]) -> set[str]:
    return {_VOID[name] for name in changed if name in _VOID}


def _check(target: Target) -> None:
    """What no field can say alone. ``UsageError`` for a contradiction."""
    where = f"target '{target.name}'"
    if not target.macs_per_s and not target.macs_per_cycle:
        raise UsageError(f"{where} does not give macs_per_s", hint="give macs_per_s, or macs_per_cycle and clock_hz")
    if not target.macs_per_s and target.clock_hz is None:
        raise UsageError(f"{where} gives macs_per_cycle but no clock_hz", hint="add clock_hz = 1e9")
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

    ``inherit`` names the target whose fields count where the text gives none: a built-in one, or a file relative to
    ``folder``.
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
    """Fields of a target with what it inherits; ``chain``: the names that led here."""
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
    """Fields of a target and, where it gives none, of the one that it inherits from."""
    own = _with_bus(below.get("dram_bus_bytes_per_s"), own)
    kept = {name: value for name, value in below.items() if name not in _made_void(own)}
    sources = {name: text for name, text in kept.get("sources", {}).items() if name in kept and name not in own}
    return {**kept, **own, "sources": {**sources, **own.get("sources", {})}}


def _is_required(column: "Field[Any]") -> bool:
    return column.default is MISSING and column.default_factory is MISSING
