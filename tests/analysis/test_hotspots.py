"""Costs of steps, buffers and spills on a run whose seconds are worked out by hand."""

from programs import program, step, target

from spillprof.analysis.attribution import charges
from spillprof.analysis.events import list_events, spill_arcs
from spillprof.analysis.hotspots import buffer_costs, operator_costs
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.timing.timeline import simulate

RUN = program(
    {"a": 10, "n": 10, "m": 10},
    [step("-> a", macs=10), step("-> n", macs=10), step("a ->", macs=10), step("-> m", macs=10), step("a ->", macs=10)],
    capacity=10,
)
"""A MAC a second, a byte a second, transfers on demand.

| step | waits for        | starts | ends |
| 0    |                  |      0 |   10 |
| 1    | a's write-back   |     20 |   30 |
| 2    | a's reload       |     40 |   50 |
| 3    |                  |     50 |   60 |
| 4    | a's reload       |     70 |   80 |
"""
OPTIONS = PlanningOptions()
PLAN = make_plan(RUN, target(), "lru", OPTIONS)
CHARGED = charges(RUN, PLAN, OPTIONS)
TIMELINE = simulate(RUN, PLAN, target())


def test_the_run_is_as_worked_out() -> None:
    assert TIMELINE.step_start_s.tolist() == [0, 20, 40, 50, 70]
    assert TIMELINE.makespan_s == 80


def test_steps_are_ranked_by_bytes_then_by_their_wait_then_in_order() -> None:
    # Step 1 forced a out (10 written, 10 reloaded), step 3 again (10 reloaded); steps 2 and 4 only wait.
    costs = operator_costs(RUN, PLAN, CHARGED, TIMELINE)
    assert [
        (c.step, c.spill_write_bytes, c.spill_read_bytes, c.stall_s, c.stall_buffer, c.cause, c.victims) for c in costs
    ] == [
        (1, 10, 10, 10.0, "a", "capacity", ("a",)),
        (3, 0, 10, 0.0, None, "capacity", ("a",)),
        (2, 0, 0, 10.0, "a", None, ()),
        (4, 0, 0, 10.0, "a", None, ()),
    ]


def test_victims_are_named_largest_first() -> None:
    p = program({"a": 8, "b": 12, "n": 20}, ["-> a b", "-> n", "a b ->"], capacity=20)
    plan = make_plan(p, target(), "lru", OPTIONS)
    costs = operator_costs(p, plan, charges(p, plan, OPTIONS), simulate(p, plan, target()))
    assert costs[0].victims == ("b", "a")


def test_buffers_are_ranked_by_bytes() -> None:
    p = program({"a": 8, "b": 12, "n": 20}, ["-> a b", "-> n", "a b ->"], capacity=20)
    plan = make_plan(p, target(), "lru", OPTIONS)
    found = buffer_costs(p, plan, charges(p, plan, OPTIONS), lifetimes(p))
    assert [(c.name, c.spill_count, c.spill_bytes) for c in found] == [("b", 1, 24), ("a", 1, 16)]
    own = buffer_costs(RUN, PLAN, CHARGED, lifetimes(RUN))
    assert [(c.name, c.kind, c.start, c.end, c.uses, c.spill_count, c.spill_bytes) for c in own] == [
        ("a", "activation", 0, 4, (2, 4), 2, 30)
    ]


def test_arcs_tell_how_long_a_buffer_was_idle_and_who_waited_for_it() -> None:
    arcs = spill_arcs(RUN, PLAN, CHARGED, TIMELINE)
    assert [
        (a.last_use_step, a.evict_step, a.needed_step, a.written, a.reloaded, a.cause, a.idle_s, a.wait_s) for a in arcs
    ] == [
        (0, 1, 2, True, True, "capacity", 30.0, 10.0 + 10.0),  # step 1 waits for its write, step 2 for its reload
        (2, 3, 4, False, True, "capacity", 20.0, 10.0),
    ]


def test_a_step_that_waits_for_something_else_does_not_wait_for_the_reload() -> None:
    # Step 1 waits for two writes, step 2 for two reloads: a (10) and then b (10) each time; only the last is blamed.
    p = program({"a": 10, "b": 10, "n": 20}, ["-> a b", "-> n", "a b ->"], capacity=20)
    plan = make_plan(p, target(), "lru", OPTIONS)
    arcs = spill_arcs(p, plan, charges(p, plan, OPTIONS), simulate(p, plan, target()))
    assert [(a.buffer, a.wait_s) for a in arcs] == [("a", 0.0), ("b", 20.0 + 20.0)]


def test_a_spill_that_nobody_comes_back_for_in_this_run_is_no_arc() -> None:
    def arcs(p: Program, plan: Plan) -> int:
        return len(spill_arcs(p, plan, charges(p, plan, OPTIONS), simulate(p, plan, target())))

    p = program({"u": ("weight", 10), "w": ("weight", 10)}, ["u ->", "w ->"], weights_persist=True, capacity=10)
    plan = make_plan(p, target(), "lru", OPTIONS)
    assert [s.needed_step for s in plan.spills] == [2, 3]
    assert arcs(p, plan) == 0


def test_a_tensor_that_is_streamed_out_does_not_leave_a_memory_in_which_it_never_was() -> None:
    # Capacity 20: a (40) is written and read through a staging buffer, so that it spills, and is never evicted.
    p = fit(
        program({"a": 40, "b": 4}, ["-> a", "a -> b", "b ->"]),
        target(sram_bytes=20, stream_staging_bytes=4),
        LoweringOptions(),
    )
    plan = make_plan(p, target(), "lru", OPTIONS)
    charged, timeline = charges(p, plan, OPTIONS), simulate(p, plan, target())
    assert [(s.buffer, s.evict_step) for s in plan.spills] == [(0, 1)]
    assert [(a.buffer, a.evicted) for a in spill_arcs(p, plan, charged, timeline)] == [("a", False)]
    assert {e.kind for e in list_events(p, plan, timeline).events} == {"stream-out", "stream-in"}


def test_events_by_step_and_then_by_time() -> None:
    assert [
        (e.kind, e.step, e.needed_step, e.address, e.start_s, e.end_s) for e in list_events(RUN, PLAN, TIMELINE).events
    ] == [
        ("write-back", 1, 1, 0, 10.0, 20.0),
        ("reload", 2, 2, 0, 30.0, 40.0),
        ("evict-clean", 3, 4, None, None, None),
        ("reload", 4, 4, 0, 60.0, 70.0),
    ]


def test_a_move_is_an_event_at_its_new_address() -> None:
    # Free: [0, 10) and [20, 30) of 30. n (20) needs one hole, and the step reads b, so b moves to the end.
    p = program(
        {"a": 10, "b": 10, "c": 10, "n": 20}, ["-> a b c", "a c ->", step("b -> n", macs=1), "n ->"], capacity=30
    )
    plan = make_plan(p, target(), "lru", OPTIONS)
    assert [
        (e.kind, e.buffer, e.step, e.address) for e in list_events(p, plan, simulate(p, plan, target())).events
    ] == [("move", "b", 2, 20)]
