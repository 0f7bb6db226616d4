"""Placement policies, worked out by hand."""

import pytest
from programs import program, target

from spillprof.ir.errors import UsageError
from spillprof.ir.program import Program
from spillprof.planning.free_list import FreeList
from spillprof.planning.options import PlanningOptions
from spillprof.planning.placements import PLACEMENTS, BumpAllocator, make_placement
from spillprof.planning.planner import make_plan

ANYONE = (0, 0)


def swiss_cheese() -> FreeList:
    """Holes [0, 30) [40, 50) [60, 75) [90, 100)."""
    free = FreeList(0, 100)
    for address, size in ((30, 10), (50, 10), (75, 15)):
        free.take(address, size)
    return free


def many(sizes: dict[str, int], *, capacity: int | None, reserved: int = 0) -> Program:
    reservations = [("weight staging", reserved)] if reserved else []
    return program(dict(sizes), [" -> " + " ".join(sizes)], capacity=capacity, reservations=reservations)


TWO_SIZES = many({"a": 10, "b": 10, "c": 10, "d": 10, "e": 7, "f": 7, "g": 7, "h": 25}, capacity=100, reserved=8)


def test_first_fit_takes_the_lowest_hole() -> None:
    first = make_placement("first-fit", TWO_SIZES)
    assert first.choose(swiss_cheese(), 8, ANYONE) == 0
    assert first.choose(swiss_cheese(), 30, ANYONE) == 0
    assert first.choose(swiss_cheese(), 31, ANYONE) is None


def test_best_fit_takes_the_tightest_hole() -> None:
    best = make_placement("best-fit", TWO_SIZES)
    assert best.choose(swiss_cheese(), 8, ANYONE) == 40
    assert best.choose(swiss_cheese(), 12, ANYONE) == 60
    assert best.choose(swiss_cheese(), 16, ANYONE) == 0
    assert best.choose(swiss_cheese(), 31, ANYONE) is None


def test_recent_same_size_takes_what_was_freed_last_although_a_tighter_hole_exists() -> None:
    recent, free = make_placement("recent-same-size", TWO_SIZES), swiss_cheese()
    recent.freed(90, 10)
    recent.freed(5, 10)
    recent.freed(60, 15)
    assert recent.choose(free, 10, ANYONE) == 5
    free.take(5, 10)
    assert recent.choose(free, 10, ANYONE) == 90
    free.take(90, 10)
    assert recent.choose(free, 10, ANYONE) == 40  # nothing of this size remembered any more: best fit


def test_recent_same_size_forgets_blocks_that_are_taken_again() -> None:
    recent, free = make_placement("recent-same-size", TWO_SIZES), swiss_cheese()
    recent.freed(40, 10)
    recent.freed(5, 10)
    free.take(10, 2)  # into the block at 5
    assert recent.choose(free, 10, ANYONE) == 40
    assert recent.choose(free, 10, ANYONE) == 0  # best fit: [0, 10) is the lowest of the holes of 10


def test_size_classes_lay_slots_from_the_start_of_the_pool() -> None:
    # Pool [8, 100): 92 bytes, half of them for slots: 23 for each of the two common sizes (10 four times, 7 thrice).
    # Slots: 10 at 8 and 18; 7 at 28, 35 and 42; the rest begins at 49. Size 25 occurs once and has none.
    classes, free = make_placement("size-classes", TWO_SIZES), FreeList(8, 100)
    taken = []
    for size in (10, 7, 10, 7, 7, 25):
        address = classes.choose(free, size, ANYONE)
        assert address is not None
        free.take(address, size)
        taken.append(address)
    assert taken == [8, 28, 18, 35, 42, 49]
    assert classes.choose(free, 10, ANYONE) == 74  # its slots are full: best fit in the rest


def test_size_classes_keep_other_sizes_out_of_the_slots_while_the_rest_has_room() -> None:
    classes, free = make_placement("size-classes", TWO_SIZES), FreeList(8, 100)
    assert classes.choose(free, 40, ANYONE) == 49
    free.take(49, 40)
    assert classes.choose(free, 11, ANYONE) == 89  # [89, 100) is left of the rest
    assert classes.choose(free, 12, ANYONE) == 8  # the rest has no room, so the slots are used
    assert classes.choose(free, 42, ANYONE) is None


def test_size_classes_without_a_common_size_are_best_fit() -> None:
    classes = make_placement("size-classes", many({"a": 10, "b": 10, "c": 7}, capacity=100))
    assert classes.choose(swiss_cheese(), 8, ANYONE) == 40


def test_size_classes_count_neither_weights_nor_pinned_nor_empty_buffers() -> None:
    p = program(
        {"w0": ("weight", 10), "w1": ("weight", 10), "w2": ("weight", 10), "p": 10, "e0": 0, "e1": 0, "e2": 0, "a": 10},
        ["w0 w1 w2 p -> a e0 e1 e2"],
        dedicated="p",
        capacity=100,
    )
    assert make_placement("size-classes", p).choose(swiss_cheese(), 8, ANYONE) == 40


@pytest.mark.parametrize("name", PLACEMENTS)
def test_infinite_memory_never_uses_an_address_twice(name: str) -> None:
    p = program(
        {"x": ("input", 10), "a": 10, "b": 10, "y": ("output", 10)},
        ["x -> a", "a -> b", "b -> y"],
        reservations=[("weight staging", 6)],
    )
    assert isinstance(make_placement(name, p), BumpAllocator)
    plan = make_plan(p, target(), "none", PlanningOptions(placement=name))
    assert sorted(s.address for s in plan.segments) == [6, 16, 26, 36]


def test_an_unknown_placement_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown placement 'bestfit'") as error:
        make_placement("bestfit", TWO_SIZES)
    assert error.value.hint is not None
    assert "best-fit" in error.value.hint
