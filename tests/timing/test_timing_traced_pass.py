"""A whole run in one pass: all that the event loop writes down, to the last bit."""

from dataclasses import fields, replace
from random import Random

from fitted_programs import streaming_case
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import random_program
from test_timing_forward_pass import MACHINES, random_machine

from spillprof.errors import CapacityError
from spillprof.model.plan import Plan
from spillprof.model.program import Program
from spillprof.model.target import Target
from spillprof.planning.options import STRATEGIES, PlanningOptions, Release
from spillprof.planning.planner import make_plan
from spillprof.planning.prefetch import earliest_issues, reissued
from spillprof.timing.record import Record
from spillprof.timing.timeline import event_by_event
from spillprof.timing.traced_pass import traced_pass
from spillprof.verify import verify


def check_records(program: Program, plan: Plan, machine: Target, rng: Random) -> None:
    """On demand, early, and in between."""
    earliest = earliest_issues(program, plan)
    as_planned = [t.issue_step for t in plan.transfers]
    between = [rng.randint(min(a, b), max(a, b)) for a, b in zip(earliest, as_planned, strict=True)]
    for steps in (as_planned, earliest, between):
        moved = reissued(plan, steps)
        assert verify(program, moved) == ()
        found, expected = traced_pass(program, moved, machine), event_by_event(program, moved, machine)
        for field in fields(Record):
            assert getattr(found, field.name) == getattr(expected, field.name), field.name


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6))
def test_a_random_run_is_the_same_in_one_pass_as_event_by_event(seed: int) -> None:
    rng = Random(seed)
    program, machine = random_program(seed), random_machine(rng)
    try:
        plan = make_plan(program, machine, rng.choice(STRATEGIES), PlanningOptions(release=rng.choice(list(Release))))
    except CapacityError:
        plan = make_plan(program, machine, "lru", PlanningOptions())
    check_records(program, plan, machine, rng)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_a_run_that_streams_is_the_same_in_one_pass_as_event_by_event(seed: int) -> None:
    rng = Random(seed)
    case = streaming_case(seed)
    if case is not None:
        program, machine = case
        plan = make_plan(program, machine, "cost", PlanningOptions())
        check_records(program, plan, replace(machine, **rng.choice(MACHINES)), rng)
