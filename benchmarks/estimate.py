"""CPU seconds of ``estimate`` for one order, and their share of lowering the model once.

    python benchmarks/estimate.py [--sizes 1000,10000]

Random programs as in scale.py, at a third of the memory that would hold them without spills: most steps spill.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from scale import random_graph

from spillprof import estimate, load_program, load_target
from spillprof.planning.liveness import live_bytes_by_step, step_demand_bytes
from spillprof.planning.options import PlanningOptions

COUNTED = PlanningOptions(placement="perfect")


def least_s(call: Callable[[], Any], repeats: int = 5) -> float:
    """CPU seconds of the fastest of several calls."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Print one line a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000")
    for n in map(int, parser.parse_args().sizes.split(",")):
        graph, target = random_graph(n), load_target("generic-npu")
        lowering_s = least_s(lambda g=graph, t=target: load_program(g, t), 2)
        program = load_program(graph, target)
        peak = int(live_bytes_by_step(program, stored=True).max())
        demand = max(step_demand_bytes(program, step) for step in program.steps)
        target = target.with_overrides(sram_bytes=max(peak // 3, demand))
        order = range(len(program.steps))
        exact_s = least_s(lambda p=program, t=target, o=order: estimate(p, t, "cost", order=o))
        counted_s = least_s(lambda p=program, t=target, o=order: estimate(p, t, "cost", order=o, planning=COUNTED))
        print(
            f"{n:7,} steps: one order {exact_s * 1e3:6.1f} ms, without addresses {counted_s * 1e3:6.1f} ms, "
            f"{exact_s / lowering_s:.2f} of lowering ({lowering_s * 1e3:.0f} ms)"
        )


if __name__ == "__main__":
    main()
