"""ST ``.mpool``: the memory pools that the Neural-ART compiler may use, as JSON.

The writable pools of high throughput are on-chip memory; spills go to the slowest other writable pool, or to the one
selected by name. Bandwidth = byteWidth x NPU clock / freqRatio. Clock and MACs, which the file lacks, are those of
the STM32N6.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillprof.ir.errors import UsageError
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import MPOOL
from spillprof.ir.side_files.opening import read_text
from spillprof.ir.target import Target
from spillprof.ir.units import LARGEST_FIGURE

_MAGNITUDES = {"BYTES": 1, "KBYTES": 2**10, "MBYTES": 2**20, "GBYTES": 2**30}
_NPU_CLOCK_HZ = 1e9  # STM32N6 data sheet: Neural-ART at up to 1 GHz
_NPU_MACS_PER_S = 300e9  # STM32N6 data sheet: 600 GOPS
_NPU_PORTS = 2  # RM0486, figure 114: two AXI masters


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    name: str
    size_bytes: int
    bytes_per_s: float
    is_writable: bool
    is_fast: bool


def read_mpool(path: Path, selection: tuple[str, ...] = ()) -> Target:
    """The machine that the pools describe; ``selection``: the pool that spills go to. ``UsageError`` if malformed."""
    pools = [pool for pool in _pools(path) if pool.size_bytes > 0]
    fast = [pool for pool in pools if pool.is_fast and pool.is_writable]
    others = [pool for pool in pools if pool not in fast]
    if not fast:
        raise _error(path, "no pool is writable and of high throughput", "give one throughput THROUGHPUT_HIGH or HIGH")
    if not others:
        raise _error(path, "every pool is on-chip: there is nothing to spill to", "add an external memory")
    writable = [pool for pool in others if pool.is_writable]
    slow = min(writable or others, key=lambda pool: pool.bytes_per_s)
    if selection:
        named = [pool for pool in others if pool.name == selection[0]]
        if len(selection) > 1 or not named:
            hint = f"there are {', '.join(pool.name for pool in others)}"
            raise _error(path, f"no pool '{':'.join(selection)}' that spills could go to", hint)
        slow = named[0]
    names = ", ".join(pool.name for pool in fast)
    pool_source = f"{path.name}: {slow.name}, byteWidth x 1 GHz / freqRatio"
    sources = {
        "sram_bytes": f"{path.name}: {names}; taken as one piece",
        "alignment_bytes": "assumed: 32 bytes, a cache line of the Cortex-M55",
        "dram_read_bytes_per_s": pool_source,
        "dram_write_bytes_per_s": pool_source
        if slow.is_writable
        else f"assumed: as reading; {slow.name} is read-only, and no other pool can be written",
        "dram_read_setup_s": "assumed: 1 us; the file says only low, mid or high",
        "dram_write_setup_s": "assumed: as reading",
        "dram_bus_bytes_per_s": f"assumed: {slow.name} carries one direction at a time",
        "sram_bytes_per_s": f"{path.name}: {names}; two of them at once, as RM0486 gives the NPU two AXI masters",
        "clock_hz": "STM32N6 data sheet: NPU at up to 1 GHz",
        "macs_per_s": "STM32N6 data sheet: 600 GOPS, two operations a MAC; assumed: every type at this rate",
        "utilisation": "assumed: half of the peak",
    }
    return Target(
        name=path.stem,
        sram_bytes=sum(pool.size_bytes for pool in fast),
        alignment_bytes=32,
        dram_read_bytes_per_s=slow.bytes_per_s,
        dram_write_bytes_per_s=slow.bytes_per_s,
        dram_read_setup_s=1e-6,
        dram_write_setup_s=1e-6,
        dram_bus_bytes_per_s=slow.bytes_per_s,
        sram_bytes_per_s=sum(sorted((pool.bytes_per_s for pool in fast), reverse=True)[:_NPU_PORTS]),
        clock_hz=_NPU_CLOCK_HZ,
        macs_per_s={"default": _NPU_MACS_PER_S},
        utilisation={"default": 0.5},
        sources=sources,
    )


def _error(path: Path, message: str, hint: str | None = None) -> UsageError:
    return UsageError(message, where=(str(path),), hint=hint)


def _pools(path: Path) -> list[_Pool]:
    document = parse_json(read_text(path, MPOOL), MPOOL, str(path))
    memory = document.get("memory") if isinstance(document, dict) else None
    pools = memory.get("mempools") if isinstance(memory, dict) else None
    if not isinstance(pools, list) or not all(isinstance(pool, dict) for pool in pools):
        raise _error(path, "there is no list 'memory.mempools'", "is it a .mpool file of ST Edge AI?")
    return [_pool(path, index, pool) for index, pool in enumerate(pools)]


def _pool(path: Path, index: int, pool: Mapping[str, Any]) -> _Pool:
    name = pool.get("name") or pool.get("fname") or f"pool {index}"
    prop = pool.get("prop")
    if not isinstance(name, str) or not isinstance(prop, dict):
        raise _error(path, f"pool {index} has no name or no 'prop'")
    width, ratio = (_number(path, name, key, prop.get(key)) for key in ("byteWidth", "freqRatio"))
    return _Pool(
        name=name,
        size_bytes=_size(path, name, pool.get("size")),
        bytes_per_s=width * _NPU_CLOCK_HZ / ratio,
        is_writable="WRITE" in str(prop.get("rights", "")).upper(),
        is_fast="HIGH" in str(prop.get("throughput", "")).upper(),
    )


def _number(path: Path, name: str, key: str, value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 1 / LARGEST_FIGURE <= value <= LARGEST_FIGURE
    ):
        raise _error(path, f"pool '{name}': {key} = {value!r} is not a positive number")
    return float(value)


def _size(path: Path, name: str, size: object) -> int:
    value = size.get("value") if isinstance(size, dict) else None
    unit = _MAGNITUDES.get(str(size.get("magnitude")).upper()) if isinstance(size, dict) else None
    try:
        number = int(str(value), 0)
    except ValueError:
        number = -1
    if unit is None or not 0 <= number * unit <= 2**60:
        raise _error(path, f"pool '{name}': size {size!r} is not understood", "write value and magnitude, like KBYTES")
    return number * unit
