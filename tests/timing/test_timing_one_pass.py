"""The one-pass timeline equals the event loop bit for bit."""

from dataclasses import fields, replace
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import target
from random_programs import random_program, streaming_case

from spillprof.engine.run import terms_of
from spillprof.ir.errors import CapacityError
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.planning.options import PlanningOptions, Release, WriteBack
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.timing.issue_times import by_urgency, earliest_issues, issue_order, reissued
from spillprof.timing.one_pass import OnePass, is_exact
from spillprof.timing.record import Record
from spillprof.timing.timeline import event_by_event, in_one_pass
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


def check_records(program: Program, plan: Plan, machine: Target, rng: Random, options: PlanningOptions) -> None:
    """On demand, early, and in between: as issued from the plan on demand, and as the plan that comes of it."""
    assert is_exact(machine)
    earliest = earliest_issues(program, plan)
    as_planned = [t.issue_step for t in plan.transfers]
    between = [rng.randint(min(a, b), max(a, b)) for a, b in zip(earliest, as_planned, strict=True)]
    one_pass, urgency = OnePass(program, plan, machine), by_urgency(plan)
    for steps in (as_planned, earliest, between):
        moved = reissued(plan, steps)
        assert verify(program, moved, terms_of(options)) == ()
        expected = event_by_event(program, moved, machine)
        from_demand = one_pass.record(one_pass.play(steps, issue_order(urgency, steps)))
        for found in (from_demand, in_one_pass(program, moved, machine)):
            for field in fields(Record):
                name = field.name
                assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6))
def test_a_random_run_is_the_same_in_one_pass_as_event_by_event(seed: int) -> None:
    rng = Random(seed)
    program, machine = random_program(seed), random_machine(rng)
    options = PlanningOptions(release=rng.choice(list(Release)), writeback=rng.choice(list(WriteBack)))
    try:
        plan = make_plan(program, machine, rng.choice(STRATEGIES), options)
    except CapacityError:
        options = PlanningOptions()
        plan = make_plan(program, machine, "lru", options)
    check_records(program, plan, machine, rng, options)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_a_run_that_streams_is_the_same_in_one_pass_as_event_by_event(seed: int) -> None:
    rng = Random(seed)
    case = streaming_case(seed)
    if case is not None:
        program, machine = case
        plan = make_plan(program, machine, "cost", PlanningOptions())
        check_records(program, plan, replace(machine, **rng.choice(MACHINES)), rng, PlanningOptions())


def test_machines_whose_transfers_meet_are_left_to_the_event_loop() -> None:
    assert not is_exact(target(cores=2))
    assert not is_exact(target(dma_read_channels=2))
    assert not is_exact(target(dma_shared_channels=2))
    assert not is_exact(target(dram_outstanding=1))  # a read waits for a write although each has its channel
    assert not is_exact(target(dram_read_bytes_per_s=10.0, dram_write_bytes_per_s=10.0, dram_bus_bytes_per_s=15.0))
    assert is_exact(target(dram_read_bytes_per_s=10.0, dram_write_bytes_per_s=10.0, dram_bus_bytes_per_s=20.0))
