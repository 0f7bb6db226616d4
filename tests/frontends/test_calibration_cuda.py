"""Copies of a CUDA device, against a simulated driver with a clock and an allocator."""

import re
import sys
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spillprof.frontends.calibration import cuda
from spillprof.frontends.calibration.cuda import CudaCopier
from spillprof.frontends.calibration.measure import Direction
from spillprof.ir.errors import UsageError


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100


class Driver(ModuleType):
    """Streams run on their own, 1e9 bytes a second after 10 us; a stream's time only grows. Times in seconds."""

    CUresult = CUresult

    def __init__(self, devices: int = 1, memory_bytes: int = 1000) -> None:
        super().__init__("cuda.bindings.driver")
        self.devices, self.memory_bytes = devices, memory_bytes
        self.held: dict[int, str] = {}
        self.stream_s: dict[int, float] = {}
        self.event_s: dict[int, float] = {}
        self.given = 0

    def _give(self, kind: str) -> tuple[CUresult, int]:
        self.given += 1
        self.held[self.given] = kind
        return CUresult.CUDA_SUCCESS, self.given

    def _take(self, kind: str, handle: int) -> tuple[CUresult]:
        assert self.held.pop(handle) == kind
        return (CUresult.CUDA_SUCCESS,)

    def cuInit(self, flags: int) -> tuple[CUresult]:
        return (CUresult.CUDA_SUCCESS if self.devices else CUresult.CUDA_ERROR_NO_DEVICE,)

    def cuDeviceGetCount(self) -> tuple[CUresult, int]:
        return CUresult.CUDA_SUCCESS, self.devices

    def cuDeviceGet(self, number: int) -> tuple[CUresult, int]:
        return CUresult.CUDA_SUCCESS, -1 - number

    def cuDeviceGetName(self, length: int, device: int) -> tuple[CUresult, bytes]:
        return CUresult.CUDA_SUCCESS, b"Board 7".ljust(length, b"\0")

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[CUresult, str]:
        self.held[device] = "context"
        return CUresult.CUDA_SUCCESS, "context"

    def cuDevicePrimaryCtxRelease(self, device: int) -> tuple[CUresult]:
        return self._take("context", device)

    def cuCtxSetCurrent(self, context: str) -> tuple[CUresult]:
        assert context == "context"
        return (CUresult.CUDA_SUCCESS,)

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[CUresult, int]:
        return self._give("host")

    def cuMemFreeHost(self, handle: int) -> tuple[CUresult]:
        return self._take("host", handle)

    def cuMemAlloc(self, size: int) -> tuple[CUresult, int]:
        self.memory_bytes -= size
        return self._give("device") if self.memory_bytes >= 0 else (CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0)

    def cuMemFree(self, handle: int) -> tuple[CUresult]:
        return self._take("device", handle)

    def cuStreamCreate(self, flags: int) -> tuple[CUresult, int]:
        status, handle = self._give("stream")
        self.stream_s[handle] = 0.0
        return status, handle

    def cuStreamDestroy(self, handle: int) -> tuple[CUresult]:
        return self._take("stream", handle)

    def cuEventCreate(self, flags: int) -> tuple[CUresult, int]:
        return self._give("event")

    def cuEventDestroy(self, handle: int) -> tuple[CUresult]:
        return self._take("event", handle)

    def cuEventRecord(self, event: int, stream: int) -> tuple[CUresult]:
        self.event_s[event] = self.stream_s[stream]
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> tuple[CUresult]:
        self.stream_s[stream] = max(self.stream_s[stream], self.event_s[event])
        return (CUresult.CUDA_SUCCESS,)

    def cuEventSynchronize(self, event: int) -> tuple[CUresult]:
        now_s = self.event_s[event]
        self.stream_s = {stream: max(at_s, now_s) for stream, at_s in self.stream_s.items()}
        return (CUresult.CUDA_SUCCESS,)

    def cuEventElapsedTime(self, start: int, end: int) -> tuple[CUresult, float]:
        return CUresult.CUDA_SUCCESS, 1000 * (self.event_s[end] - self.event_s[start])

    def cuMemcpyHtoDAsync(self, device: int, host: int, size: int, stream: int) -> tuple[CUresult]:
        return self._copy(device, host, size, stream, rate=1e9)

    def cuMemcpyDtoHAsync(self, host: int, device: int, size: int, stream: int) -> tuple[CUresult]:
        return self._copy(device, host, size, stream, rate=5e8)

    def _copy(self, device: int, host: int, size: int, stream: int, rate: float) -> tuple[CUresult]:
        assert (self.held[device], self.held[host], self.held[stream]) == ("device", "host", "stream")
        self.stream_s[stream] += 1e-5 + size / rate
        return (CUresult.CUDA_SUCCESS,)


def use(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = ModuleType("cuda.bindings")
    bindings.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)


def test_each_way_takes_its_time_and_both_at_once_take_the_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    use(driver, monkeypatch)
    copier = CudaCopier(0, 500)
    assert copier.device == "Board 7, CUDA device 0"
    for _ in range(2):
        assert copier.seconds(Direction.READ, 500) == pytest.approx(1e-5 + 500 / 1e9)
        assert copier.seconds(Direction.WRITE, 500) == pytest.approx(1e-5 + 500 / 5e8)
        assert copier.seconds(Direction.BOTH, 500) == pytest.approx(1e-5 + 500 / 5e8)
    assert sorted(driver.held.values()) == sorted(
        ["context", *2 * ["host"], *2 * ["device"], *2 * ["stream"], *3 * ["event"]]
    )
    copier.close()
    copier.close()
    assert driver.held == {}


def test_what_was_taken_is_given_back_when_the_device_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(memory_bytes=700)
    use(driver, monkeypatch)
    with pytest.raises(UsageError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        CudaCopier(0, 500)
    assert driver.held == {}


@pytest.mark.parametrize(
    ("devices", "number", "complaint"),
    [(0, 0, "CUDA_ERROR_NO_DEVICE"), (1, 1, "no CUDA device 1: there are 1, counted from 0")],
)
def test_no_such_device(devices: int, number: int, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Driver(devices), monkeypatch)
    with pytest.raises(UsageError, match=complaint) as failure:
        CudaCopier(number, 500)
    assert "--device cpu" in str(failure.value.hint)


def test_without_a_driver_the_hint_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoDriver(Driver):
        def cuInit(self, flags: int) -> tuple[CUresult]:
            raise RuntimeError("libcuda is not there\nsearched everywhere")

    use(NoDriver(), monkeypatch)
    with pytest.raises(UsageError, match="no CUDA driver is found") as failure:
        CudaCopier(0, 500)
    assert failure.value.where == ("libcuda is not there",)


def test_without_the_library_the_hint_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)  # makes its import fail
    with pytest.raises(UsageError, match="cuda-bindings") as failure:
        CudaCopier(0, 500)
    assert "spillprof[cuda]" in str(failure.value.hint)


def test_the_library_has_every_call_under_its_name() -> None:
    driver = pytest.importorskip("cuda.bindings.driver", reason="the extra 'cuda' is not installed")
    names = set(re.findall(r'"(cu[A-Z]\w+)"', Path(cuda.__file__).read_text("utf-8")))
    assert len(names) > 15
    assert {name for name in names if not hasattr(driver, name)} == set()
    assert {name for name in names if not hasattr(Driver, name)} == set()
    assert int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING) == cuda._NON_BLOCKING
    assert driver.CUresult.CUDA_SUCCESS.name == "CUDA_SUCCESS"
