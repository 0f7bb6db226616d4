"""Growth of each stage of an analysis: CPU seconds for random programs of rising size, as ratios in one run.

    python benchmarks/scale.py [--sizes 1000,10000,100000] [--strategies lru,interval]

The programs are random graphs with mostly local edges and some long skips, at a third of the memory that would
hold them without spills. A stage that grows like n log n shows ratios a little above the ratio of the sizes.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from spillprof.analysis.occupancy import in_use_by_step
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.graph import Graph, Operator, Tensor, TensorKind
from spillprof.ir.target import load_target
from spillprof.lowering.fitting import fit, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import step_demand_bytes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import CHEAP_STRATEGIES
from spillprof.report.json_text import profile_json
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.timing.timeline import simulate
from spillprof.verify import verify


def random_graph(n: int, seed: int = 0) -> Graph:
    """``n`` operators of one or two inputs: the last few results, and now and then one from far back."""
    rng = Random(seed)
    tensors = {"x": Tensor(name="x", dtype="int8", shape=(4096,), kind=TensorKind.INPUT)}
    operators, names = [], ["x"]
    for i in range(n):
        name = f"t{i}"
        inputs = [names[-1]]
        if rng.random() < 0.5:
            inputs.append(names[max(0, len(names) - 1 - int(rng.expovariate(1 / 20)))])
        if rng.random() < 0.1:
            inputs.append(rng.choice(names[-2000:]))
        tensors[name] = Tensor(name=name, dtype="int8", shape=(1024 * rng.randint(1, 64),), kind=TensorKind.ACTIVATION)
        operators.append(
            Operator(name=f"op{i}", op_type="Concat", domain="", inputs=tuple(dict.fromkeys(inputs)), outputs=(name,))
        )
        names.append(name)
    used = {t for op in operators for t in op.inputs}
    outputs = tuple(name for name in names[1:] if name not in used)
    return Graph(name=f"random-{n}", operators=tuple(operators), tensors=tensors, inputs=("x",), outputs=outputs)


def measure(n: int, strategies: list[str]) -> dict[str, float]:
    """CPU seconds of every stage on one graph of ``n`` operators."""
    seconds: dict[str, float] = {}

    def timed(what: str, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        value = call()
        seconds[what] = seconds.get(what, 0.0) + time.process_time() - start
        return value

    graph, options = random_graph(n), LoweringOptions()
    target = load_target("generic-npu")
    program = timed("lower", lambda: lower(graph, target, options))
    boundless = unlimited(program, target, options)
    ideal = make_plan(boundless, target, "none", PlanningOptions())
    demand = max(step_demand_bytes(program, step) for step in program.steps)
    target = target.with_overrides(sram_bytes=max(int(in_use_by_step(boundless, ideal).max()) // 3, demand))
    fitted = timed("fit", lambda: fit(program, target, options))
    for strategy in strategies:
        plan = timed(f"plan {strategy}", lambda s=strategy: make_plan(fitted, target, s, PlanningOptions()))
        plan = timed("prefetch", lambda p=plan: reissued(p, earliest_issues(fitted, p)))
        assert timed("verify", lambda p=plan: verify(fitted, p)) == ()
        timed("timeline", lambda p=plan: simulate(fitted, p, target))
    whole = AnalyzeOptions(strategies=tuple(strategies))
    profile = timed("analyze (all of it)", lambda: analyze(graph, target, whole))
    timed("json", lambda: profile_json(profile, events=False))
    return seconds


def main() -> None:
    """Print a table of seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--strategies", default=",".join(CHEAP_STRATEGIES))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    sizes = [int(n) for n in args.sizes.split(",")]
    found = {n: measure(n, args.strategies.split(",")) for n in sizes}
    if args.json:
        print(json.dumps(found))
        return
    stages = list(found[sizes[0]])
    print(f"{'CPU seconds':24}" + "".join(f"{n:>12,}" for n in sizes) + "   ratios")
    for stage in stages:
        times = [found[n][stage] for n in sizes]
        ratios = "  ".join(f"{b / a:.1f}" if a else "-" for a, b in pairwise(times))
        print(f"{stage:24}" + "".join(f"{t:12.2f}" for t in times) + f"   {ratios}")


if __name__ == "__main__":
    main()
