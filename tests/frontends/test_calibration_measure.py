"""Which copies are measured, in what order, and how they are used."""

import pytest
from calibrated import KnownCopier

from spillprof.frontends.calibration.calibration import Calibration, calibrate, fitted
from spillprof.frontends.calibration.measure import Direction, TimedCopies, copy_sizes, measure_copies, same_copy_before
from spillprof.ir.errors import UsageError

SIZES = copy_sizes(2**18, 2**28)


def calibrated(copier: KnownCopier) -> Calibration:
    return calibrate(copier, SIZES, prepare=lambda *copy: None, budget_s=0.0, most_repetitions=9)


def test_sizes_double_and_held_out_ones_lie_between() -> None:
    assert SIZES.fitted == tuple(2**k for k in range(18, 29))
    assert len(SIZES.held_out) == 10
    assert all(a < x < b for a, x, b in zip(SIZES.fitted, SIZES.held_out, SIZES.fitted[1:], strict=False))
    assert all(size % 64 == 0 for size in SIZES.held_out)


def test_a_span_that_is_no_power_of_two_ends_where_it_says() -> None:
    sizes = copy_sizes(1024, 11_008).fitted
    assert (sizes[0], sizes[-1], len(sizes)) == (1024, 11_008, 4)


@pytest.mark.parametrize(("low", "high"), [(2**20, 2**22), (2**22, 2**20), (2**20, 2**20), (1, 2**20), (2**20, 2**45)])
def test_spans_that_make_no_curve_are_refused(low: int, high: int) -> None:
    with pytest.raises(UsageError):
        copy_sizes(low, high)


def test_every_copy_is_measured_three_times_without_any_budget_and_swept_before() -> None:
    copier, sweeps = KnownCopier(), []
    series = measure_copies(
        copier, SIZES, prepare=lambda *copy: sweeps.append(len(copier.copies)), budget_s=0.0, most_repetitions=9
    )
    assert {len(each.seconds) for each in series} == {3}
    assert sweeps == list(range(len(copier.copies)))
    assert {(s.direction, s.size_bytes) for s in series if s.direction is Direction.BOTH} == {
        (Direction.BOTH, 2**k) for k in range(23, 29)
    }


def test_repetitions_end_the_measuring_before_the_budget_does() -> None:
    series = measure_copies(KnownCopier(), SIZES, prepare=lambda *copy: None, budget_s=1e9, most_repetitions=5)
    assert {len(each.seconds) for each in series} == {5}


def test_rounds_take_turns_in_different_orders() -> None:
    copier = KnownCopier()
    measure_copies(copier, SIZES, prepare=lambda *copy: None, budget_s=0.0, most_repetitions=3)
    third = len(copier.copies) // 3
    first, second = copier.copies[:third], copier.copies[third : 2 * third]
    assert first != second
    assert sorted(first) == sorted(second)


def test_known_machine_is_found_exactly_and_the_least_repetition_counts() -> None:
    found = calibrated(KnownCopier(slowdown=0.5))
    assert found.heldout_median_relative_error() < 1e-9
    assert found.repetitions == 3
    read, write = found.fits[Direction.READ], found.fits[Direction.WRITE]
    assert (read.setup_s, read.bytes_per_s) == (pytest.approx(1e-6, rel=1e-6), pytest.approx(1e10, rel=1e-9))
    assert (write.setup_s, write.bytes_per_s) == (pytest.approx(1e-6, rel=1e-6), pytest.approx(5e9, rel=1e-9))
    one = found.of(Direction.READ)[0]
    assert one.median_s == pytest.approx(1.5 * one.min_s)


@pytest.mark.parametrize(("both", "bus"), [(12e9, 12e9), (15e9, None), (16e9, None), (8e9, 1e10)])
def test_bus_is_what_both_share_and_never_less_than_one_alone(both: float, bus: float | None) -> None:
    found = calibrated(KnownCopier(both_bytes_per_s=both)).bus_bytes_per_s
    assert found == (None if bus is None else pytest.approx(bus, rel=1e-9))


def test_error_is_that_of_held_out_sizes_alone() -> None:
    found = calibrated(KnownCopier())
    spoiled = tuple(
        TimedCopies(
            direction=s.direction, size_bytes=s.size_bytes, held_out=True, seconds=tuple(1.25 * t for t in s.seconds)
        )
        if s.held_out
        else s
        for s in found.series
    )
    assert fitted(spoiled).heldout_median_relative_error() == pytest.approx(0.2)
    assert fitted(spoiled).fits == found.fits


def test_without_sweeping_the_same_copy_is_made_before() -> None:
    copier = KnownCopier()
    measure_copies(copier, SIZES, prepare=same_copy_before, budget_s=0.0, most_repetitions=3)
    assert copier.copies[::2] == copier.copies[1::2]


def test_disturbance_is_how_much_longer_than_the_least_the_middle_took() -> None:
    assert calibrated(KnownCopier(slowdown=0.25)).disturbance == pytest.approx(0.25)


def test_curve_of_a_machine_twice_as_fast_misses_half_of_the_time() -> None:
    fast = KnownCopier(setup_s=5e-7, read_bytes_per_s=2e10, write_bytes_per_s=1e10)
    assert calibrated(fast).judged_by(calibrated(KnownCopier())) == pytest.approx(0.5)


def test_copy_without_time_is_refused() -> None:
    with pytest.raises(UsageError, match="too short for the clock"):
        calibrated(KnownCopier(setup_s=0.0, read_bytes_per_s=float("inf")))
