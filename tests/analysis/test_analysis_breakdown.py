"""Breakdown of the latency: hand-worked, and parts that add up on every machine."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target
from random_programs import random_program

from spillprof.analysis.results import breakdown
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.result import Breakdown
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.timing.timeline import simulate
from spillprof.verify import verify


def parts(b: Breakdown) -> tuple[float, ...]:
    return (b.compute_s, b.compulsory_s, b.spill_s, b.sync_s, b.contention_s, b.fragmentation_s, b.tail_s)


def of(p: Program, q: Plan, **machine: Any) -> tuple[float, ...]:
    assert verify(p, q) == ()
    t = simulate(p, q, target(**machine))
    found = parts(breakdown(p, q, t))
    assert sum(found) == pytest.approx(t.makespan_s)
    return found


def spilled() -> tuple[Program, Plan]:
    """a is written in step 0, spilled while step 1 runs, and read in step 3; y is drained."""
    p = program(
        {"a": 10, "b": 10, "c": 10, "y": ("output", 10)},
        [step("-> a", macs=5), step("-> b", macs=10), step("b -> c", macs=4), step("a, c -> y", macs=5)],
    )
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("b", 4, 8, 10), ("a", 6, 11, 20), ("c", 7, 11, 30), ("y", 10, 12, 0)],
        transfers=[("write-back", "a", 1, 1), ("reload", "a", 2, 3, 1), ("drain", "y", 4, 4)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 3}],
    )
    return p, q


def test_wait_for_a_reload_is_spill_and_the_last_drain_is_the_tail() -> None:
    assert of(*spilled()) == (24, 0, 6, 0, 0, 0, 10)


def test_set_up_of_what_is_waited_for_is_sync() -> None:
    # the reload is issued at 15, sets up until 27 and flows until 37; step 2 ends at 19
    assert of(*spilled(), dram_read_setup_s=12.0) == (24, 0, 10, 8, 0, 0, 10)


def test_wait_reaches_back_to_what_the_transfer_waited_for() -> None:
    # the write-back takes 20 s from 5 on; the reload waits for it until 25; step 2 ends at 19
    assert of(*spilled(), dram_write_bytes_per_s=0.5) == (24, 0, 16, 0, 0, 0, 20)


def test_time_lost_to_background_traffic_is_contention() -> None:
    # a byte a second alone, half of it beside the background: the reload takes from 25 to 45, 20 s instead of 10
    found = of(*spilled(), dram_bus_bytes_per_s=1.0, background_bytes_per_s=0.9)
    assert found == pytest.approx((24, 0, 13, 0, 13, 0, 20))


def test_first_load_is_compulsory_and_moves_are_fragmentation() -> None:
    p = program({"x": ("input", 7), "a": 10, "y": ("output", 10)}, [step("x -> a", macs=1), step("a -> y", macs=1)])
    q = plan(
        p,
        segments=[("x", 0, 2, 30), ("a", 1, 3, 0), ("a", 3, 5, 20), ("y", 4, 6, 0)],
        transfers=[("fetch", "x", 0, 0), ("drain", "y", 2, 2)],
        moves=[("a", 1, 0, 20)],
    )
    assert of(p, q, sram_bytes_per_s=4.0) == (2, 7, 0, 0, 0, 5, 10)


def test_weights_that_outlast_their_step_are_compulsory() -> None:
    p = program({"y": ("output", 1)}, [step("-> y", macs=3, weight_stream_bytes=20)],
                reservations=[("weight staging", 8)])  # fmt: skip
    q = plan(p, segments=[("y", 1, 3, 8)], transfers=[("drain", "y", 1, 1)])
    assert of(p, q) == (3, 8 + 9, 0, 0, 0, 0, 1)


def test_two_cores_compute_at_the_same_time() -> None:
    p = program({"a": 1, "b": 1}, [step("-> a", macs=4), step("-> b", macs=6)])
    q = plan(p, segments=[("a", 1, 3, 0), ("b", 4, 6, 1)])
    assert of(p, q, cores=2) == (6, 0, 0, 0, 0, 0, 0)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 2), st.sampled_from([None, 5.0, 30.0]),
    st.sampled_from([0.0, 9.0]), st.booleans(),
)  # fmt: skip
def test_parts_add_up(seed: int, cores: int, shared: int, bus: float | None, setup: float, early: bool) -> None:
    p = random_program(seed)
    machine = target(
        cores=cores, dma_shared_channels=shared, dram_bus_bytes_per_s=bus, background_bytes_per_s=(bus or 0.0) / 3,
        dram_read_bytes_per_s=10.0, dram_write_bytes_per_s=20.0, dram_read_setup_s=setup, dram_write_setup_s=setup,
        sram_bytes_per_s=1e3, macs_per_s={"default": 200.0},
    )  # fmt: skip
    q = make_plan(p, machine, "lru", PlanningOptions())
    q = reissued(q, earliest_issues(p, q)) if early else q
    assert verify(p, q) == ()
    t = simulate(p, q, machine)
    found = parts(breakdown(p, q, t))
    assert min(found) >= 0
    assert sum(found) == pytest.approx(t.makespan_s, rel=1e-9)
    if cores == 1:
        assert found[0] == pytest.approx(t.compute_s)
