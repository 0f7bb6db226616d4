"""Issue times are judged by simulating the plan."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target
from random_programs import planning_options, random_program, streaming_case

from spillprof.engine.run import terms_of
from spillprof.ir.plan import Plan
from spillprof.ir.target import Target
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.issue_times import (
    LastOwnerEnd,
    best_issue_times,
    by_urgency,
    earliest_issues,
    issue_order,
    just_in_time,
    reissued,
)
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


PROGRAM = program({"a": 10, "n": 10, "m": 5, "x": ("input", 10)}, ["-> a", "-> n", "-> m", "x ->", "a ->"], capacity=20)
ON_DEMAND = plan(
    PROGRAM,
    capacity=20,
    segments=[("a", 1, 6, 0), ("n", 4, 6, 10), ("m", 7, 9, 0), ("x", 9, 11, 10), ("a", 12, 14, 0)],
    transfers=[("write-back", "a", 2, 2), ("fetch", "x", 3, 3), ("reload", "a", 4, 4, 1)],
    spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 2, "needed_step": 4}],
)
"""a leaves at step 2 for m, which lies over its first half, and comes back to the same place at step 4."""


def test_the_literal_plan_is_legal() -> None:
    assert verify(PROGRAM, ON_DEMAND) == ()


def test_earliest_issues() -> None:
    # a is written back right after step 0, which made it. x's space was n's until step 1 ended. a's space was m's
    # until step 2 ended.
    assert earliest_issues(PROGRAM, ON_DEMAND) == [1, 2, 3]


def test_a_reload_waits_for_its_own_eviction_even_where_its_new_place_is_free() -> None:
    # a comes back to [30, 40), which nobody ever had: not before it left at step 2.
    elsewhere = replace(
        ON_DEMAND,
        capacity_bytes=40,
        segments=tuple(replace(s, address=30) if s.start == 12 else s for s in ON_DEMAND.segments),
    )
    assert earliest_issues(PROGRAM, elsewhere) == [1, 2, 2]


def test_a_first_load_to_a_place_that_nobody_had_can_begin_with_the_run() -> None:
    elsewhere = replace(
        ON_DEMAND,
        capacity_bytes=40,
        segments=tuple(replace(s, address=30) if s.buffer == 3 else s for s in ON_DEMAND.segments),
    )
    assert earliest_issues(PROGRAM, elsewhere) == [1, 0, 3]


def test_scratch_in_the_way_holds_a_load_back() -> None:
    # The workspace of step 2 lies over x's future place until the step's COMPUTE has ended: step 3 is the first.
    blocked = replace(ON_DEMAND, scratch=plan(PROGRAM, scratch=[(2, "im2col", 4, 16, 6, 8)]).scratch)
    assert earliest_issues(PROGRAM, blocked) == [1, 3, 3]


def test_a_write_back_never_comes_before_a_move_of_its_source() -> None:
    # a is moved when step 1 starts, and leaves at step 3: the second segment is what is written.
    moved = plan(
        PROGRAM,
        capacity=40,
        segments=[
            ("a", 1, 3, 20), ("a", 3, 9, 0), ("n", 4, 6, 10), ("m", 7, 9, 30), ("x", 9, 11, 10), ("a", 12, 14, 0),
        ],
        transfers=[("write-back", "a", 3, 3, 1), ("fetch", "x", 3, 3), ("reload", "a", 4, 4, 2)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 3, "needed_step": 4}],
        moves=[("a", 1, 20, 0)],
    )  # fmt: skip
    assert verify(replace(PROGRAM, capacity_bytes=40), moved) == ()
    assert earliest_issues(PROGRAM, moved) == [1, 2, 3]
    # Moved when step 2 starts instead: the write waits for that.
    later = replace(
        moved,
        segments=tuple(
            replace(s, end=6) if s.address == 20 else replace(s, start=6) if s.start == 3 else s for s in moved.segments
        ),
        moves=tuple(replace(m, step=2) for m in moved.moves),
    )
    assert earliest_issues(PROGRAM, later)[0] == 2


def test_a_drain_stays_where_it_is() -> None:
    p = program({"y": ("output", 10)}, ["-> y", "y ->", "->"], capacity=10)
    assert earliest_issues(p, make_plan(p, target(), "lru", PlanningOptions())) == [2]


def test_reissued_holds_the_space_from_the_issue_on() -> None:
    assert reissued(ON_DEMAND, [1, 2, 3]) == plan(
        PROGRAM,
        capacity=20,
        segments=[("a", 1, 6, 0), ("n", 4, 6, 10), ("x", 6, 11, 10), ("m", 7, 9, 0), ("a", 9, 14, 0)],
        transfers=[("write-back", "a", 1, 2), ("fetch", "x", 2, 3), ("reload", "a", 3, 4, 1)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 2, "needed_step": 4}],
    )


def test_reissued_at_the_same_steps_changes_nothing() -> None:
    assert reissued(ON_DEMAND, [t.issue_step for t in ON_DEMAND.transfers]) == ON_DEMAND


def test_the_queue_is_ordered_by_issue_writes_first_then_by_urgency() -> None:
    queue = reissued(ON_DEMAND, [3, 3, 3]).transfers
    assert [(str(t.kind), t.needed_step) for t in queue] == [("write-back", 2), ("fetch", 3), ("reload", 4)]


FIVE_STEPS = [0.0, 10.0, 20.0, 30.0, 40.0]


def loads(*needed: int) -> Plan:
    """A plan with nothing but loads of x, needed at those steps."""
    return plan(PROGRAM, segments=[("x", 0, 15, 0)], transfers=[("fetch", "x", i, i) for i in needed])


def test_just_in_time_walks_back_from_the_end() -> None:
    # a's reload takes 5 s and must land at 40: it starts at 35, during step 3. x's takes 12 s and must land at 30:
    # it starts at 18, during step 1. Writes stay.
    assert just_in_time(ON_DEMAND, FIVE_STEPS, [99.0, 12.0, 5.0], [0.0] * 5) == [2, 1, 3]


def test_just_in_time_leaves_the_channel_to_what_comes_later() -> None:
    # The last needs [15, 40), so the one before must end at 15, not at 30: it starts at 3.
    assert just_in_time(loads(3, 4), FIVE_STEPS, [12.0, 25.0], [0.0] * 5) == [0, 1]


def test_just_in_time_leaves_the_channel_to_streamed_weights() -> None:
    # Step 4's weights take [32, 40), x's load (needed at 4, 12 s) [20, 32): issued with step 2 exactly.
    assert just_in_time(loads(4), FIVE_STEPS, [12.0], [0.0, 0.0, 0.0, 0.0, 8.0]) == [2]
    # And those of step 3 [15, 30) for a load needed at 3.
    assert just_in_time(loads(3), FIVE_STEPS, [6.0], [0.0, 0.0, 0.0, 15.0, 0.0]) == [0]


def test_just_in_time_is_never_later_than_the_need_nor_earlier_than_the_run() -> None:
    assert just_in_time(loads(2, 4), FIVE_STEPS, [0.0, 99.0], [0.0] * 5) == [0, 0]
    assert just_in_time(loads(2), FIVE_STEPS, [0.0], [0.0] * 5) == [2]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(1, 8), st.integers(0, 3)), max_size=12))
def test_last_owner_of_every_byte(owners: list[tuple[int, int, int]]) -> None:
    index, naive = LastOwnerEnd(), [0] * 24
    for now, (start, size, stays) in enumerate(owners, start=1):
        assert index.replace(start, start + size, now + stays) == max(naive[start : start + size])
        naive[start : start + size] = [now + stays] * size


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    strategy=st.sampled_from(STRATEGIES),
    options=planning_options("placement", "writeback", "release", "start"),
)
def test_prefetched_plans_are_legal_and_move_the_same_bytes(seed: int, strategy: str, options: PlanningOptions) -> None:
    case = streaming_case(seed)
    if case is None:
        return
    p, machine = case
    on_demand = make_plan(p, machine, strategy, options)
    earliest = earliest_issues(p, on_demand)
    assert all(e <= t.issue_step for e, t in zip(earliest, on_demand.transfers, strict=True))
    for issues in (earliest, [(e + t.issue_step) // 2 for e, t in zip(earliest, on_demand.transfers, strict=True)]):
        early = reissued(on_demand, issues)
        assert verify(p, early, terms_of(options)) == ()
        assert count_traffic(p, early) == count_traffic(p, on_demand)
