"""Where nothing has to leave, strategies share a run; each alone gives the same."""

from hypothesis import given, settings
from hypothesis import strategies as st
from programs import target
from random_programs import random_program

from spillprof.ir.errors import CapacityError
from spillprof.planning.interval import choose_gaps
from spillprof.planning.offline import plan_offline
from spillprof.planning.options import PlanningOptions, Release
from spillprof.planning.planner import plan_and_choices
from spillprof.planning.strategies import INTERVAL
from spillprof.verify import verify


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(list(Release)))
def test_interval_without_a_gap_to_send_off_chip_is_the_run_that_asks_for_no_victim(
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
