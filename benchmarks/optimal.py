"""How far strategy ``optimal`` is from the proven lower bound on real models.

    python benchmarks/optimal.py MODELS [--dims FILE.csv] [-o ROWS.csv] [--shares 0.25,0.5,0.75,0.9] [--seconds N]
    python benchmarks/optimal.py --summary ROWS.csv
    python benchmarks/optimal.py --random 10000,100000 [--seconds 30]

MODELS is a folder of ONNX files; ``--dims`` names a CSV with columns ``file`` and ``dims`` (JSON). Every model runs at
each share of its peak of live bytes, with weights streamed and cached. Every plan is verified, every certificate
checked; a case is an error if the bound is above ``optimal``, or ``optimal`` above any strategy. ``-o`` takes one CSV
row a case, ``--summary`` prints the tables of docs/optimality.md from such a file. ``--random``: random programs of so
many operators at a third of the memory that holds them without spills, as ``benchmarks/scale.py`` makes them.
"""

import argparse
import csv
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import geometric_mean, median

from scale import random_graph

from spillprof.analysis.occupancy import in_use_by_step
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.frontends import read_model
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import Graph
from spillprof.ir.target import load_target
from spillprof.lowering.fitting import unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.planning.bounds.covering import planners_covering
from spillprof.planning.bounds.reduction import reduce
from spillprof.planning.bounds.rows import certificate_of
from spillprof.planning.liveness import live_bytes_by_step, step_demand_bytes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import CHEAP_STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.verify import verify
from spillprof.verify.certificate import check_certificate

NEAR = 1.05
HEADS = (
    *("model", "weights", "share_of_peak", "gaps", "lower_bound_bytes", "certified_bytes", "optimal_bytes"),
    *(f"{strategy}_above_optimal_percent" for strategy in CHEAP_STRATEGIES),
    *("has_tiled_operands", "search", "cpu_s"),
)
Row = dict[str, str]
"""One case as in the CSV: a value by its head."""


def cases(models: Path, dims: Path | None, shares: list[float], seconds: float | None) -> Iterator[Row]:
    """Every case that can be planned, and in which something spills."""
    bindings = _dims(dims)
    for path in sorted(models.glob("*.onnx")):
        try:
            graph = read_model(path, dims=bindings.get(path.name, {}))
        except SpillprofError:
            continue
        for weights in (WeightsPolicy.STREAM, WeightsPolicy.CACHED):
            for share in shares:
                try:
                    case = _case(path.name, graph, weights, share, seconds)
                except SpillprofError:  # not even streamed
                    continue
                if case is not None:
                    yield case


def _dims(path: Path | None) -> dict[str, dict[str, int]]:
    if path is None:
        return {}
    return {
        row["file"]: {
            re.sub(r"^\?(.*)\.(\d+)$", r"\1[\2]", key): size for key, size in json.loads(row["dims"] or "{}").items()
        }
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    }


def _case(file: str, graph: Graph, weights: WeightsPolicy, share: float, seconds: float | None) -> Row | None:
    lowering, planning = LoweringOptions(weights=weights), PlanningOptions(optimize_seconds=seconds)
    target = load_target("generic-npu")
    program = lower(graph, target, lowering)
    peak = int(live_bytes_by_step(program, stored=True).max(initial=0))
    target = target.with_overrides(sram_bytes=max(1, int(peak * share)))
    engine, run = Engine(), Run(graph=graph, target=target, lowering=lowering, planning=planning)
    fitted = engine.fitted(run)
    start = time.process_time()
    bound = engine.bound(fitted, run)
    spilled = {s: _spilled(engine, run, s) for s in CHEAP_STRATEGIES}
    optimum = engine.optimum(fitted, run)
    cpu_s = time.process_time() - start
    for plan in optimum.plans:
        assert verify(fitted, plan) == ()
    proof = certificate_of(fitted, planning, bound.problem, bound.certificate, bound.certified_cost)
    assert check_certificate(fitted, proof) == ()
    best = count_traffic(fitted, optimum.plans[0]).spill_bytes
    assert bound.certified_cost <= optimum.bound.cost <= best <= min(spilled.values()), (file, weights, share)
    if best == 0:
        return None
    values = (
        *(Path(file).stem, weights, f"{share:g}", len(reduce(bound.problem).gaps)),
        *(optimum.bound.cost, bound.certified_cost, best),
        *(f"{100 * (nbytes / best - 1):.4f}" for nbytes in spilled.values()),
        *(int(any(step.stream_staging_bytes for step in fitted.steps)), optimum.search, f"{cpu_s:.2f}"),
    )
    return dict(zip(HEADS, map(str, values), strict=True))


def _spilled(engine: Engine, run: Run, strategy: str) -> int:
    fitted = engine.fitted(run)
    plan = engine.plans(fitted, run, strategy)[0][0]
    assert verify(fitted, plan) == ()
    return count_traffic(fitted, plan).spill_bytes


def random_row(n: int, seconds: float | None) -> str:
    """A Markdown line: how far plans of one random program of ``n`` operators are from the bound, in CPU seconds."""
    graph, lowering, planning = random_graph(n), LoweringOptions(), PlanningOptions(optimize_seconds=seconds)
    target = load_target("generic-npu")
    boundless = unlimited(lower(graph, target, lowering), target, lowering)
    ideal = make_plan(boundless, target, "none", planning)
    demand = max(step_demand_bytes(boundless, step) for step in boundless.steps)
    target = target.with_overrides(sram_bytes=max(int(in_use_by_step(boundless, ideal).max()) // 3, demand))
    engine, run = Engine(), Run(graph=graph, target=target, lowering=lowering, planning=planning)
    fitted = engine.fitted(run)
    start = time.process_time()
    bound = engine.bound(fitted, run)
    bound_s = time.process_time() - start
    spilled = {s: _spilled(engine, run, s) for s in CHEAP_STRATEGIES}
    start = time.process_time()
    optimum = engine.optimum(fitted, run)
    optimum_s = time.process_time() - start
    assert verify(fitted, optimum.plans[0]) == ()
    best = count_traffic(fitted, optimum.plans[0]).spill_bytes
    assert optimum.bound.cost <= best <= min(spilled.values())
    chosen = optimum.choices[0].cost + planners_covering(fitted, planning).forced_cost

    def above(nbytes: int) -> str:
        return f"+{100 * (nbytes / bound.cost - 1):.1f} %"

    others = " | ".join(above(nbytes) for nbytes in spilled.values())
    gaps = len(reduce(bound.problem).gaps)
    return f"| {n:,} | {gaps:,} | {bound_s:.0f} s | {above(chosen)} | {above(best)}, {optimum_s:.0f} s | {others} |"


def ratios(rows: Sequence[Row], under: str) -> list[float]:
    """Bytes of ``optimal`` divided by each case's ``under`` column."""
    return [int(row["optimal_bytes"]) / int(row[under]) for row in rows]


def above_optimal(rows: Sequence[Row], strategy: str) -> list[float]:
    """Bytes of the strategy divided by those of ``optimal``."""
    return [1 + float(row[f"{strategy}_above_optimal_percent"]) / 100 for row in rows]


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The tables of docs/optimality.md as Markdown lines."""
    above, certified = ratios(rows, "lower_bound_bytes"), ratios(rows, "certified_bytes")
    yield "| what | cases |"
    yield "| --- | --: |"
    yield f"| something spills | {len(rows)} |"
    yield f"| `optimal` reaches the lower bound | {sum(r == 1 for r in above)} |"
    yield f"| `optimal` is at most 5 % above the bound | {sum(r <= NEAR for r in above)} |"
    yield f"| `optimal` is at most 5 % above what a certificate proves | {sum(r <= NEAR for r in certified)} |"
    yield ""
    yield "| spilled bytes | geometric mean | median | most |"
    yield "| --- | --: | --: | --: |"
    yield f"| `optimal` / lower bound | {_mean(above)} | {median(above):.3f} | {max(above):.3f} |"
    for strategy in CHEAP_STRATEGIES:
        found = above_optimal(rows, strategy)
        yield f"| `{strategy}` / `optimal` | {_mean(found)} | {median(found):.3f} | {max(found):.2f} |"
    yield ""
    yield "| weights | share of the peak | cases | proven | " + " | ".join(f"`{s}`" for s in CHEAP_STRATEGIES) + " |"
    yield "| --- | --: " + "| --: " * (2 + len(CHEAP_STRATEGIES)) + "|"
    for weights, share in dict.fromkeys((row["weights"], row["share_of_peak"]) for row in sorted(rows, key=_kind)):
        own = [row for row in rows if (row["weights"], row["share_of_peak"]) == (weights, share)]
        proven = sum(row["optimal_bytes"] == row["lower_bound_bytes"] for row in own)
        means = " | ".join(_mean(above_optimal(own, s)) for s in CHEAP_STRATEGIES)
        yield f"| {weights} | {100 * float(share):.0f} % | {len(own)} | {proven} | {means} |"


def _kind(row: Row) -> tuple[bool, float]:
    return row["weights"] != "stream", float(row["share_of_peak"])


def _mean(values: Sequence[float]) -> str:
    """Geometric mean, as text."""
    mean = geometric_mean(values)
    return f"{mean:.4f}" if mean < 1.0005 else f"{mean:.3f}"


def main() -> None:
    """Print each case, then what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="?")
    parser.add_argument("--random", default="")
    parser.add_argument("--summary", type=Path)
    parser.add_argument("--dims", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--seconds", type=float, help="in place of the counted work that is the default")
    parser.add_argument("--shares", default="0.25,0.5,0.75,0.9")
    args = parser.parse_args()
    if args.random:
        print("| operators | gaps | bound | choice of gaps | optimal | " + " | ".join(CHEAP_STRATEGIES) + " |")
        for n in args.random.split(","):
            print(random_row(int(n), args.seconds), flush=True)
        return
    if args.summary is not None:
        with args.summary.open(encoding="utf-8", newline="") as file:
            print(*summary(list(csv.DictReader(file))), sep="\n")
        return
    if args.models is None:
        parser.error("MODELS, --summary or --random is needed")
    rows: list[Row] = []
    with args.output.open("w", encoding="utf-8", newline="") if args.output else nullcontext(sys.stdout) as file:
        writer = csv.DictWriter(file, HEADS, lineterminator="\n")
        writer.writeheader()
        for row in cases(args.models, args.dims, [float(s) for s in args.shares.split(",")], args.seconds):
            rows.append(row)
            writer.writerow(row)
            file.flush()
    print(*summary(rows), sep="\n")


if __name__ == "__main__":
    main()
