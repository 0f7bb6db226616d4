"""Hand-worked timelines of two compute units. A byte a second each way, a MAC a second."""

from typing import Any

import pytest
from programs import plan, program, step, target
from replayed import check

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.timeline import Timeline
from spillprof.timing.timeline import simulate
from spillprof.verify import verify


def play(p: Program, q: Plan, **machine: Any) -> Timeline:
    assert verify(p, q) == ()
    t = simulate(p, q, target(cores=2, **machine))
    check(p, q, target(cores=2, **machine), t)
    return t


def two_arms(address_of_c: int) -> tuple[Program, Plan]:
    """a then b in one arm, c in the other; d joins them. Nothing moves but the output."""
    p = program(
        {"a": 10, "b": 10, "c": 10, "y": ("output", 10)},
        [step("-> a", macs=5), step("a -> b", macs=7), step("-> c", macs=9), step("b, c -> y", macs=1)],
    )
    q = plan(
        p,
        segments=[("a", 1, 5, 0), ("b", 4, 11, 10), ("c", 7, 11, address_of_c), ("y", 10, 12, 30)],
        transfers=[("drain", "y", 4, 4)],
    )
    return p, q


def test_two_arms_run_at_the_same_time() -> None:
    t = play(*two_arms(20))
    assert t.step_start_s.tolist() == [0, 5, 0, 12]
    assert t.step_core.tolist() == [0, 0, 1, 1]
    assert t.stall_s.tolist() == [0, 0, 0, 0]
    assert (t.makespan_s, t.compute_s) == (23, 22)


def test_arm_waits_for_the_readers_of_what_lay_in_its_place() -> None:
    t = play(*two_arms(0))  # where a was, which b's step reads until 12
    assert t.step_start_s.tolist() == [0, 5, 12, 21]


def test_third_arm_waits_for_a_unit_and_goes_by_plan_order() -> None:
    p = program(
        {"a": 1, "b": 1, "c": 1, "d": 1},
        [step("-> a", macs=4), step("-> b", macs=6), step("-> c", macs=1), step("-> d", macs=1)],
    )
    q = plan(p, segments=[("a", 1, 3, 0), ("b", 4, 6, 1), ("c", 7, 9, 2), ("d", 10, 12, 3)])
    t = play(p, q)
    assert t.step_start_s.tolist() == [0, 0, 4, 5]
    assert t.stall_s.tolist() == [0, 0, 0, 0]
    assert t.makespan_s == 6


def test_reload_is_issued_when_one_step_at_most_is_unfinished() -> None:
    p = program(
        {"a": 1, "b": 1, "x": ("input", 10), "y": ("output", 1)},
        [step("-> a", macs=4), step("a -> b", macs=6), step("x -> y", macs=1)],
    )
    q = plan(
        p,
        segments=[("a", 1, 5, 0), ("b", 4, 6, 1), ("x", 6, 8, 2), ("y", 7, 9, 12)],
        transfers=[("fetch", "x", 2, 2), ("drain", "y", 3, 3)],
    )
    t = play(p, q)
    assert t.transfer_start_s.tolist() == [4, 15]
    assert t.step_start_s.tolist() == [0, 4, 14]
    assert t.stall_s.tolist() == [0, 0, 10]  # a unit was free since 4, and y follows no step
    assert t.stall_transfer.tolist() == [-1, -1, 0]


def test_one_step_at_a_time_uses_the_weight_staging_area() -> None:
    p = program(
        {"a": 1, "b": 1},
        [step("-> a", macs=20, weight_stream_bytes=8), step("-> b", macs=20, weight_stream_bytes=8)],
        reservations=[("weight staging", 8)],
    )
    q = plan(p, segments=[("a", 1, 3, 8), ("b", 4, 6, 9)])
    t = play(p, q)
    assert t.step_start_s.tolist() == [8, 28]
    assert t.jobs.start_s.tolist() == [0, 8]


def test_one_step_at_a_time_uses_the_shared_workspace() -> None:
    p = program(
        {"a": 1, "b": 1, "c": 1},
        [
            step("-> a", macs=20, shared_workspace_bytes=4),
            step("-> b", macs=5),
            step("-> c", macs=20, shared_workspace_bytes=8),
        ],
        reservations=[("shared workspace", 8)],
    )
    q = plan(p, segments=[("a", 1, 3, 8), ("b", 4, 6, 9), ("c", 7, 9, 10)])
    assert play(p, q).step_start_s.tolist() == [0, 0, 20]


def test_step_that_streams_waits_for_its_turn() -> None:
    p = program(
        {"x": ("input", 30), "a": 1, "b": 1, "y": ("output", 1)},
        [step("-> a", macs=5), step("a -> b", macs=5), step("x -> y", streamed_reads="x", stream_staging_bytes=4)],
    )
    q = plan(
        p,
        segments=[("a", 1, 5, 0), ("b", 4, 6, 1), ("y", 7, 9, 20)],
        transfers=[("drain", "y", 3, 3)],
        streamed=[(2, "x", "in")],
        scratch=[(2, "stream staging", 4, 8, 6, 9)],
    )
    t = play(p, q)
    assert t.step_start_s.tolist() == [0, 5, 5]  # when step 1 has started
    assert t.step_end_s.tolist() == [5, 10, 35]


@pytest.mark.parametrize("cores", [1, 2])
def test_chain_gains_nothing_from_a_second_core(cores: int) -> None:
    p = program({"a": 1, "b": 1, "y": ("output", 1)}, [step("-> a", macs=3), step("a -> b", macs=4), "b -> y"])
    q = plan(p, segments=[("a", 1, 5, 0), ("b", 4, 8, 1), ("y", 7, 9, 2)], transfers=[("drain", "y", 3, 3)])
    assert simulate(p, q, target(cores=cores)).step_start_s.tolist() == [0, 3, 7]
