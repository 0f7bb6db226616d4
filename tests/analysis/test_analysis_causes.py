"""Causes of spilled bytes: one literal graph a cause, and sums that add up on random programs."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, run_on, target
from random_programs import random_program

from spillprof.analysis.attribution import charges
from spillprof.analysis.causes import Rung, added_up, causes_by_step, main_cause
from spillprof.analysis.hotspots import streamed_beyond_compulsory
from spillprof.engine.engine import Engine
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.ir.errors import CapacityError
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.result import CauseBytes
from spillprof.planning.options import Order, PlanningOptions, Release
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.verify import verify

DEFAULTS = PlanningOptions()


def explained(
    p: Program, strategy: str, options: PlanningOptions = DEFAULTS
) -> tuple[CauseBytes, dict[int, CauseBytes], Plan]:
    """Causes of a strategy's spills in all and by step; ``p`` has a capacity, and is fitted to it again."""
    machine = target(sram_bytes=p.capacity_bytes)
    plan = make_plan(p, machine, strategy, options)
    assert verify(p, plan) == ()
    what_if = Counterfactuals(
        engine=Engine(),
        run=replace(run_on(machine), planning=options),
        program=replace(p, capacity_bytes=None, reservations=()),
        fitted=p,
        plans=(plan,),
    )
    spill_bytes = count_traffic(p, plan).spill_bytes
    ladder = what_if.ladder(strategy, spill_bytes)
    assert ladder is not None
    by_step = causes_by_step(p, charges(p, plan, options), streamed_beyond_compulsory(p, plan), ladder)
    return added_up(tuple(by_step.values())), by_step, plan


def total(causes: CauseBytes) -> int:
    return sum(getattr(causes, name) for name in CauseBytes.__dataclass_fields__)


def test_skip_over_a_step_that_fills_the_memory_is_capacity() -> None:
    """s (40) waits while the chain needs 120 of 120: write-back and reload, whatever one does."""
    p = program(
        {"x": ("input", 10), "s": 40, "a": 60, "b": 60, "y": ("output", 10)},
        ["x -> s", "s -> a", "a -> b", "b, s -> y"],
        capacity=120,
    )
    causes, by_step, _ = explained(p, "lru")
    assert causes == CauseBytes(
        capacity_bytes=80, order_bytes=0, policy_bytes=0, late_release_bytes=0, fragmentation_bytes=0
    )
    assert main_cause(by_step[2]) == "capacity"


def test_two_arms_in_breadth_first_order_spill_for_their_order() -> None:
    """Depth first, one arm after the other fits (see test_ordering)."""
    p = program(
        {"x": ("input", 10), "a": 60, "b": 60, "c": 10, "d": 10, "y": ("output", 10)},
        ["x -> a", "x -> b", "a -> c", "b -> d", "c, d -> y"],
        capacity=80,
    )
    causes, by_step, _ = explained(p, "cost")
    assert causes.order_bytes == total(causes) == 240
    assert {main_cause(part) for part in by_step.values()} == {"order"}
    same_order, _, _ = explained(p, "cost", PlanningOptions(order=Order.MEMORY))
    assert same_order.capacity_bytes == 240  # where the order was searched already, nothing is left to blame on it


def test_lru_evicts_what_is_needed_next_for_its_policy() -> None:
    """u and v wait for a (40). LRU evicts u, the older one, which is read next and displaces v in turn: 160 for 80."""
    p = program(
        {"x": ("input", 10), "u": 40, "v": 40, "a": 40, "b": 10, "y": ("output", 10)},
        ["x -> u", "x -> v", "x -> a", "a, u -> b", "b, v -> y"],
        capacity=100,
    )
    lru, _, _ = explained(p, "lru")
    best, _, _ = explained(p, "belady")
    assert (total(lru), total(best)) == (160, 80)
    assert (lru.policy_bytes, best.policy_bytes) == (80, 0)


def test_dead_buffers_that_stay_are_late_release() -> None:
    """A chain of 40 fits 80 if each is freed at its last use; held to the end, all of them want 200."""
    p = program(
        {"x": ("input", 10), "a": 40, "b": 40, "c": 40, "d": 40, "y": ("output", 10)},
        ["x -> a", "a -> b", "b -> c", "c -> d", "d -> y"],
        capacity=90,
    )
    causes, _, _ = explained(p, "lru", PlanningOptions(release=Release.END))
    assert total(causes) > 0
    assert causes.late_release_bytes == total(causes)
    assert total(explained(p, "lru")[0]) == 0


def test_hole_that_is_too_small_is_fragmentation() -> None:
    """Best fit: f (20) lies between two holes of 30; 60 are free, c wants 50 in one piece, and f has to go."""
    p = program(
        {"x": ("input", 10), "e": 30, "f": 20, "g": 50, "c": 50, "y": ("output", 10)},
        ["x -> e", "e -> f", "f -> g", "g -> c", "c, f -> y"],
        capacity=120,
    )
    causes, _, plan = explained(p, "cost")
    assert any(p.buffers[s.buffer].name == "f" for s in plan.spills)
    assert causes.fragmentation_bytes == total(causes) > 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from(STRATEGIES), st.sampled_from(Release), st.sampled_from([1.0, 1.1, 1.3]))
def test_causes_add_up_in_all_and_by_step(seed: int, strategy: str, release: Release, factor: float) -> None:
    p = random_program(seed, capacity_factor=factor)
    options = PlanningOptions(release=release)
    try:
        causes, by_step, plan = explained(p, strategy, options)
    except CapacityError:
        return
    assert total(causes) == count_traffic(p, plan).spill_bytes
    forced: dict[int, int] = {}
    for charge in charges(p, plan, options):
        forced[charge.spill.forced_by_step] = forced.get(charge.spill.forced_by_step, 0) + charge.total_bytes
    for (_, step), nbytes in streamed_beyond_compulsory(p, plan).items():
        forced[step] = forced.get(step, 0) + nbytes
    assert {step: total(part) for step, part in by_step.items()} == {s: n for s, n in forced.items() if n}
    assert all(getattr(causes, name) >= 0 for name in CauseBytes.__dataclass_fields__)
    assert causes.late_release_bytes == 0 or release is not Release.LAST_USE


def test_rung_that_spills_more_takes_nothing_and_gives_nothing() -> None:
    p = random_program(3, capacity_factor=1.0)
    plan = make_plan(p, target(), "lru", DEFAULTS)
    charged, streamed = charges(p, plan, DEFAULTS), streamed_beyond_compulsory(p, plan)
    worse = Rung(cause="policy", spill_bytes=1 << 40, spills=frozenset())
    with_it = causes_by_step(p, charged, streamed, (worse,))
    assert with_it == causes_by_step(p, charged, streamed, ())
