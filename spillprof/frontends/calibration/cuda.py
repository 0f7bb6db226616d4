"""Times copies between pinned host memory and a CUDA device, through the driver API: only a driver is needed."""

from contextlib import suppress
from typing import Any

from spillprof.frontends.calibration.measure import Direction
from spillprof.ir.errors import UsageError

_WARM_UP_BYTES = 4096
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no waiting for the default stream
_MS = 1e-3


class CudaCopier:
    """Reads go from host to device, writes from device to host; both at once, on a stream each.

    Times are between events on the device: they include the set-up of the copy, not the calls on the host.
    """

    def __init__(self, device: int, largest_bytes: int) -> None:
        """Buffers for copies of up to ``largest_bytes``.

        ``UsageError`` without the library, a driver, that device, or room.
        """
        self._driver = _Driver()
        self._undo: list[tuple[str, Any]] = []  # releasing calls, in order of allocation
        try:
            self._open(device, largest_bytes)
        except BaseException:
            self.close()
            raise

    def _open(self, number: int, largest_bytes: int) -> None:
        call = self._driver.call
        call("cuInit", 0)
        count = call("cuDeviceGetCount")
        if number >= count:
            found = "there is none" if count == 0 else f"there are {count}, counted from 0"
            raise UsageError(f"no CUDA device {number}: {found}", hint="measure this machine's memory: --device cpu")
        device = call("cuDeviceGet", number)
        name = call("cuDeviceGetName", 256, device)
        self._device = f"{name.split(bytes(1))[0].decode('utf-8', 'replace').strip()}, CUDA device {number}"
        context = call("cuDevicePrimaryCtxRetain", device)
        self._undo.append(("cuDevicePrimaryCtxRelease", device))
        call("cuCtxSetCurrent", context)
        self._host: dict[Direction, Any] = {}
        self._memory: dict[Direction, Any] = {}
        self._stream: dict[Direction, Any] = {}
        self._done: dict[Direction, Any] = {}
        for way in (Direction.READ, Direction.WRITE):
            self._host[way] = self._taken("cuMemHostAlloc", "cuMemFreeHost", largest_bytes, 0)
            self._memory[way] = self._taken("cuMemAlloc", "cuMemFree", largest_bytes)
            self._stream[way] = self._taken("cuStreamCreate", "cuStreamDestroy", _NON_BLOCKING)
            self._done[way] = self._taken("cuEventCreate", "cuEventDestroy", 0)
        self._start = self._taken("cuEventCreate", "cuEventDestroy", 0)

    def _taken(self, take: str, give_back: str, *arguments: Any) -> Any:
        resource = self._driver.call(take, *arguments)
        self._undo.append((give_back, resource))
        return resource

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._device

    @property
    def method(self) -> tuple[str, ...]:
        """Meaning of reads and writes, pages, clock."""
        return (
            "read: host to device; write: device to host; both: each on a stream of its own",
            "host pages are pinned",
            "clock: events on the device",
        )

    def seconds(self, direction: Direction, size_bytes: int) -> float:
        """Seconds of one copy, or of the longer of two at once, after a small warm-up copy."""
        self._timed(direction, min(_WARM_UP_BYTES, size_bytes))
        return self._timed(direction, size_bytes)

    def close(self) -> None:
        """Releases all resources, the last first."""
        while self._undo:
            name, resource = self._undo.pop()
            with suppress(UsageError):  # the first error is the one to report
                self._driver.call(name, resource)

    def _timed(self, direction: Direction, size_bytes: int) -> float:
        call = self._driver.call
        ways = (Direction.READ, Direction.WRITE) if direction is Direction.BOTH else (direction,)
        first = self._stream[ways[0]]
        call("cuEventRecord", self._start, first)
        for way in ways:
            call("cuStreamWaitEvent", self._stream[way], self._start, 0)
        for way in ways:
            host, memory, stream = self._host[way], self._memory[way], self._stream[way]
            if way is Direction.READ:
                call("cuMemcpyHtoDAsync", memory, host, size_bytes, stream)
            else:
                call("cuMemcpyDtoHAsync", host, memory, size_bytes, stream)
            call("cuEventRecord", self._done[way], self._stream[way])
        for way in ways:
            call("cuEventSynchronize", self._done[way])
        return max(float(call("cuEventElapsedTime", self._start, self._done[way])) for way in ways) * _MS


class _Driver:
    """Calls of the driver API by name. A failure is a ``UsageError``."""

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver
        except ImportError:
            raise UsageError(
                "a CUDA device needs the library 'cuda-bindings'", hint="pip install 'spillprof[cuda]'"
            ) from None
        self._driver = driver

    def call(self, name: str, *arguments: Any) -> Any:
        try:
            status, *results = getattr(self._driver, name)(*arguments)
        except RuntimeError as error:  # no driver library
            raise UsageError(
                "no CUDA driver is found",
                where=(str(error).splitlines()[0] if str(error) else type(error).__name__,),
                hint="install the NVIDIA driver, or measure this machine's memory: --device cpu",
            ) from None
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise UsageError(
                f"the CUDA driver failed: {status.name}", where=(name,), hint="try smaller --sizes, or --device cpu"
            )
        return results[0] if results else None
