"""Every strategy against all subsets of gaps of tiny programs, odd capacities, and a replay of its transfers."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import target
from random_programs import ALIGNMENT, planning_options, random_program, streaming_case

from spillprof.ir.errors import CapacityError
from spillprof.ir.plan import Plan, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Program
from spillprof.ir.target import Target
from spillprof.planning.bounds.methods import lower_bound
from spillprof.planning.gaps import GapOption, gap_options
from spillprof.planning.interval import choose_gaps
from spillprof.planning.options import Inputs, PlanningOptions
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.issue_times import earliest_issues, reissued
from spillprof.verify import verify

DEFAULTS = PlanningOptions()
MACHINE = target()
MOST_GAPS = 10

Gap = tuple[int, int]
"""(buffer, step of the use before it)."""


def tiny_program(seed: int) -> Program | None:
    """Seven steps at most, some of which hold buffers; None if it has too many gaps for all subsets."""
    rng = Random(seed)
    factor = rng.choice([1.0, 1.0, 1.1, 1.2, 1.4])
    p = random_program(seed, max_steps=7, features=False, capacity_factor=factor, holds=seed % 2 == 0)
    return p if 0 < len(gap_options(p, DEFAULTS)) <= MOST_GAPS else None


def uses(p: Program, b: int) -> list[int]:
    """Steps that read or write the buffer."""
    return [i for i, s in enumerate(p.steps) if b in s.reads or b in s.writes]


def idle_over(p: Program) -> dict[Gap, range]:
    """The steps between two consecutive uses, by gap, where there are any."""
    found = {}
    for b in range(len(p.buffers)):
        steps = uses(p, b)
        for last, following in pairwise(steps):
            if following > last + 1:
                found[b, last] = range(last + 1, following)
        held = max((i for i, s in enumerate(p.steps) if b in s.holds), default=-1)
        if steps and held > steps[-1] and not (p.weights_persist and p.buffers[b].kind is BufferKind.WEIGHT):
            found[b, steps[-1]] = range(steps[-1] + 1, held + 1)
    return found


def fits(p: Program, off: set[Gap]) -> bool:
    """Whether operands and idle buffers fit at every step if those gaps are off-chip."""
    assert p.capacity_bytes is not None
    load = [sum(p.buffers[b].size_bytes for b in {*s.reads, *s.writes}) for s in p.steps]
    for gap, steps in idle_over(p).items():
        for i in steps if gap not in off else ():
            load[i] += p.buffers[gap[0]].size_bytes
    return max(load) <= p.capacity_bytes - p.reserved_bytes


def bytes_moved(p: Program, off: set[Gap]) -> int:
    """A reload for each gap but a last one; a write for each activation with any (an output's is due anyway)."""
    written = {b for b, _ in off if p.buffers[b].kind is BufferKind.ACTIVATION}
    reloaded = [b for b, last in off if last != uses(p, b)[-1]]
    return sum(p.buffers[b].moved_bytes for b in reloaded) + sum(p.buffers[b].moved_bytes for b in written)


def subsets(gaps: list[GapOption]) -> Iterator[set[Gap]]:
    keys = [(g.buffer, g.last_use) for g in gaps]
    for size in range(len(keys) + 1):
        for some in combinations(keys, size):
            yield set(some)


def off_chip(p: Program, plan: Plan) -> set[Gap]:
    """Gaps that a plan spends off-chip; what is held and in DRAM may leave without a record."""
    spilled = {(s.buffer, s.last_use_step) for s in plan.spills}
    for (b, last), steps in idle_over(p).items():
        moment = PHASES_PER_STEP * steps[-1]
        if last == uses(p, b)[-1] and not any(s.buffer == b and s.start <= moment < s.end for s in plan.segments):
            spilled.add((b, last))
    return spilled


def test_the_gaps_are_all_stretches_between_uses() -> None:
    for seed in range(200):
        p = random_program(seed, max_steps=7, features=False, holds=seed % 2 == 0)
        assert {(g.buffer, g.last_use): range(*g.ranges[0]) for g in gap_options(p, DEFAULTS)} == idle_over(p)


def test_no_strategy_beats_the_best_of_all_subsets_and_all_count_alike() -> None:
    tried = spilling = reached = optimal = 0
    for seed in range(400):
        p = tiny_program(seed)
        if p is None:
            continue
        tried += 1
        best = min(bytes_moved(p, off) for off in subsets(gap_options(p, DEFAULTS)) if fits(p, off))
        spilling += best > 0
        assert lower_bound(p, DEFAULTS).cost <= best, seed
        moved = {}
        for strategy in STRATEGIES:
            plan = make_plan(p, MACHINE, strategy, DEFAULTS)
            off = off_chip(p, plan)
            assert fits(p, off), (seed, strategy)
            moved[strategy] = count_traffic(p, plan).spill_bytes
            assert moved[strategy] == bytes_moved(p, off) >= best, (seed, strategy)
        reached += moved["interval"] == best
        optimal += moved["optimal"] == best
    assert tried > 150  # the sample is worth something
    assert spilling > 50
    assert reached > 0.85 * tried  # of interval, which plans over the whole run
    assert optimal > 0.97 * tried  # the rest finds no addresses


def test_interval_moves_what_its_chosen_gaps_say_unless_placement_needs_more() -> None:
    repaired = clean = 0
    for seed in range(400):
        p = tiny_program(seed)
        if p is None:
            continue
        chosen = {(g.buffer, g.last_use) for g, _ in choose_gaps(p, MACHINE, DEFAULTS)}
        assert fits(p, chosen)
        plan = make_plan(p, MACHINE, "interval", DEFAULTS)
        extra = {(s.buffer, s.last_use_step) for s in plan.spills if s.fragmentation}
        assert off_chip(p, plan) - extra == chosen - extra
        if extra:
            repaired += 1
        else:
            clean += 1
            assert count_traffic(p, plan).spill_bytes == bytes_moved(p, chosen)
    assert clean > 10 * repaired


# --- a memory that ends between two addresses


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    strategy=st.sampled_from(STRATEGIES),
    placement=st.sampled_from(PLACEMENTS),
    odd=st.integers(1, ALIGNMENT - 1),
)
def test_bytes_beyond_the_last_aligned_address_change_nothing(
    seed: int, strategy: str, placement: str, odd: int
) -> None:
    p = random_program(seed)
    assert p.capacity_bytes is not None
    options = PlanningOptions(placement=placement)
    plan = make_plan(replace(p, capacity_bytes=p.capacity_bytes + odd), MACHINE, strategy, options)
    assert verify(replace(p, capacity_bytes=p.capacity_bytes + odd), plan) == ()
    if placement != "size-classes":  # whose slots are a share of the capacity
        assert replace(plan, capacity_bytes=p.capacity_bytes) == make_plan(p, MACHINE, strategy, options)


# --- every reload has a copy


def assert_reloads_have_copies(p: Program, plan: Plan) -> None:
    """Replay: at each step its writes, then its reads, then what it streams."""
    in_dram = {b.index for b in p.buffers if b.kind in (BufferKind.INPUT, BufferKind.WEIGHT)}
    for i in range(len(p.steps) + 1):
        here = [t for t in plan.transfers if t.issue_step == i]
        for t in here:
            if t.kind in (TransferKind.WRITE_BACK, TransferKind.DRAIN):
                source = plan.segments[t.segment]
                assert source.buffer == t.buffer
                assert source.start < PHASES_PER_STEP * i
                in_dram.add(t.buffer)
        for t in here:
            if t.kind in (TransferKind.RELOAD, TransferKind.FETCH):
                assert t.buffer in in_dram, (i, t)
        for s in plan.streamed:
            if s.step == i:
                if s.write:
                    in_dram.add(s.buffer)
                else:
                    assert s.buffer in in_dram, (i, s)
    outputs = {b.index for b in p.buffers if b.kind is BufferKind.OUTPUT and uses(p, b.index)}
    assert outputs <= in_dram


OPTIONS = planning_options()


@pytest.mark.parametrize("streaming", [False, True])
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), strategy=st.sampled_from(STRATEGIES), options=OPTIONS)
def test_every_reload_has_a_copy_on_demand_and_prefetched(
    streaming: bool, seed: int, strategy: str, options: PlanningOptions
) -> None:
    case: tuple[Program, Target] | None = streaming_case(seed) if streaming else (random_program(seed), MACHINE)
    if case is None:
        return
    p, machine = case
    try:
        plan = make_plan(p, machine, strategy, options)
    except CapacityError:
        assert options.inputs is Inputs.RESIDENT
        return
    assert_reloads_have_copies(p, plan)
    assert_reloads_have_copies(p, reissued(plan, earliest_issues(p, plan)))
