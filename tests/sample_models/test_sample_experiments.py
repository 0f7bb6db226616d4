"""The results that sample_models/README.md states for each model."""

from pathlib import Path

import pytest

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.profile import Profile
from spillprof.ir.result import Result
from spillprof.ir.target import Target, load_target
from spillprof.ir.units import parse_size
from spillprof.lowering.options import LoweringOptions, TilingModel

SAMPLES = Path(__file__).parents[2] / "sample_models"


def profile_of(name: str, sram: str, *strategies: str, pin: tuple[str, ...] = ()) -> Profile:
    target = load_target("generic-npu").with_overrides(sram_bytes=parse_size(sram))
    options = AnalyzeOptions(strategies=strategies, lowering=LoweringOptions(pin=pin, tiling=TilingModel.ONCE))
    return analyze(read_model(SAMPLES / name), target, options)


def by_strategy(profile: Profile) -> dict[str, Result]:
    return {result.strategy: result for result in profile.results}


@pytest.fixture(scope="module")
def residual() -> Profile:
    return profile_of("residual_cnn.onnx", "32MB", "lru", "belady", "interval")


def test_residual_cnn_stands_just_above_32_mib(residual: Profile) -> None:
    mib32 = parse_size("32MB")
    assert mib32 < residual.ideal.peak_bytes < 1.02 * mib32
    assert residual.oversized == ()
    assert 8e-3 < residual.ideal.latency_s < 16e-3


def test_residual_cnn_lru_spills_several_times_the_bytes_of_interval(residual: Profile) -> None:
    results = by_strategy(residual)
    assert results["lru"].spill_bytes >= 2.5 * results["interval"].spill_bytes
    assert results["interval"].spill_bytes > results["belady"].spill_bytes > 0


def test_residual_cnn_lru_spills_are_mostly_oscillation(residual: Profile) -> None:
    lru = by_strategy(residual)["lru"]
    assert sum(o.spill_bytes for o in lru.oscillations) > 0.9 * lru.spill_bytes
    large = next(o for o in lru.oscillations if o.buffer == "f0")
    assert large.size_bytes == pytest.approx(4.8e6, rel=0.02)
    assert large.spill_count >= lru.spill_count / 5
    assert large.spill_count >= 70


def test_residual_cnn_pinning_the_large_feature_wins_back_a_quarter_of_the_spill_time(residual: Profile) -> None:
    lru = by_strategy(residual)["lru"]
    pinned = by_strategy(profile_of("residual_cnn.onnx", "32MB", "lru", pin=("f0",)))["lru"]
    assert pinned.spill_time_s <= 0.75 * lru.spill_time_s


def test_residual_cnn_spills_nothing_at_48_mib() -> None:
    profile = profile_of("residual_cnn.onnx", "48MB", "lru", "size", "belady", "cost", "interval")
    assert [result.spill_bytes for result in profile.results] == [0] * 5
    assert {result.latency_s for result in profile.results} == {profile.ideal.latency_s}


def test_three_branch_spills_more_and_longer_in_the_smaller_memory() -> None:
    names = ("lru", "size", "belady", "cost", "interval")
    whole = profile_of("three_branch.onnx", "4GB", "lru")
    large, small = (by_strategy(profile_of("three_branch.onnx", sram, *names)) for sram in ("1.2GB", "0.8GB"))
    assert whole.model.peak_live_bytes == pytest.approx(2.1e9, rel=0.02)
    assert whole.results[0].spill_bytes == 0
    for name in names:
        assert small[name].spill_bytes > large[name].spill_bytes > 0
        assert small[name].spill_time_s > large[name].spill_time_s > 0


WHOLE = LoweringOptions(tiling=TilingModel.ONCE)
"""The experiments are of runtimes that evict whole tensors and run no operator in tiles to make room."""

GPU = load_target("pcie-gpu")
SLOW_GPU = GPU.with_overrides(sram_bytes_per_s=64e9, utilisation={"default": 0.1})
"""Operators take five times as long."""


@pytest.mark.parametrize(
    ("target", "sram", "overheads"),
    [
        (GPU, "1.2GB", (0.92, 0.56)),
        (GPU, "0.8GB", (1.27, 1.43)),
        (SLOW_GPU, "1.2GB", (0.18, 0.11)),  # the article: 11 %
        (SLOW_GPU, "0.8GB", (0.27, 0.29)),  # the article: 29 %
    ],
)
def test_three_branch_on_a_gpu_that_spills_to_its_host(
    target: Target, sram: str, overheads: tuple[float, float]
) -> None:
    options = AnalyzeOptions(strategies=("lru", "interval"), lowering=WHOLE)
    sized = target.with_overrides(sram_bytes=parse_size(sram))
    profile = analyze(read_model(SAMPLES / "three_branch.onnx"), sized, options)
    shares = [result.spill_time_s / profile.ideal.latency_s for result in profile.results]
    assert shares == pytest.approx(overheads, abs=0.006)
    one_map = 8 * 64 * 456 * 456 * 4
    maps = {"1.2GB": ((3, 4), (2, 2)), "0.8GB": ((4, 6), (4, 6))}[sram]
    for result, (out, back) in zip(profile.results, maps, strict=True):
        assert (result.spill_write_bytes, result.spill_read_bytes) == (out * one_map, back * one_map)
        dram_j = result.spill_bytes * 148e-12
        sram_j = (result.spill_bytes + 2 * result.compaction_bytes) * 50e-12
        assert result.energy_j == pytest.approx(profile.ideal.energy_j + dram_j + sram_j, rel=1e-9)
    assert profile.ideal.energy_j == pytest.approx(2.20, rel=0.01)


def test_three_branch_on_a_fast_npu() -> None:
    """Six convolutions of 61.3 G MACs at 2 T MAC/s, 184 ms; the stem, on 3 channels, 2.87 G at 4 T × 3/64, 15.3 ms;
    three sums and the pooling, 4.3 ms by their bytes: 203.9 ms without spills."""
    npu = load_target("generic-npu")
    for sram, overheads in (("1.2GB", (0.175, 0.105)), ("0.8GB", (0.25, 0.28))):
        sized = npu.with_overrides(sram_bytes=parse_size(sram))
        graph = read_model(SAMPLES / "three_branch.onnx")
        profile = analyze(graph, sized, AnalyzeOptions(strategies=("lru", "interval"), lowering=WHOLE))
        shares = [result.spill_time_s / profile.ideal.latency_s for result in profile.results]
        assert profile.ideal.latency_s == pytest.approx(0.2039, abs=1e-4)
        assert shares == pytest.approx(overheads, abs=0.005)


def test_residual_cnn_in_energy() -> None:
    """Joules of DRAM: 162 pJ a byte of all that is read and written."""
    graph, npu = read_model(SAMPLES / "residual_cnn.onnx"), load_target("article-npu")

    def run(*strategies: str, pin: tuple[str, ...] = ()) -> Profile:
        return analyze(
            graph,
            npu,
            AnalyzeOptions(strategies=strategies, lowering=LoweringOptions(pin=pin, tiling=TilingModel.ONCE)),
        )

    free = run("lru", "interval")
    lru, interval = free.results
    (locked,) = run("lru", pin=("f0",)).results
    ideal_mj = 1e3 * free.ideal.energy_j
    assert [1e3 * r.energy_j for r in (lru, locked, interval)] == pytest.approx([143.8, 87.4, 72.7], rel=0.01)
    assert ideal_mj == pytest.approx(37.8, rel=0.01)
    assert locked.spill_time_s <= 0.5 * lru.spill_time_s
    assert interval.spill_time_s <= 0.2 * lru.spill_time_s
    for result in (lru, locked, interval):
        assert result.energy is not None
        moved = free.ideal.compulsory_read_bytes + free.ideal.compulsory_write_bytes + result.spill_bytes
        assert result.energy.dram_read_j + result.energy.dram_write_j == pytest.approx(moved * 162e-12, rel=1e-9)


@pytest.mark.parametrize(("name", "sram"), [("transformer_blocks.onnx", "1MB"), ("unet.onnx", "12MB")])
def test_small_models_spill_in_a_small_memory_and_not_in_a_large_one(name: str, sram: str) -> None:
    assert profile_of(name, sram, "interval").results[0].spill_bytes > 0
    assert profile_of(name, "64MB", "interval").results[0].spill_bytes == 0
