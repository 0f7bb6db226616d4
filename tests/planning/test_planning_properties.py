"""Every plan of every strategy, on random programs: legal, accounted for, deterministic."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import target
from random_programs import planning_options, random_program

from spillprof.engine.run import terms_of
from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.planning.interval import choose_gaps
from spillprof.planning.offline import plan_offline
from spillprof.planning.options import Inputs, PlanningOptions, Release
from spillprof.planning.planner import make_plan, plan_and_choices
from spillprof.planning.strategies import INTERVAL, STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.verify import recount, verify

TARGET = target(dram_read_setup_s=8.0, dram_write_setup_s=4.0)
OPTIONS = planning_options()


def plan_or_none(program: Program, strategy: str, options: PlanningOptions):  # type: ignore[no-untyped-def]
    """The plan; None where resident inputs leave too little for a step, which the planner must say itself."""
    try:
        return make_plan(program, TARGET, strategy, options)
    except CapacityError:
        assert options.inputs is Inputs.RESIDENT
        return None


@settings(max_examples=500, deadline=None)
@given(seed=st.integers(0, 10**9), strategy=st.sampled_from(STRATEGIES), options=OPTIONS)
def test_every_plan_is_legal_and_its_bytes_are_counted_alike(
    seed: int, strategy: str, options: PlanningOptions
) -> None:
    program = random_program(seed)
    plan = plan_or_none(program, strategy, options)
    if plan is not None:
        assert verify(program, plan, terms_of(options)) == ()
        assert count_traffic(program, plan) == recount(program, plan)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9), strategy=st.sampled_from(["none", *STRATEGIES]))
def test_infinite_capacity_spills_nothing(seed: int, strategy: str) -> None:
    program = replace(random_program(seed), capacity_bytes=None)
    plan = make_plan(program, TARGET, strategy, PlanningOptions())
    assert verify(program, plan) == ()
    assert count_traffic(program, plan).spill_bytes == 0
    assert plan.spills == ()


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), strategy=st.sampled_from(STRATEGIES), options=OPTIONS)
def test_same_input_gives_the_same_plan(seed: int, strategy: str, options: PlanningOptions) -> None:
    first = plan_or_none(random_program(seed), strategy, options)
    assert first == plan_or_none(random_program(seed), strategy, options)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_unlimited_room_equals_none(strategy: str) -> None:
    program = replace(random_program(7), capacity_bytes=1 << 30)
    plan = make_plan(program, TARGET, strategy, PlanningOptions())
    assert count_traffic(program, plan).spill_bytes == 0


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(list(Release)))
def test_interval_that_spends_no_gap_makes_the_plan_of_an_online_run_without_victims(
    seed: int, release: Release
) -> None:
    program, machine, options = random_program(seed), target(), PlanningOptions(release=release)
    try:
        plan, choices = plan_and_choices(program, machine, INTERVAL, options)
    except CapacityError:
        return
    assert verify(program, plan) == ()
    if choices:
        return
    assert choose_gaps(program, machine, options) == []
    assert plan == plan_offline(program, machine, [], INTERVAL, options)
    online, asked = plan_and_choices(program, machine, "lru", options)
    assert not asked
    assert (online.segments, online.transfers, online.spills) == (plan.segments, plan.transfers, plan.spills)
