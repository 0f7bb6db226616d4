"""The length of a run in one pass, to the last bit that of the event loop."""

from dataclasses import replace
from random import Random
from typing import Any

from fitted_programs import streaming_case
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import target
from random_programs import random_program

from spillprof.errors import CapacityError
from spillprof.model.plan import Plan
from spillprof.model.program import Program
from spillprof.model.target import Target
from spillprof.planning.options import STRATEGIES, PlanningOptions, Release
from spillprof.planning.planner import make_plan
from spillprof.planning.prefetch import earliest_issues, reissued
from spillprof.timing.forward_pass import ForwardPass, is_exact
from spillprof.timing.timeline import simulate
from spillprof.verify import verify

MACHINES: tuple[dict[str, Any], ...] = (
    {},
    {"dma_shared_channels": 1, "dram_bus_bytes_per_s": 7.0, "background_bytes_per_s": 2.0},
    {"dma_shared_channels": 1, "dram_outstanding": 1},
    {"dram_bus_bytes_per_s": 1e6, "background_bytes_per_s": 3.0, "dram_outstanding": 2},
    {"dram_read_curve": ((0, 0.3), (100, 2.0), (4_000, 7.5)), "dram_write_curve": ((0, 0.1), (1_000, 11.0))},
)


def random_machine(rng: Random) -> Target:
    """One on which one pass is enough."""
    return target(
        dram_read_bytes_per_s=rng.uniform(1, 100),
        dram_write_bytes_per_s=rng.uniform(1, 100),
        dram_read_setup_s=rng.choice([0.0, 0.5, 30.0]),
        dram_write_setup_s=rng.choice([0.0, 0.25, 20.0]),
        dram_burst_bytes=rng.choice([1, 64]),
        sram_bytes_per_s=1e3,
        macs_per_s={"default": rng.choice([50.0, 1e3])},
        **rng.choice(MACHINES),
    )


def check_lengths(program: Program, plan: Plan, machine: Target, rng: Random) -> None:
    """On demand, early, and in between."""
    assert is_exact(machine)
    earliest = earliest_issues(program, plan)
    as_planned = [t.issue_step for t in plan.transfers]
    between = [rng.randint(min(a, b), max(a, b)) for a, b in zip(earliest, as_planned, strict=True)]
    one_pass = ForwardPass(program, plan, machine)
    for steps in (as_planned, earliest, between):
        moved = reissued(plan, steps)
        assert verify(program, moved) == ()
        assert one_pass.makespan_s(steps) == simulate(program, moved, machine).makespan_s


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6))
def test_a_random_plan_takes_as_long_in_one_pass_as_in_the_event_loop(seed: int) -> None:
    rng = Random(seed)
    program, machine = random_program(seed), random_machine(rng)
    try:
        plan = make_plan(program, machine, rng.choice(STRATEGIES), PlanningOptions(release=rng.choice(list(Release))))
    except CapacityError:
        plan = make_plan(program, machine, "lru", PlanningOptions())
    check_lengths(program, plan, machine, rng)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_streamed_operands_take_as_long_in_one_pass_as_in_the_event_loop(seed: int) -> None:
    rng = Random(seed)
    case = streaming_case(seed)
    if case is not None:
        program, machine = case
        plan = make_plan(program, machine, "cost", PlanningOptions())
        check_lengths(program, plan, replace(machine, **rng.choice(MACHINES)), rng)


def test_machines_whose_transfers_meet_are_left_to_the_event_loop() -> None:
    assert not is_exact(target(cores=2))
    assert not is_exact(target(dma_read_channels=2))
    assert not is_exact(target(dma_shared_channels=2))
    assert not is_exact(target(dram_outstanding=1))  # a read waits for a write although each has its channel
    assert not is_exact(target(dram_read_bytes_per_s=10.0, dram_write_bytes_per_s=10.0, dram_bus_bytes_per_s=15.0))
    assert is_exact(target(dram_read_bytes_per_s=10.0, dram_write_bytes_per_s=10.0, dram_bus_bytes_per_s=20.0))
