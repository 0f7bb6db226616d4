"""SRAM in use against a sum tick by tick, and the buffers live at a step."""

from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target
from random_programs import planning_options, streaming_case

from spillprof.analysis.occupancy import in_use_by_step, live_at, residencies
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.planning.liveness import live_intervals
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.timing.timeline import simulate

STAGED = program(
    {"x": ("input", 10), "p": 7, "y": ("output", 4)},
    [step("x -> p", workspaces=[("im2col", 3, 0, 0)]), "p -> y"],
    dedicated="p",
    reservations=[("weight staging", 5), ("dedicated slot", 7, "p")],
    capacity=30,
)


def test_reserved_space_counts_once_and_the_fullest_phase_of_a_step_is_told() -> None:
    # Reserved 12, p among it. Step 0: x and im2col in READ: 25. Step 1: y: 16.
    made = make_plan(STAGED, target(), "lru", PlanningOptions())
    assert in_use_by_step(STAGED, made).tolist() == [25, 16]


def test_no_steps_no_use() -> None:
    p = program({}, [])
    assert in_use_by_step(p, plan(p)).tolist() == []
    assert live_at(p, 0) == ()


def test_residencies_are_in_steps_and_bytes() -> None:
    made = plan(STAGED, segments=[("x", 0, 2, 12), ("p", 1, 5, 5)])
    found = residencies(STAGED, made, simulate(STAGED, made, target()))
    assert [(r.buffer, r.kind, r.start_step, r.end_step, r.address, r.size_bytes) for r in found] == [
        ("x", "input", 0.0, 2 / 3, 12, 10),
        ("p", "activation", 1 / 3, 5 / 3, 5, 7),
    ]


def test_live_at_a_step_largest_first_with_what_only_waits() -> None:
    p = program(
        {"x": ("input", 9), "w": ("weight", 50), "a": 12, "b": 12, "y": ("output", 3), "z": ("output", 5)},
        ["-> a", "x w -> b", "b -> z", "a x -> y"],
    )
    assert [(b.name, b.kind, b.size_bytes, b.start, b.end, b.used_here) for b in live_at(p, 2)] == [
        ("a", "activation", 12, 0, 3, False),
        ("b", "activation", 12, 1, 2, True),
        ("x", "input", 9, 0, 3, False),
        ("z", "output", 5, 2, 2, True),
    ]
    assert [b.name for b in live_at(p, 3)] == ["a", "x", "z", "y"]  # outputs live to the end


def naive_use(p: Program, made: Plan) -> list[int]:
    """The largest sum of each step's three ticks."""

    def at(tick: int) -> int:
        held = [p.buffers[s.buffer].size_bytes for s in made.segments
                if s.start <= tick < s.end and not p.buffers[s.buffer].dedicated]  # fmt: skip
        return p.reserved_bytes + sum(held) + sum(w.size_bytes for w in made.scratch if w.start <= tick < w.end)

    return [max(at(3 * i + phase) for phase in range(3)) for i in range(len(p.steps))]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    strategy=st.sampled_from(STRATEGIES),
    options=planning_options("placement", "release", "start"),
)
def test_use_is_the_sum_of_what_lies_there_and_never_above_the_capacity(
    seed: int, strategy: str, options: PlanningOptions
) -> None:
    case = streaming_case(seed)
    if case is None:
        return
    p, machine = case
    on_demand = make_plan(p, machine, strategy, options)
    for made in (on_demand, reissued(on_demand, earliest_issues(p, on_demand))):
        use = in_use_by_step(p, made).tolist()
        assert use == naive_use(p, made)
        assert p.capacity_bytes is not None
        assert max(use) <= p.capacity_bytes


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_live_buffers_are_those_whose_interval_meets_the_step(seed: int) -> None:
    case = streaming_case(seed)
    if case is None:
        return
    p, _ = case
    for i in range(len(p.steps)):
        ticks = {3 * i, 3 * i + 1, 3 * i + 2}
        expected = {p.buffers[b].name for b, start, end in live_intervals(p) if ticks & set(range(start, end))}
        found = live_at(p, i)
        assert {b.name for b in found} == expected
        assert [b.size_bytes for b in found] == sorted((b.size_bytes for b in found), reverse=True)
