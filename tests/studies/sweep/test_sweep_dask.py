"""The same sweep on a real scheduler and real workers on the loopback, one of which is killed during it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

import spillprof
from spillprof.cli import run
from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Bindings, Graph, Operator, Tensor, TensorKind
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.report.sweep.data import render_json
from spillprof.report.sweep.terminal import render
from spillprof.studies.sweep.cases import SweepModel, make_study
from spillprof.studies.sweep.cluster import Cluster
from spillprof.studies.sweep.grid import Grid
from spillprof.studies.sweep.local import InProcess
from spillprof.studies.sweep.result import conclude
from spillprof.studies.sweep.rows import Row, SweepCase
from spillprof.studies.sweep.work import LOST, Study

UNET = str(Path(__file__).parents[3] / "sample_models" / "unet.onnx")
PACKAGE = Path(spillprof.__file__).parent
START_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Loopback:
    """A scheduler, and its workers by process."""

    address: str
    scheduler: "subprocess.Popen[bytes]"
    workers: list["subprocess.Popen[bytes]"]
    start_worker: Callable[[Path], None]  # with what is in the folder before all else


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[Loopback]:
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False", "OMP_NUM_THREADS": "1"}

    def start(*arguments: str, **variables: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "dask", *arguments]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=tmp_path, env={**environment, **variables}, stdout=quiet, stderr=quiet)

    scheduler = start("scheduler", *common, "--host", "127.0.0.1", "--port", "0")
    workers: list[subprocess.Popen[bytes]] = []

    def start_worker(first: Path) -> None:
        worker = ("worker", *common, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--death-timeout", "60")
        workers.append(start(*worker, PYTHONPATH=str(first)))

    try:
        deadline = time.monotonic() + START_S
        while not file.exists() or not file.read_text("utf-8").strip():
            assert scheduler.poll() is None, "the scheduler did not start"
            assert time.monotonic() < deadline, "the scheduler did not start in time"
            time.sleep(0.05)
        for _ in range(2):
            start_worker(PACKAGE.parent)
        address = json.loads(file.read_text("utf-8"))["address"]
        yield Loopback(address=address, scheduler=scheduler, workers=workers, start_worker=start_worker)
    finally:
        for process in (*workers, scheduler):
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
def study() -> tuple[Study, list[SweepCase]]:
    sources = [
        SweepModel(model=f"chain{width}", graph=_chain(width), dims={}, bindings=Bindings(dims={"width": width}))
        for width in range(1, 5)
    ]
    return make_study(sources, load_target("generic-npu"), [{}], LoweringOptions(), PlanningOptions())


PAIRS = list(product(("best-fit",), ("lru", "interval", "optimal")))
SIZES = [1024 * n for n in range(16, 40, 10)]


def _text(study: tuple[Study, list[SweepCase]], rows: tuple[Row, ...]) -> str:
    return render_json(conclude(*study, rows, within=0.05, complete=True, target={"name": "t"}, config={}, command=""))


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_finds_the_same_bytes(
    loopback: Loopback, study: tuple[Study, list[SweepCase]]
) -> None:
    local = Grid(study[1], PAIRS, {})
    local.at(SIZES, InProcess(study[0]), lambda done, total: None)
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if not killed and done > total // 10:
            os.kill(loopback.workers[0].pid, signal.SIGKILL)
            killed.append(done)

    cluster = Cluster(study[0], loopback.address)
    remote = Grid(study[1], PAIRS, {})
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
    loopback: Loopback, study: tuple[Study, list[SweepCase]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spillprof.studies.sweep.cluster._WORKERS_S", 2)
    for worker in loopback.workers:
        worker.kill()
        worker.wait()
    cluster = Cluster(study[0], loopback.address)
    try:
        with pytest.raises(UsageError, match="no worker of the Dask cluster answers"):
            Grid(study[1], PAIRS, {}).at(SIZES, cluster, lambda done, total: None)
    finally:
        cluster.close()


def test_a_scheduler_that_is_not_there_is_an_error(
    study: tuple[Study, list[SweepCase]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("spillprof.studies.sweep.cluster._CONNECT_S", 1)
    for address in ("tcp://127.0.0.1:9", "nowhere at all"):
        with pytest.raises(UsageError, match="cannot reach a Dask scheduler"):
            Cluster(study[0], address)


ANSWERS = {
    "says nothing": None,
    "closes": b"",
    "is an HTTP server": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "is an SSH server": b"SSH-2.0-OpenSSH_9.2\r\n",
    "says anything": b"\xff" * 4096,
}


@pytest.mark.parametrize("answer", list(ANSWERS.values()), ids=list(ANSWERS))
def test_a_server_that_is_no_scheduler_is_an_error(answer: bytes | None, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    kept = []

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            kept.append(connection)
            if answer == b"":
                connection.close()
            elif answer is not None:
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        # in a process of its own: a client that waits without end leaves locks behind
        done = subprocess.run(
            [sys.executable, "-m", "spillprof", "sweep", UNET, "--sram", "1MB", "--dask", address, "-o", "a.csv"],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    error, where, hint = done.stderr.splitlines()
    assert error == f"error: cannot reach a Dask scheduler at '{address}'"
    assert where.startswith("  --> ")
    assert hint.startswith("hint: give the address")
    assert list(tmp_path.iterdir()) == []
    for connection in kept:
        connection.close()


def _another_spillprof(folder: Path) -> Path:
    """A folder with this package as it stands, but of the next revision of the simulator, and another version."""
    shutil.copytree(PACKAGE, folder / "spillprof", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (
        ("ir/revision.py", f"SIMULATOR_REVISION = {SIMULATOR_REVISION + 1}\n"),
        ("__init__.py", '__version__ = "0.0.7"\n'),
    ):
        file = folder / "spillprof" / name
        head, _, _ = text.partition(" = ")
        lines = [text if line.startswith(f"{head} = ") else line for line in file.read_text("utf-8").splitlines(True)]
        file.write_text("".join(lines), "utf-8")
    return folder


@pytest.mark.slow
def test_a_worker_of_another_version_is_refused_by_name(
    loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    loopback.start_worker(_another_spillprof(tmp_path / "another"))
    _wait_for(loopback, 3)
    assert run(["sweep", UNET, "--sram", "1MB,2MB", "--dask", loopback.address, "-o", "remote.csv"]) == 2
    out, err = capsys.readouterr()
    error, other, here, hint = err.splitlines()
    assert error == "error: Dask workers have another spillprof than this one, which may give other figures"
    assert other.startswith("  --> tcp://127.0.0.1:")
    assert other.endswith(f": spillprof 0.0.7, simulator revision {SIMULATOR_REVISION + 1}")
    assert here == f"  --> here: spillprof {spillprof.__version__}, simulator revision {SIMULATOR_REVISION}"
    assert hint == f"hint: install spillprof {spillprof.__version__} on every worker"
    assert out == ""
    assert not Path("remote.csv").exists()


@pytest.mark.slow
def test_a_worker_without_spillprof_is_refused_by_name(
    loopback: Loopback, tmp_path: Path, study: tuple[Study, list[SweepCase]]
) -> None:
    (tmp_path / "empty" / "spillprof").mkdir(parents=True)
    (tmp_path / "empty" / "spillprof" / "__init__.py").write_text("raise ImportError('none here')\n", "utf-8")
    loopback.start_worker(tmp_path / "empty")
    cluster = Cluster(study[0], loopback.address)
    try:
        cluster.wait_for_workers(3)
        with pytest.raises(UsageError, match="another spillprof") as caught:
            Grid(study[1], PAIRS, {}).at(SIZES, cluster, lambda done, total: None)
    finally:
        cluster.close()
    assert caught.value.where[0].endswith("cannot import spillprof (none here)")


@pytest.mark.slow
def test_a_worker_of_another_version_that_joins_later_is_refused_too(
    loopback: Loopback, tmp_path: Path, study: tuple[Study, list[SweepCase]]
) -> None:
    another = _another_spillprof(tmp_path / "another")
    cluster = Cluster(study[0], loopback.address)
    joined: list[int] = []

    def replace_the_others(done: int, total: int) -> None:
        if not joined:
            loopback.start_worker(another)
            cluster.wait_for_workers(3)
            for worker in loopback.workers[:2]:
                worker.kill()
            joined.append(done)

    # so many points that some are left for the one that joins
    sizes = range(16 * 1024, 48 * 1024, 256)
    remote = Grid(study[1], PAIRS, {})
    try:
        cluster.wait_for_workers(2)
        with pytest.raises(UsageError, match="another spillprof") as caught:
            remote.at(sizes, cluster, replace_the_others)
    finally:
        cluster.close()
    assert "spillprof 0.0.7" in caught.value.where[0]
    assert joined
    assert all(row.ok for row in remote.rows())


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["scheduler", "workers"])
def test_a_lost_cluster_leaves_points_that_are_missing(
    whom: str, loopback: Loopback, study: tuple[Study, list[SweepCase]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spillprof.studies.sweep.cluster._NO_WORKER_S", 2)
    monkeypatch.setattr("spillprof.studies.sweep.cluster._LOOK_EVERY_S", 1)
    monkeypatch.setattr("spillprof.studies.sweep.cluster._WORKERS_S", 2)
    cluster = Cluster(study[0], loopback.address)

    def kill_it(done: int, total: int) -> None:
        for process in [loopback.scheduler] if whom == "scheduler" else loopback.workers:
            process.kill()

    sizes = range(16 * 1024, 48 * 1024, 1024)
    remote = Grid(study[1], PAIRS, {})
    try:
        cluster.wait_for_workers(2)
        remote.at(sizes, cluster, kill_it)
    finally:
        cluster.close()
    rows = remote.rows()
    assert len(rows) == len(sizes) * len(PAIRS) * len(study[1])
    assert {row.status for row in rows} == {"ok", LOST}
    assert all(row.latency_s is None for row in rows if row.status == LOST)
    swept = conclude(*study, rows, within=0.05, complete=True, target={"name": "t"}, config={}, command="")
    assert not swept.complete
    lost = sum(row.status == LOST for row in rows)
    assert f"Not complete: {lost:,} of {len(rows):,} points are missing." in render(swept)


def _wait_for(loopback: Loopback, count: int) -> None:
    cluster = Cluster(Study(runs=()), loopback.address)
    try:
        cluster.wait_for_workers(count)
    finally:
        cluster.close()
