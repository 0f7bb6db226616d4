"""The charts of a comparison: where spills part, and live bytes."""

from dataclasses import replace

import pytest
from profiles import MIB, make_profile

from spillprof.report.diff.html import HEIGHT, WIDTH, delta_chart, live_chart
from spillprof.studies.diff import ProfileDiff, compare


@pytest.fixture(scope="module")
def comparison() -> ProfileDiff:
    """What spilled under lru against what spills under interval."""
    before = make_profile(90)
    lru, interval = (next(r for r in before.results if r.strategy == name) for name in ("lru", "interval"))
    return compare(
        replace(before, results=(lru,)),
        replace(before, results=(replace(interval, strategy="lru"),)),
    )


def _points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in line.split())]


def test_the_difference_adds_up_to_that_of_all_operators(comparison: ProfileDiff) -> None:
    change = comparison.strategies[0]
    chart = delta_chart(comparison, change)
    assert chart is not None
    points = _points(chart.lines[0][1])
    total = sum(o.delta_bytes for o in change.operators)
    assert total < 0
    zero = float(chart.levels[0])
    assert points[0] == (0.0, zero)
    assert points[-1] == (WIDTH, HEIGHT)  # nothing rises on the way: the least is the end
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert chart.top == "0"
    assert f"spills {-total / MIB:.3g} MiB less" in chart.summary


def test_runs_that_spill_alike_have_no_chart_of_their_difference() -> None:
    same = make_profile(90)
    comparison = compare(same, same)
    assert all(delta_chart(comparison, change) is None for change in comparison.strategies)
    live = live_chart(comparison)
    assert live is not None
    assert live.summary.startswith("The same is live in both runs, at most ")
    assert live.lines[0][1] == live.lines[1][1]


def test_long_runs_are_drawn_in_stretches_that_keep_the_peak() -> None:
    long = make_profile(3_000)
    chart = live_chart(compare(long, long))
    assert chart is not None
    points = _points(chart.lines[1][1])
    assert len(points) <= 1_000
    most = max(*long.live_bytes, long.target.sram_bytes)
    top = HEIGHT - (HEIGHT - 6) * max(long.live_bytes) / most
    assert min(y for _, y in points) == pytest.approx(top, abs=0.06)
    assert "Each point is the most of 6 steps." in chart.summary


def test_a_run_without_steps_has_no_chart() -> None:
    profile = make_profile(60)
    empty = replace(compare(profile, profile), before=replace(compare(profile, profile).before, live_bytes=()))
    assert live_chart(empty) is None
