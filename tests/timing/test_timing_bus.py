"""Hand-worked timelines with a shared bus or channel: a byte a second each way, a MAC a second."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target, two_loads
from random_programs import random_program
from replayed import check

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.timeline import Timeline
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.timing.bus import BusLimits, bus_curve, fair_rates
from spillprof.timing.dma import read_link, write_link
from spillprof.timing.timeline import simulate
from spillprof.verify import recount, verify


def play(p: Program, q: Plan, **machine: Any) -> Timeline:
    assert verify(p, q) == ()
    t = simulate(p, q, target(**machine))
    check(p, q, target(**machine), t)
    return t


def exactly(values: list[float]) -> Any:
    return pytest.approx(values, rel=1e-9, abs=0)


def crossing() -> tuple[Program, Plan]:
    """At 5, when step 0 has ended, a (10 bytes) leaves and x (20 bytes) comes; step 1 runs for 100 s meanwhile."""
    p = program(
        {"x": ("input", 20), "a": 10, "b": 10, "y": ("output", 10)},
        [step("-> a", macs=5), step("-> b", macs=100), step("x, b -> ", macs=1), step("a -> y", macs=1)],
    )
    q = plan(
        p,
        segments=[("a", 1, 3, 0), ("x", 3, 8, 20), ("b", 4, 8, 10), ("a", 9, 11, 0), ("y", 10, 12, 20)],
        transfers=[("write-back", "a", 1, 1), ("fetch", "x", 1, 2), ("reload", "a", 3, 3, 1), ("drain", "y", 4, 4)],
        spills=[{"buffer": "a", "last_use_step": 0, "evict_step": 1, "needed_step": 3}],
    )
    return p, q


def test_two_transfers_share_a_bus_until_the_shorter_one_is_done() -> None:
    t = play(*crossing(), dram_bus_bytes_per_s=1.0)
    # half a byte a second each: a is out at 25, x has 10 bytes then and gets the other 10 by 35
    assert t.transfer_end_s.tolist()[:2] == exactly([25.0, 35.0])
    assert t.step_start_s.tolist() == exactly([0.0, 5.0, 105.0, 116.0])


def test_bus_wide_enough_for_both_directions_changes_nothing() -> None:
    alone, shared = play(*crossing()), play(*crossing(), dram_bus_bytes_per_s=2.0)
    assert alone.transfer_end_s.tolist()[:2] == [15, 25]
    assert shared.transfer_end_s.tolist() == exactly(alone.transfer_end_s.tolist())


def test_what_one_direction_cannot_use_goes_to_the_other() -> None:
    t = play(*crossing(), dram_bus_bytes_per_s=1.25, dram_write_bytes_per_s=0.25)
    # the write cannot use its half of the bus: 10 bytes at 0.25 take 40 s; the read gets a whole byte a second
    assert t.transfer_end_s.tolist()[:2] == exactly([45.0, 25.0])


def test_one_channel_for_both_directions_serves_them_in_turn() -> None:
    t = play(*crossing(), dma_shared_channels=1)
    assert t.transfer_start_s.tolist()[:2] == [5, 15]
    assert t.transfer_end_s.tolist()[:2] == [15, 35]


def test_one_outstanding_transfer_is_like_one_channel() -> None:
    t = play(*crossing(), dram_outstanding=1)
    assert t.transfer_start_s.tolist()[:2] == [5, 15]


def test_set_up_holds_the_channel_but_not_the_bus() -> None:
    t = play(*crossing(), dram_bus_bytes_per_s=1.0, dram_read_setup_s=4.0)
    # the write flows alone from 5 to 9, 4 bytes; then both at half: its other 6 by 21; x has 6 then, the rest by 35
    assert t.transfer_end_s.tolist()[:2] == exactly([21.0, 35.0])


def test_background_traffic_is_one_more_claimant() -> None:
    t = play(*crossing(), dram_bus_bytes_per_s=1.5, background_bytes_per_s=1.2)
    # three claimants, half a byte each: a is out at 25; then x and the background share 0.75 each: 10 bytes in 13.33 s
    assert t.transfer_end_s.tolist()[:2] == exactly([25.0, 25 + 10 / 0.75])
    assert t.transfer_end_s[3] - t.transfer_start_s[3] == pytest.approx(10 / 0.75, rel=1e-9)  # y, alone with it


def test_background_takes_no_more_than_it_asks_for() -> None:
    t = play(*crossing(), dram_bus_bytes_per_s=1.5, background_bytes_per_s=0.1)
    # 1.4 are left for two: 0.7 each; a is out after 10 / 0.7 s, x goes on at a byte a second
    out_s = 5 + 10 / 0.7
    assert t.transfer_end_s.tolist()[:2] == exactly([out_s, out_s + 10])


def test_two_channels_of_one_direction_share_its_bandwidth() -> None:
    p, q = two_loads()
    t = play(p, q, dma_read_channels=2)
    assert t.transfer_start_s.tolist()[:2] == [0, 0]
    assert t.transfer_end_s.tolist()[:2] == exactly([20.0, 40.0])  # 10 each by 20; v's other 20 alone
    hidden = play(p, q, dma_read_channels=2, dram_read_setup_s=5.0)
    assert hidden.transfer_end_s.tolist()[:2] == exactly([25.0, 45.0])  # both set up at the same time
    assert play(p, q, dram_read_setup_s=5.0).transfer_end_s.tolist()[:2] == exactly([15.0, 50.0])


def test_next_weights_compete_with_a_reload() -> None:
    p = program(
        {"x": ("input", 20), "a": 1, "y": ("output", 1)},
        [step("-> a", macs=100), step("x, a -> y", macs=1, weight_stream_bytes=20)],
        reservations=[("weight staging", 32)],
    )
    q = plan(
        p,
        segments=[("x", 0, 5, 32), ("a", 1, 5, 52), ("y", 4, 6, 53)],
        transfers=[("fetch", "x", 0, 1), ("drain", "y", 2, 2)],
    )
    assert play(p, q, dma_read_channels=2).jobs.end_s.tolist() == exactly([40.0, 40.0, 102.0])
    assert play(p, q).jobs.end_s.tolist() == exactly([20.0, 40.0, 102.0])


CURVE = ((0, 2.0), (10, 4.0), (20, 10.0))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.sampled_from([None, 0.5, 3.0]))
def test_transfer_alone_takes_exactly_what_the_curve_says(nbytes: int, bus: float | None) -> None:
    p = program({"x": ("input", nbytes), "y": ("output", nbytes)}, ["x -> y"])
    q = plan(p, segments=[("x", 0, 2, 0), ("y", 1, 3, nbytes)], transfers=[("fetch", "x", 0, 0), ("drain", "y", 1, 1)])
    machine = {"dram_read_curve": CURVE, "dram_write_setup_s": 3.0, "dram_bus_bytes_per_s": bus}
    t = play(p, q, **machine)
    curve_s = 2 + nbytes / 5 if nbytes <= 10 else 4 + (nbytes - 10) * 0.6  # beyond the last point: its slope goes on
    assert t.transfer_end_s[0] == pytest.approx(curve_s, rel=1e-9)
    assert read_link(target(**machine)).alone_s(nbytes) == pytest.approx(curve_s, rel=1e-9)
    wrote_s = t.transfer_end_s[1] - t.transfer_start_s[1]
    assert wrote_s == pytest.approx(write_link(target(**machine)).alone_s(nbytes), rel=1e-9)
    assert wrote_s == pytest.approx(3 + nbytes / min(1.0, bus or 1.0), rel=1e-9)


def test_small_tensors_are_all_set_up() -> None:
    t = play(*crossing(), dram_read_setup_s=1000.0)
    assert t.step_start_s.tolist() == exactly([0.0, 5.0, 1025.0, 2036.0])


rate = st.floats(0.01, 100)


@settings(max_examples=150, deadline=None)
@given(rate, rate, rate, st.floats(0, 100), st.integers(0, 4), st.integers(0, 4))
def test_rates_are_max_min_fair(read: float, write: float, bus: float, background: float, n: int, m: int) -> None:
    limits = BusLimits(
        read_bytes_per_s=read, write_bytes_per_s=write, bus_bytes_per_s=bus, background_bytes_per_s=background
    )
    own = fair_rates(limits, n, m)
    wishes = (read / n if n else 0.0, write / m if m else 0.0, background)
    members = (n, m, 1 if background else 0)
    used = sum(r * k for r, k in zip(own, members, strict=True))
    assert used <= bus * (1 + 1e-9)
    # whoever gets less than it wishes gets as much as anyone, and then the bus is full
    for got, wish, count in zip(own, wishes, members, strict=True):
        assert got <= wish * (1 + 1e-9)
        if count and got < wish * (1 - 1e-9):
            assert used == pytest.approx(bus)
            assert got >= max(own) * (1 - 1e-9)


def played_loads(**machine: object) -> Timeline:
    return simulate(*two_loads(), target(**machine))


def test_second_load_waits_in_the_queue_and_the_bus_is_busy_until_it_has_come() -> None:
    t = played_loads()
    assert (t.jobs.start_s - t.jobs.queued_s).tolist() == [0, 10, 0]
    bus = bus_curve(t, target())
    assert bus.time_s.tolist() == [0, 10, 40, 111]
    assert bus.read_bytes_per_s.tolist() == [1, 1, 0, 0]
    assert bus.write_bytes_per_s.tolist() == [0, 0, 0, 1]


def test_background_gets_what_transfers_leave() -> None:
    machine = {"dram_bus_bytes_per_s": 1.5, "background_bytes_per_s": 1.2}
    bus = bus_curve(played_loads(**machine), target(**machine))
    assert bus.read_bytes_per_s[0] == bus.background_bytes_per_s[0] == 0.75
    assert bus.background_bytes_per_s[bus.read_bytes_per_s == 0].max() == 1.2


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([None, 6.0]))
def test_area_under_the_curve_is_what_was_moved(seed: int, channels: int, bus: float | None) -> None:
    p = random_program(seed)
    machine = target(
        dma_read_channels=channels, dma_write_channels=channels, dram_bus_bytes_per_s=bus,
        dram_read_bytes_per_s=10.0, dram_write_bytes_per_s=5.0, macs_per_s={"default": 500.0},
    )  # fmt: skip
    q = make_plan(p, machine, "lru", PlanningOptions())
    t, traffic = simulate(p, q, machine), recount(p, q)
    curve = bus_curve(t, machine)
    lasts = np.diff(np.append(curve.time_s, t.makespan_s))
    read = traffic.compulsory_read_bytes + traffic.spill_read_bytes
    write = traffic.compulsory_write_bytes + traffic.spill_write_bytes
    assert (curve.read_bytes_per_s * lasts).sum() == pytest.approx(read)
    assert (curve.write_bytes_per_s * lasts).sum() == pytest.approx(write)
    assert np.all(curve.read_bytes_per_s + curve.write_bytes_per_s <= (bus or 15.0) * (1 + 1e-9))
