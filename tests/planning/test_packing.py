"""Residency blocks and their greedy packing, worked out by hand: fits, orders, repair."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import IN_THE_MIDDLE, program, step, target
from random_programs import random_program

from spillprof.ir.program import Program
from spillprof.planning.blocks import BlockBuilder, ResidencyBlock
from spillprof.planning.free_list import Fit
from spillprof.planning.interval import choose_gaps
from spillprof.planning.options import PlanningOptions, Start
from spillprof.planning.packing import PACKING_ORDERS, Packing, pack

DEFAULTS = PlanningOptions()


# --- blocks


def blocks(p: Program, off: set[tuple[int, int]] | None = None, **options: Any) -> list[ResidencyBlock]:
    return BlockBuilder(p, PlanningOptions(**options)).all_blocks(off or set())


def test_a_chain_of_updates_shares_one_block() -> None:
    p = program(
        {"x": ("input", 10), "a": 10, "b": 10, "c": 10},
        ["x -> a", step("a -> b", updates={"a": "b"}), step("b -> c", updates={"b": "c"}), "c ->"],
    )
    assert [(b.ticks, b.size_bytes, b.owners) for b in blocks(p)] == [
        (((0, 2),), 10, ((0, 0),)),
        (((1, 11),), 10, ((1, 1),)),  # from a's write to c's last read; a asks for the address
    ]


def test_a_gap_cuts_a_chain_in_two() -> None:
    p = program(
        {"a": 10, "b": 10, "c": 10},
        ["-> a", step("a -> b", updates={"a": "b"}), "->", step("b -> c", updates={"b": "c"}), "c ->"],
    )
    assert [(b.ticks, b.owners) for b in blocks(p, {(1, 1)})] == [(((1, 6),), ((0, 1),)), (((9, 14),), ((1, 9),))]


def test_scratch_has_its_phases_and_an_output_stays_for_its_drain() -> None:
    p = program({"x": ("input", 10), "y": ("output", 6)}, [step("x -> y", workspaces=[("im2col", 4, 0, 1)])])
    assert [(b.ticks, b.size_bytes, b.chain) for b in blocks(p)] == [
        (((0, 2),), 10, 0),
        (((1, 3),), 6, 1),
        (((0, 2),), 4, None),
    ]


def test_a_cached_weight_that_stays_for_the_next_inference_is_one_block() -> None:
    p = program({"w": ("weight", 8)}, ["->", "w ->", "->", "w ->", "->"], weights_persist=True)
    assert [b.ticks for b in blocks(p)] == [((0, 15),)]
    assert [b.ticks for b in blocks(p, {(0, 1)})] == [((0, 6), (9, 15))]  # the last stretch and the first are one
    assert [b.ticks for b in blocks(p, {(0, 3)})] == [((3, 12),)]
    assert [b.ticks for b in blocks(p, {(0, 1), (0, 3)})] == [((3, 6),), ((9, 12),)]
    assert [b.ticks for b in blocks(p, start=Start.COLD)] == [((3, 15),)]


# --- packing and repair


def packed(p: Program, order: str, fit: Fit = Fit.FIRST) -> Packing:
    return pack(p, BlockBuilder(p, DEFAULTS), {}, order, fit)


def by_name(p: Program, packing: Packing) -> dict[tuple[str, int], list[int]]:
    return {
        (owner if isinstance(owner, str) else p.buffers[owner].name, tick): addresses
        for (owner, tick), addresses in packing.addresses.items()
    }


def test_orders() -> None:
    block = ResidencyBlock(((3, 6), (9, 10)), 16, ((0, 3),), 0)
    assert {name: priority(block) for name, priority in PACKING_ORDERS.items()} == {
        "size": (-16, 3),
        "area": (-64, 3),
        "duration": (-4, 3),
        "start": (3, -16),
    }


def test_largest_first_needs_no_repair() -> None:
    # n at 0..40; a does not meet it in time: 0; b meets both: 40; c meets a and b: 20.
    packing = packed(IN_THE_MIDDLE, "size")
    assert packing.complete
    assert (packing.off, packing.extra_bytes) == ({}, 0)
    assert by_name(IN_THE_MIDDLE, packing) == {("a", 1): [0], ("b", 1): [40], ("c", 1): [20], ("n", 7): [0]}


def test_first_come_first_placed_overflows_and_the_block_in_the_way_leaves() -> None:
    # a 0, b 20, c 40; n finds no 40 in a row beside b. b is idle then: it leaves (20 written, 20 reloaded).
    packing = packed(IN_THE_MIDDLE, "start")
    assert packing.complete
    assert (packing.off, packing.extra_bytes) == ({(1, 0): 2}, 40)
    assert by_name(IN_THE_MIDDLE, packing) == {
        ("a", 1): [0],
        ("b", 1): [20],
        ("b", 9): [20],
        ("c", 1): [40],
        ("n", 7): [0],
    }


def test_of_several_in_the_way_the_cheapest_leaves() -> None:
    # All of 60 is taken by x, a and b, idle at step 1. a and b would have to be written; x is an input.
    p = program({"a": 20, "b": 20, "x": ("input", 20), "n": 20}, ["x -> a b", "-> n", "a b x ->"], capacity=60)
    packing = packed(p, "start")
    assert (packing.off, packing.extra_bytes, packing.complete) == ({(2, 0): 1}, 20, True)
    assert by_name(p, packing)["n", 4] == by_name(p, packing)["x", 6] == [0]


def test_a_block_whose_neighbours_are_in_use_leaves_in_a_gap_of_its_own() -> None:
    # Largest first: n has 0..50 of 60 at step 2, in use. a (20, idle over 1..3) leaves instead.
    p = program({"a": 20, "n": 50}, ["-> a", "->", "-> n", "->", "a ->"], capacity=60)
    packing = packed(p, "size")
    assert (packing.off, packing.extra_bytes, packing.complete) == ({(0, 0): 1}, 40, True)
    assert by_name(p, packing) == {("n", 7): [0], ("a", 1): [0], ("a", 12): [0]}


def test_a_block_that_nothing_makes_room_for_is_left_to_the_walk() -> None:
    p = program({"a": 20, "n": 50}, ["-> a", "a -> n", "n ->"], capacity=60)
    packing = packed(p, "size")
    assert not packing.complete
    assert by_name(p, packing) == {("n", 4): [0]}


@pytest.mark.parametrize("order", PACKING_ORDERS)
def test_packing_keeps_to_the_pool(order: str) -> None:
    p = program({"a": 20, "n": 30}, ["-> a", "-> n", "a ->"], capacity=62, reservations=[("weight staging", 12)])
    assert set(by_name(p, packed(p, order))) == {("a", 1), ("n", 4)}
    assert sorted(a for addresses in packed(p, order).addresses.values() for a in addresses) in ([12, 32], [12, 42])


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9), order=st.sampled_from(sorted(PACKING_ORDERS)), fit=st.sampled_from(Fit))
def test_packed_blocks_that_share_a_tick_share_no_byte(seed: int, order: str, fit: Fit) -> None:
    p = random_program(seed, max_steps=20)
    builder = BlockBuilder(p, DEFAULTS)
    off = {(g.buffer, g.last_use): i for g, i in choose_gaps(p, target(), DEFAULTS)}
    packing = pack(p, builder, off, order, fit)
    given = {owner: list(addresses) for owner, addresses in packing.addresses.items()}
    placed: list[tuple[ResidencyBlock, int]] = []
    for block in builder.all_blocks(set(packing.off)):
        if given.get(block.owners[0]):
            addresses = {given[owner].pop(0) for owner in block.owners}
            assert len(addresses) == 1
            placed.append((block, addresses.pop()))
        else:
            assert not packing.complete
    assert p.capacity_bytes is not None
    for k, (a, at) in enumerate(placed):
        assert p.reserved_bytes <= at <= p.capacity_bytes - a.size_bytes
        for b, bt in placed[:k]:
            if any(s < f and t < e for s, e in a.ticks for t, f in b.ticks):
                assert at + a.size_bytes <= bt or bt + b.size_bytes <= at


def test_first_fit_takes_the_lowest_hole_and_best_fit_the_smallest() -> None:
    # Largest first among equal starts: a 0..30, b 30..36. a dies; m has the holes [0, 30) and [36, 60).
    p = program({"a": 30, "b": 6, "m": 10}, ["-> a b", "a ->", "-> m", "b m ->"], capacity=60)
    assert [by_name(p, packed(p, "start", fit))["m", 7] for fit in (Fit.FIRST, Fit.BEST)] == [[0], [36]]
