"""How far strategy ``optimal`` is from the proven lower bound on real models: a Markdown table.

    python benchmarks/optimal.py MODELS [--dims FILE.csv] [--seconds N] [--shares 0.25,0.5,0.75,0.9]
    python benchmarks/optimal.py --random 10000,100000 [--seconds 30]

MODELS is a folder of ONNX files; the CSV has columns ``file`` and ``dims`` (JSON). Every model runs at each share of
its peak live bytes, with weights streamed and cached. Every plan is verified; a case is an error if the bound is not
below ``optimal``, or ``optimal`` not below every strategy. ``--random``: random programs of so many operators at a
third of the memory that holds them without spills, as ``benchmarks/scale.py`` makes them.
"""

import argparse
import csv
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scale import random_graph

from spillprof.analysis.occupancy import in_use_by_step
from spillprof.engine.known import bound_of, optimum_of, plans_of
from spillprof.frontends import read_model
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import Graph
from spillprof.ir.program import Program
from spillprof.ir.target import Target, load_target
from spillprof.lowering.fitting import fit, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.planning.bounding.certify import certificate_of
from spillprof.planning.bounding.reduction import reduce
from spillprof.planning.covering import planners_covering
from spillprof.planning.liveness import live_bytes_by_step, step_demand_bytes
from spillprof.planning.options import CHEAP_STRATEGIES, PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.traffic import count_traffic
from spillprof.verify import verify
from spillprof.verify.certificate import check_certificate

NEAR = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model on one memory."""

    file: str
    weights: str
    share: float
    gaps: int  # after reduction
    lower: int
    certified: int
    proven_by: str
    optimal: int
    strategies: dict[str, int]
    tiled: bool
    search: str
    cpu_s: float

    @property
    def is_proven(self) -> bool:
        """Whether no plan of the program spills less."""
        return self.optimal == self.lower


def cases(models: Path, dims: Path | None, shares: list[float], seconds: float | None) -> Iterator[Case]:
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


def _case(file: str, graph: Graph, weights: WeightsPolicy, share: float, seconds: float | None) -> Case | None:
    lowering, planning = LoweringOptions(weights=weights), PlanningOptions(optimize_seconds=seconds)
    target = load_target("generic-npu")
    program = lower(graph, target, lowering)
    peak = int(live_bytes_by_step(program, stored=True).max(initial=0))
    target = target.with_overrides(sram_bytes=max(1, int(peak * share)))
    fitted = fit(program, target, lowering)
    start = time.process_time()
    bound = bound_of(fitted, planning)
    spilled = {s: _spilled(fitted, target, s, planning) for s in CHEAP_STRATEGIES}
    optimum = optimum_of(fitted, target, planning)
    cpu_s = time.process_time() - start
    for plan in optimum.plans:
        assert verify(fitted, plan) == ()
    proof = certificate_of(fitted, planning, bound.problem, bound.certificate, bound.certified_cost)
    assert check_certificate(fitted, proof) == ()
    best = count_traffic(fitted, optimum.plans[0]).spill_bytes
    assert bound.certified_cost <= optimum.bound.cost <= best <= min(spilled.values()), (file, weights, share)
    if best == 0:
        return None
    return Case(
        file=file,
        weights=str(weights),
        share=share,
        gaps=len(reduce(bound.problem).gaps),
        lower=optimum.bound.cost,
        certified=bound.certified_cost,
        proven_by=optimum.bound.proven_by,
        optimal=best,
        strategies=spilled,
        tiled=any(step.stream_staging_bytes for step in fitted.steps),
        search=optimum.search,
        cpu_s=cpu_s,
    )


def _spilled(program: Program, target: Target, strategy: str, planning: PlanningOptions) -> int:
    plan = plans_of(program, target, strategy, planning)[0][0]
    assert verify(program, plan) == ()
    return count_traffic(program, plan).spill_bytes


def random_row(n: int, seconds: float | None) -> str:
    """A Markdown line: how far plans of one random program of ``n`` operators are from the bound, in CPU seconds."""
    graph, lowering, planning = random_graph(n), LoweringOptions(), PlanningOptions(optimize_seconds=seconds)
    target = load_target("generic-npu")
    boundless = unlimited(lower(graph, target, lowering), target, lowering)
    ideal = make_plan(boundless, target, "none", planning)
    demand = max(step_demand_bytes(boundless, step) for step in boundless.steps)
    target = target.with_overrides(sram_bytes=max(int(in_use_by_step(boundless, ideal).max()) // 3, demand))
    fitted = fit(lower(graph, target, lowering), target, lowering)
    start = time.process_time()
    bound = bound_of(fitted, planning)
    bound_s = time.process_time() - start
    spilled = {s: _spilled(fitted, target, s, planning) for s in CHEAP_STRATEGIES}
    start = time.process_time()
    optimum = optimum_of(fitted, target, planning)
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


def table(found: list[Case]) -> Iterator[str]:
    """Markdown lines."""
    names = list(CHEAP_STRATEGIES)
    yield "| model | weights | share | gaps | certified | lower bound | optimal | gap | " + " | ".join(names) + " |"
    yield "| --- | --- | --- " + "| ---: " * (5 + len(names)) + "|"
    for c in found:
        gap = "proven" if c.is_proven else f"{100 * (c.optimal / c.lower - 1):.2f} %" if c.lower else "-"
        others = " | ".join(f"+{100 * (c.strategies[s] / c.optimal - 1):.1f} %" for s in names)
        figures = f"{c.certified:,} | {c.lower:,} | {c.optimal:,}"
        yield f"| {c.file} | {c.weights} | {c.share:g} | {c.gaps:,} | {figures} | {gap} | {others} |"


def summary(found: list[Case]) -> Iterator[str]:
    """What the table comes to."""
    proven = sum(c.is_proven for c in found)
    near = sum(c.optimal <= NEAR * c.lower for c in found)
    certified = sum(c.optimal <= NEAR * c.certified for c in found)
    cut = sum(c.search != "complete" for c in found)
    yield f"- cases with spills: {len(found)}, of these with operands tiled through DRAM: {sum(c.tiled for c in found)}"
    yield f"- `optimal` reaches the lower bound: {proven}; at most 5 % above it: {near}"
    yield f"- at most 5 % above what a certificate proves, without the solver's word: {certified}"
    yield f"- searches that ended before they were done: {cut}"
    yield f"- CPU seconds for the bound and all strategies: {sum(c.cpu_s for c in found):.0f}"
    for s in CHEAP_STRATEGIES:
        ratios = [c.strategies[s] / c.optimal for c in found]
        best = sum(r == 1 for r in ratios)
        mean = 1.0
        for r in ratios:
            mean *= r ** (1 / len(ratios))
        yield f"- `{s}`: {mean:.3f} × optimal (geometric mean), at most {max(ratios):.2f} ×; as good in {best} cases"


def main() -> None:
    """Print the table, then what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, nargs="?")
    parser.add_argument("--random", default="")
    parser.add_argument("--dims", type=Path)
    parser.add_argument("--seconds", type=float, help="in place of the counted work that is the default")
    parser.add_argument("--shares", default="0.25,0.5,0.75,0.9")
    args = parser.parse_args()
    if args.random:
        print("| operators | gaps | bound | choice of gaps | optimal | " + " | ".join(CHEAP_STRATEGIES) + " |")
        for n in args.random.split(","):
            print(random_row(int(n), args.seconds), flush=True)
        return
    if args.models is None:
        parser.error("MODELS or --random is needed")
    found: list[Case] = []
    for case in cases(args.models, args.dims, [float(s) for s in args.shares.split(",")], args.seconds):
        found.append(case)
        print(f"{case.file} {case.weights} {case.share}: {case.optimal:,} {case.search}", flush=True)
    print(*summary(found), sep="\n")
    print(*table(found), sep="\n")


if __name__ == "__main__":
    main()
