"""How the simulator treats late release, pinned and resident buffers, updates, streaming, cached weights and holes.

Tiny programs worked out by hand; the machine moves a byte a second each way and has no set-up.
"""

from dataclasses import replace

import pytest
from plans import planned, traffic, transfers, victims, where
from programs import program, step, target

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic

# --- late release


def named(p: Program, *names: str) -> Program:
    return replace(p, steps=tuple(replace(s, name=n) for s, n in zip(p.steps, names, strict=True)))


DEAD_EARLY = named(program({"a": 10, "n": 10}, ["-> a", "a ->", "-> n"], capacity=10), "m/a", "m/b", "k/n")


def test_a_dead_buffer_is_written_back_by_a_runtime_that_frees_at_the_end() -> None:
    plan = planned(DEAD_EARLY, release=Release.END)
    assert [(s.needed_step, s.written, s.reloaded, s.forced_by_step) for s in plan.spills] == [(None, True, False, 2)]
    assert count_traffic(DEAD_EARLY, plan) == traffic(spill_write_bytes=10)
    assert where(DEAD_EARLY, plan, "a") == [(1, 6, 0)]


@pytest.mark.parametrize(
    ("release", "names", "spilled"),
    [
        (Release.LAST_USE, ("m/a", "m/b", "m/n"), 0),
        (Release.SCOPE, ("m/a", "m/b", "k/n"), 0),
        (Release.SCOPE, ("m/a", "m/b", "m/n"), 10),
        (Release.SCOPE, ("m/a", "k/b", "m/n"), 0),  # the scope is the run of steps, not all steps of that name
    ],
)
def test_a_scope_ends_where_the_module_path_changes(release: Release, names: tuple[str, ...], spilled: int) -> None:
    p = named(DEAD_EARLY, *names)
    assert count_traffic(p, planned(p, release=release)).spill_bytes == spilled


def test_a_dead_input_leaves_for_nothing() -> None:
    p = program({"x": ("input", 10), "n": 10}, ["x ->", "-> n"], capacity=10)
    plan = planned(p, release=Release.END)
    assert plan.spills == ()
    assert where(p, plan, "x") == [(0, 3, 0)]


# --- buffers that never leave


def test_resident_inputs_are_never_loaded_and_never_leave() -> None:
    p = program({"x": ("input", 10), "a": 10, "n": 10}, ["x ->", "-> a", "-> n", "x a ->"], capacity=20)
    plan = planned(p, inputs=Inputs.RESIDENT)
    assert where(p, plan, "x") == [(0, 12, 0)]
    assert victims(p, plan, at=2) == ["a"]
    assert count_traffic(p, plan) == traffic(spill_write_bytes=10, spill_read_bytes=10)
    assert victims(p, planned(p), at=2) == ["x"]  # on demand it is the oldest


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_resident_inputs_that_leave_too_little_are_an_error(strategy: str) -> None:
    p = program({"x": ("input", 10), "a": 10}, ["x ->", "-> a"], capacity=19)
    with pytest.raises(CapacityError, match="operator 'op1' cannot fit even after spilling: 20 B"):
        make_plan(p, target(), strategy, PlanningOptions(inputs=Inputs.RESIDENT))
    with pytest.raises(CapacityError, match="graph input 'x' cannot fit"):
        make_plan(replace(p, capacity_bytes=9), target(), strategy, PlanningOptions(inputs=Inputs.RESIDENT))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_pinned_buffer_lies_in_its_slot_and_never_leaves(strategy: str) -> None:
    # a is the oldest, the largest and the one with the furthest next use.
    p = program(
        {"a": 20, "b": 10, "n": 10},
        ["-> a", "-> b", "-> n", "b ->", "a ->"],
        dedicated="a",
        reservations=[("weight staging", 6), ("dedicated slot", 20, "a")],
        capacity=36,
    )
    plan = planned(p, strategy)
    assert where(p, plan, "a") == [(1, 14, 6)]
    assert {p.buffers[s.buffer].name for s in plan.spills} == {"b"}


# --- in place


def test_an_update_takes_over_the_address() -> None:
    p = program({"a": 10, "b": 10, "c": 5}, ["-> c a", step("a -> b", updates={"a": "b"}), "b c ->"], capacity=15)
    plan = planned(p)
    assert where(p, plan, "a") == [(1, 4, 5)]
    assert where(p, plan, "b") == [(4, 8, 5)]
    assert plan.spills == ()


def test_a_copy_of_the_old_contents_is_no_copy_of_the_new() -> None:
    # a leaves for n (written), comes back, is updated to b; b leaves for m and must be written itself.
    p = program(
        {"a": 10, "n": 10, "b": 10, "m": 10},
        ["-> a", "-> n", step("a -> b", updates={"a": "b"}), "-> m", "b ->"],
        capacity=10,
    )
    plan = planned(p)
    assert transfers(p, plan) == [
        ("write-back", "a", 1),
        ("reload", "a", 2),
        ("write-back", "b", 3),
        ("reload", "b", 4),
    ]
    assert count_traffic(p, plan) == traffic(spill_write_bytes=20, spill_read_bytes=20)


def test_an_updated_input_is_dirty() -> None:
    p = program(
        {"x": ("input", 10), "b": 10, "m": 10}, [step("x -> b", updates={"x": "b"}), "-> m", "b ->"], capacity=10
    )
    assert count_traffic(p, planned(p)).spill_write_bytes == 10


# --- streamed operands


def fitted(p: Program, sram: int) -> Program:
    return fit(p, target(sram_bytes=sram, stream_staging_bytes=10), LoweringOptions())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_streamed_out_is_reloaded_whole_where_it_fits(strategy: str) -> None:
    # Step 0 needs 80 + 40 of 100: the smallest operand that makes the rest fit beside the staging is a.
    p = fitted(program({"x": ("input", 80), "a": 40, "y": ("output", 20)}, ["x -> a", "a -> y"]), 100)
    plan = planned(p, strategy)
    assert transfers(p, plan) == [("fetch", "x", 0), ("reload", "a", 1), ("drain", "y", 2)]
    assert [(s.last_use_step, s.evict_step, s.needed_step, s.written, s.reloaded) for s in plan.spills] == [
        (0, 1, 1, False, True)
    ]
    assert count_traffic(p, plan) == traffic(
        compulsory_read_bytes=80, compulsory_write_bytes=20, spill_read_bytes=40, streamed_write_bytes=40
    )


def test_an_input_that_only_passes_by_is_compulsory() -> None:
    p = fitted(program({"x": ("input", 80), "y": ("output", 80)}, ["x -> y"]), 100)
    plan = planned(p)
    assert [(s.buffer, s.write) for s in plan.streamed] == [(0, False)]
    assert where(p, plan, "x") == []
    assert count_traffic(p, plan) == traffic(compulsory_read_bytes=80, compulsory_write_bytes=80)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_streamed_in_is_off_chip_before(strategy: str) -> None:
    # Step 1 needs 60 + 60 of 100; of equal operands the earlier is streamed: x, which step 0 had loaded.
    p = fitted(program({"x": ("input", 60), "b": 25, "c": 60}, ["x -> b", "x -> c", "b c ->"]), 100)
    plan = planned(p, strategy)
    assert [(p.buffers[s.buffer].name, s.evict_step, s.needed_step, s.reloaded) for s in plan.spills] == [
        ("x", 1, 1, False)
    ]
    assert where(p, plan, "x") == [(0, 3, 0)]
    assert count_traffic(p, plan) == traffic(compulsory_read_bytes=60, streamed_read_bytes=60)


def test_a_spill_beside_a_streamed_operand() -> None:
    # As above, but x was computed (so it is written before it is streamed), and 35 bytes of b must leave too:
    # c, the staging and b would need 105.
    p = fitted(program({"x": 60, "b": 35, "c": 60}, ["-> x", "x -> b", "x -> c", "b ->"]), 100)
    plan = planned(p, "lru")
    assert victims(p, plan, at=2) == ["x", "b"]
    assert count_traffic(p, plan) == traffic(spill_write_bytes=95, spill_read_bytes=35, streamed_read_bytes=60)
    assert [(s.purpose, s.size_bytes, s.start, s.end) for s in plan.scratch] == [("stream staging", 10, 6, 9)]


def test_an_output_that_is_streamed_out_and_written_again_is_compulsory_once() -> None:
    # y is streamed out by step 0, comes back whole at step 1, leaves for n with another write, and comes back.
    p = fitted(program({"x": ("input", 80), "y": ("output", 40), "n": 70}, ["x -> y", "y ->", "-> n", "y ->"]), 100)
    plan = planned(p, writeback=WriteBack.ALWAYS)
    assert count_traffic(p, plan) == traffic(
        compulsory_read_bytes=80, compulsory_write_bytes=40, spill_write_bytes=40, spill_read_bytes=80
    )


# --- cached weights


def weights(n: int, *, size: int, capacity: int) -> Program:
    """Every step reads a weight of its own."""
    names = [f"w{k}" for k in range(n)]
    return program(
        dict.fromkeys(names, ("weight", size)), [f"{w} ->" for w in names], weights_persist=True, capacity=capacity
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_weights_that_fit_are_loaded_once_in_a_life(strategy: str) -> None:
    p = weights(3, size=40, capacity=120)
    steady = planned(p, strategy)
    assert count_traffic(p, steady) == traffic()
    assert [(s.start, s.end) for s in steady.segments] == [(0, 9)] * 3
    cold = planned(p, strategy, start=Start.COLD)
    assert count_traffic(p, cold) == traffic(compulsory_read_bytes=120)


def test_lru_loses_every_weight_just_before_it_is_wanted() -> None:
    # Two of three fit: the one that is wanted next is always the oldest.
    p = weights(3, size=40, capacity=80)
    plan = planned(p, "lru")
    assert count_traffic(p, plan) == traffic(spill_read_bytes=120)


def test_belady_keeps_the_weight_that_both_ends_of_the_inference_share() -> None:
    # Left alone it alternates: {w0, w2} stay after one inference, {w1, w2} after the next. w2 is at both ends of that.
    # With w2 resident, w0 and w1 are loaded: w0 leaves for w1, being wanted later than w2.
    p = weights(3, size=40, capacity=80)
    plan = planned(p, "belady")
    assert count_traffic(p, plan) == traffic(spill_read_bytes=80)
    assert where(p, plan, "w2") == [(0, 9, where(p, plan, "w2")[0][2])]


def test_interval_spends_the_longest_gap_of_cached_weights_off_chip() -> None:
    # Each weight's only gap goes around the end of the run: two of them must go, and the third stays.
    p = weights(3, size=40, capacity=80)
    assert count_traffic(p, planned(p, "interval")) == traffic(spill_read_bytes=80)


def test_the_first_inference_evicts_weights_for_nothing() -> None:
    p = weights(3, size=40, capacity=80)
    plan = planned(p, "lru", start=Start.COLD)
    assert plan.spills == ()
    assert count_traffic(p, plan) == traffic(compulsory_read_bytes=120)


# --- fragmentation and compaction


def test_an_eviction_although_the_free_bytes_suffice_is_fragmentation() -> None:
    # a, b, c lie side by side; a and c die: 40 bytes are free, but on both sides of b.
    p = program({"a": 20, "b": 20, "c": 20, "n": 40}, ["-> a b c", "a c ->", "-> n", "b ->"], capacity=60)
    plan = planned(p)
    assert [(p.buffers[s.buffer].name, s.evict_step, s.fragmentation) for s in plan.spills] == [("b", 2, True)]
    assert plan.moves == ()


def test_an_eviction_for_want_of_bytes_is_not() -> None:
    p = program({"a": 20, "b": 20, "n": 41}, ["-> a b", "a ->", "-> n", "b ->"], capacity=60)
    assert [s.fragmentation for s in planned(p).spills] == [False]


def test_an_operand_in_the_way_is_moved() -> None:
    # As above, but the running step reads b: it cannot leave. n takes the pool's start, b goes to its end.
    p = program({"a": 20, "b": 20, "c": 20, "n": 40}, ["-> a b c", "a c ->", "b -> n", "n ->"], capacity=60)
    plan = planned(p)
    assert plan.spills == ()
    assert [(m.buffer, m.step, m.size_bytes, m.from_address, m.to_address) for m in plan.moves] == [(1, 2, 20, 20, 40)]
    assert where(p, plan, "b") == [(1, 6, 20), (6, 8, 40)]
    assert where(p, plan, "n") == [(7, 11, 0)]
    assert count_traffic(p, plan) == traffic(moved_bytes=20)


def test_interval_lays_out_offline_what_fragments_online() -> None:
    p = program({"a": 20, "b": 20, "c": 20, "n": 40}, ["-> a b c", "a c ->", "b -> n", "n ->"], capacity=60)
    plan = planned(p, "interval")
    assert (plan.spills, plan.moves) == ((), ())
