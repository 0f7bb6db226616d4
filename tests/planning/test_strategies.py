"""Which victims the online strategies choose, and what evictions move, on tiny programs worked out by hand.

The machine moves a byte a second each way and has no set-up, so transfer costs are sizes.
"""

from dataclasses import replace

import pytest
from plans import planned, traffic, transfers, victims, where
from programs import program, target

from spillprof.ir.errors import CapacityError, UsageError
from spillprof.planning.options import PlanningOptions, WriteBack
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import ONLINE_RULES, STRATEGIES
from spillprof.planning.traffic import count_traffic

ONLINE = tuple(ONLINE_RULES)


# --- victims

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
        {"o": ("output", 40), "n": 60, "m": 60}, ["-> o", "-> n", "n ->", "o ->", "-> m", "m ->", "o ->"], capacity=90
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
