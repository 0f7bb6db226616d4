"""Steps on the roofline: literal programs, and traffic that adds up on random ones."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step, target
from random_programs import streaming_case

from spillprof.analysis.attribution import charges
from spillprof.analysis.roofline import dram_bytes_by_step, step_facts, step_limits
from spillprof.ir.errors import CapacityError
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.verify import recount, verify

MACHINE = target(
    dram_read_bytes_per_s=10.0, dram_write_bytes_per_s=5.0, sram_bytes_per_s=100.0, macs_per_s={"default": 20.0}
)


def test_a_step_has_its_first_load_its_weights_and_its_output() -> None:
    """The first step loads 40 B and 20 B of weights, the second writes 30 B; both at 2 MACs a byte touched."""
    p = program(
        {"x": ("input", 40), "a": 50, "y": ("output", 30)},
        [
            step("x -> a", macs=220, touched_bytes=110, weight_stream_bytes=20),
            step("a -> y", macs=160, touched_bytes=80),
        ],
    )
    ideal = plan(
        p,
        segments=[("x", 0, 2, 0), ("a", 1, 5, 40), ("y", 4, 6, 90)],
        transfers=[("fetch", "x", 0, 0), ("drain", "y", 2, 2)],
    )
    first, second = step_facts(p, ideal, MACHINE)
    assert (first.dram_bytes, first.macs_per_dram_byte, first.macs_per_sram_byte) == (60, 220 / 60, 2.0)
    assert (second.dram_bytes, second.macs_per_dram_byte, second.macs_per_sram_byte) == (30, 160 / 30, 2.0)
    assert (first.compute_s, second.compute_s) == (11.0, 8.0)
    assert (first.bound, second.bound) == ("compute", "compute")  # 11 s against 6 s, 8 s against 6 s


def test_a_step_without_bytes_has_no_intensity() -> None:
    p = program({}, [step("-> ", macs=1)])
    (fact,) = step_facts(p, plan(p, segments=[]), MACHINE)
    assert (fact.macs_per_sram_byte, fact.macs_per_dram_byte, fact.bound) == (None, None, "compute")


@pytest.mark.parametrize(
    ("fields", "read", "written", "bound"),
    [
        ({"macs": 30, "touched_bytes": 100}, 10, 5, "compute"),  # 1.5 s, 1 s, 1 s
        ({"macs": 30, "touched_bytes": 200}, 10, 5, "SRAM"),
        ({"macs": 30, "touched_bytes": 100}, 16, 5, "DRAM"),
        ({"macs": 30, "touched_bytes": 100}, 10, 8, "DRAM"),
        ({"macs": 10, "macs_time_factor": 4.0, "touched_bytes": 100}, 16, 5, "compute"),
        ({"macs": 10, "launches": 8}, 10, 5, "launch"),  # 0.25 s each
        ({"macs": 10, "touched_bytes": 1000, "launches": 80, "measured_s": 1.2}, 10, 5, "compute"),
        ({"macs": 10, "touched_bytes": 1000, "launches": 80, "measured_s": 0.9}, 10, 5, "DRAM"),
    ],
)
def test_the_longest_part_bounds_a_step(fields: dict[str, float], read: int, written: int, bound: str) -> None:
    p = program({}, [step("-> ", **fields)])
    t = replace(MACHINE, launch_overhead_s=0.25)
    reads, writes = dram_bytes_by_step(p, plan(p, segments=[]), ())
    assert step_limits(p, t, reads + read, writes + written) == [bound]


def test_a_shared_bus_carries_both_directions() -> None:
    p = program({}, [step("-> ", macs=30)])
    reads, writes = dram_bytes_by_step(p, plan(p, segments=[]), ())
    assert step_limits(p, MACHINE, reads + 10, writes + 6) == ["compute"]  # 1.5 s against 1 s and 1.2 s
    assert step_limits(p, replace(MACHINE, dram_bus_bytes_per_s=10.0), reads + 10, writes + 6) == ["DRAM"]  # 1.6 s


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(("lru", "belady", "interval")))
def test_all_steps_together_cause_all_traffic(seed: int, strategy: str) -> None:
    case = streaming_case(seed)
    if case is None:
        return
    fitted, machine = case
    try:
        made = make_plan(fitted, machine, strategy, PlanningOptions())
    except CapacityError:
        return
    assert verify(fitted, made) == ()
    reads, writes = dram_bytes_by_step(fitted, made, charges(fitted, made, PlanningOptions()))
    total = recount(fitted, made)
    assert reads.sum() == total.compulsory_read_bytes + total.spill_read_bytes + total.streamed_read_bytes
    assert writes.sum() == total.compulsory_write_bytes + total.spill_write_bytes + total.streamed_write_bytes
    assert min(reads.min(initial=0), writes.min(initial=0)) >= 0
