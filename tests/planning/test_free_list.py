"""Holes of a contiguous memory against a memory of single bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.planning.free_list import FreeList

SIZE = 24


def runs(free_bytes: set[int]) -> list[tuple[int, int]]:
    """Maximal runs of free byte addresses, half-open."""
    found: list[tuple[int, int]] = []
    for address in sorted(free_bytes):
        if found and found[-1][1] == address:
            found[-1] = (found[-1][0], address + 1)
        else:
            found.append((address, address + 1))
    return found


def test_neighbours_on_both_sides_merge() -> None:
    free = FreeList(100, 160)
    free.take(100, 60)
    free.give(100, 20)
    free.give(140, 20)
    assert free.holes() == [(100, 120), (140, 160)]
    free.give(120, 20)
    assert free.holes() == [(100, 160)]
    assert free.free_bytes == 60


def test_take_from_the_middle_splits_a_hole() -> None:
    free = FreeList(0, 30)
    free.take(10, 5)
    assert free.holes() == [(0, 10), (15, 30)]
    assert free.free_bytes == 25
    assert free.tail() == 15


def test_best_fit_takes_the_smallest_hole_and_then_the_lowest() -> None:
    free = FreeList(0, 100)
    for address, size in ((20, 10), (40, 10), (60, 10)):
        free.take(address, size)
    # Holes: [0, 20) [30, 40) [50, 60) [70, 100).
    assert free.best_fit(10) == 30
    assert free.best_fit(11) == 0
    assert free.best_fit(21) == 70
    assert free.best_fit(31) is None
    assert free.first_fit(10) == 0


def test_nothing_is_taken_from_no_space() -> None:
    empty = FreeList(5, 5)
    assert empty.holes() == []
    assert empty.best_fit(1) is None
    assert empty.first_fit(1) is None
    assert not empty.is_free(5, 1)


@pytest.mark.parametrize(("address", "size"), [(0, 5), (9, 2), (12, 4), (28, 5)])
def test_space_that_is_not_free_cannot_be_taken(address: int, size: int) -> None:
    free = FreeList(8, 30)
    free.take(10, 4)
    with pytest.raises(ValueError, match="not free"):
        free.take(address, size)


def test_a_copy_is_independent() -> None:
    free = FreeList(0, 10)
    other = free.copy()
    other.take(0, 4)
    assert (free.holes(), free.free_bytes) == ([(0, 10)], 10)
    assert (other.holes(), other.free_bytes) == ([(4, 10)], 6)
    assert free.best_fit(10) == 0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, 8)), max_size=40))
def test_any_sequence_of_takes_and_gives_equals_single_bytes(moves: list[tuple[int, int]]) -> None:
    free, naive = FreeList(0, SIZE), set(range(SIZE))
    for address, size in moves:
        block = set(range(address, min(address + size, SIZE)))
        if block and block <= naive:
            assert free.is_free(address, len(block))
            free.take(address, len(block))
            naive -= block
        elif not block & naive:
            free.give(address, len(block))
            naive |= block
        else:
            assert not free.is_free(address, len(block))
        holes = runs(naive)
        assert free.holes() == holes
        assert free.free_bytes == len(naive)
        for wanted in range(1, 9):
            fitting = [(end - start, start) for start, end in holes if end - start >= wanted]
            assert free.best_fit(wanted) == (min(fitting)[1] if fitting else None)
            assert free.first_fit(wanted) == min((start for _, start in fitting), default=None)
