"""Range additions and maxima, and ranked intervals, against plain lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.planning.range_max import RangeMax, StabbingIndex

VALUES = st.lists(st.integers(-50, 50), min_size=1, max_size=21)
CHANGES = st.lists(st.tuples(st.integers(0, 21), st.integers(0, 21), st.integers(-90, 60)), max_size=25)


def test_the_first_of_equal_maxima_is_named() -> None:
    values = RangeMax([3, 7, 1, 7, 5])
    assert values.overall() == (7, 1)
    values.add(0, 2, -5)  # -2, 2, 1, 7, 5
    assert values.overall() == (7, 3)
    values.add(2, 3, 6)  # -2, 2, 7, 7, 5
    assert values.overall() == (7, 2)
    assert values.max(0, 2) == 2
    assert values.max(4, 5) == 5


def test_values_that_sank_below_where_they_began_have_a_maximum_among_them() -> None:
    values = RangeMax([-9, -4, -6])  # three of four leaves: the fourth must never win
    values.add(0, 3, -100)
    assert values.overall() == (-104, 1)


def test_one_value() -> None:
    values = RangeMax([5])
    values.add(0, 1, -7)
    assert values.overall() == (-2, 0)
    assert values.max(0, 1) == -2


@settings(max_examples=200, deadline=None)
@given(VALUES, CHANGES)
def test_additions_and_maxima_equal_those_of_a_list(values: list[int], changes: list[tuple[int, int, int]]) -> None:
    tree, naive = RangeMax(values), list(values)
    for a, b, value in changes:
        start, end = min(a, b, len(naive)), min(max(a, b), len(naive))
        tree.add(start, end, value)
        for i in range(start, end):
            naive[i] += value
        assert tree.overall() == (max(naive), naive.index(max(naive)))
        if start < end:
            assert tree.max(start, end) == max(naive[start:end])
            assert tree.max(0, end) == max(naive[:end])


def test_lowest_rank_that_covers_the_step_and_is_not_taken() -> None:
    index = StabbingIndex(6)
    for rank, (start, end) in enumerate([(2, 4), (0, 6), (3, 5)]):
        index.append(rank, start, end)
    assert [index.first(step, [False] * 3) for step in range(6)] == [1, 1, 0, 0, 1, 1]
    assert [index.first(step, [True, False, False]) for step in range(6)] == [1, 1, 1, 1, 1, 1]
    assert [index.first(step, [True, True, False]) for step in range(6)] == [None, None, None, 2, 2, None]


@settings(max_examples=200, deadline=None)
@given(
    n=st.integers(1, 20),
    intervals=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12),
    steps=st.lists(st.integers(0, 19), max_size=15),
)
def test_stabbing_equals_a_scan_while_ranks_are_taken(
    n: int, intervals: list[tuple[int, int]], steps: list[int]
) -> None:
    ranked = [(min(a, b, n), min(max(a, b), n)) for a, b in intervals]
    index, taken = StabbingIndex(n), [False] * len(ranked)
    for rank, (start, end) in enumerate(ranked):
        index.append(rank, start, end)
    for step in (s % n for s in steps):
        naive = next((r for r, (a, b) in enumerate(ranked) if a <= step < b and not taken[r]), None)
        assert index.first(step, taken) == naive
        if naive is not None:
            taken[naive] = True
