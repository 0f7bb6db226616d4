"""What sample_models/README.md says that each model shows."""

from pathlib import Path

import pytest

from spillprof.frontends.onnx import read_onnx
from spillprof.lowering.options import LoweringOptions
from spillprof.model.profile import Profile, Result
from spillprof.model.target import load_target
from spillprof.pipeline import AnalyzeOptions, analyze
from spillprof.units import parse_size

SAMPLES = Path(__file__).parents[2] / "sample_models"


def profile_of(name: str, sram: str, *strategies: str, pin: tuple[str, ...] = ()) -> Profile:
    target = load_target("generic-npu").with_overrides(sram_bytes=parse_size(sram))
    options = AnalyzeOptions(strategies=strategies, lowering=LoweringOptions(pin=pin))
    return analyze(read_onnx(SAMPLES / name), target, options)


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


@pytest.mark.parametrize(("name", "sram"), [("transformer_blocks.onnx", "1MB"), ("unet.onnx", "12MB")])
def test_small_models_spill_in_a_small_memory_and_not_in_a_large_one(name: str, sram: str) -> None:
    assert profile_of(name, sram, "interval").results[0].spill_bytes > 0
    assert profile_of(name, "64MB", "interval").results[0].spill_bytes == 0
