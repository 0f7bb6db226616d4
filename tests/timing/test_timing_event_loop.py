"""The event loop against the forward pass, which is exact where nothing is shared."""

from typing import Any

import numpy as np
import pytest
from forward_pass import forward_pass
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import target
from random_programs import random_program, streaming_case
from replayed import check

from spillprof.engine.run import terms_of
from spillprof.ir.errors import CapacityError
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import JobKind, Timeline
from spillprof.planning.options import PlanningOptions, Release, WriteBack
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.timing.timeline import simulate
from spillprof.verify import recount, verify


@st.composite
def cases(draw: st.DrawFn, /, **machine: Any) -> tuple[Program, Plan, Target]:
    """A random program with a legal plan, its transfers issued on demand, early or in between."""
    program = random_program(draw(st.integers(0, 10**6)))
    made = target(
        dram_read_bytes_per_s=draw(st.floats(0.1, 10)) * 10,
        dram_write_bytes_per_s=draw(st.floats(0.1, 10)) * 10,
        dram_read_setup_s=draw(st.sampled_from([0.0, 0.5, 30.0])),
        dram_write_setup_s=draw(st.sampled_from([0.0, 0.25, 20.0])),
        dram_burst_bytes=draw(st.sampled_from([1, 64])),
        sram_bytes_per_s=1e3,
        macs_per_s={"default": draw(st.sampled_from([50.0, 1e3]))},
        **machine,
    )
    options = PlanningOptions(
        writeback=draw(st.sampled_from(list(WriteBack))), release=draw(st.sampled_from(list(Release)))
    )
    try:
        plan = make_plan(program, made, draw(st.sampled_from(STRATEGIES)), options)
    except CapacityError:
        options = PlanningOptions()
        plan = make_plan(program, made, "lru", options)
    earliest = earliest_issues(program, plan)
    steps = [draw(st.sampled_from([t.issue_step, e])) for t, e in zip(plan.transfers, earliest, strict=True)]
    plan = reissued(plan, steps)
    assert verify(program, plan, terms_of(options)) == ()
    return program, plan, made


@settings(max_examples=150, deadline=None)
@given(cases())
def test_one_core_and_unshared_channels_are_the_forward_pass(case: tuple[Program, Plan, Target]) -> None:
    program, plan, machine = case
    found, expected = simulate(program, plan, machine), forward_pass(program, plan, machine)
    for name in ("step_start_s", "step_end_s", "transfer_start_s", "transfer_end_s", "stall_s", "makespan_s"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-9), name
    for i, blamed in enumerate(expected.stall_transfer):
        moved = found.stall_kind[i] == JobKind.MOVE  # after what it waited for itself
        if blamed >= 0 and found.stall_transfer[i] != blamed and not moved:  # two that came at the same moment
            assert found.step_start_s[i] == pytest.approx(found.transfer_end_s[blamed], rel=1e-9)


@st.composite
def shared_machines(draw: st.DrawFn) -> dict[str, Any]:
    """Channels, a bus narrower or wider than the directions, background traffic, one to three cores."""
    bus = draw(st.sampled_from([None, 5.0, 40.0, 150.0]))
    return {
        "cores": draw(st.integers(1, 3)),
        "dma_read_channels": draw(st.integers(1, 3)),
        "dma_write_channels": draw(st.integers(1, 2)),
        "dma_shared_channels": draw(st.sampled_from([0, 0, 1, 2])),
        "dram_bus_bytes_per_s": bus,
        "background_bytes_per_s": 0.0 if bus is None else bus * draw(st.sampled_from([0.0, 0.3, 0.9])),
        "dram_outstanding": draw(st.sampled_from([None, None, 1, 2])),
    }


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_legal_plan_stays_legal_whatever_runs_at_the_same_time(data: st.DataObject) -> None:
    program, plan, machine = data.draw(cases(**data.draw(shared_machines())))
    t = simulate(program, plan, machine)
    check(program, plan, machine, t)
    check_bounds(program, plan, machine, t)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), shared_machines())
def test_streamed_operands_on_shared_machines(seed: int, fields: dict[str, Any]) -> None:
    case = streaming_case(seed)
    if case is None:
        return
    program, base = case
    machine = base.with_overrides(**fields)
    plan = make_plan(program, machine, "lru", PlanningOptions())
    plan = reissued(plan, earliest_issues(program, plan))
    assert verify(program, plan) == ()
    t = simulate(program, plan, machine)
    check(program, plan, machine, t)
    check_bounds(program, plan, machine, t)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_streamed_operands_are_the_forward_pass_where_nothing_is_shared(seed: int) -> None:
    case = streaming_case(seed)
    if case is not None:
        program, machine = case
        plan = make_plan(program, machine, "cost", PlanningOptions())
        found, expected = simulate(program, plan, machine), forward_pass(program, plan, machine)
        assert found.step_start_s == pytest.approx(expected.step_start_s)
        assert found.step_end_s == pytest.approx(expected.step_end_s)
        assert found.makespan_s == pytest.approx(expected.makespan_s)


def check_bounds(program: Program, plan: Plan, machine: Target, t: Timeline) -> None:
    """Nothing computes or moves faster than the machine can; alone times hold."""
    traffic = recount(program, plan)
    read = traffic.compulsory_read_bytes + traffic.spill_read_bytes + traffic.streamed_read_bytes
    write = traffic.compulsory_write_bytes + traffic.spill_write_bytes + traffic.streamed_write_bytes
    bus = machine.dram_bus_bytes_per_s or float("inf")
    lower = max(
        t.compute_s / machine.cores,
        read / min(machine.dram_read_bytes_per_s, bus),
        write / min(machine.dram_write_bytes_per_s, bus),
        (read + write) / bus,
    )
    assert t.makespan_s >= lower * (1 - 1e-9)
    assert t.makespan_s >= max(t.step_end_s.max(), t.jobs.end_s.max(initial=0.0)) - 1e-9
    assert np.all(t.jobs.queued_s <= t.jobs.start_s + 1e-9)
    assert np.all(t.jobs.end_s - t.jobs.flow_s >= t.jobs.flow_alone_s * (1 - 1e-9) - 1e-9)
    assert np.all(t.stall_s >= 0)
