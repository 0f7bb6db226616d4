"""CPU time of ``spillprof inspect`` beside that of onnx-tool's ``model_profile``, whole processes, as ratios.

    python benchmarks/inspect_cpu.py [--repeats 15] [-o benchmarks/results/inspect_cpu.csv]

On light models of the onnx package. Both run under this interpreter with one thread, print their table, and find
their modules compiled; runs of the two alternate, and of each the one with the least user and system time counts. The
exit code is 1 if a ratio is above 1.2. Without onnx-tool (``pip install onnx-tool``) nothing is measured.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

MODELS = ("squeezenet", "inception_v1", "resnet50", "inception_v2", "densenet121")
MOST = 1.2
INSPECT = "import sys; from spillprof.cli import main; main(['inspect', sys.argv[1]])"
PROFILE = "import sys; import onnx_tool; onnx_tool.model_profile(sys.argv[1])"


def cpu_s(program: str, model: Path, folder: str) -> float:
    """User and system time of one process that runs a program on a model, its modules compiled into ``folder``."""
    settings = {"PYTHONPYCACHEPREFIX": folder, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(model)], env=kept | settings, cwd=folder, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {program}")
    return usage.ru_utime + usage.ru_stime


def measure(model: Path, repeats: int, folder: str) -> tuple[float, float]:
    """The least CPU seconds of (inspect, onnx-tool)."""
    runs = [(cpu_s(INSPECT, model, folder), cpu_s(PROFILE, model, folder)) for _ in range(repeats + 1)]
    ours, theirs = zip(*runs[1:], strict=True)  # the first compiles
    return min(ours), min(theirs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("-o", dest="output", type=Path)
    given = parser.parse_args(arguments)
    if find_spec("onnx_tool") is None:
        print("onnx-tool is not installed: nothing to compare with (pip install onnx-tool)")
        return 0
    light = Path(*find_spec("onnx").submodule_search_locations) / "backend" / "test" / "data" / "light"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            ours, theirs = measure(light / f"light_{name}.onnx", given.repeats, folder)
            rows.append((name, f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}"))
            print(*rows[-1], flush=True)
    if given.output is not None:
        with given.output.open("w", newline="") as file:
            csv.writer(file).writerows([("model", "inspect_cpu_s", "onnx_tool_cpu_s", "ratio"), *rows])
    return int(any(float(ratio) > MOST for *_, ratio in rows))


if __name__ == "__main__":
    raise SystemExit(main())
