"""Time of a sweep in units of one ``analyze``, measured in one run on one machine.

    python benchmarks/sweep.py [--jobs 2] [--dask]

1. 30 sizes of SRAM x 5 strategies of sample_models/residual_cnn.onnx, as a process of its own, against the start-up
   of one ``analyze`` (the same command on a model of a few operators) and against a whole ``analyze`` of that model.
2. With ``--dask``: 1,000 points over 10 small models on a scheduler and two workers on the loopback, one of which is
   killed when a tenth is done, against the same sweep in this process. The results must be the same bytes.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spillprof.ir.graph import Bindings, Graph, Operator, Tensor, TensorKind
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.planning.strategies import CHEAP_STRATEGIES
from spillprof.report.sweep.data import render_json
from spillprof.studies.sweep.cases import SweepModel, make_study
from spillprof.studies.sweep.cluster import Cluster
from spillprof.studies.sweep.grid import Grid
from spillprof.studies.sweep.local import InProcess
from spillprof.studies.sweep.result import conclude
from spillprof.studies.sweep.work import Runner

SAMPLES = Path(__file__).parents[1] / "sample_models"
SPILLPROF = [sys.executable, "-m", "spillprof"]


def command_s(*arguments: str) -> tuple[float, float]:
    """(wall seconds, CPU seconds with children) of one command."""
    start, cpu = time.perf_counter(), os.times()
    subprocess.run([*SPILLPROF, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - cpu.children_user - cpu.children_system
    return time.perf_counter() - start, used


def residual_cnn(jobs: int) -> dict[str, float]:
    """The first benchmark."""
    model = str(SAMPLES / "residual_cnn.onnx")
    small = str(SAMPLES / "three_branch.onnx")
    start_up, _ = command_s("analyze", small, "--sram", "4GB", "--strategy", "lru", "--no-report")
    whole, _ = command_s("analyze", model, "--sram", "32MB", "--no-report")
    wall, cpu = command_s("sweep", model, "--sram", "19MB..48MB/1MB", "--jobs", str(jobs))
    return {
        "start-up of analyze, s": start_up,
        "whole analyze, s": whole,
        "sweep of 150 points, s (less than 15)": wall,
        "sweep, CPU s": cpu,
        "sweep / start-up (less than 30)": wall / start_up,
        "sweep / analyze": wall / whole,
    }


def chain(width: int) -> Graph:
    """A chain of 40 operators with skips, that spills in a few KiB."""
    tensors = {"t0": Tensor(name="t0", dtype="int8", shape=(1024 * width,), kind=TensorKind.INPUT)}
    operators = []
    for i in range(1, 41):
        shape = (1024 * (1 + (i * width) % 7),)
        tensors[f"t{i}"] = Tensor(name=f"t{i}", dtype="int8", shape=shape, kind=TensorKind.ACTIVATION)
        inputs = tuple(dict.fromkeys((f"t{i - 1}", f"t{max(0, i - 3)}", f"t{max(0, i - 9)}")))
        operators.append(Operator(name=f"op{i}", op_type="Concat", domain="", inputs=inputs, outputs=(f"t{i}",)))
    return Graph(name=f"chain{width}", operators=tuple(operators), tensors=tensors, inputs=("t0",), outputs=("t40",))


@contextmanager
def loopback() -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """(address of a scheduler, its two workers), processes on 127.0.0.1."""
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        common = ["--scheduler-file", str(file), "--no-dashboard", "--host", "127.0.0.1"]

        def start(*arguments: str) -> "subprocess.Popen[bytes]":
            command = [sys.executable, "-m", "dask", *arguments]
            quiet = subprocess.DEVNULL
            processes.append(subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet))
            return processes[-1]

        try:
            start("scheduler", *common, "--port", "0")
            while not file.exists() or not file.read_text("utf-8").strip():
                time.sleep(0.05)
            workers = [
                start("worker", *common, "--no-nanny", "--nthreads", "1", "--death-timeout", "60") for _ in range(2)
            ]
            yield json.loads(file.read_text("utf-8"))["address"], workers
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


def on_dask() -> dict[str, float]:
    """The second benchmark."""
    sources = [
        SweepModel(model=f"chain{w}", graph=chain(w), dims={}, bindings=Bindings(dims={"width": w}))
        for w in range(1, 11)
    ]
    study, cases = make_study(sources, load_target("generic-npu"), [{}], LoweringOptions(), PlanningOptions())
    pairs = [("best-fit", strategy) for strategy in CHEAP_STRATEGIES]
    sizes = [1024 * n for n in range(16, 36)]

    def swept(runner: Runner, after: "subprocess.Popen[bytes] | None") -> tuple[float, str, int]:
        run, killed = Grid(cases, pairs, {}), False

        def progress(done: int, total: int) -> None:
            nonlocal killed
            if after is not None and not killed and done > total // 10:
                os.kill(after.pid, signal.SIGKILL)
                killed = True

        start = time.perf_counter()
        run.at(sizes, runner, progress)
        seconds = time.perf_counter() - start
        sweep = conclude(
            study, cases, run.rows(), within=0.05, complete=True, target={"name": "t"}, config={}, command=""
        )
        return seconds, render_json(sweep), len(sweep.rows)

    here_s, expected, points = swept(InProcess(study), None)
    with loopback() as (address, workers):
        cluster = Cluster(study, address)
        cluster.wait_for_workers(2)
        there_s, found, _ = swept(cluster, workers[0])
        cluster.close()
    assert found == expected, "the cluster found something else"
    return {"points": points, "in this process, s": here_s, "on Dask, one worker killed, s": there_s}


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--dask", action="store_true")
    args = parser.parse_args()
    figures = residual_cnn(args.jobs) | (on_dask() if args.dask else {})
    for what, value in figures.items():
        print(f"{what:40}{value:10.2f}")


if __name__ == "__main__":
    main()
