"""Random nodes of each operator have the type and size that onnxruntime gives; ``SPILLPROF_RANDOM_NODES`` of each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EACH = int(os.environ.get("SPILLPROF_RANDOM_NODES", "4"))
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "runtime_shapes.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the comparison gives each operator a process by fork")
def test_random_nodes_are_sized_as_the_runtime_sizes_them() -> None:
    pytest.importorskip("onnxruntime", reason="compares with onnxruntime, which is no dependency")
    run = subprocess.run([sys.executable, SCRIPT, "--each", str(EACH)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "\n0 different" in run.stdout
    same = next(line for line in run.stdout.splitlines() if line.endswith("the same") and ":" not in line)
    assert int(same.split()[0].replace(",", "")) > 100 * EACH  # of more than 200 operators
