"""spillprof beside Vela, layer by layer: cycles and DRAM bytes of the same network on Ethos-U55 and U65.

    python benchmarks/vela_compare.py mobilenetv2_int8=mobilenet_v2.onnx resnet50_int8=resnet50.onnx
        [--layers benchmarks/results/vela_layers.csv] [-o benchmarks/results/vela_compare.csv]

Takes Vela's side from the tables of ``vela_layers.py`` and runs ``spillprof analyze`` on the ONNX model of each network
(target of the core with its MACs and vector unit, int8, the same SRAM; the fastest strategy). The n-th layer of a kind
and a MAC count on one side belongs to the n-th on the other. Writes one row a layer, and one row a kind of layer and
run into vela_kinds.csv beside it; prints a summary.

Our cycles of a layer end where it ends and begin where the step before ended, so they add up to the latency; Vela's are
the larger of NPU, SRAM and DRAM access, and add up to its total. Columns ``_npu_`` are compute alone.
"""

import argparse
import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

RESULTS = Path(__file__).parent / "results"
_CLOCK_HZ = {"ethos-u55": 5e8, "ethos-u65": 1e9}
_MACS_PER_VECTOR_OP = 32  # of all cores in Vela's table
_OURS = {"MaxPool": "pool", "AveragePool": "pool", "GlobalAveragePool": "mean", "Add": "add", "Gemm": "fully connected"}


def onnx_kinds(path: Path) -> dict[str, str]:
    """Kind of each operator by name, in the words of ``vela_layers.py``."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    shapes = {t.name: tuple(t.dims) for t in graph.initializer}
    kinds = {}
    for node in graph.node:
        if node.op_type == "Identity" and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
        kinds[node.name] = _OURS.get(node.op_type, "other")
        if node.op_type == "Conv":
            weights = shapes[node.input[1]]
            group = next((a.i for a in node.attribute if a.name == "group"), 1)
            kinds[node.name] = "depthwise" if group > 1 else "pointwise" if weights[2:] == (1, 1) else "conv"
    return kinds


def our_layers(path: Path, core: str, sram_bytes: int) -> tuple[list[dict[str, object]], dict[str, float]]:
    """Runs ``spillprof analyze``; returns layers (kind, macs, cycles, DRAM bytes) and totals."""
    target, macs = core.rsplit("-", 1)
    command = [
        sys.executable, "-m", "spillprof", "analyze", str(path), "--target", target, "--act-dtype", "int8",
        "--weight-dtype", "int8", "--sram", str(sram_bytes), "--set", f"macs-per-cycle={macs}",
        "--set", f"vector-ops-per-s={int(macs) / _MACS_PER_VECTOR_OP * _CLOCK_HZ[target]:g}", "--what-if", "off",
        "--events", "--json",
    ]  # fmt: skip
    profile = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    result = min((r for r in profile["results"] if r["feasible"]), key=lambda r: r["latency_s"])
    clock_hz = profile["target"]["clock_hz"]
    dram_bytes: Counter[int] = Counter()
    for event in result["events"]:
        dram_bytes[event["step"]] += event["size_bytes"]
    kinds = onnx_kinds(path)
    ends_s = [0.0, *result["times"]["step_end_s"]]
    order = {step["name"]: index for index, step in enumerate(profile["steps"])}
    layers = []
    for step in profile["steps"]:
        index = order[step["name"]]
        layers.append(
            {
                "name": step["name"], "kind": kinds.get(step["name"], "other"), "macs": step["macs"],
                "npu_cycles": round(step["compute_s"] * clock_hz),
                "op_cycles": round((ends_s[index + 1] - ends_s[index]) * clock_hz), "dram_bytes": dram_bytes[index],
            }
        )  # fmt: skip
    moved = profile["ideal"]["compulsory_read_bytes"] + profile["ideal"]["compulsory_write_bytes"]
    totals = {"op_cycles": result["latency_s"] * clock_hz, "dram_bytes": moved + result["spill_bytes"]}
    return layers, totals


def join(vela: Sequence[dict[str, str]], ours: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Joins layers of one kind and MAC count in their order; what has no partner is left out."""
    waiting: dict[tuple[str, int], list[dict[str, object]]] = defaultdict(list)
    for layer in ours:
        waiting[str(layer["kind"]), int(str(layer["macs"]))].append(layer)
    rows: list[dict[str, object]] = []
    for row in vela:
        partners = waiting[row["kind"], int(row["macs_of_shape"])]
        if not partners:
            continue
        mine = partners.pop(0)
        rows.append(
            {
                **{name: row[name] for name in ("network", "core", "sram_bytes", "compiler", "layer", "name", "kind")},
                "our_name": mine["name"], "ifm": row["ifm"], "weights": row["weights"], "ofm": row["ofm"],
                "macs": row["macs_of_shape"],
                "our_npu_cycles": mine["npu_cycles"], "vela_npu_cycles": row["npu_cycles"],
                "our_op_cycles": mine["op_cycles"], "vela_op_cycles": row["op_cycles"],
                "our_dram_bytes": mine["dram_bytes"], "vela_dram_bytes_at_peak": row["dram_bytes_at_peak"],
            }
        )  # fmt: skip
    return rows


def _kind(row: dict[str, object]) -> str:
    """The kind of a layer; convolutions of images by themselves."""
    is_image = row["kind"] == "conv" and int(str(row["weights"]).rsplit("x", 1)[1]) <= 4
    return "few channels" if is_image else str(row["kind"])


def by_kind(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Sums and ratios of compute cycles, one row a kind of layer and run; ``total`` for all layers of a run."""
    groups: dict[tuple[str, ...], list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        run = tuple(str(row[k]) for k in ("network", "core", "sram_bytes", "compiler"))
        groups[(*run, _kind(row))].append(row)
        groups[(*run, "total")].append(row)
    made: list[dict[str, object]] = []
    for (network, core, sram_bytes, compiler, kind), group in sorted(groups.items()):
        ours, theirs = ([int(str(row[f"{who}_npu_cycles"])) for row in group] for who in ("our", "vela"))
        ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True) if b) or [0.0]
        off = sum(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        made.append(
            {
                "network": network, "core": core, "sram_bytes": sram_bytes, "compiler": compiler, "kind": kind,
                "layers": len(group), "our_npu_cycles": sum(ours), "vela_npu_cycles": sum(theirs),
                "ratio": f"{sum(ours) / max(sum(theirs), 1):.3f}", "median_ratio": f"{median(ratios):.3f}",
                "least_ratio": f"{ratios[0]:.3f}", "most_ratio": f"{ratios[-1]:.3f}",
                "mean_error": f"{off / max(sum(theirs), 1):.3f}",
            }
        )  # fmt: skip
    return made


def print_summary(kinds: Sequence[dict[str, object]], totals: Sequence[dict[str, object]]) -> None:
    """Prints totals per run, then compute cycles by kind, as Markdown tables."""
    print("\n| network | core | SRAM KiB | compiler | cycles ours/Vela | off-chip MB ours/Vela | layers joined |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for t in totals:
        columns = ("cycles", "vela_cycles", "dram", "vela_dram")
        cycles, vela_cycles, moved, vela_moved = (float(str(t[k])) for k in columns)
        print(
            f"| {t['network']} | {t['core']} | {int(str(t['sram_bytes'])) // 1024} | {t['compiler']} | "
            f"{cycles / 1e6:.2f} / "
            f"{vela_cycles / 1e6:.2f} M = {cycles / vela_cycles:.2f} | {moved / 1e6:.1f} / {vela_moved / 1e6:.1f} = "
            f"{moved / vela_moved:.2f} | {t['joined']} |"
        )
    groups: dict[tuple[str, ...], list[dict[str, object]]] = defaultdict(list)
    for row in kinds:
        groups[tuple(str(row[k]) for k in ("network", "core", "compiler", "kind"))].append(row)
    print("\n| network | core | compiler | kind | layers | NPU cycles ours/Vela | median (least, most) | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for key, group in sorted(groups.items()):
        ours, theirs = (sum(int(str(row[f"{who}_npu_cycles"])) for row in group) for who in ("our", "vela"))
        middle, off = (median(float(str(row[n])) for row in group) for n in ("median_ratio", "mean_error"))
        least = min(float(str(row["least_ratio"])) for row in group)
        most = max(float(str(row["most_ratio"])) for row in group)
        print(
            f"| {' | '.join(key)} | {group[0]['layers']} | {ours / max(theirs, 1):.2f} | "
            f"{middle:.2f} ({least:.2f}, {most:.2f}) | {off:.2f} |"
        )


def main() -> None:
    """Join every run of Vela's tables with ours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NETWORK=MODEL.onnx")
    parser.add_argument("--layers", type=Path, default=RESULTS / "vela_layers.csv")
    parser.add_argument("--networks", type=Path, default=RESULTS / "vela_networks.csv")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "vela_compare.csv")
    args = parser.parse_args()
    models = {network: Path(path) for network, path in (pair.split("=", 1) for pair in args.models)}
    runs: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    keys = ("network", "core", "sram_bytes", "compiler")
    with args.layers.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            runs[tuple(row[k] for k in keys)].append(row)
    ours: dict[tuple[str, ...], tuple[list[dict[str, object]], dict[str, float]]] = {}
    rows: list[dict[str, object]] = []
    totals: list[dict[str, object]] = []
    with args.networks.open(encoding="utf-8", newline="") as file:
        networks = [run for run in csv.DictReader(file) if run["network"] in models]
    for run in networks:
        case = (run["network"], run["core"], run["sram_bytes"])
        if case not in ours:
            ours[case] = our_layers(models[run["network"]], run["core"], int(run["sram_bytes"]))
        layers, total = ours[case]
        joined = join(runs[(*case, run["compiler"])], layers)
        rows += joined
        totals.append(
            {
                **{k: run[k] for k in keys}, "cycles": total["op_cycles"], "vela_cycles": run["total_cycles"],
                "dram": total["dram_bytes"], "vela_dram": run["dram_total_bytes"],
                "joined": f"{len(joined)} of {len(runs[(*case, run['compiler'])])}",
            }
        )  # fmt: skip
    kinds = by_kind(rows)
    for path, table in ((args.output, rows), (args.output.with_name("vela_kinds.csv"), kinds)):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    print_summary(kinds, totals)


if __name__ == "__main__":
    main()
