"""The whole comparison with Vela in one command: its estimates, ours, and both beside each other.

    python benchmarks/vela.py mobilenetv2_int8.tflite mobilenet_v2.onnx resnet50.onnx [-o benchmarks/results]

Needs the package ``ethos-u-vela``. ResNet-50 becomes a .tflite file with ``resnet50_tflite.py``; all sizes and cores of
``vela_layers.py`` run, then ``vela_compare.py``. Of the layers, the output folder keeps those at ``KEPT_KIB``; networks
and kinds of layers are there at every size.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

KEPT_KIB = (128, 512)
_SCRIPTS = Path(__file__).parent


def _run(script: str, *arguments: object) -> None:
    subprocess.run([sys.executable, str(_SCRIPTS / script), *map(str, arguments)], check=True)


def _keep(source: Path, kept: Path, kib: tuple[int, ...]) -> None:
    """Copies the rows of some sizes; all of them if none are named."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with kept.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in rows if not kib or int(row["sram_bytes"]) // 1024 in kib)


def main() -> None:
    """Run everything and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mobilenet_tflite", type=Path)
    parser.add_argument("mobilenet_onnx", type=Path)
    parser.add_argument("resnet_onnx", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=_SCRIPTS / "results")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        resnet_tflite = folder / "resnet50_int8.tflite"
        _run("resnet50_tflite.py", args.resnet_onnx, resnet_tflite)
        _run("vela_layers.py", args.mobilenet_tflite, resnet_tflite, "--jobs", args.jobs, "-o", folder)
        _run(
            "vela_compare.py", f"{args.mobilenet_tflite.stem}={args.mobilenet_onnx}",
            f"{resnet_tflite.stem}={args.resnet_onnx}", "--layers", folder / "vela_layers.csv",
            "--networks", folder / "vela_networks.csv", "-o", folder / "vela_compare.csv",
        )  # fmt: skip
        for name, kib in {"layers": KEPT_KIB, "compare": KEPT_KIB, "networks": (), "kinds": ()}.items():
            _keep(folder / f"vela_{name}.csv", args.output / f"vela_{name}.csv", kib)


if __name__ == "__main__":
    main()
