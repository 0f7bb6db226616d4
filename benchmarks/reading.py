"""Time and memory of `spillprof analyze --json` against onnx's own loading and shape inference of the same file.

    python benchmarks/reading.py [FOLDER] [--json]

The models are built in FOLDER (default: a temporary one; 6 GB free) and deleted: a ResNet-50 with weights (102 MB),
a chain of matrix products just below protobuf's 2 GiB in one file, and one of 3.4 GB with external data. Each
measurement is a process of its own, started by a small one, because memory of the parent would count. The best of
three runs counts, of the large models the only one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hostile import MIB, measure

_LOAD = "import sys, onnx, onnx.shape_inference as s; model = onnx.load(sys.argv[1]); "
ONNX = _LOAD + "s.infer_shapes(model)"
ONNX_BEYOND_2_GIB = _LOAD + "s.infer_shapes_path(sys.argv[1], sys.argv[1] + '.out')"  # infer_shapes cannot
NOTHING = "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One program on one model."""

    model: str
    program: str
    wall_s: float
    cpu_s: float
    peak_bytes: int


MODELS = (
    ("ResNet-50, 102 MB", "resnet-50", ONNX, 3),
    ("one file of 2.1 GB", "single-file", ONNX, 1),
    ("3.4 GB of external data", "external-data", ONNX_BEYOND_2_GIB, 1),
)
"""(name, how it is built, what onnx does, runs)."""


def compare(name: str, script: str, path: Path, runs: int, scratch: Path) -> list[Measured]:
    """Both programs on one model, and the interpreter alone; the fastest of some runs, the least memory."""
    python = sys.executable
    commands: dict[str, Sequence[str]] = {
        "interpreter": [python, "-c", NOTHING],
        "onnx": [python, "-c", script, str(path)],
        "spillprof": [python, "-m", "spillprof", "analyze", str(path), "--sram", "8MiB", "--json"],
    }
    found = []
    for program, command in commands.items():
        tries = [measure(command, scratch) for _ in range(runs)]
        if any(code for code, *_ in tries):
            raise SystemExit(f"{program} on {name}: exit code {tries[0][0]}, {tries[0][4]}")
        found.append(
            Measured(
                model=name, program=program, wall_s=min(t[1] for t in tries), cpu_s=min(t[2] for t in tries),
                peak_bytes=min(t[3] for t in tries),
            )
        )  # fmt: skip
    return found


def rows(found: Sequence[Measured]) -> str:
    """A row of the table in Markdown: the three measurements of one model."""
    base, onnx_, ours = found
    above = (ours.peak_bytes - base.peak_bytes) / (onnx_.peak_bytes - base.peak_bytes)
    return (
        f"| {ours.model} | {onnx_.cpu_s:.2f} | {ours.cpu_s:.2f} | {ours.cpu_s / onnx_.cpu_s:.2f} | "
        f"{onnx_.wall_s:.1f} | {ours.wall_s:.1f} | {onnx_.peak_bytes / MIB:,.0f} | {ours.peak_bytes / MIB:,.0f} | "
        f"{ours.peak_bytes / onnx_.peak_bytes:.2f} | {above:.3f} |"
    )


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = []
    for name, kind, script, runs in MODELS:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            path = Path(folder) / "model.onnx"
            builder = Path(__file__).with_name("big_models.py")
            subprocess.run([sys.executable, str(builder), kind, str(path)], check=True)
            found.append(compare(name, script, path, runs, Path(folder)))
    if args.json:
        print(json.dumps([[m.program, m.model, m.wall_s, m.cpu_s, m.peak_bytes] for each in found for m in each]))
        return
    print("| model | onnx CPU s | spillprof CPU s | ratio | onnx s | spillprof s | onnx MiB | spillprof MiB | ratio |"
          " ratio above the interpreter |")  # fmt: skip
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
    for each in found:
        print(rows(each))


if __name__ == "__main__":
    main()
