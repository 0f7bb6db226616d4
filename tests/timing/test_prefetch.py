"""Earlier issues of transfers, worked out by hand, and as a property of every plan."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, target
from random_programs import planning_options, streaming_case

from spillprof.engine.run import terms_of
from spillprof.ir.plan import Plan
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.issue_times import LastOwnerEnd, earliest_issues, just_in_time, reissued
from spillprof.verify import verify

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
@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(1, 8), st.integers(0, 3)), max_size=12),
)
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
