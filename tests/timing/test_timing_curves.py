"""Bus and DMA queue over time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import target, two_loads
from random_programs import random_program

from spillprof.ir.timeline import Timeline
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.timing.bus import bus_curve
from spillprof.timing.timeline import simulate
from spillprof.verify import recount


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
