"""Static placement: legal, never below the bound, optimal where that can be checked."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.ir.layout_problem import LayoutBuffer, LayoutProblem
from spillprof.ir.plan import COMPLETE
from spillprof.planning.budget import Budget
from spillprof.planning.free_list import Fit
from spillprof.planning.layout.beam import BeamSearch
from spillprof.planning.layout.greedy import LAYOUT_ORDERS, colored, in_order, in_time_order, peak, skyline
from spillprof.planning.layout.instance import instance
from spillprof.planning.layout.search import LayoutEffort, greedy_peaks, lay_out
from spillprof.verify.layout import layout_faults


def problem(*buffers: tuple[int, int, int], align: int = 1) -> LayoutProblem:
    return LayoutProblem(
        buffers=tuple(
            LayoutBuffer(name=f"b{k}", lower=lower, upper=upper, size_bytes=size)
            for k, (lower, upper, size) in enumerate(buffers)
        ),
        alignment_bytes=align,
    )


@st.composite
def problems(draw: st.DrawFn, most: int = 14, align: tuple[int, ...] = (1, 4)) -> LayoutProblem:
    buffers = draw(
        st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(0, 12)), min_size=0, max_size=most)
    )
    return problem(
        *((lower, lower + length, size) for lower, length, size in buffers), align=draw(st.sampled_from(align))
    )


def load(asked: LayoutProblem) -> int:
    """Most bytes live at once, counted moment by moment."""
    align = asked.alignment_bytes
    moments = {b.lower for b in asked.buffers}
    return max(
        (sum(-(-b.size_bytes // align) * align for b in asked.buffers if b.lower <= t < b.upper) for t in moments),
        default=0,
    )


def least_peak(asked: LayoutProblem) -> int:
    """The lowest peak of all: some order of stacking reaches it."""
    least = sum(b.size_bytes for b in asked.buffers)
    for order in permutations(asked.buffers):
        tops: list[tuple[LayoutBuffer, int]] = []
        for b in order:
            floor = max((top for o, top in tops if o.lower < b.upper and b.lower < o.upper), default=0)
            tops.append((b, floor + b.size_bytes))
        least = min(least, max((top for _, top in tops), default=0))
    return least


@settings(max_examples=120, deadline=None)
@given(problems())
def test_every_layout_is_legal_and_its_peak_between_the_bound_and_the_sum(asked: LayoutProblem) -> None:
    layout = lay_out(asked, None, LayoutEffort(runs=3))
    assert layout_faults(asked, layout.offsets) == ()
    align = asked.alignment_bytes
    sizes = [-(-b.size_bytes // align) * align for b in asked.buffers]
    assert layout.lower_bound_bytes == load(asked)
    assert layout.lower_bound_bytes <= layout.peak_bytes <= sum(sizes)
    assert layout.peak_bytes == max((o + s for o, s in zip(layout.offsets, sizes, strict=True) if s), default=0)
    assert layout.search == COMPLETE


@settings(max_examples=60, deadline=None)
@given(problems())
def test_every_greedy_method_is_legal(asked: LayoutProblem) -> None:
    whole = instance(asked)
    found = [in_time_order(whole, fit) for fit in Fit]
    found += [in_order(whole, order(whole).tolist(), fit) for order in LAYOUT_ORDERS.values() for fit in Fit]
    found += [skyline(whole), colored(whole)]
    for offsets in found:
        full = np.zeros(len(asked.buffers), dtype=np.int64)
        full[whole.members] = offsets * whole.unit_bytes
        assert layout_faults(asked, full.tolist()) == ()
        assert peak(whole, offsets) >= whole.lower_bound


@settings(max_examples=60, deadline=None)
@given(problems(most=6, align=(1,)))
def test_on_tiny_problems_the_lowest_peak_is_found(asked: LayoutProblem) -> None:
    assert lay_out(asked, None, LayoutEffort(runs=40)).peak_bytes == least_peak(asked)


@settings(max_examples=60, deadline=None)
@given(problems(most=6, align=(1,)))
def test_beam_search_finds_a_layout_exactly_where_there_is_one(asked: LayoutProblem) -> None:
    whole = instance(asked)
    if not len(whole):
        return
    least = least_peak(asked) // whole.unit_bytes
    wide = 10_000  # nothing is dropped
    found = BeamSearch(whole, least).run(wide, Budget())
    assert found is not None
    assert peak(whole, found) == least
    assert BeamSearch(whole, least - 1).run(wide, Budget()) is None


def test_the_example_of_the_format_fits_exactly() -> None:
    asked = problem((0, 3, 4), (3, 9, 4), (0, 9, 4), (9, 21, 4), (0, 21, 4))
    layout = lay_out(asked, 12, LayoutEffort(runs=1))
    assert layout.peak_bytes == layout.lower_bound_bytes == 12
    assert layout_faults(asked, layout.offsets) == ()


def test_what_every_greedy_method_misses_the_search_finds() -> None:
    asked = problem((1, 5, 4), (3, 5, 4), (5, 6, 6), (1, 3, 6), (2, 4, 5), (2, 6, 5), (4, 7, 6))
    assert min(greedy_peaks(asked).values()) == 21
    layout = lay_out(asked, None, LayoutEffort(runs=30))
    assert layout_faults(asked, layout.offsets) == ()
    assert layout.peak_bytes == layout.lower_bound_bytes == 20  # b0, b3, b4 and b5 in [2, 3)
    assert layout.found_by == "beam search"


def test_sections_are_the_largest_sets_that_live_at_once() -> None:
    whole = instance(problem((0, 4, 1), (1, 2, 1), (2, 6, 1), (3, 6, 1), (6, 7, 1)))
    assert whole.n_sections == 3  # {b0, b1}, {b0, b2, b3}, {b4}
    assert whole.first.tolist() == [0, 0, 1, 1, 2]
    assert whole.stop.tolist() == [2, 1, 2, 2, 3]
    assert whole.loads.tolist() == [2, 3, 1]
    assert [len(part) for part in whole.components()] == [4, 1]


def test_offsets_are_aligned_and_sizes_rounded_up() -> None:
    layout = lay_out(problem((0, 2, 65), (1, 3, 1), align=64), None, LayoutEffort(runs=1))
    assert sorted(layout.offsets) in ([0, 64], [0, 128])
    assert layout.peak_bytes == layout.lower_bound_bytes == 192


def test_buffers_of_no_size_lie_anywhere() -> None:
    assert lay_out(problem((0, 1, 0)), None, LayoutEffort(runs=1)).peak_bytes == 0
    assert lay_out(problem(), None, LayoutEffort(runs=1)).offsets == ()


def test_the_same_runs_give_the_same_layout() -> None:
    rng = np.random.default_rng(5)
    rows = [(int(a), int(a + n), int(s)) for a, n, s in rng.integers([0, 1, 1], [30, 15, 60], (60, 3))]
    first, second = (lay_out(problem(*rows), None, LayoutEffort(runs=20)) for _ in range(2))
    assert first == second


def test_a_search_that_is_cut_off_says_so() -> None:
    rng = np.random.default_rng(5)
    rows = [(int(a), int(a + n), int(s)) for a, n, s in rng.integers([0, 1, 1], [30, 15, 60], (60, 3))]
    layout = lay_out(problem(*rows), None, LayoutEffort(budget=Budget(0)))
    assert layout.search == "ended at its limit of work (--seconds N searches longer)"
    assert layout_faults(problem(*rows), layout.offsets) == ()


def test_huge_sizes_do_not_overflow() -> None:
    asked = problem((0, 2, 2**58), (1, 3, 2**58), (0, 1, 2**58), (2, 3, 3), (1, 2, 1))
    layout = lay_out(asked, None, LayoutEffort(runs=5))
    assert layout_faults(asked, layout.offsets) == ()
    assert layout.peak_bytes == 2**59 + 1


@pytest.mark.parametrize(
    ("offsets", "fault"),
    [((0, 4), "'b1' at offset 4 overlaps 'b0'"), ((-8, 0), "'b0' lies at offset -8"),
     ((2, 16), "'b0' lies at offset 2, which is no multiple of 4"), ((0,), "1 offsets for 2 buffers")],
)  # fmt: skip
def test_the_checker_names_what_is_wrong(offsets: tuple[int, ...], fault: str) -> None:
    assert layout_faults(problem((0, 2, 8), (1, 3, 8), align=4), offsets)[0] == fault


@settings(max_examples=100, deadline=None)
@given(problems(most=8, align=(1,)), st.lists(st.integers(0, 20), min_size=8, max_size=8))
def test_the_checker_agrees_with_a_comparison_of_all_pairs(asked: LayoutProblem, places: list[int]) -> None:
    offsets = places[: len(asked.buffers)]
    clash = any(
        a.size_bytes and b.size_bytes and a.lower < b.upper and b.lower < a.upper
        and offsets[i] < offsets[j] + b.size_bytes and offsets[j] < offsets[i] + a.size_bytes
        for i, a in enumerate(asked.buffers) for j, b in enumerate(asked.buffers[:i])
    )  # fmt: skip
    assert bool(layout_faults(asked, offsets)) == clash
