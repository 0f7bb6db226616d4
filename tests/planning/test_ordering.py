"""Orders of steps: legal, worked by hand, and no order beats the bound over all orders."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, target
from random_programs import random_program
from test_bounds import cheapest_cover

from spillprof.frontends import read_model
from spillprof.ir.program import Program, Update
from spillprof.ir.target import load_target
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.lowering.transforms import reordered
from spillprof.planning.bounds.any_order import any_order_bytes
from spillprof.planning.bounds.covering import covering
from spillprof.planning.liveness import live_bytes_by_step, step_demand_bytes
from spillprof.planning.options import PlanningOptions, Release
from spillprof.planning.ordering import (
    KEYS,
    OrderEffort,
    beam_order,
    dependencies,
    least_order,
    list_order,
    noisy,
    order_effort,
)
from spillprof.planning.placements import PERFECT
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.verify import verify

SAMPLES = Path(__file__).parents[2] / "sample_models"
TARGET = target()


def legal_orders(p: Program) -> Iterator[tuple[int, ...]]:
    waits_for = dependencies(p).waits_for
    for order in permutations(range(len(p.steps))):
        at = {i: position for position, i in enumerate(order)}
        if all(at[j] < at[i] for i, before in enumerate(waits_for) for j in before):
            yield order


def two_arms(capacity: int | None = None) -> Program:
    """x feeds two arms; each makes a large tensor (60) and shrinks it (10). Breadth first both large ones are live."""
    return program(
        {"x": ("input", 10), "a": 60, "b": 60, "c": 10, "d": 10, "y": ("output", 10)},
        ["x -> a", "x -> b", "a -> c", "b -> d", "c, d -> y"],
        capacity=capacity,
    )


def test_depth_first_keeps_one_arm_live():
    p = two_arms()
    assert live_bytes_by_step(p, stored=True).max() == 10 + 60 + 60 + 10 - 10  # step 2: a, b and c; x is dead
    for key in KEYS:
        q = reordered(p, list_order(dependencies(p), key))
        peak = live_bytes_by_step(q, stored=True).max()
        assert peak == (10 + 60 + 10 if [s.name for s in q.steps][1:3] != ["op1", "op2"] else 130)
    assert beam_order(dependencies(p), 80, 8) in {(0, 2, 1, 3, 4), (1, 3, 0, 2, 4)}


def test_least_order_spills_nothing_where_the_file_order_must():
    p = two_arms(capacity=80)
    assert cheapest_cover(covering(p, PlanningOptions())) == 240  # a goes while b is made, b while a is shrunk
    graph = dependencies(p)

    def spill(order: tuple[int, ...]) -> tuple[int]:
        return (count_traffic(q := reordered(p, order), make_plan(q, TARGET, "cost", PlanningOptions())).spill_bytes,)

    best = least_order(graph, spill, 80, OrderEffort(restarts=2, changes=2))
    assert spill(best) == (0,)
    assert any_order_bytes(p, PlanningOptions()) == 0


def test_present_order_stays_where_none_is_better():
    p = program({"x": ("input", 10), "a": 10, "y": ("output", 10)}, ["x -> a", "a -> y"], capacity=30)
    assert least_order(dependencies(p), lambda order: (0.0,), 30, order_effort(2)) == (0, 1)


def test_skip_over_a_step_that_fills_the_memory_is_spilled_in_every_order():
    """s (40) waits while the chain passes 120: no order avoids it, as the chain's end needs s and its start makes s."""
    p = program(
        {"x": ("input", 10), "s": 40, "a": 60, "b": 60, "y": ("output", 10)},
        ["x -> s", "s -> a", "a -> b", "b, s -> y"],
        capacity=120,
    )
    assert any_order_bytes(p, PlanningOptions()) == 80
    assert sum(1 for _ in legal_orders(p)) == 1


def test_update_is_dropped_where_the_operand_does_not_die_any_more():
    p = program(
        {"x": ("input", 10), "a": 20, "b": 20, "y": ("output", 20), "z": ("output", 10)},
        ["x -> a", "a -> z", ("a -> b", {"updates": {"a": "b"}}), "b -> y"],
    )
    assert reordered(p, (0, 2, 1, 3)).steps[1].updates == ()
    assert reordered(reordered(p, (0, 2, 1, 3)), (0, 2, 1, 3)).steps[2].updates == (Update(old=1, new=3),)


@pytest.mark.parametrize("order", [(0, 0, 1, 2, 3), (0, 1, 2, 3), (2, 0, 1, 3, 4)])
def test_order_that_is_none_is_refused(order):
    with pytest.raises(ValueError):
        reordered(two_arms(), order)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 5))
def test_every_schedule_is_legal_and_deterministic(seed, noise):
    p = random_program(seed)
    graph = dependencies(p)
    for key in (*KEYS, noisy(noise)):
        order = list_order(graph, key)
        q = replace(reordered(p, order), capacity_bytes=None)
        assert verify(q, make_plan(q, TARGET, "none", PlanningOptions())) == ()
        assert list_order(graph, key) == order
    order = beam_order(graph, 100, 4)
    assert order is not None
    reordered(p, order)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 100_000), st.booleans())
def test_no_order_beats_the_bound_over_all_orders(seed, persist):
    p = random_program(seed, max_steps=6, capacity_factor=1.0, weights_persist=persist)
    bound = any_order_bytes(p, PlanningOptions())
    assert bound is not None
    for order in legal_orders(p):
        q = reordered(p, order)
        if max(step_demand_bytes(q, s) for s in q.steps) <= q.capacity_bytes - q.reserved_bytes:
            least = cheapest_cover(covering(q, PlanningOptions()))
            assert least is None or bound <= least


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_found_order_never_costs_more_than_the_present_one(seed):
    p = random_program(seed, capacity_factor=2.0)
    graph = dependencies(p)

    def spill(order: tuple[int, ...]) -> tuple[float, ...]:
        q = reordered(p, order)
        if max(step_demand_bytes(q, s) for s in q.steps) > q.capacity_bytes - q.reserved_bytes:
            return (float("inf"),)
        plan = make_plan(q, TARGET, "cost", PlanningOptions())
        assert verify(q, plan) == ()
        return (count_traffic(q, plan).spill_bytes,)

    best = least_order(graph, spill, p.capacity_bytes, OrderEffort(restarts=3, changes=6))
    assert spill(best) <= spill(tuple(range(len(p.steps))))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from(STRATEGIES), st.sampled_from(Release))
def test_perfect_placement_needs_no_more_than_the_pool_and_never_says_fragmentation(seed, strategy, release):
    p = random_program(seed)
    options = PlanningOptions(placement=PERFECT, release=release)
    plan = make_plan(p, TARGET, strategy, options)
    assert not plan.moves
    assert not any(spill.fragmentation for spill in plan.spills)
    in_use = [0] * (3 * len(p.steps))
    stays = [
        (s.start, s.end, p.buffers[s.buffer].size_bytes) for s in plan.segments if not p.buffers[s.buffer].dedicated
    ]
    for start, end, size in [*stays, *((s.start, s.end, s.size_bytes) for s in plan.scratch)]:
        for tick in range(start, end):
            in_use[tick] += size
    assert max(in_use) <= p.capacity_bytes - p.reserved_bytes
    assert count_traffic(p, plan).moved_bytes == 0


@pytest.mark.parametrize("weights", WeightsPolicy)
@pytest.mark.parametrize("model", sorted(SAMPLES.glob("*.onnx")), ids=lambda path: path.stem)
def test_file_order_gives_the_program_as_it_was_lowered(model, weights):
    p = lower(read_model(model), load_target("generic-npu"), LoweringOptions(weights=weights))
    assert reordered(p, range(len(p.steps))) == p


def test_buffers_are_numbered_as_the_steps_touch_them():
    p = reordered(two_arms(), (1, 3, 0, 2, 4))
    assert [b.name for b in p.buffers] == ["x", "b", "d", "a", "c", "y"]
    assert [s.reads for s in p.steps] == [(0,), (1,), (0,), (3,), (4, 2)]
