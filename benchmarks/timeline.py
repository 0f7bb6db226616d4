"""The event loop on large plans, in multiples of a yardstick that is measured in the same run.

    python benchmarks/timeline.py [--sizes 10000,100000]

The yardstick is a million additions in a plain Python loop (about 0.04 s on a quiet core): other load on
the machine slows down both. Plans are those of ``scale.py``: random graphs with a third of the memory
that they would need, under ``lru`` with transfers issued early, on a plain machine and on one with two channels a
direction, a shared bus, background traffic and two cores. The fastest of three runs counts.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from scale import random_graph

from spillprof.analysis.occupancy import in_use_by_step
from spillprof.analysis.results import breakdown
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target, load_target
from spillprof.lowering.fitting import fit, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import step_demand_bytes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.timing.bus import bus_curve
from spillprof.timing.event_loop import EventLoop
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.timing.timeline import dma_limits, durations_of, simulate, work_of

SHARED = {
    "dram_bus_bytes_per_s": 80e9,
    "background_bytes_per_s": 10e9,
    "dma_read_channels": 2,
    "dma_write_channels": 2,
    "cores": 2,
}


def yardstick() -> int:
    """A million additions."""
    total = 0
    for i in range(1_000_000):
        total += i
    return total


def fastest_s(call: Callable[[], Any]) -> float:
    """CPU seconds of the fastest of three calls."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def planned(n: int) -> tuple[Program, Plan, Target]:
    """A program of ``n`` steps, a plan for a third of the memory that it would need, and the target."""
    graph, options, target = random_graph(n), LoweringOptions(), load_target("generic-npu")
    program = lower(graph, target, options)
    boundless = unlimited(program, target, options)
    ideal = make_plan(boundless, target, "none", PlanningOptions())
    demand = max(step_demand_bytes(program, step) for step in program.steps)
    target = target.with_overrides(sram_bytes=max(int(in_use_by_step(boundless, ideal).max()) // 3, demand))
    fitted = fit(program, target, options)
    plan = make_plan(fitted, target, "lru", PlanningOptions())
    return fitted, reissued(plan, earliest_issues(fitted, plan)), target


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000")
    sizes = [int(n) for n in parser.parse_args().sizes.split(",")]
    print(f"{'':34}" + f"{'CPU seconds':>14}{'yardsticks':>14}")
    for n in sizes:
        program, plan, plain = planned(n)
        for name, target in (("plain", plain), ("shared bus, 2 cores", plain.with_overrides(**SHARED))):
            work = work_of(program, plan, target)
            durations, machine = durations_of(work, program, target), dma_limits(target)
            timeline = simulate(program, plan, target)
            rows = {
                "event loop": lambda: EventLoop(work, durations, machine).play(),  # noqa: B023
                "what waits for what": lambda: work_of(program, plan, target),  # noqa: B023
                "all of simulate": lambda: simulate(program, plan, target),  # noqa: B023
                "breakdown": lambda: breakdown(program, plan, timeline),  # noqa: B023
                "bus curve": lambda: bus_curve(timeline, target),  # noqa: B023
            }
            print(f"{n:,} operators, {len(plan.transfers):,} transfers, {name}")
            for what, call in rows.items():
                seconds, unit = fastest_s(call), fastest_s(yardstick)
                print(f"  {what:32}{seconds:14.3f}{seconds / unit:14.1f}")


if __name__ == "__main__":
    main()
