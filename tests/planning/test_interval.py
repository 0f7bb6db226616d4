"""Strategy interval, worked out by hand: which gaps it spends off-chip, and the plan."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import IN_THE_MIDDLE, program, target
from random_programs import random_program

from spillprof.ir.program import Program
from spillprof.planning.gaps import GapOption, gap_options, unspilled_bytes
from spillprof.planning.interval import choose_gaps, points_lost
from spillprof.planning.liveness import lifetimes
from spillprof.planning.options import PlanningOptions, Release, Start
from spillprof.planning.planner import make_plan
from spillprof.planning.traffic import count_traffic

DEFAULTS = PlanningOptions()


def chosen(p: Program, **machine: Any) -> list[tuple[str, int, int]]:
    """(buffer, step of the use before the gap, step that forces it)."""
    return [(p.buffers[g.buffer].name, g.last_use, i) for g, i in choose_gaps(p, target(**machine), DEFAULTS)]


# --- choosing


def hill(capacity: int) -> Program:
    """a (10), b (20) and c (13) are idle over steps 1..3, c over 4 and 5 too; step 2 is the worst.

    | step                | 0  | 1  | 2  | 3  | 4  | 5  | 6  |
    | in use if all stay  | 43 | 53 | 63 | 53 | 43 | 18 | 13 |

    Length x size: a 3 x 10 = 30, b 3 x 20 = 60, c 5 x 13 = 65.
    """
    return program(
        {"a": 10, "b": 20, "c": 13, "n1": 10, "n2": 20, "n3": 10, "n5": 5},
        ["-> a b c", "-> n1", "-> n2", "-> n3", "a b ->", "-> n5", "c ->"],
        capacity=capacity,
    )


def test_bytes_in_use_if_all_stay() -> None:
    p = hill(100)
    gaps = gap_options(p, DEFAULTS)
    assert [(p.buffers[g.buffer].name, g.last_use, g.next_use, g.length) for g in gaps] == [
        ("a", 0, 4, 3),
        ("b", 0, 4, 3),
        ("c", 0, 6, 5),
    ]
    assert unspilled_bytes(p, DEFAULTS, gaps) == [43, 53, 63, 53, 43, 18, 13]


def test_what_fits_stays() -> None:
    assert chosen(hill(63)) == []


def test_the_longest_and_largest_gap_at_the_worst_step_goes_first() -> None:
    assert chosen(hill(50)) == [("c", 0, 2)]  # 63 - 13 fits


def test_what_fits_again_is_taken_back() -> None:
    # 45: c is not enough (50), so b goes too (30). Dearest first: b (20 there, 20 back) would make 50; c makes 43.
    assert chosen(hill(45)) == [("b", 0, 2)]


def test_an_output_is_taken_back_after_what_has_to_be_written() -> None:
    # Step 11 has 80 too much, step 16 has 15: o, s and d leave for the first, e for the second. Then 45 of them can
    # come back in step 11: of o and s (30 each), s saves a write and a reload, o a reload alone.
    sizes = {"x": ("input", 5), "o": ("output", 30), "s": 30, "d": 25, "e": 40, "big": 100, "huge": 120}
    small = dict.fromkeys(("f0", "f1", "f2", "f3", "f4", "f5", "f6", "t", "t1", "t2", "t3", "t4"), 1)
    p = program(
        {**sizes, **small, "y": ("output", 1)},
        ["x -> o", "x -> s", "x -> d", "x -> f0", "f0 -> f1", "f1 -> f2", "f2 -> f3", "f3 -> f4", "f4 -> f5",
         "f5 -> f6", "f6 -> e", "f6 -> big", "big -> t", "t, o -> t1", "t1, s -> t2", "t2, d -> t3", "t3 -> huge",
         "huge -> t4", "t4, e -> y"],
        capacity=146,
    )  # fmt: skip
    assert [p.buffers[gap.buffer].name for gap, _ in choose_gaps(p, target(), DEFAULTS)] == ["o", "d", "e"]
    # The reload of o; writes and reloads of d and e.
    assert count_traffic(p, make_plan(p, target(), "interval", DEFAULTS)).spill_bytes == 30 + 50 + 80


def test_a_gap_that_crosses_no_full_step_stays() -> None:
    # 43: c, then b (63 - 33 = 30). Taking b back makes 50; taking c back makes 43 at steps 0 and 2: it stays.
    assert chosen(hill(43)) == [("b", 0, 2)]
    # 42: nothing helps step 0, which needs 43 for its results alone. c is of no use at step 4 (30 + 13 = 43).
    assert chosen(hill(42)) == [("b", 0, 2), ("c", 0, 2)]


def test_candidates_that_fail_the_screening_go_last() -> None:
    # A set-up of 15 s is more than the transfer of c's 13 bytes, and less than that of b's 20.
    assert chosen(hill(50), dram_read_setup_s=15.0) == [("b", 0, 2)]


def test_infinite_memory_chooses_nothing() -> None:
    p = program({"a": 10, "n": 10}, ["-> a", "-> n", "a ->"])
    assert chosen(p) == []


def gap(start: int, next_use: int | None, size: int = 10) -> GapOption:
    end = 9 if next_use is None else next_use
    return GapOption(0, start, next_use, ((start + 1, end),), size, size)


@pytest.mark.parametrize(
    ("option", "reads", "setup_s", "lost"),
    [
        (gap(0, 3), (3,), 0.0, 0),
        (gap(0, 2), (2,), 0.0, 1),  # a span of one step
        (gap(0, 3), (3,), 10.0, 0),  # set-up as long as the transfer: half of the whole
        (gap(0, 3), (3,), 10.5, 1),
        (gap(0, 6), (6, 7, 8, 9, 10), 0.0, 0),  # four more uses within five steps
        (gap(0, 6), (6, 7, 8, 9, 10, 11), 0.0, 1),  # five
        (gap(0, 6), (6, 7, 8, 9, 10, 12), 0.0, 0),  # the fifth comes later
        (gap(0, None), (), 0.0, 0),
        (gap(0, 2), (2,), 11.0, 2),
    ],
)
def test_screening_points(option: GapOption, reads: tuple[int, ...], setup_s: float, lost: int) -> None:
    assert points_lost(option, reads, target(dram_read_setup_s=setup_s)) == lost


def test_gaps_of_late_and_cached_buffers() -> None:
    p = program(
        {"a": 10, "w": ("weight", 8), "y": ("output", 4)}, ["-> a", "w a ->", "->", "-> y", "->"], weights_persist=True
    )

    def found(**options: Any) -> list[tuple[str, int, int | None, tuple[tuple[int, int], ...]]]:
        gaps = gap_options(p, PlanningOptions(**options))
        return [(p.buffers[g.buffer].name, g.last_use, g.next_use, g.ranges) for g in gaps]

    assert found() == [("w", 1, 6, ((2, 5), (0, 1)))]
    assert found(start=Start.COLD) == []
    assert found(start=Start.COLD, release=Release.END) == [("a", 1, None, ((2, 5),)), ("y", 3, None, ((4, 5),))]


def fits(p: Program, off: Sequence[GapOption]) -> bool:
    """Whether what is not off-chip fits at every step (idle buffers and operands; no workspaces, no updates)."""
    gone = {(g.buffer, g.last_use) for g in off}
    use = [sum(p.buffers[b].size_bytes for b in {*s.reads, *s.writes}) for s in p.steps]
    for b, life in enumerate(lifetimes(p)):
        points = sorted({*life.read_steps, *([] if life.write_step is None else [life.write_step])})
        for last, following in pairwise(points):
            if (b, last) not in gone:
                for i in range(last + 1, following):
                    use[i] += p.buffers[b].size_bytes
    assert p.capacity_bytes is not None
    return max(use) <= p.capacity_bytes - p.reserved_bytes


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_the_chosen_gaps_fit_and_none_of_them_could_stay(seed: int) -> None:
    p = random_program(seed, features=False, max_steps=25)
    off = [g for g, _ in choose_gaps(p, target(), DEFAULTS)]
    assert fits(p, off)
    for k in range(len(off)):
        assert not fits(p, off[:k] + off[k + 1 :])


# --- the plan


def test_the_plan_spills_the_chosen_gap_right_after_its_use() -> None:
    p = hill(50)
    plan = make_plan(p, target(), "interval", DEFAULTS)
    assert [
        (s.buffer, s.last_use_step, s.evict_step, s.needed_step, s.forced_by_step, s.fragmentation) for s in plan.spills
    ] == [(2, 0, 1, 6, 2, False)]
    assert count_traffic(p, plan).spill_bytes == 26


def test_the_plan_is_the_one_that_packs_without_repair() -> None:
    assert make_plan(IN_THE_MIDDLE, target(), "interval", DEFAULTS).spills == ()
