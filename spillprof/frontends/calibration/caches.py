"""The caches of this machine: how large they are, and how they are swept."""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from spillprof.ir.errors import UsageError

_ASSUMED_BYTES = 64 * 2**20  # where the system does not tell: more than most have
_TIMES = 2  # of the cache that is read: what replaces entries at random leaves little of the old after that
_LARGEST_SWEEP_BYTES = 2**30


def last_level_cache_bytes() -> tuple[int, bool]:
    """Size of the last-level cache, and whether the system told it (else it is assumed)."""
    found = _of_linux() if sys.platform == "linux" else _of_macos() if sys.platform == "darwin" else 0
    return (found, True) if found > 0 else (_ASSUMED_BYTES, False)


def sweep_bytes(cache_bytes: int) -> int:
    """Size of the buffer that sweeps a cache of that size."""
    return min(_TIMES * cache_bytes, _LARGEST_SWEEP_BYTES)


def cache_sweep(cache_bytes: int) -> Callable[..., None]:
    """A call that reads so much that nothing of before is left in the caches; it takes any arguments.

    ``UsageError`` without room for what is read.
    """
    try:
        buffer = np.ones(max(sweep_bytes(cache_bytes) // 8, 1), np.int64)
    except MemoryError:
        raise UsageError(
            f"there is no room for the {sweep_bytes(cache_bytes):,} bytes that sweep the caches",
            hint="measure with --no-sweep",
        ) from None

    def sweep(*_: object) -> None:
        buffer.max()  # reading takes room in every level; a large write may go past them

    return sweep


def _of_linux() -> int:
    """The largest of what the kernel lists for the first processor."""
    sizes = [0]
    for entry in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            text = entry.read_text("ascii").strip()
            sizes.append(int(text.removesuffix("K")) * 1024 if text.endswith("K") else int(text))
        except (OSError, ValueError):
            continue
    return max(sizes)


def _of_macos() -> int:
    sizes = [0]
    for name in (b"hw.l3cachesize", b"hw.perflevel0.l2cachesize", b"hw.l2cachesize"):
        value, length = ctypes.c_int64(0), ctypes.c_size_t(8)
        try:
            failed = ctypes.CDLL(None).sysctlbyname(name, ctypes.byref(value), ctypes.byref(length), None, 0)
        except (OSError, AttributeError):
            return 0
        if not failed:
            sizes.append(value.value)
    return max(sizes)
