"""Addresses of all blocks at once: one layout where it fits, otherwise repair in an order that learns."""

from hypothesis import given, settings
from hypothesis import strategies as st
from programs import IN_THE_MIDDLE, program, step, target
from random_programs import random_program

from spillprof.planning.blocks import BlockBuilder, ResidencyBlock, Ticks, covers
from spillprof.planning.free_list import Fit
from spillprof.planning.gaps import GapOption, forced_gaps
from spillprof.planning.interval import choose_gaps
from spillprof.planning.offline import best_packings, plan_offline
from spillprof.planning.options import PlanningOptions, Release
from spillprof.planning.packing import pack
from spillprof.verify import verify

DEFAULTS = PlanningOptions()


def test_a_block_that_found_no_hole_comes_first_in_the_next_round() -> None:
    builder = BlockBuilder(IN_THE_MIDDLE, DEFAULTS)
    first = pack(IN_THE_MIDDLE, builder, {}, "start", Fit.FIRST)
    assert (first.repaired, first.extra_bytes) == ((3,), 40)
    # n at 0..40; a does not meet it: 0; b meets both: 40; c meets a and b: 20.
    second = pack(IN_THE_MIDDLE, builder, {}, "start", Fit.FIRST, {3: 1})
    assert (second.repaired, second.extra_bytes) == ((), 0)
    assert second.addresses == {(0, 1): [0], (1, 1): [40], (2, 1): [20], (3, 7): [0]}


def test_what_fits_whole_is_laid_out_without_repair() -> None:
    [packing] = best_packings(IN_THE_MIDDLE, BlockBuilder(IN_THE_MIDDLE, DEFAULTS), {})
    assert (packing.complete, packing.off, packing.extra_bytes) == (True, {}, 0)


def test_addresses_begin_above_what_is_reserved() -> None:
    p = program({"a": 20, "n": 30}, ["-> a", "-> n", "a ->"], capacity=62, reservations=[("weight staging", 12)])
    [packing] = best_packings(p, BlockBuilder(p, DEFAULTS), {})
    assert sorted(address for found in packing.addresses.values() for address in found) in ([12, 32], [12, 42])


def test_what_is_streamed_next_leaves_at_once() -> None:
    """s is read from DRAM in step 4, so its one write (40) is due in any case; then k (40) can stay beside n (40)."""
    steps = ["-> s", "-> k", "-> n", "n -> r", step("s, r -> t", streamed_reads="s", stream_staging_bytes=4)]
    p = program({"s": 40, "k": 40, "n": 40, "r": 10, "t": 10}, [*steps, "t ->", "k ->"], capacity=100)
    assert forced_gaps(p) == {(0, 0): 4, (0, 4): 4}
    plan = plan_offline(p, target(), [], "interval", DEFAULTS)
    assert verify(p, plan) == ()
    assert [(s.buffer, s.evict_step, s.written, s.reloaded) for s in plan.spills] == [(0, 1, True, False)]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_blocks_that_share_a_tick_share_no_byte_and_no_order_alone_is_better(seed: int) -> None:
    p = random_program(seed, max_steps=20)
    builder = BlockBuilder(p, DEFAULTS)
    off = {(g.buffer, g.last_use): i for g, i in choose_gaps(p, target(), DEFAULTS)}
    found = best_packings(p, builder, off)
    for packing in found:
        given = {owner: list(addresses) for owner, addresses in packing.addresses.items()}
        placed: list[tuple[ResidencyBlock, int]] = []
        for block in builder.all_blocks(set(packing.off)):
            addresses = {given[owner].pop(0) for owner in block.owners if given.get(owner)}
            assert len(addresses) == 1 or not packing.complete
            placed += [(block, address) for address in addresses]
        assert p.capacity_bytes is not None
        for k, (a, at) in enumerate(placed):
            assert p.reserved_bytes <= at <= p.capacity_bytes - a.size_bytes
            for b, bt in placed[:k]:
                if any(s < f and t < e for s, e in a.ticks for t, f in b.ticks):
                    assert at + a.size_bytes <= bt or bt + b.size_bytes <= at
    alone = pack(p, builder, off, "size", Fit.FIRST)
    assert min((not f.complete, f.extra_bytes) for f in found) <= (not alone.complete, alone.extra_bytes)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_where_all_fits_the_plan_spills_the_chosen_gaps_and_no_more(seed: int) -> None:
    p = random_program(seed, max_steps=20)
    chosen = choose_gaps(p, target(), DEFAULTS)
    off = {(g.buffer, g.last_use): i for g, i in chosen}
    plan = plan_offline(p, target(), chosen, "interval", DEFAULTS)
    assert verify(p, plan) == ()
    best = best_packings(p, BlockBuilder(p, DEFAULTS), off)[-1]
    if best.complete and not best.extra_bytes:
        assert {(spill.buffer, spill.last_use_step) for spill in plan.spills} <= set(off)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), release=st.sampled_from(Release))
def test_the_cut_beside_another_block_is_the_one_that_leaves_it_alone(seed: int, release: Release) -> None:
    builder = BlockBuilder(random_program(seed, max_steps=20), PlanningOptions(release=release))
    blocks = builder.all_blocks(set())
    for block in blocks:
        for other in blocks:
            busy = tuple(
                (max(s, t), min(e, f)) for s, e in block.ticks for t, f in other.ticks if max(s, t) < min(e, f)
            )
            if other is block or not busy or block.chain is None:
                continue
            leaves = [gap for gap in builder.cuts(block, set()) if not _meets(builder, block, gap, busy)]
            found = builder.cut_over(block, busy, set())
            assert [found] == leaves or (found is None and not leaves)
            if found is not None:
                assert builder.cut_over(block, busy, {(found.buffer, found.last_use)}) is None


def _meets(builder: BlockBuilder, block: ResidencyBlock, gap: GapOption, busy: Ticks) -> bool:
    """Whether the block still needs space in a tick of ``busy`` if it is off-chip in the gap."""
    assert block.chain is not None
    parts = builder.chain_blocks(block.chain, {(gap.buffer, gap.last_use)})
    inside = [part for part in parts if covers(block.ticks, part.ticks)]
    return any(s < f and t < e for part in inside for s, e in part.ticks for t, f in busy)
