"""Events and residencies in seconds: hand-worked, and on random programs with one core and with several."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target
from random_programs import streaming_case

from spillprof.analysis.events import list_events, run_times
from spillprof.analysis.occupancy import residencies
from spillprof.ir.timeline import JobKind
from spillprof.planning.options import PlanningOptions
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.timing.timeline import simulate
from spillprof.verify import verify

# x waits in DRAM from step 1 to step 3 while b and c are made; every step computes for 10 s, a byte takes a second.
SPILL = program(
    {"x": 4, "b": 4, "c": 4, "y": ("output", 4)},
    [step("-> x", macs=10), step("-> b", macs=10), step("b -> c", macs=10), step("c x -> y", macs=10)],
    capacity=8,
)
SPILL_PLAN = plan(
    SPILL,
    capacity=8,
    segments=[("x", 1, 3, 0), ("b", 4, 8, 4), ("c", 7, 11, 0), ("x", 9, 11, 4), ("y", 10, 12, 0)],
    transfers=[("write-back", "x", 1, 1), ("reload", "x", 3, 3, 1), ("drain", "y", 4, 4)],
    spills=[{"buffer": "x", "last_use_step": 0, "evict_step": 1, "needed_step": 3}],
)


def test_spilled_operand_leaves_when_its_copy_is_complete_and_is_back_when_the_read_begins() -> None:
    p = replace(SPILL, capacity_bytes=12)
    made = replace(
        SPILL_PLAN,
        capacity_bytes=12,
        segments=tuple(replace(s, address=8 if s.buffer == 3 else s.address) for s in SPILL_PLAN.segments),
    )
    assert verify(p, made) == ()
    timeline = simulate(p, made, target())
    listing = list_events(p, made, timeline)
    assert [(e.kind, e.buffer, e.step, e.issued_s, e.start_s, e.end_s) for e in listing.events] == [
        ("write-back", "x", 1, 10, 10, 14),
        ("reload", "x", 3, 30, 30, 34),
        ("drain", "y", 4, 44, 44, 48),
    ]
    assert [(r.buffer, r.start_s, r.end_s) for r in residencies(p, made, timeline)] == [
        ("x", 0, 14),
        ("b", 10, 30),
        ("c", 20, 44),
        ("x", 30, 44),
        ("y", 34, 48),
    ]
    times = run_times(timeline, target(), listing)
    assert times.step_start_s == (0, 10, 20, 34)
    assert times.step_end_s == (10, 20, 30, 44)
    assert times.stall_s == (0, 0, 0, 4)
    assert times.stall_event == (-1, -1, -1, 1)
    assert times.bus_time_s == (0, 10, 14, 30, 34, 44)
    assert times.bus_write_bytes_per_s == (0, 1, 0, 0, 0, 1)
    assert times.bus_read_bytes_per_s == (0, 0, 0, 1, 0, 0)


def test_moves_of_a_step_take_their_time_together() -> None:
    p = program({"a": 4, "b": 4, "y": ("output", 2)}, ["-> a", "-> b", "a b -> y"], capacity=12)
    made = plan(
        p,
        capacity=12,
        segments=[("a", 1, 6, 0), ("b", 4, 6, 8), ("a", 6, 8, 2), ("b", 6, 8, 6), ("y", 7, 9, 0)],
        transfers=[("drain", "y", 3, 3)],
        moves=[("a", 2, 0, 2), ("b", 2, 8, 6)],
    )
    assert verify(p, made) == ()
    timeline = simulate(p, made, target(sram_bytes_per_s=8.0))
    found = [e for e in list_events(p, made, timeline).events if e.kind == "move"]
    assert [(e.buffer, e.address, e.end_s - e.start_s) for e in found] == [("a", 2, 2.0), ("b", 6, 2.0)]


def test_streamed_operands_and_both_pieces_of_streamed_weights_are_listed() -> None:
    p = program(
        {"x": ("input", 16), "y": ("output", 8)},
        [step("x -> y", streamed_reads="x", streamed_writes="y", stream_staging_bytes=4, weight_stream_bytes=10)],
        reservations=[("weight staging", 4)],
        capacity=8,
    )
    made = plan(p, capacity=8, streamed=[(0, "x", "in"), (0, "y", "out")], scratch=[(0, "stream staging", 4, 4, 0, 3)])
    assert verify(p, made) == ()
    listing = list_events(p, made, simulate(p, made, target()))
    assert sorted((e.kind, e.buffer, e.size_bytes, e.start_s, e.end_s) for e in listing.events) == [
        ("stream-in", "x", 16, 10, 26),
        ("stream-out", "y", 8, 4, 12),
        ("weights", "(streamed weights)", 4, 0, 4),
        ("weights", "(streamed weights)", 6, 4, 10),
    ]


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    strategy=st.sampled_from(STRATEGIES),
    placement=st.sampled_from([p for p in PLACEMENTS if p != "perfect"]),
    cores=st.sampled_from([1, 1, 2, 3]),
)
def test_whatever_shares_an_address_is_apart_in_time(seed: int, strategy: str, placement: str, cores: int) -> None:
    case = streaming_case(seed)
    if case is None:
        return
    p, machine = case
    machine = replace(machine, cores=cores)
    on_demand = make_plan(p, machine, strategy, PlanningOptions(placement=placement))
    for made in (on_demand, reissued(on_demand, earliest_issues(p, on_demand))):
        assert verify(p, made) == ()
        timeline = simulate(p, made, machine)
        slack = 1e-9 * (1 + timeline.makespan_s)
        held = residencies(p, made, timeline)
        for k, a in enumerate(held):
            assert 0 <= a.start_s <= a.end_s <= timeline.makespan_s + slack
            for b in held[k + 1 :]:
                if a.address < b.address + b.size_bytes and b.address < a.address + a.size_bytes:
                    assert a.end_s <= b.start_s + slack or b.end_s <= a.start_s + slack
        listing = list_events(p, made, timeline)
        assert sum(listing.of_job < 0) == sum(timeline.jobs.kind == JobKind.JOINT)
        happened = Counter(e.kind for e in listing.events)
        assert happened["move"] == len(made.moves)
        assert happened["stream-in"] + happened["stream-out"] == len(made.streamed)
        for e in listing.events:
            if e.kind != "evict-clean":
                assert 0 <= e.issued_s <= e.start_s <= e.end_s <= timeline.makespan_s
        times = run_times(timeline, machine, listing)
        for i, (waited_s, position) in enumerate(zip(times.stall_s, times.stall_event, strict=True)):
            assert position < 0 or waited_s > 0
            if position >= 0:  # what was waited for ends when the step begins
                assert listing.events[position].end_s == pytest.approx(times.step_start_s[i])
