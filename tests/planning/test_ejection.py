"""Addresses by ejecting and exchanging gaps: nothing overlaps, nothing gets dearer, what is undone leaves no trace."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import IN_THE_MIDDLE, program, target
from random_programs import random_program

from spillprof.engine.run import terms_of
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.blocks import BlockBuilder, Ticks
from spillprof.planning.bounds.covering import planners_covering
from spillprof.planning.budget import Budget
from spillprof.planning.ejection.packer import EjectionEffort, EjectionPacker
from spillprof.planning.ejection.state import PackingState
from spillprof.planning.ejection.tick_index import TickIndex, shared_ticks
from spillprof.planning.free_list import Fit
from spillprof.planning.gaps import GapKey, gap_options
from spillprof.planning.interval import choose_gaps
from spillprof.planning.offline import move_cost, plan_by_ejection
from spillprof.planning.options import PlanningOptions, Release, WriteBack
from spillprof.planning.packing import PACKING_ORDERS, pack
from spillprof.planning.placements import make_placement
from spillprof.planning.planner import make_plan
from spillprof.planning.run_facts import SimulationSpec
from spillprof.planning.steady import run_to_steady_state
from spillprof.planning.strategies import cost
from spillprof.planning.traffic import count_traffic, transfer_costs
from spillprof.timing.issue_times import best_issue_times
from spillprof.verify import verify

DEFAULTS = PlanningOptions()

NOWHERE_TO_STAY = program(
    {"x": 10, "y": 10, "z": 10, "n": 30, "m": 20, "o": 20, "p": 30},
    ["-> x", "-> n", "n ->", "-> y", "-> m", "m ->", "-> z", "x ->", "-> o", "o ->", "y ->", "-> p", "p ->", "z ->"],
    capacity=40,
)
"""Beside n, x lies at an end; beside m, y next to x; beside o, y next to z; beside p, z at an end. But x, y and z meet.

So y lies at 10 with x at 0, and with z at 0; or at 20, with x at 30, and z. Something has to move, or to leave.
"""
A_MOVE = 0.25
"""What a byte moved inside SRAM costs, in bytes to or from DRAM."""


def options_of(seed: int) -> PlanningOptions:
    return (DEFAULTS, replace(DEFAULTS, writeback=WriteBack.ALWAYS), replace(DEFAULTS, release=Release.SCOPE))[seed % 3]


def chosen_gaps(p: Program, options: PlanningOptions) -> dict[GapKey, int]:
    return {(gap.buffer, gap.last_use): step for gap, step in choose_gaps(p, target(), options)}


def bytes_moved(p: Program, options: PlanningOptions, off: set[GapKey]) -> int:
    """Reloads of all gaps, and writes of what has no copy in DRAM; one write of an output is due anyway."""
    gaps = {(gap.buffer, gap.last_use): gap for gap in gap_options(p, options)}
    needs_copy = [b for b, _ in off if not p.buffers[b].in_dram_at_start]
    writes = needs_copy if options.writeback is WriteBack.ALWAYS else sorted(set(needs_copy))
    due = sum(p.buffers[b].moved_bytes for b in set(needs_copy) if p.buffers[b].kind is BufferKind.OUTPUT)
    reloads = [b for b, i in off if gaps[b, i].next_use is not None]
    return sum(p.buffers[b].moved_bytes for b in [*writes, *reloads]) - due


def assert_nothing_overlaps(p: Program, packer: EjectionPacker, builder: BlockBuilder) -> None:
    packing = packer.packing()
    given_ = {owner: list(addresses) for owner, addresses in packing.addresses.items()}
    placed = []
    for block in builder.all_blocks(set(packing.off)):
        addresses = {given_[owner].pop(0) for owner in block.owners if given_.get(owner)}
        assert len(addresses) == 1 or not packing.complete
        placed += [(block, address) for address in addresses]
    assert not any(given_.values())
    assert p.capacity_bytes is not None
    for k, (a, at) in enumerate(placed):
        assert p.reserved_bytes <= at <= p.capacity_bytes - a.size_bytes
        assert (at - p.reserved_bytes) % p.alignment_bytes == 0
        for b, bt in placed[:k]:
            if shared_ticks(a.ticks, b.ticks):
                assert at + a.size_bytes <= bt or bt + b.size_bytes <= at


@pytest.mark.parametrize("seed", range(20))
def test_what_meets_a_block_is_what_shares_a_tick_with_it_however_blocks_come_and_go(seed: int) -> None:
    rng = Random(seed)
    times, blocks, stays = TickIndex(1000), list[Ticks](), 0
    for _ in range(150):
        if blocks and rng.random() < 0.2 and len(blocks) > stays:
            times.remove_last()
            blocks.pop()
        else:
            cuts = sorted(rng.sample(range(1000), 4))
            ticks: Ticks = ((cuts[0], cuts[1]), (cuts[2], cuts[3])) if rng.random() < 0.2 else ((cuts[0], cuts[1]),)
            times.add(ticks)
            blocks.append(ticks)
        if len(blocks) == 1 or rng.random() < 0.1:
            times.settle()
            stays = len(blocks)
        for k in rng.sample(range(len(blocks)), min(3, len(blocks))):
            ids, shared = times.meeting(k)
            expected = {j: shared_ticks(blocks[k], b) for j, b in enumerate(blocks) if shared_ticks(blocks[k], b)}
            assert dict(zip(ids.tolist(), shared.tolist(), strict=True)) == expected
            assert len(ids) == len(expected)


def test_a_block_in_the_middle_finds_a_place_at_the_end_before_anything_is_spilled() -> None:
    packer = EjectionPacker(IN_THE_MIDDLE, BlockBuilder(IN_THE_MIDDLE, DEFAULTS), DEFAULTS, {})
    packing = packer.packing()
    assert (packer.complete, packer.spill_bytes, packing.off) == (True, 0, {})
    assert packing.addresses[1, 1] in ([0], [40])  # b


def test_a_gap_that_was_spent_for_nothing_is_brought_back() -> None:
    packer = EjectionPacker(IN_THE_MIDDLE, BlockBuilder(IN_THE_MIDDLE, DEFAULTS), DEFAULTS, {(1, 0): 2})
    assert packer.spill_bytes == 40  # b is written and read again
    assert packer.improve(EjectionEffort(sweeps=2))
    assert packer.spill_bytes == 0


def test_a_dear_gap_is_exchanged_for_a_cheap_one() -> None:
    """Of s (60) and t (30) one must leave while n (60) is there, in 120: s is given, t is cheaper."""
    buffers = {"s": 60, "t": 30, "n": 60}
    p = program(buffers, ["-> s", "-> t", "-> n", "n ->", "s, t ->"], capacity=120)
    packer = EjectionPacker(p, BlockBuilder(p, DEFAULTS), DEFAULTS, {(0, 0): 2})
    assert packer.spill_bytes == 120
    assert packer.improve(EjectionEffort(sweeps=1))
    assert (packer.spill_bytes, set(packer.packing().off)) == (60, {(1, 1)})


def test_what_cannot_stay_in_one_place_is_moved_if_that_is_cheaper_than_to_spill_it() -> None:
    builder = BlockBuilder(NOWHERE_TO_STAY, DEFAULTS)
    assert EjectionPacker(NOWHERE_TO_STAY, builder, DEFAULTS, {}).spill_bytes == 20
    assert EjectionPacker(NOWHERE_TO_STAY, builder, DEFAULTS, {}, 2.5).spill_bytes == 20
    packer = EjectionPacker(NOWHERE_TO_STAY, builder, DEFAULTS, {}, A_MOVE)
    assert packer.improve(EjectionEffort(sweeps=1))
    packing = packer.packing()
    assert (packing.complete, packing.extra_bytes, packing.off) == (True, 0, {})
    assert 1 <= sum(len(moved) for moved in packing.moves.values()) <= 2  # one would do
    plan, _ = plan_by_ejection(NOWHERE_TO_STAY, target(), [], [], "optimal", DEFAULTS, EjectionEffort(sweeps=1))
    assert verify(NOWHERE_TO_STAY, plan) == ()
    assert (plan.spills, {move.size_bytes for move in plan.moves}) == ((), {10})


def test_a_move_that_is_needed_no_more_is_undone() -> None:
    p = program({"b": 20}, ["-> b", "->", "->", "b ->"], capacity=60)
    packer = EjectionPacker(p, BlockBuilder(p, DEFAULTS), DEFAULTS, {}, A_MOVE)
    packer._state.eject(0, packer._state.neighbours(0))
    packer._state.place_pieces(0, [(1, 0), (6, 40)])
    assert packer.packing().moves == {2: {0: 40}}
    packer.improve(EjectionEffort(sweeps=1))
    assert (packer.packing().moves, packer.spill_bytes) == ({}, 0)


def test_without_work_nothing_is_exchanged() -> None:
    packer = EjectionPacker(IN_THE_MIDDLE, BlockBuilder(IN_THE_MIDDLE, DEFAULTS), DEFAULTS, {(1, 0): 2})
    assert not packer.improve(EjectionEffort(sweeps=2, budget=Budget(0)))
    assert packer.spill_bytes == 40


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10**9), order=st.sampled_from(sorted(PACKING_ORDERS)))
def test_packing_knows_what_the_gaps_that_it_adds_move(seed: int, order: str) -> None:
    p, options = random_program(seed, max_steps=24), options_of(seed)
    off = chosen_gaps(p, options)
    packing = pack(p, BlockBuilder(p, options), off, order, Fit.FIRST)
    assert packing.extra_bytes == bytes_moved(p, options, set(packing.off)) - bytes_moved(p, options, set(off))


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_exchanges_keep_a_legal_layout_and_never_move_more(seed: int) -> None:
    p, options = random_program(seed, max_steps=24), options_of(seed)
    builder, off = BlockBuilder(p, options), chosen_gaps(p, options)
    packer = EjectionPacker(p, builder, options, off)
    assert_nothing_overlaps(p, packer, builder)
    assert packer.spill_bytes == bytes_moved(p, options, set(packer.packing().off))
    before = packer.spill_bytes
    assert packer.improve(EjectionEffort(sweeps=3))
    assert_nothing_overlaps(p, packer, builder)
    assert packer.spill_bytes == bytes_moved(p, options, set(packer.packing().off)) <= before


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_what_is_undone_leaves_no_trace(seed: int) -> None:
    p, options = random_program(seed, max_steps=20), options_of(seed)
    state = PackingState(p, BlockBuilder(p, options), options, chosen_gaps(p, options), A_MOVE)
    rng = Random(seed)

    def snapshot() -> list[object]:
        return [state.addresses(), set(state.off), state.moves, state.cost, list(state.blocks)]

    def move_some() -> None:
        k = rng.randrange(len(state.blocks))
        if state.is_there(k) and (places := state.pieces(k, state.neighbours(k))):
            state.place_pieces(k, places)

    if rng.random() < 0.5:
        move_some()
    before = snapshot()
    state.begin()
    for _ in range(12):
        move_some()
        if state.moves and rng.random() < 0.3:
            state.join(rng.choice(state.moves))
        k = rng.randrange(len(state.blocks))
        if state.is_there(k) and state.cuts(k) and rng.random() < 0.5:
            state.take_off(rng.choice(state.cuts(k)))
        elif state.off and rng.random() < 0.5:
            state.take_back(state.gaps[rng.choice(sorted(state.off))])
        elif (waiting := state.next_waiting()) is not None:
            state.eject(waiting, state.neighbours(waiting))
    state.undo()
    assert snapshot() == before


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_the_plan_is_legal_and_moves_what_the_exchange_says(seed: int) -> None:
    p, options = random_program(seed, max_steps=24), options_of(seed)
    chosen = choose_gaps(p, target(), options)
    plan, in_time = plan_by_ejection(p, target(), chosen, chosen, "interval", options, EjectionEffort(sweeps=2))
    assert in_time
    assert verify(p, plan, terms_of(options)) == ()
    issued, _ = best_issue_times(p, plan, target())
    assert verify(p, issued, terms_of(options)) == ()
    packer = EjectionPacker(p, BlockBuilder(p, options), options, chosen_gaps(p, options), move_cost(target()))
    packer.improve(EjectionEffort(sweeps=2))
    packing = packer.packing()
    if packer.complete:
        moves = {(step, b): address for step, moved in packing.moves.items() for b, address in moved.items()}
        assert {(move.step, move.buffer): move.to_address for move in plan.moves} == moves
        assert {(s.buffer, s.last_use_step) for s in plan.spills if s.last_use_step >= 0} <= set(packing.off)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_moves_that_do_not_fit_what_happens_are_left_out_and_the_plan_is_legal(seed: int) -> None:
    """Moves to anywhere, of anything, at any step: of what left or leaves just then, of what has to move otherwise."""
    p, options = random_program(seed, max_steps=24), options_of(seed)
    assert p.capacity_bytes is not None
    rng = Random(seed)
    unit, movable = (
        p.alignment_bytes,
        [b.index for b in p.buffers if not b.dedicated and b.kind is not BufferKind.WEIGHT],
    )
    setting = SimulationSpec(
        program=p,
        strategy="interval",
        rule=cost,
        costs=transfer_costs(p, target()),
        options=options,
        off_chip={},
        moves={
            step: {
                b: rng.randrange(p.reserved_bytes, p.capacity_bytes, unit)
                for b in rng.sample(movable, min(3, len(movable)))
            }
            for step in range(1, len(p.steps))
            if rng.random() < 0.7
        },
    )
    plan = run_to_steady_state(setting, lambda: make_placement(options.placement, p), {})[0]
    assert verify(p, plan, terms_of(options)) == ()


def test_room_is_left_at_each_step_as_far_as_gaps_can() -> None:
    # Step 2 needs n (40) beside a and b (20 each, idle then): 80 of 90. Room of 20 asks for 10 off-chip more.
    p = program({"a": 20, "b": 20, "n": 40}, ["-> a", "-> b", "-> n", "a, b, n ->"], capacity=90)
    assert planners_covering(p, DEFAULTS).excess_bytes == (0, 0, 0, 0)
    assert planners_covering(p, DEFAULTS, 20).excess_bytes == (0, 0, 20, 0)  # whole buffers go
    assert planners_covering(p, DEFAULTS, 89).excess_bytes == (0, 20, 40, 0)  # all that is idle


def test_long_program_of_blocks_in_the_middle_spills_nothing() -> None:
    """The memory is full of a, b, c; n fits only if b lies at an end, 1,200 times over."""
    motifs = 1_200
    buffers = {f"{name}{m}": size for m in range(motifs) for name, size in (("a", 20), ("b", 20), ("c", 20), ("n", 40))}
    steps = [spec for m in range(motifs) for spec in (f"-> a{m} b{m} c{m}", f"a{m} c{m} ->", f"-> n{m}", f"b{m} ->")]
    p = program(buffers, steps, capacity=60)
    plan = make_plan(p, target(), "optimal", DEFAULTS)
    assert verify(p, plan) == ()
    assert count_traffic(p, plan).spill_bytes == 0
