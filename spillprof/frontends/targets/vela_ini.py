"""Arm ``vela.ini``: a system configuration (clock, ports, memories) and a memory mode (which data is where).

Bandwidth of a memory = bytes of a port x ports used x clock scale x core clock; off-chip, no more than the bursts in
flight carry: maximum outstanding x burst length / latency. The set-up of a transfer is the latency of its direction.
Alignment, MACs and energies, which the file lacks, are those of the built-in target of the same core.
"""

import math
from configparser import ConfigParser, Error
from dataclasses import dataclass
from pathlib import Path

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.side_files.kinds import VELA_INI
from spillprof.ir.side_files.opening import read_text
from spillprof.ir.side_files.tables import check_table
from spillprof.ir.target import MOST_PARENTS, Target, load_target
from spillprof.ir.units import LARGEST_FIGURE

_SYSTEM, _MODE = "System_Config", "Memory_Mode"
_PORT_BYTES = {"ethos-u55": 8, "ethos-u65": 16, "ethos-u85": 16}
_MACS = {"ethos-u55": (32, 64, 128, 256), "ethos-u65": (256, 512), "ethos-u85": (128, 256, 512, 1024, 2048)}
_MACS_PER_VECTOR_OP = 32  # of every core that ``output_cycles_per_elem`` of Vela's architecture_features.py lists
_VECTOR_SOURCE = "assumed: 1/32 of the MACs, as Arm Vela 5.2.0 states for Ethos-U55 and U65 (output_cycles_per_elem)"
_ADDRESSABLE_BYTES = 2**32  # Vela's default of arena_cache_size


def read_vela_ini(path: Path, selection: tuple[str, ...] = ()) -> Target:
    """The machine of one system configuration in one memory mode.

    ``selection``: their names and the accelerator (``ethos-u65-256``). An omitted name must be unambiguous; the
    accelerator follows from the system's name. ``UsageError`` if the file or the selection is invalid.
    """
    ini = _read(path)
    if len(selection) > 3:
        raise UsageError(
            f"'{':'.join(selection)}' selects too much", where=(str(path),), hint="write FILE:SYSTEM:MODE:ACCELERATOR"
        )
    chosen = (*selection, *("",) * (3 - len(selection)))
    system = _section(ini, path, _SYSTEM, chosen[0])
    mode = _section(ini, path, _MODE, chosen[1])
    core, macs, macs_source = _accelerator(chosen[2], system)
    fast, slow = _memories(system, mode, _PORT_BYTES[core])
    capacity = mode.whole("arena_cache_size", _ADDRESSABLE_BYTES)
    changes = {
        "sram_bytes": (
            capacity,
            f"{mode.name}: arena_cache_size"
            if mode.text("arena_cache_size")
            else f"{mode.name} gives no arena_cache_size: as Vela, all that can be addressed; say yours with --sram",
        ),
        "dram_read_bytes_per_s": (slow.bytes_per_s("read"), f"{system.name}: {slow.name}"),
        "dram_write_bytes_per_s": (
            slow.bytes_per_s("write"),
            f"assumed: {slow.name} is read-only in {system.name}; as reading"
            if slow.is_read_only
            else f"{system.name}: {slow.name}",
        ),
        "dram_read_setup_s": (slow.latency_s("read"), f"{system.name}: {slow.name}_read_latency"),
        "dram_write_setup_s": (
            slow.latency_s("write"),
            "assumed: as reading" if slow.is_read_only else f"{system.name}: {slow.name}_write_latency",
        ),
        "dram_burst_bytes": (slow.burst_bytes, f"{system.name}: {slow.name}_burst_length"),
        "dram_bus_bytes_per_s": (slow.wire_bytes_per_s, f"{system.name}: both directions share {slow.name}"),
        "sram_bytes_per_s": (fast.wire_bytes_per_s, f"{system.name}: {fast.name}"),
        "clock_hz": (system.number("core_clock"), f"{system.name}: core_clock"),
        "vector_ops_per_s": (system.number("core_clock") * macs / _MACS_PER_VECTOR_OP, _VECTOR_SOURCE),
        "macs_per_cycle": ({"default": macs, "int16": macs / 2, "uint16": macs / 2}, macs_source),
    }
    base = load_target(core)
    told = {name: s if s.startswith("assumed") else f"{path.name}, {s}" for name, (_, s) in changes.items()}
    sources = {**base.sources, **told}
    name = f"{system.short_name}/{mode.short_name}"
    return base.with_overrides(name=name, sources=sources, **{name: value for name, (value, _) in changes.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A section and those that it inherits from, nearest first; keys are case-insensitive."""

    path: Path
    name: str
    layers: tuple[dict[str, str], ...]

    @property
    def short_name(self) -> str:
        return self.name.partition(".")[2]

    def error(self, message: str, hint: str | None = None) -> UsageError:
        return UsageError(message, where=(f"{self.path}: [{self.name}]",), hint=hint)

    def text(self, key: str) -> str:
        return next((layer[key.lower()] for layer in self.layers if key.lower() in layer), "")

    def number(self, key: str, default: float | None = None, *, least: float = 0.0) -> float:
        """A finite number above ``least``, or the default."""
        text = self.text(key)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least < value <= LARGEST_FIGURE or 0 < value < 1 / LARGEST_FIGURE:
            raise self.error(f"{key} = '{text}' is not a positive number" if text else f"{key} is not given")
        return value

    def whole(self, key: str, default: int) -> int:
        """An integer of 0 or more, or the default."""
        value = self.number(key, float(default), least=-1e-9)
        if value != int(value) or value > 2**60:
            raise self.error(f"{key} = '{self.text(key)}' is not a whole number")
        return int(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """A memory on a port."""

    name: str
    clock_hz: float
    wire_bytes_per_s: float
    burst_bytes: int
    latency_cycles: dict[str, int]
    outstanding: dict[str, int]  # 0: not stated

    @property
    def is_read_only(self) -> bool:
        return "flash" in self.name.lower()

    def bytes_per_s(self, direction: str) -> float:
        if direction == "write" and self.is_read_only:
            direction = "read"
        latency, outstanding = self.latency_cycles[direction], self.outstanding[direction]
        if not latency or not outstanding:
            return self.wire_bytes_per_s
        return min(self.wire_bytes_per_s, outstanding * self.burst_bytes / latency * self.clock_hz)

    def latency_s(self, direction: str) -> float:
        if direction == "write" and self.is_read_only:
            direction = "read"
        return self.latency_cycles[direction] / self.clock_hz


def _read(path: Path) -> ConfigParser:
    ini = ConfigParser(interpolation=None)
    text = read_text(path, VELA_INI)
    check_table(text, VELA_INI, str(path))  # configparser is quadratic in malformed lines
    try:
        ini.read_string(text)
    except Error as error:
        raise UsageError(f"'{path}' is not a configuration of Vela", where=(" ".join(str(error).split()),)) from None
    return ini


def _section(ini: ConfigParser, path: Path, kind: str, chosen: str) -> _Section:
    names = [name for name in ini.sections() if name.startswith(f"{kind}.")]
    wanted = chosen if not chosen or chosen.startswith(f"{kind}.") else f"{kind}.{chosen}"
    listed = ", ".join(name.partition(".")[2] for name in names)
    if not names:
        raise UsageError(f"'{path}' has no section [{kind}.NAME]", hint="is it a vela.ini?")
    if not wanted and len(names) > 1:
        raise UsageError(
            f"'{path}' has {len(names)} sections [{kind}.NAME]",
            where=(listed,),
            hint=f"choose with --target {path.name}:SYSTEM:MODE",
        )
    name = wanted or names[0]
    if name not in names:
        near = nearest(name, names)
        hint = f"did you mean '{near[0].partition('.')[2]}'?" if near else f"there are {listed}"
        raise UsageError(f"'{path}' has no section [{name}]", hint=hint)
    layers: list[dict[str, str]] = []
    chain: list[str] = []
    while name:
        if name in chain:
            raise UsageError(f"[{name}] inherits from itself", where=(f"{path}: {' -> '.join(chain)}",))
        if not ini.has_section(name):
            raise UsageError(f"[{chain[-1]}] inherits from [{name}], which is not there", where=(str(path),))
        chain.append(name)
        if len(chain) > MOST_PARENTS:
            raise UsageError(f"[{chain[0]}] inherits through more than {MOST_PARENTS} sections", where=(str(path),))
        layers.append(dict(ini.items(name)))
        name = layers[-1].get("inherit", "")
    return _Section(path=path, name=chain[0], layers=tuple(layers))


def _accelerator(chosen: str, system: _Section) -> tuple[str, float, str]:
    """(built-in target of the core, MACs a cycle, source of that figure)."""
    known = [f"{core}-{macs}" for core, sizes in _MACS.items() for macs in sizes]
    if chosen:
        if chosen not in known:
            raise UsageError(f"there is no accelerator '{chosen}'", hint=f"there are {', '.join(known)}")
        core, _, macs = chosen.rpartition("-")
        return core, float(macs), f"accelerator {chosen}; assumed: half at 16 bit"
    told = next((core for core in _MACS if core[-3:] in system.name.lower()), None)
    if told is None:
        raise system.error(
            "which Ethos-U core it is cannot be told from the name",
            f"write it behind the mode: {system.path.name}:{system.short_name}:MODE:ethos-u65-256",
        )
    macs_rate = load_target(told).macs_per_cycle["default"]
    return told, macs_rate, f"assumed: {told}-{macs_rate:.0f}, say another as a fourth part; half at 16 bit"


def _memories(system: _Section, mode: _Section, port_bytes: int) -> tuple[_Memory, _Memory]:
    """(fast memory, memory of spills and weights)."""

    def memory(key: str) -> _Memory:
        port = mode.text(key).lower()
        if port not in ("axi0", "axi1"):
            raise mode.error(f"{key} = '{mode.text(key)}' is no port", "there are Axi0 and Axi1")
        name = system.text(f"{port}_port")
        if not name:
            raise system.error(f"{port}_port is not given")
        clock_hz = system.number("core_clock")
        scale, ports = system.number(f"{name}_clock_scale", 1.0), max(1, system.whole(f"{name}_ports_used", 1))
        return _Memory(
            name=name,
            clock_hz=clock_hz,
            wire_bytes_per_s=port_bytes * ports * scale * clock_hz,
            burst_bytes=max(1, system.whole(f"{name}_burst_length", 1)),
            latency_cycles={d: system.whole(f"{name}_{d}_latency", 0) for d in ("read", "write")},
            outstanding={d: ports * system.whole(f"{name}_max_{d}s", 0) for d in ("read", "write")},
        )

    fast, arena, const = (memory(key) for key in ("cache_mem_area", "arena_mem_area", "const_mem_area"))
    if fast.name.lower() != "sram":
        raise mode.error(f"cache_mem_area is {fast.name}, not Sram")
    slow = next((each for each in (arena, const) if each.name != fast.name), None)
    if slow is None:
        raise mode.error("all lies in SRAM in this mode: there is nothing to spill to", "choose Shared_Sram or another")
    return fast, slow
