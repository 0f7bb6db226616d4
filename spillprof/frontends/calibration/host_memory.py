"""Times copies within this machine's memory, and sweeps its caches."""

import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spillprof.frontends.calibration.measure import Direction
from spillprof.ir.errors import UsageError

_ASSUMED_BYTES = 64 * 2**20  # where the system does not report it: more than most have
_TIMES = 2  # of the cache size: evicts nearly all even with random replacement
_LARGEST_SWEEP_BYTES = 2**30


def last_level_cache_bytes() -> tuple[int, bool]:
    """(size of the last-level cache, whether the system reports it; else it is assumed)."""
    found = _of_linux() if sys.platform == "linux" else _of_macos() if sys.platform == "darwin" else 0
    return (found, True) if found > 0 else (_ASSUMED_BYTES, False)


def sweep_bytes(cache_bytes: int) -> int:
    """Size of the buffer that sweeps a cache of that size."""
    return min(_TIMES * cache_bytes, _LARGEST_SWEEP_BYTES)


def cache_sweep(cache_bytes: int) -> Callable[..., None]:
    """A function of any arguments that evicts the caches by reading a large buffer.

    ``UsageError`` if memory is too small for the buffer.
    """
    try:
        buffer = np.ones(max(sweep_bytes(cache_bytes) // 8, 1), np.int64)
    except MemoryError:
        raise UsageError(
            f"there is no room for the {sweep_bytes(cache_bytes):,} bytes that sweep the caches",
            hint="measure with --no-sweep",
        ) from None

    def sweep(*_: object) -> None:
        buffer.max()  # reads allocate in every level; large writes may bypass caches

    return sweep


def _of_linux() -> int:
    """The largest cache that the kernel lists for the first processor."""
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


_BLOCK_BYTES = 128 * 1024  # fits the L2 cache, and outweighs the cost of a call
_WARM_UP_BYTES = 4096
_MOST_OF_THE_MEMORY = 0.5  # limit of buffers
Block = NDArray[np.uint8]


class HostCopier:
    """Reads go from a large buffer to a block in the cache, piece by piece; writes go back; both: large to large.

    Times are CPU time of the copying thread where the system has a fine clock for it, without preemption.
    """

    def __init__(self, largest_bytes: int, *, beside_bytes: int = 0) -> None:
        """Buffers for copies of up to ``largest_bytes``. ``UsageError`` if they and ``beside_bytes`` do not fit."""
        _check_room(2 * largest_bytes + beside_bytes)
        try:
            self._source, self._sink = (np.full(largest_bytes, value, np.uint8) for value in (1, 2))
        except MemoryError:
            raise _no_room(2 * largest_bytes) from None
        self._block = np.full(_BLOCK_BYTES, 3, np.uint8)
        self._locked = [each for each in (self._source, self._sink) if _lock_call("mlock", "VirtualLock", each)]
        self._now_s, self._clock = _clock()

    @property
    def device(self) -> str:
        """Memory and processor."""
        return f"memory of this machine, {_processor()}"

    @property
    def method(self) -> tuple[str, ...]:
        """Meaning of reads and writes, pages, clock."""
        pages = "locked" if len(self._locked) == 2 else "touched before, not locked: the system does not allow it"
        return (
            f"read: from memory into a block of {_BLOCK_BYTES // 1024} KiB that stays in the cache; write: back; "
            "both: memory to memory",
            f"pages are {pages}",
            f"clock: {self._clock}",
        )

    def seconds(self, direction: Direction, size_bytes: int) -> float:
        """Seconds of one copy, with the block in the cache and warm code."""
        self._block.fill(3)
        self._copy(direction, min(_WARM_UP_BYTES, size_bytes))
        start_s = self._now_s()
        self._copy(direction, size_bytes)
        return self._now_s() - start_s

    def close(self) -> None:
        """Unlocks the pages and frees the buffers."""
        for each in self._locked:
            _lock_call("munlock", "VirtualUnlock", each)
        self._locked = []
        self._source = self._sink = np.zeros(0, np.uint8)

    def _copy(self, direction: Direction, size_bytes: int) -> None:
        for start in range(0, size_bytes, _BLOCK_BYTES):
            piece = slice(start, min(start + _BLOCK_BYTES, size_bytes))
            block = self._block[: piece.stop - start]
            source = block if direction is Direction.WRITE else self._source[piece]
            np.copyto(block if direction is Direction.READ else self._sink[piece], source)


def _clock() -> tuple[Callable[[], float], str]:
    """A clock, and what it counts. The thread clock of Windows is too coarse (64 ticks a second)."""
    if sys.platform == "win32":
        return time.perf_counter, "wall"
    return time.thread_time, "processor time of the copying thread"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next((name for name in names if name), platform.processor() or platform.machine() or "unknown processor")


def _check_room(wanted_bytes: int) -> None:
    try:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return  # unknown here: the allocation fails instead
    if 0 < memory_bytes * _MOST_OF_THE_MEMORY < wanted_bytes:
        raise _no_room(wanted_bytes)


def _no_room(wanted_bytes: int) -> UsageError:
    return UsageError(
        f"buffers of {wanted_bytes / 2**20:,.0f} MiB are too much for this machine",
        hint="measure smaller copies: --sizes 256KB..64MB",
    )


def _lock_call(posix: str, windows: str, buffer: Block) -> bool:
    """Locks or unlocks a buffer's pages; False where the system does not allow it."""
    address, length = ctypes.c_void_p(buffer.ctypes.data), ctypes.c_size_t(buffer.nbytes)
    try:
        if sys.platform == "win32":
            return bool(getattr(ctypes.WinDLL("kernel32"), windows)(address, length))
        return bool(getattr(ctypes.CDLL(None), posix)(address, length) == 0)
    except (OSError, AttributeError):
        return False
