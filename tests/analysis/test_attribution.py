"""Why bytes spilled: one case of each kind worked out by hand, and sums that hold for every plan."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, target
from random_programs import planning_options, random_program, streaming_case

from spillprof.analysis.attribution import Charge, bytes_by_kind, charges
from spillprof.analysis.events import list_events, spill_arcs
from spillprof.analysis.hotspots import buffer_costs, operator_costs, streamed_beyond_compulsory
from spillprof.ir.errors import CapacityError
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import Program
from spillprof.ir.result import KindBytes
from spillprof.ir.target import Target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import Inputs, PlanningOptions, Release, WriteBack
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.timing.timeline import simulate


def explained(p: Program, strategy: str = "lru", **options: Any) -> tuple[Plan, tuple[Charge, ...], KindBytes]:
    """Plan, charges and bytes by kind."""
    chosen = PlanningOptions(**options)
    plan = make_plan(p, target(), strategy, chosen)
    charged = charges(p, plan, chosen)
    return plan, charged, bytes_by_kind(charged, count_traffic(p, plan).streamed_bytes)


def kinds(*, capacity: int = 0, lifetime: int = 0, fragmentation: int = 0, oversized: int = 0) -> KindBytes:
    return KindBytes(
        capacity_bytes=capacity, lifetime_bytes=lifetime, fragmentation_bytes=fragmentation, oversized_bytes=oversized
    )


def paid(charged: tuple[Charge, ...]) -> list[tuple[int, int, int, str, bool]]:
    """(step that forced it, bytes written, bytes read, kind, evicted) of each charge."""
    return [(c.spill.forced_by_step, c.write_bytes, c.read_bytes, c.kind, c.evicted) for c in charged]


def test_more_is_live_than_the_memory_holds_capacity() -> None:
    p = program({"a": 10, "n": 10, "m": 10}, ["-> a", "-> n", "a ->", "-> m", "a ->"], capacity=10)
    _, charged, found = explained(p)
    assert paid(charged) == [(1, 10, 10, "capacity", True), (3, 0, 10, "capacity", True)]
    assert found == kinds(capacity=30)


KEPT_TOO_LONG = ({"b": 10, "a": 10, "d": 5, "n": 10}, ["-> b a", "-> d", "d a ->", "-> n", "a b ->"])
"""d is dead when n comes but kept to the end, and it is the youngest: lru sends b away, which is still wanted.

Live at step 3 are a, b and n: 30 bytes. When b comes back, what is dead has to leave: d, and then n.
"""


def test_what_is_live_would_have_fitted_lifetime() -> None:
    _, charged, found = explained(program(*KEPT_TOO_LONG, capacity=30), release=Release.END)
    assert paid(charged) == [(3, 10, 10, "lifetime", True), (4, 5, 0, "lifetime", False)]
    assert found == kinds(lifetime=25)


def test_one_byte_less_than_what_is_live_capacity() -> None:
    _, charged, found = explained(program(*KEPT_TOO_LONG, capacity=29), release=Release.END)
    assert paid(charged) == [(3, 10, 10, "capacity", True), (4, 5, 0, "lifetime", False), (4, 10, 0, "lifetime", False)]
    assert found == kinds(capacity=20, lifetime=15)


def test_a_dead_buffer_that_is_written_back_is_no_eviction_of_a_live_one() -> None:
    p = program({"a": 10, "n": 10}, ["-> a", "a ->", "-> n"], capacity=10)
    _, charged, found = explained(p, release=Release.END)
    assert paid(charged) == [(2, 10, 0, "lifetime", False)]
    assert found == kinds(lifetime=10)


def test_free_bytes_in_two_pieces_fragmentation() -> None:
    p = program({"a": 20, "b": 20, "c": 20, "n": 40}, ["-> a b c", "a c ->", "-> n", "b ->"], capacity=60)
    _, charged, found = explained(p)
    assert paid(charged) == [(2, 20, 20, "fragmentation", True)]
    assert found == kinds(fragmentation=40)


def test_streamed_operands_and_what_they_force_oversized() -> None:
    # a is streamed out by step 0 (40) and reloaded by step 1 (40). It was never in SRAM: nothing was evicted.
    p = program({"x": ("input", 80), "a": 40, "y": ("output", 20)}, ["x -> a", "a -> y"])
    fitted = fit(p, target(sram_bytes=100, stream_staging_bytes=10), LoweringOptions())
    plan, charged, found = explained(fitted)
    assert paid(charged) == [(0, 0, 40, "oversized", False)]
    assert found == kinds(oversized=80)
    assert streamed_beyond_compulsory(fitted, plan) == {(1, 0): 40}


def test_an_eviction_for_a_streamed_use_is_oversized() -> None:
    # x was computed: it is written back whole (60) and then passes through step 2 (60).
    p = program({"x": 60, "b": 25, "c": 60}, ["-> x", "x -> b", "x -> c", "b c ->"])
    fitted = fit(p, target(sram_bytes=100, stream_staging_bytes=10), LoweringOptions())
    _, charged, found = explained(fitted)
    assert paid(charged) == [(2, 60, 0, "oversized", True)]
    assert found == kinds(oversized=120)


def test_the_compulsory_write_of_an_output_is_nobodys_charge() -> None:
    p = program({"y": ("output", 10), "n": 10, "m": 10}, ["-> y", "-> n", "y ->", "-> m", "y ->"], capacity=10)
    _, charged, found = explained(p, writeback=WriteBack.ALWAYS)
    assert paid(charged) == [(1, 0, 10, "capacity", True), (3, 10, 10, "capacity", True)]
    assert found == kinds(capacity=30)


def test_resident_inputs_count_as_live() -> None:
    # x (10) stays; at step 1 x, a and n are live: 30 of 20.
    p = program({"x": ("input", 10), "a": 10, "n": 10}, ["x -> a", "-> n", "a ->"], capacity=20)
    assert explained(p, inputs=Inputs.RESIDENT)[2] == kinds(capacity=20)
    assert explained(p)[2] == kinds()  # on demand it is dead by then


# --- sums


OPTIONS = planning_options()


@pytest.mark.parametrize("streaming", [False, True])
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9), strategy=st.sampled_from(STRATEGIES), options=OPTIONS)
def test_kinds_operators_buffers_and_events_each_add_up_to_the_spill_bytes(
    streaming: bool, seed: int, strategy: str, options: PlanningOptions
) -> None:
    case: tuple[Program, Target] | None = streaming_case(seed) if streaming else (random_program(seed), target())
    if case is None:
        return
    p, machine = case
    try:
        on_demand = make_plan(p, machine, strategy, options)
    except CapacityError:
        assert options.inputs is Inputs.RESIDENT
        return
    for plan in (on_demand, reissued(on_demand, earliest_issues(p, on_demand))):
        moved = count_traffic(p, plan)
        charged = charges(p, plan, options)
        assert len(charged) == len(plan.spills)
        assert sum(c.write_bytes for c in charged) == moved.spill_write_bytes
        assert sum(c.read_bytes for c in charged) == moved.spill_read_bytes
        assert sum(streamed_beyond_compulsory(p, plan).values()) == moved.streamed_bytes

        found = bytes_by_kind(charged, moved.streamed_bytes)
        parts = (found.capacity_bytes, found.lifetime_bytes, found.fragmentation_bytes, found.oversized_bytes)
        assert min(parts) >= 0
        assert sum(parts) == moved.spill_bytes

        timeline = simulate(p, plan, machine)
        operators = operator_costs(p, plan, charged, timeline)
        assert sum(o.spill_write_bytes for o in operators) == moved.spill_write_bytes
        assert sum(o.spill_read_bytes for o in operators) == moved.spill_read_bytes
        assert sum(o.streamed_bytes for o in operators) == moved.streamed_bytes
        totals = [o.spill_write_bytes + o.spill_read_bytes + o.streamed_bytes for o in operators]
        assert totals == sorted(totals, reverse=True)
        assert len({o.step for o in operators}) == len(operators)

        buffers = buffer_costs(p, plan, charged, lifetimes(p))
        assert sum(b.spill_bytes for b in buffers) == moved.spill_bytes
        assert [b.spill_bytes for b in buffers] == sorted((b.spill_bytes for b in buffers), reverse=True)
        assert sum(b.spill_count for b in buffers) == sum(c.evicted for c in charged)

        happened = list_events(p, plan, timeline).events
        assert sum(e.size_bytes for e in happened if e.kind == "reload") == moved.spill_read_bytes
        assert sum(e.kind == "evict-clean" for e in happened) == sum(c.evicted and not c.spill.written for c in charged)
        arcs = spill_arcs(p, plan, charged, timeline)
        assert sum(a.evicted for a in arcs) == sum(
            c.evicted and c.spill.last_use_step >= 0 and (c.spill.needed_step or len(p.steps)) < len(p.steps)
            for c in charged
        )
        assert sum(t.kind is TransferKind.RELOAD for t in plan.transfers) == sum(c.spill.reloaded for c in charged)
