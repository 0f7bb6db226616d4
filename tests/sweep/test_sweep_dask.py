"""The same sweep on a real scheduler and real workers, processes on the loopback, one of which is killed meanwhile."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from spillprof.cli import run
from spillprof.errors import UsageError
from spillprof.lowering.options import LoweringOptions
from spillprof.model.graph import Graph, Operator, Tensor, TensorKind
from spillprof.model.target import load_target
from spillprof.planning.options import PlanningOptions
from spillprof.report.sweep_data import render_json
from spillprof.sweep.cases import Source, make_study
from spillprof.sweep.cluster import Cluster
from spillprof.sweep.local import InProcess
from spillprof.sweep.result import conclude
from spillprof.sweep.rows import Case, Row
from spillprof.sweep.run import Run
from spillprof.sweep.work import Study

UNET = str(Path(__file__).parents[2] / "sample_models" / "unet.onnx")
START_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Loopback:
    """A scheduler, and its workers by process."""

    address: str
    workers: list["subprocess.Popen[bytes]"]


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[Loopback]:
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False", "OMP_NUM_THREADS": "1"}

    def start(*arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "dask", *arguments]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=quiet, stderr=quiet)

    scheduler = start("scheduler", *common, "--host", "127.0.0.1", "--port", "0")
    processes = [scheduler]
    try:
        deadline = time.monotonic() + START_S
        while not file.exists() or not file.read_text("utf-8").strip():
            assert scheduler.poll() is None, "the scheduler did not start"
            assert time.monotonic() < deadline, "the scheduler did not start in time"
            time.sleep(0.05)
        worker = ("worker", *common, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--death-timeout", "60")
        workers = [start(*worker) for _ in range(2)]
        processes += workers
        yield Loopback(address=json.loads(file.read_text("utf-8"))["address"], workers=workers)
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def _chain(width: int) -> Graph:
    """A chain with a skip from each tensor to the one after the next: small, and it spills."""
    tensors = {"t0": Tensor(name="t0", dtype="int8", shape=(1024 * width,), kind=TensorKind.INPUT)}
    operators = []
    for i in range(1, 40):
        size = 1024 * (1 + (i * width) % 7)
        tensors[f"t{i}"] = Tensor(name=f"t{i}", dtype="int8", shape=(size,), kind=TensorKind.ACTIVATION)
        inputs = tuple(dict.fromkeys((f"t{i - 1}", f"t{max(0, i - 3)}", f"t{max(0, i - 9)}")))
        operators.append(Operator(name=f"op{i}", op_type="Concat", domain="", inputs=inputs, outputs=(f"t{i}",)))
    return Graph(name=f"chain{width}", operators=tuple(operators), tensors=tensors, inputs=("t0",), outputs=("t39",))


@pytest.fixture(scope="module")
def study() -> tuple[Study, list[Case]]:
    sources = [
        Source(model=f"chain{width}", graph=_chain(width), dims={}, binding={"width": width}) for width in range(1, 5)
    ]
    return make_study(sources, load_target("generic-npu"), [{}], LoweringOptions(), PlanningOptions())


PAIRS = list(product(("best-fit",), ("lru", "interval", "optimal")))
SIZES = [1024 * n for n in range(16, 40, 10)]


def _text(study: tuple[Study, list[Case]], rows: tuple[Row, ...]) -> str:
    return render_json(conclude(*study, rows, within=0.05, complete=True, target={"name": "t"}, config={}, command=""))


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_finds_the_same_bytes(
    loopback: Loopback, study: tuple[Study, list[Case]]
) -> None:
    local = Run(study[1], PAIRS, {})
    local.at(SIZES, InProcess(study[0]), lambda done, total: None)
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if not killed and done > total // 10:
            os.kill(loopback.workers[0].pid, signal.SIGKILL)
            killed.append(done)

    cluster = Cluster(study[0], loopback.address)
    remote = Run(study[1], PAIRS, {})
    try:
        cluster.wait_for_workers(2)
        remote.at(SIZES, cluster, kill_one)
    finally:
        cluster.close()
    assert killed
    assert killed[0] < len(SIZES) * len(PAIRS) * len(study[1])
    assert loopback.workers[0].wait(10) == -signal.SIGKILL
    assert loopback.workers[1].poll() is None
    assert any(row.spill_bytes for row in local.rows())
    assert _text(study, remote.rows()) == _text(study, local.rows())


@pytest.mark.slow
def test_the_command_line_gives_the_same_file(
    loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    swept = ["sweep", UNET, "--sram", "1MB..32MB", "--strategy", "lru,interval"]
    assert run([*swept, "-j", "1", "-o", "local.csv"]) == 0
    assert run([*swept, "--dask", loopback.address, "-o", "remote.csv"]) == 0
    assert Path("remote.csv").read_bytes() == Path("local.csv").read_bytes()


@pytest.mark.slow
def test_a_cluster_without_workers_is_an_error(
    loopback: Loopback, study: tuple[Study, list[Case]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spillprof.sweep.cluster._CONNECT_S", 2)
    for worker in loopback.workers:
        worker.kill()
        worker.wait()
    cluster = Cluster(study[0], loopback.address)
    try:
        with pytest.raises(UsageError, match="no worker of the Dask cluster answers"):
            Run(study[1], PAIRS, {}).at(SIZES, cluster, lambda done, total: None)
    finally:
        cluster.close()


def test_a_scheduler_that_is_not_there_is_an_error(
    study: tuple[Study, list[Case]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("spillprof.sweep.cluster._CONNECT_S", 1)
    for address in ("tcp://127.0.0.1:9", "nowhere at all"):
        with pytest.raises(UsageError, match="cannot reach a Dask scheduler"):
            Cluster(study[0], address)
