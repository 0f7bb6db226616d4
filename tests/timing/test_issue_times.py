"""Issue times are judged by simulating the plan."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target
from random_programs import random_program

from spillprof.ir.target import Target
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.issue_times import best_issue_times, by_urgency, earliest_issues, issue_order, reissued
from spillprof.timing.timeline import simulate
from spillprof.verify import verify


def some_machine(seed: int) -> Target:
    rng = Random(seed)
    return target(
        dram_read_bytes_per_s=rng.choice([3.0, 10.0, 30.0]),
        dram_write_bytes_per_s=rng.choice([3.0, 12.0]),
        sram_bytes_per_s=1e3,
        macs_per_s={"default": rng.choice([300.0, 1e3, 4e3])},
        dram_read_setup_s=rng.choice([0.0, 1.0, 8.0]),
        cores=rng.choice([1, 1, 2]),
        dma_shared_channels=rng.choice([0, 0, 1]),
        dram_bus_bytes_per_s=rng.choice([None, 8.0]),
    )


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(STRATEGIES))
def test_never_slower_than_on_demand_and_moves_the_same(seed: int, strategy: str) -> None:
    p, machine = random_program(seed), some_machine(seed)
    on_demand = make_plan(p, machine, strategy, PlanningOptions())
    found, timeline = best_issue_times(p, on_demand, machine)
    assert verify(p, found) == ()
    assert timeline.makespan_s == simulate(p, found, machine).makespan_s
    for steps in ([t.issue_step for t in on_demand.transfers], earliest_issues(p, on_demand)):
        assert timeline.makespan_s <= simulate(p, reissued(on_demand, steps), machine).makespan_s
    assert count_traffic(p, found) == count_traffic(p, on_demand)


def test_one_transfer_that_is_in_the_way_is_held_back() -> None:
    # From 219 the three ways for all transfers together are not the best: one read holds up another.
    p = random_program(219, max_steps=14, features=False)
    machine = some_machine(219)
    on_demand = make_plan(p, machine, "interval", PlanningOptions())
    earliest = simulate(p, reissued(on_demand, earliest_issues(p, on_demand)), machine).makespan_s
    _, timeline = best_issue_times(p, on_demand, machine)
    assert timeline.makespan_s < min(earliest, simulate(p, on_demand, machine).makespan_s)
    assert timeline.makespan_s == pytest.approx(38.004)


def test_write_back_goes_right_after_the_use_before_the_spill() -> None:
    p = program(
        {"a": 10, "b": 10, "c": 10, "y": ("output", 10)},
        [step("-> a", macs=10), step("-> b", macs=10), step("b -> c", macs=10), step("c, a -> y", macs=10)],
    )
    q = plan(  # a leaves when step 2 is about to start
        p,
        segments=[("a", 1, 6, 0), ("b", 4, 8, 10), ("c", 7, 11, 0), ("a", 9, 11, 20), ("y", 10, 12, 30)],
        transfers=[("write-back", "a", 2, 2), ("reload", "a", 3, 3, 1), ("drain", "y", 4, 4)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 2, "needed_step": 3}],
    )
    machine = target()
    assert simulate(p, q, machine).step_start_s.tolist() == [0, 10, 30, 50]
    found, timeline = best_issue_times(p, q, machine)
    assert [t.issue_step for t in found.transfers] == [1, 2, 4]  # out during step 1, back during step 2
    assert timeline.step_start_s.tolist() == [0, 10, 20, 30]


def test_order_of_queues_is_that_of_the_reissued_plan() -> None:
    p = random_program(7)
    on_demand = make_plan(p, target(), "lru", PlanningOptions())
    steps = earliest_issues(p, on_demand)
    again = reissued(on_demand, steps)
    for k, t in zip(issue_order(by_urgency(on_demand), steps), again.transfers, strict=True):
        old = on_demand.transfers[k]
        assert (old.kind, old.buffer, old.needed_step, steps[k]) == (t.kind, t.buffer, t.needed_step, t.issue_step)
