"""What Arm's compiler Vela estimates for networks on Ethos-U cores, layer by layer and SRAM size by SRAM size.

    python benchmarks/vela_layers.py mobilenetv2_int8.tflite resnet50_int8.tflite [--cores A,B] [--sram-kib 64,96]
        [--compilers regor,legacy] [--jobs N] [-o benchmarks/results]

Needs the package ``ethos-u-vela``. Writes vela_layers.csv (one row a layer) and vela_networks.csv (one row a run) into
the output folder. On Ethos-U65 feature maps and weights live in DRAM, and ``--arena-cache-size`` of SRAM is a cache
(system Ethos_U65_High_End, mode Dedicated_Sram). On Ethos-U55 feature maps live in SRAM and weights in flash
(Ethos_U55_High_End_Embedded, Shared_Sram): the columns of DRAM are those of the flash. ``--optimise Performance``. Vela
has two compilers: regor, its default, and the legacy one in Python. What the columns mean is in docs/vela.md.
"""

import argparse
import csv
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from importlib.util import find_spec
from math import prod
from pathlib import Path

_U65 = ("Ethos_U65_High_End", "Dedicated_Sram", "dram")
CORES = {
    "ethos-u65-256": _U65, "ethos-u65-512": _U65,
    "ethos-u55-256": ("Ethos_U55_High_End_Embedded", "Shared_Sram", "off_chip_flash"),
}  # fmt: skip
"""System, memory mode, and what the summary calls the memory behind the SRAM."""
SRAM_KIB = {"ethos-u65": (64, 96, 128, 192, 256, 384, 512, 1024), "ethos-u55": (512, 768, 1024, 1536, 2048)}
"""By core: on Ethos-U55 all feature maps have to fit."""
_COMPILERS: dict[str, tuple[str, ...]] = {"regor": (), "legacy": ("--debug-force-legacy-core",)}
_LOWERED = ("softmax", "mean")
"""Operators that Vela replaces by several rows of its own, which are added up to one layer."""
_KINDS = {3: "conv", 4: "depthwise", 0: "add", 9: "fully connected", 17: "pool", 40: "mean", 25: "softmax"}
_ADDED = ("macs", "npu_cycles", "sram_cycles", "dram_cycles", "op_cycles")


@dataclass(frozen=True, slots=True, kw_only=True)
class VelaLayer:
    """One operator of the network in Vela's listing; ``sram_usage_bytes`` is what Vela holds on-chip while it runs."""

    name: str
    operator: str
    fused: str
    macs: int
    npu_cycles: int
    sram_cycles: int
    dram_cycles: int
    op_cycles: int
    sram_usage_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """Kind and shapes (NHWC, weights OHWI) of an operator in the .tflite file."""

    kind: str
    ifm: tuple[int, ...]
    weights: tuple[int, ...]
    ofm: tuple[int, ...]

    @property
    def macs(self) -> int:
        """Multiplications that the shapes ask for, without padding."""
        if self.kind == "depthwise":
            return prod(self.ofm) * prod(self.weights[1:3])
        return prod(self.ofm) * prod(self.weights[1:]) if self.weights else 0


def parse_layers(lines: Iterable[str]) -> tuple[VelaLayer, ...]:
    """Reads the per-layer CSV of either compiler. Raises ``ValueError`` if a column is missing.

    A row without cycles that repeats the name before it is a fused activation. Rows that an operator of ``_LOWERED`` is
    replaced by make one layer. A name with commas, which is the last column, may stand unquoted.
    """
    rows = csv.reader(lines)
    head = next(rows, [])
    aliases = {
        "operator": ("Original Operator", "TFLite_operator"), "own": ("NNG Operator",), "macs": ("MAC Count",),
        "sram_usage_bytes": ("Staging Usage", "SRAM Usage"), "npu_cycles": ("NPU",), "sram_cycles": ("SRAM AC",),
        "dram_cycles": ("DRAM AC",), "flash_cycles": ("OffFlash AC",), "op_cycles": ("Op Cycles",),
    }  # fmt: skip
    column = {field: next((head.index(n) for n in names if n in head), -1) for field, names in aliases.items()}
    missing = [aliases[field][0] for field, index in column.items() if index < 0]
    if missing or head[-1] != "Name":
        raise ValueError(f"not a per-layer listing of Vela: no column {', '.join(missing) or 'Name at the end'}")
    layers: list[VelaLayer] = []
    for cells in rows:
        if len(cells) < len(head):
            continue
        name = ",".join(cells[len(head) - 1 :]).split(";")[0]
        operator = cells[column["operator"]].replace("_", "").lower()
        own = cells[column["own"]]
        numbers = {f: round(float(cells[column[f]])) for f in (*_ADDED, "sram_usage_bytes")}
        numbers["dram_cycles"] += round(float(cells[column["flash_cycles"]]))  # a system has one of the two
        before = layers[-1] if layers else None
        activation = before is not None and name == before.name and numbers["op_cycles"] == 0
        lowered = before is not None and operator == before.operator and operator in _LOWERED
        if before is not None and (activation or lowered):
            added = {f: getattr(before, f) + numbers[f] for f in _ADDED}
            usage = max(before.sram_usage_bytes, numbers["sram_usage_bytes"])
            fused = "+".join(filter(None, (before.fused, own)))
            layers[-1] = replace(before, fused=fused, sram_usage_bytes=usage, **added)
        else:
            layers.append(VelaLayer(name=name, operator=operator, fused="", **numbers))
    return tuple(layers)


def read_shapes(path: Path) -> dict[str, LayerShape]:
    """Shapes of the operators of a .tflite file, by the first name (before a semicolon) of their output."""
    from ethosu.vela.tflite.Model import Model

    model = Model.GetRootAs(path.read_bytes(), 0)
    graph = model.Subgraphs(0)

    def shape(index: int) -> tuple[int, ...]:
        tensor = graph.Tensors(index)
        return tuple(int(tensor.Shape(i)) for i in range(tensor.ShapeLength()))

    shapes = {}
    for operator in map(graph.Operators, range(graph.OperatorsLength())):
        code = model.OperatorCodes(operator.OpcodeIndex())
        kind = _KINDS.get(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()), "other")
        weights = shape(operator.Inputs(1)) if kind in ("conv", "depthwise", "fully connected") else ()
        if kind == "conv" and weights[1:3] == (1, 1):
            kind = "pointwise"
        output = operator.Outputs(0)
        name = graph.Tensors(output).Name().decode("utf-8", "replace").split(";")[0]
        shapes[name] = LayerShape(kind=kind, ifm=shape(operator.Inputs(0)), weights=weights, ofm=shape(output))
    return shapes


def _run(path: Path, core: str, kib: int, compiler: str) -> tuple[dict[str, str], tuple[VelaLayer, ...]]:
    """Runs Vela once; returns the row of its summary and its layers."""
    system, memory_mode, _ = CORES[core]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "ethosu.vela", str(path), "--accelerator-config", core, "--config", "Arm/vela.ini",
            "--system-config", system, "--memory-mode", memory_mode, "--arena-cache-size", str(kib * 1024),
            "--optimise", "Performance", "--verbose-performance", "--output-dir", folder, *_COMPILERS[compiler],
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        listings = list(Path(folder).glob("*_per-layer.csv"))
        summaries = list(Path(folder).glob("*_summary_*.csv"))
        if done.returncode or not listings or not summaries:
            raise SystemExit(f"error: Vela failed on {path.name}, {core}, {kib} KiB:\n{done.stderr[-1000:]}")
        with listings[0].open(encoding="utf-8", newline="") as file:
            layers = parse_layers(file)
        with summaries[0].open(encoding="utf-8", newline="") as file:
            return next(csv.DictReader(file)), layers


def _network_row(run: dict[str, str], core: str, compiler: str) -> dict[str, object]:
    """The summary in bytes, hertz and bytes per second: Vela writes KiB and GiB per second."""
    behind = CORES[core][2]
    row: dict[str, object] = {
        "vela_version": version("ethos-u-vela"), "compiler": compiler, "system": run["system_config"],
        "memory_mode": run["memory_mode"], "clock_hz": round(float(run["core_clock"])),
        "sram_bytes_per_s": round(float(run["sram_bandwidth"]) * 2**30),
        "dram_bytes_per_s": round(float(run[f"{behind}_bandwidth"]) * 2**30), "macs": run["nn_macs"],
        "inference_s": f"{float(run['inference_time']):.9f}",
        "sram_used_bytes": round(float(run["sram_memory_used"]) * 1024),
        "dram_used_bytes": round(float(run[f"{behind}_memory_used"]) * 1024),
        "weights_encoded_bytes": run["total_npu_encoded_weights"],
    }  # fmt: skip
    names = [f"dram_{what}_{way}_bytes" for what in ("feature_map", "weight") for way in ("read", "write")]
    for name in (*names, "dram_total_bytes"):
        row[name] = round(float(run[name.replace("dram", behind)]))
    row["sram_total_bytes"] = round(float(run["sram_total_bytes"]))
    for name in ("npu", "sram_access", "dram_access", "total"):
        row[f"{name}_cycles"] = round(float(run[f"cycles_{name.replace('dram', behind)}"]))
    return row


def _write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run every combination and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tflite", type=Path, nargs="+")
    parser.add_argument("--cores", default=",".join(CORES))
    parser.add_argument("--sram-kib", default="", help="default: by core")
    parser.add_argument("--compilers", default=",".join(_COMPILERS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    if find_spec("ethosu") is None:
        raise SystemExit("error: Vela is not installed\nhint: pip install ethos-u-vela")
    own = [int(size) for size in args.sram_kib.split(",") if size]
    cases = [
        (path, compiler, core, kib)
        for path, compiler, core in itertools.product(args.tflite, args.compilers.split(","), args.cores.split(","))
        for kib in own or SRAM_KIB[core.rpartition("-")[0]]
    ]
    with ThreadPoolExecutor(args.jobs) as pool:
        runs = list(pool.map(lambda case: _run(case[0], case[2], case[3], case[1]), cases))
    layer_rows: list[dict[str, object]] = []
    network_rows: list[dict[str, object]] = []
    shapes = {path: read_shapes(path) for path in args.tflite}
    for (path, compiler, core, kib), (summary, layers) in zip(cases, runs, strict=True):
        key: dict[str, object] = {"network": path.stem, "core": core, "sram_bytes": kib * 1024}
        network_rows.append({**key, **_network_row(summary, core, compiler)})
        bytes_per_cycle = float(summary[f"{CORES[core][2]}_bandwidth"]) * 2**30 / float(summary["core_clock"])
        empty = LayerShape(kind="other", ifm=(), weights=(), ofm=())
        for index, layer in enumerate(layers):
            shape = shapes[path].get(layer.name, empty)
            if shape is empty and layer.operator in _LOWERED:
                shape = replace(empty, kind=layer.operator)
            texts = {f.name: "x".join(map(str, getattr(shape, f.name))) for f in fields(shape) if f.name != "kind"}
            layer_rows.append(
                {
                    **key, "compiler": compiler, "layer": index, **asdict(layer), "kind": shape.kind, **texts,
                    "macs_of_shape": shape.macs, "dram_bytes_at_peak": round(layer.dram_cycles * bytes_per_cycle),
                }
            )  # fmt: skip
    _write(args.output / "vela_layers.csv", layer_rows)
    _write(args.output / "vela_networks.csv", network_rows)


if __name__ == "__main__":
    main()
