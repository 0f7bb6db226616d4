"""What the online strategies evict, load, write and move, on tiny programs worked out by hand.

The machine moves a byte a second each way and has no set-up, so transfer costs are sizes.
"""

from dataclasses import replace

import pytest
from programs import program, step, target

from spillprof.engine.run import terms_of
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.ir.plan import Plan, Traffic
from spillprof.ir.program import Program
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import Inputs, PlanningOptions, Release, Start, WriteBack
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.verify import verify

ONLINE = ("lru", "size", "belady", "cost")


def planned(p: Program, strategy: str = "lru", **options: object) -> Plan:
    """The plan, which must be legal."""
    switches = PlanningOptions(**options)  # type: ignore[arg-type]
    plan = make_plan(p, target(), strategy, switches)
    assert verify(p, plan, terms_of(switches)) == ()
    return plan


def victims(p: Program, plan: Plan, at: int) -> list[str]:
    """Names of the buffers that leave when step ``at`` is about to start, in plan order."""
    return [p.buffers[s.buffer].name for s in plan.spills if s.evict_step == at]


def where(p: Program, plan: Plan, name: str) -> list[tuple[int, int, int]]:
    """(start, end, address) of the buffer's segments."""
    return [(s.start, s.end, s.address) for s in plan.segments if p.buffers[s.buffer].name == name]


def transfers(p: Program, plan: Plan) -> list[tuple[str, str, int]]:
    """(kind, buffer, issue step) in issue order."""
    return [(str(t.kind), p.buffers[t.buffer].name, t.issue_step) for t in plan.transfers]


def traffic(**fields: int) -> Traffic:
    zero = dict.fromkeys(
        ("compulsory_read_bytes", "compulsory_write_bytes", "spill_write_bytes", "spill_read_bytes",
         "streamed_read_bytes", "streamed_write_bytes", "moved_bytes"), 0,
    )  # fmt: skip
    return Traffic(**{**zero, **fields})


# --- whom to evict

FOUR_VICTIMS = program(
    {"a": 10, "b": 40, "c": 8, "d": ("input", 10), "n": 8},
    ["-> a", "-> b", "-> c", "d ->", "-> n", "a ->", "n ->", "b ->", "d ->", "c ->"],
    capacity=68,
)
"""At step 4 the memory is full with a, b, c, d, and 8 bytes for n are needed.

|   | size | last use | next use | distance | dirty | size x distance | min(size, 8) x distance / cost |
| a |   10 |        0 |        5 |        1 |   yes |              10 |                     8 / 20     |
| b |   40 |        1 |        7 |        3 |   yes |             120 |                    24 / 80     |
| c |    8 |        2 |        9 |        5 |   yes |              40 |                    40 / 16     |
| d |   10 |        3 |        8 |        4 |    no |              40 |                    32 / 10     |
"""


@pytest.mark.parametrize(("strategy", "victim"), [("lru", "a"), ("size", "b"), ("belady", "c"), ("cost", "d")])
def test_each_rule_has_its_own_victim(strategy: str, victim: str) -> None:
    assert victims(FOUR_VICTIMS, planned(FOUR_VICTIMS, strategy), at=4) == [victim]


def test_lru_counts_reads_and_writes_as_uses() -> None:
    # At step 2, a was written first but read last: b is the oldest.
    p = program({"a": 8, "b": 8, "n": 8}, ["-> a b", "a ->", "-> n", "a b ->"], capacity=16)
    assert victims(p, planned(p, "lru"), at=2) == ["b"]


def test_lru_ties_go_to_the_larger_and_then_to_program_order() -> None:
    p = program({"a": 4, "b": 8, "c": 8, "n": 4}, ["-> a b c", "-> n", "a b c ->"], capacity=20)
    assert victims(p, planned(p, "lru"), at=1) == ["b"]


def test_belady_ties_go_to_the_clean_then_to_the_larger_then_to_program_order() -> None:
    # All are used next at step 2. x is an input, so it leaves without a write although it is the smallest.
    p = program({"a": 8, "x": ("input", 4), "b": 8, "n": 4}, ["x -> a b", "-> n", "a x b ->"], capacity=20)
    assert victims(p, planned(p, "belady"), at=1) == ["x"]
    p = program({"a": 4, "b": 8, "c": 8, "n": 4}, ["-> a b c", "-> n", "a b c ->"], capacity=20)
    assert victims(p, planned(p, "belady"), at=1) == ["b"]


WAITING_OUTPUT = program(
    {"x": ("input", 20), "o": ("output", 40), "s": 40, "a": 60, "b": 60, "c": 10, "d": 10, "y": ("output", 10)},
    ["x -> o", "x -> s", "x -> a", "a -> b", "b -> c", "c, o -> d", "d, s -> y"],
    capacity=165,
)
"""When b comes, a and b (120) leave room for one of o and s (40 each); o is read 2 steps on, s 3 steps on."""


def test_cost_takes_an_output_for_what_it_is_written_anyway() -> None:
    # o: 40 x 2 / a reload of 40 s = 2. s: 40 x 3 / a write and a reload = 1.5. With o counted as dirty, s would go.
    plan = planned(WAITING_OUTPUT, "cost")
    assert victims(WAITING_OUTPUT, plan, 3) == ["o"]
    assert count_traffic(WAITING_OUTPUT, plan) == traffic(
        compulsory_read_bytes=20, compulsory_write_bytes=50, spill_read_bytes=40
    )


def test_belady_takes_an_output_for_clean() -> None:
    # Both are read last in step 5: the clean one goes, although s is larger.
    p = program(
        {"x": ("input", 20), "o": ("output", 40), "s": 48, "a": 60, "b": 60, "c": 10, "y": ("output", 10)},
        ["x -> o", "x -> s", "x -> a", "a -> b", "b -> c", "c, o, s -> y"],
        capacity=170,
    )
    plan = planned(p, "belady")
    assert victims(p, plan, 3) == ["o"]
    assert count_traffic(p, plan).spill_bytes == 40


def test_a_second_write_of_an_output_costs_where_copies_are_not_tracked() -> None:
    # o leaves in step 1 and in step 4. The first write is its compulsory one, the second is a spill, as is each reload.
    p = program(
        {"o": ("output", 40), "n": 60, "m": 60},
        ["-> o", "-> n", "n ->", "o ->", "-> m", "m ->", "o ->"],
        capacity=90,
    )
    plan = planned(p, "cost", writeback=WriteBack.ALWAYS)
    assert count_traffic(p, plan) == traffic(compulsory_write_bytes=40, spill_write_bytes=40, spill_read_bytes=80)
    assert count_traffic(p, planned(p, "cost")) == traffic(compulsory_write_bytes=40, spill_read_bytes=80)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_the_alignment_adds_is_held_but_never_moved(strategy: str) -> None:
    # s takes 64 B and moves 50; a and b take 64 each, as does s, of 160: s is written and read back.
    p = program(
        {"x": ("input", 16, 10), "s": ("activation", 64, 50), "a": 64, "b": 64, "y": ("output", 16, 3)},
        ["x -> s", "x -> a", "a -> b", "b, s -> y"],
        capacity=160, alignment=16,
    )  # fmt: skip
    assert count_traffic(p, planned(p, strategy)) == traffic(
        compulsory_read_bytes=10, compulsory_write_bytes=3, spill_write_bytes=50, spill_read_bytes=50
    )


def test_size_and_cost_ties_go_to_program_order() -> None:
    # size: a 12 x 2 = b 8 x 3. cost, with 4 bytes needed: a 4 x 2 / 24, b 4 x 3 / 16, c 4 x 3 / 8.
    p = program({"a": 12, "b": 8, "c": 4, "n": 4}, ["-> a b c", "-> n", "->", "a ->", "b c ->"], capacity=24)
    assert victims(p, planned(p, "size"), at=1) == ["a"]
    assert victims(p, planned(p, "cost"), at=1) == ["c"]
    # Same size, same next use.
    p = program({"a": 8, "b": 8, "n": 4}, ["-> a b", "-> n", "b a ->"], capacity=16)
    assert victims(p, planned(p, "cost"), at=1) == ["a"]


@pytest.mark.parametrize(
    ("strategy", "leaving"), [("lru", ["a", "b"]), ("size", ["b", "c"]), ("belady", ["b", "c"]), ("cost", ["b", "c"])]
)
def test_several_leave_until_the_hole_is_large_enough(strategy: str, leaving: list[str]) -> None:
    p = program({"a": 8, "b": 8, "c": 8, "n": 16}, ["-> a b c", "-> n", "a ->", "b ->", "c ->"], capacity=24)
    plan = planned(p, strategy)
    assert victims(p, plan, at=1) == leaving
    assert not any(s.fragmentation for s in plan.spills)


def test_the_last_of_several_leaves_for_fragmentation_where_the_others_left_two_holes() -> None:
    # Furthest first: a at 0, then c at 16. 16 bytes are free then, but b lies between.
    p = program({"a": 8, "b": 8, "c": 8, "n": 16}, ["-> a b c", "-> n", "b ->", "c ->", "a ->"], capacity=24)
    spills = {p.buffers[s.buffer].name: s.fragmentation for s in planned(p, "belady").spills}
    assert spills == {"a": False, "c": False, "b": True}


@pytest.mark.parametrize("strategy", ONLINE)
def test_operands_of_the_running_step_never_leave(strategy: str) -> None:
    p = program({"a": 8, "b": 8, "n": 8}, ["-> a", "-> b", "a -> n", "a b n ->"], capacity=24)
    assert planned(p, strategy).spills == ()
    tight = replace(p, capacity_bytes=23)
    with pytest.raises(CapacityError):
        make_plan(tight, target(), strategy, PlanningOptions())


# --- what an eviction moves

THERE_AND_BACK = program({"a": 10, "n": 10, "m": 10}, ["-> a", "-> n", "a ->", "-> m", "a ->"], capacity=10)
"""n and m take all the memory while a still has a use."""


def test_a_second_eviction_writes_nothing_while_the_copy_is_valid() -> None:
    plan = planned(THERE_AND_BACK)
    assert where(THERE_AND_BACK, plan, "a") == [(1, 3, 0), (6, 9, 0), (12, 14, 0)]
    assert where(THERE_AND_BACK, plan, "n") == [(4, 6, 0)]
    assert transfers(THERE_AND_BACK, plan) == [("write-back", "a", 1), ("reload", "a", 2), ("reload", "a", 4)]
    assert [(s.last_use_step, s.evict_step, s.needed_step, s.written) for s in plan.spills] == [
        (0, 1, 2, True),
        (2, 3, 4, False),
    ]
    assert count_traffic(THERE_AND_BACK, plan) == traffic(spill_write_bytes=10, spill_read_bytes=20)


def test_a_runtime_that_does_not_track_copies_writes_again() -> None:
    plan = planned(THERE_AND_BACK, writeback=WriteBack.ALWAYS)
    assert [s.written for s in plan.spills] == [True, True]
    assert count_traffic(THERE_AND_BACK, plan) == traffic(spill_write_bytes=20, spill_read_bytes=20)


@pytest.mark.parametrize("writeback", WriteBack)
def test_an_input_is_evicted_without_a_write(writeback: WriteBack) -> None:
    p = program({"x": ("input", 10), "n": 10}, ["x ->", "-> n", "x ->"], capacity=10)
    plan = planned(p, writeback=writeback)
    assert transfers(p, plan) == [("fetch", "x", 0), ("reload", "x", 2)]
    assert count_traffic(p, plan) == traffic(compulsory_read_bytes=10, spill_read_bytes=10)


def test_an_output_that_leaves_early_is_drained_by_that_write_and_only_its_reload_is_a_spill() -> None:
    p = program({"y": ("output", 10), "n": 10}, ["-> y", "-> n", "y ->"], capacity=10)
    plan = planned(p)
    assert transfers(p, plan) == [("write-back", "y", 1), ("reload", "y", 2)]
    assert count_traffic(p, plan) == traffic(compulsory_write_bytes=10, spill_read_bytes=10)


def test_an_output_is_drained_after_its_last_use_whoever_reads_it() -> None:
    p = program({"y": ("output", 10), "n": 10}, ["-> y", "y ->", "-> n"], capacity=10)
    plan = planned(p)
    assert transfers(p, plan) == [("drain", "y", 2)]
    assert where(p, plan, "y") == [(1, 6, 0)]  # a step longer in WRITE than other operands: the drain reads it


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


# --- what stays


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


# --- operands that are tiled through DRAM


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


# --- space in pieces


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


# --- edges


@pytest.mark.parametrize("strategy", ["none", *STRATEGIES])
def test_a_program_without_steps_has_an_empty_plan(strategy: str) -> None:
    p = program({}, [], capacity=100)
    plan = planned(p, strategy)
    assert (plan.segments, plan.transfers, plan.spills) == ((), (), ())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_empty_buffers_need_no_space(strategy: str) -> None:
    p = program({"x": ("input", 0), "a": 10, "y": ("output", 0)}, ["x -> a", "a -> y"], capacity=10)
    assert planned(p, strategy).spills == ()


def test_an_unknown_strategy_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown strategy 'beladi'") as error:
        make_plan(THERE_AND_BACK, target(), "beladi", PlanningOptions())
    assert error.value.hint is not None
    assert "'belady'" in error.value.hint
