"""Curves fitted to known points."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.frontends.calibration.fit import fit_curve, inner_bends, not_negative_least_squares

SIZES = tuple(2**k for k in range(18, 29))


def curve(setup_s: float, *pieces: tuple[int, float]) -> tuple[float, ...]:
    """Seconds at SIZES of a curve: each piece says where it starts and what a byte costs from there on."""
    starts = [start for start, _ in pieces]
    ends = [*starts[1:], 2**60]
    return tuple(
        setup_s + sum(cost * max(min(x, end) - start, 0) for (start, cost), end in zip(pieces, ends, strict=True))
        for x in SIZES
    )


def test_straight_line_is_found_exactly_and_has_no_bend() -> None:
    fit = fit_curve(SIZES, curve(5e-6, (0, 1e-10)))
    assert fit.setup_s == pytest.approx(5e-6, rel=1e-9)
    assert fit.bytes_per_s == pytest.approx(1e10, rel=1e-9)
    assert inner_bends(fit.curve) == ()
    assert [x for x, _ in fit.curve] == [0, 2**28]


@pytest.mark.parametrize(
    "pieces",
    [
        ((0, 5e-11), (2**22, 1e-10)),
        ((0, 2e-10), (2**24, 1e-10)),
        ((0, 5e-11), (2**20, 2e-10), (2**25, 1e-10)),
        ((0, 1e-11), (2**20, 2e-11), (2**23, 4e-11), (2**26, 1.2e-10)),
    ],
)
def test_bends_are_found_where_they_are(pieces: tuple[tuple[int, float], ...]) -> None:
    fit = fit_curve(SIZES, curve(2e-6, *pieces))
    assert inner_bends(fit.curve) == tuple(start for start, _ in pieces[1:])
    assert fit.setup_s == pytest.approx(2e-6, rel=1e-6)
    assert fit.s_per_byte == pytest.approx(pieces[-1][1], rel=1e-6)
    assert fit.seconds(np.array([3 * 2**27])) == pytest.approx(
        [fit.curve[-1][1] + 2**27 * pieces[-1][1]]
    )  # beyond the last size: along the last piece


def test_small_sizes_count_as_much_as_large_ones() -> None:
    """Least squares of seconds would follow the largest sizes alone, and miss the set-up by far."""
    noise = np.random.default_rng(1).normal(0, 0.03, len(SIZES))
    fit = fit_curve(SIZES, tuple(np.array(curve(2e-5, (0, 1e-10))) * (1 + noise)))
    assert fit.setup_s == pytest.approx(2e-5, rel=0.15)
    assert fit.bytes_per_s == pytest.approx(1e10, rel=0.05)
    assert inner_bends(fit.curve) == ()


def test_interval_holds_the_truth_in_most_of_many_calibrations() -> None:
    inside = [0, 0]
    for seed in range(30):
        noise = np.random.default_rng(seed).normal(0, 0.05, len(SIZES))
        fit = fit_curve(SIZES, tuple(np.array(curve(2e-5, (0, 1e-10))) * (1 + noise)), most_bends=0)
        assert fit.setup_interval_s is not None
        assert fit.slope_interval is not None
        inside[0] += fit.setup_interval_s.low <= 2e-5 <= fit.setup_interval_s.high
        inside[1] += fit.slope_interval.low <= 1e-10 <= fit.slope_interval.high
    assert min(inside) >= 25


def test_wider_noise_makes_wider_intervals() -> None:
    noise = np.random.default_rng(5).normal(0, 1, len(SIZES))
    widths = []
    for sigma in (0.01, 0.05):
        fit = fit_curve(SIZES, tuple(np.array(curve(2e-5, (0, 1e-10))) * (1 + sigma * noise)), most_bends=0)
        assert fit.slope_interval is not None
        widths.append(fit.slope_interval.high - fit.slope_interval.low)
    assert widths[1] > 3 * widths[0]


def test_set_up_below_nothing_becomes_nothing() -> None:
    seconds = tuple(1e-10 * x - 1e-5 for x in SIZES)  # the first piece points below zero
    fit = fit_curve(SIZES, seconds, most_bends=0)
    assert fit.setup_s == 0


def test_two_sizes_leave_nothing_to_judge_by() -> None:
    fit = fit_curve((1000, 2000), (1e-6, 1.5e-6))
    assert fit.setup_s == pytest.approx(5e-7)
    assert fit.setup_interval_s is None
    assert fit.slope_interval is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 2**30), min_size=3, max_size=14, unique=True).map(sorted), st.data())
def test_every_curve_is_continuous_rises_and_starts_at_no_less_than_nothing(
    sizes: list[int], data: st.DataObject
) -> None:
    seconds = data.draw(st.lists(st.floats(1e-7, 10), min_size=len(sizes), max_size=len(sizes)))
    fit = fit_curve(tuple(sizes), tuple(seconds))
    assert fit.setup_s >= 0
    assert fit.s_per_byte > 0
    assert all(x0 < x1 and s0 < s1 for (x0, s0), (x1, s1) in pairwise(fit.curve))
    knots = np.array([x for x, _ in fit.curve], dtype=np.float64)
    assert fit.seconds(knots) == pytest.approx([s for _, s in fit.curve])
    around = np.concatenate([knots - 0.5, knots + 0.5])[1:]
    assert np.all(np.diff(fit.seconds(np.sort(around))) >= 0)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(5, 12))
def test_coefficients_meet_the_conditions_of_the_optimum(seed: int, columns: int, rows: int) -> None:
    """Karush-Kuhn-Tucker: no coefficient is negative, no pull is upwards, and where there is one, no pull is left."""
    draw = np.random.default_rng(seed)
    matrix, wanted = draw.normal(size=(rows, columns)), draw.normal(size=rows)
    found = not_negative_least_squares(matrix, wanted)
    pull = matrix.T @ (wanted - matrix @ found)
    assert np.all(found >= 0)
    assert np.all(pull <= 1e-8)
    assert np.abs(pull[found > 0]).max(initial=0.0) <= 1e-8
