"""The curve over SRAM sizes: each point equals ``analyze`` at that size, and the number of points is bounded."""

from pathlib import Path

import pytest

from spillprof.analysis.size_grid import coarse_sizes, refining_sizes, sharpest_bends
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.explain.whatif.size_curve import MOST_SIZES
from spillprof.frontends import read_model
from spillprof.ir.graph import Graph
from spillprof.ir.profile import Profile
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions, Oversized
from spillprof.planning.options import Order, PlanningOptions

MIB = 1 << 20
GENERIC = load_target("generic-npu")
STRATEGIES = ("lru", "belady")


@pytest.fixture(scope="module")
def transformer() -> Graph:
    path = Path(__file__).parents[2] / "sample_models" / "transformer_blocks.onnx"
    return read_model(str(path))


def _analyzed(graph: Graph, sram_bytes: int, **options: object) -> Profile:
    target = GENERIC.with_overrides(sram_bytes=sram_bytes)
    return analyze(graph, target, AnalyzeOptions(strategies=STRATEGIES, what_if=True, **options))  # type: ignore[arg-type]


def test_each_point_is_what_analyze_finds_in_that_size(transformer: Graph) -> None:
    curve = _analyzed(transformer, 1_250_048).size_curve
    assert curve is not None
    assert curve.left_out == ""
    points = {(p.sram_bytes, p.strategy): p for p in curve.points}
    sizes = sorted({size for size, _ in points})
    assert len(sizes) <= MOST_SIZES
    assert list(points) == sorted(points, key=lambda key: key[0])
    assert 1_250_048 in sizes
    for size in (sizes[0], 1_250_048, sizes[-1]):
        profile = analyze(transformer, GENERIC.with_overrides(sram_bytes=size), AnalyzeOptions(strategies=STRATEGIES))
        assert profile.bounds is not None
        for result in profile.results:
            point = points.get((size, result.strategy))
            if point is None:
                continue  # spills as the other one at the size that was analysed
            assert (point.spill_bytes, point.latency_s) == (result.spill_bytes, result.latency_s)
            assert point.spill_bytes_lower is not None
            assert point.spill_bytes_lower <= profile.bounds.spill_bytes_lower
    assert points[sizes[-1], curve.points[0].strategy].spill_bytes == 0


def test_the_smallest_size_without_tiling_is_a_point_and_below_it_nothing_runs(transformer: Graph) -> None:
    profile = _analyzed(transformer, 4 * MIB, lowering=LoweringOptions(oversized=Oversized.ERROR))
    assert profile.size_curve is not None
    for point in profile.size_curve.points:
        fits = point.sram_bytes >= profile.model.min_sram_bytes
        assert (point.spill_bytes is not None) is fits
        assert (point.reason is None) is fits
    assert any(p.sram_bytes == profile.model.min_sram_bytes for p in profile.size_curve.points)
    assert any(p.reason for p in profile.size_curve.points)


def test_a_search_for_each_size_is_not_afforded_and_said_so(transformer: Graph) -> None:
    curve = _analyzed(transformer, 1_250_048, planning=PlanningOptions(order=Order.MEMORY)).size_curve
    assert curve is not None
    assert curve.points == ()
    assert "too long" in curve.left_out


def test_without_what_if_there_is_no_curve(transformer: Graph) -> None:
    target = GENERIC.with_overrides(sram_bytes=4 * MIB)
    assert analyze(transformer, target, AnalyzeOptions(strategies=("lru",))).size_curve is None


def test_coarse_sizes_grow_by_one_factor_and_middles_part_the_sharpest_bends() -> None:
    assert coarse_sizes(1, 16, 5, round) == [1, 2, 4, 8, 16]
    sizes, values = [64, 256, 1024, 4096], [100.0, 100.0, 0.0, 0.0]
    bends = sharpest_bends([(sizes, values)])
    assert bends == {256: 0.5, 1024: 0.5}
    assert refining_sizes(sizes, bends, 2, round) == [128, 512]
    assert refining_sizes(sizes, bends, 3, round) == [128, 512, 2048]
    assert sharpest_bends([(sizes, [5.0] * 4)]) == {}
    assert refining_sizes(sizes, {}, 3, round) == []
