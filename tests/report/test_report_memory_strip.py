"""Memory over steps as bars on a terminal."""

from dataclasses import replace
from pathlib import Path

from profiles import CAPACITY, make_profile, without_spills

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.target import load_target
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.report.profile.demand import (
    FULL,
    OVER,
    demand_sentence,
    strip_heading,
    strip_lines,
    wanted_bytes,
    wanted_in_words,
)
from spillprof.report.text import BARS

PROFILE = make_profile()
LRU = next(r for r in PROFILE.results if r.strategy == "lru")
EIGHTH = CAPACITY // 8
BLOCKS = Path(__file__).parents[2] / "sample_models" / "transformer_blocks.onnx"


def _of(live_bytes, in_use_bytes=(), operators=()):
    """The lines of a run with these bytes; nothing is staged."""
    steps = len(live_bytes)
    target, reserved = replace(PROFILE.target, sram_bytes=CAPACITY), replace(PROFILE.reserved, weight_staging_bytes=0)
    profile = replace(
        PROFILE, target=target, reserved=reserved, live_bytes=tuple(live_bytes), steps=PROFILE.steps[:steps]
    )
    result = replace(LRU, in_use_bytes=tuple(in_use_bytes), operators=tuple(operators))
    return profile, result


def test_full_sram_is_the_last_bar_but_one_and_only_more_than_it_is_taller():
    profile, result = _of([0, 1, CAPACITY - 1, CAPACITY, CAPACITY + 1, 9 * CAPACITY], [0, 1, 2, CAPACITY, 0, 0])
    assert dict(strip_lines(profile, result, 40)) == {
        "live": f" ▁{FULL}{FULL}{OVER}{OVER}",
        "in use": f" ▁▁{FULL}  ",
    }


def test_bars_rise_with_the_bytes():
    profile, result = _of([CAPACITY * k // 7 for k in range(1, 8)])
    assert dict(strip_lines(profile, result, 40))["live"] == BARS[:-1]


def test_spills_stand_at_the_step_that_forced_them_and_the_largest_is_full():
    cost = LRU.operators[0]
    forced = [
        replace(cost, step=1, spill_write_bytes=EIGHTH, spill_read_bytes=0, streamed_bytes=0),
        replace(cost, step=3, spill_write_bytes=EIGHTH, spill_read_bytes=2 * EIGHTH, streamed_bytes=5 * EIGHTH),
    ]
    profile, result = _of([EIGHTH] * 5, [EIGHTH] * 5, forced)
    assert dict(strip_lines(profile, result, 40))["spills"] == " ▁ █ "


def test_long_runs_keep_the_fullest_step_of_each_stretch_and_all_spills():
    live = [1] * 199 + [2 * CAPACITY]
    profile, result = _of(live[:1] + [1] * 198 + live[-1:], [1] * 200)
    shown = dict(strip_lines(profile, result, 28))
    assert shown["live"] == "▁" * 19 + OVER
    assert "a column is 10 steps" in strip_heading(profile, "", 28)
    assert max(len(label) for label in shown) < 8


def test_without_spills_there_is_no_third_line_and_without_a_result_one():
    quiet = without_spills(PROFILE)
    assert [name for name, _ in strip_lines(quiet, quiet.results[0], 80)] == ["live", "in use"]
    assert [name for name, _ in strip_lines(quiet, None, 80)] == ["live"]


def test_sentence_counts_the_steps_at_which_more_is_live_than_fits_and_names_the_fullest():
    profile, _ = _of([EIGHTH, 9 * EIGHTH, 10 * EIGHTH])
    name = profile.steps[2].name or "(unnamed)"
    assert demand_sentence(profile) == f"More is live than fits at 2 of 3 steps; most at #2 {name}: 40 MiB in 32 MiB."
    profile, _ = _of([EIGHTH, CAPACITY])
    assert demand_sentence(profile).startswith("All that is live fits; most at #1")


def test_weights_that_stay_are_wanted_at_every_step():
    weight = replace(PROFILE.buffers[0], kind="weight", size_bytes=EIGHTH)
    cached = replace(
        PROFILE, config={**PROFILE.config, "weights": "cached"}, buffers=(*PROFILE.buffers, weight, weight)
    )
    extra = {a - b for a, b in zip(wanted_bytes(cached), wanted_bytes(PROFILE), strict=True)}
    assert extra == {sum(b.size_bytes for b in cached.buffers if b.kind == "weight")}
    assert min(extra) >= 2 * EIGHTH
    resident = replace(cached, config={**PROFILE.config, "weights": "resident"})
    assert wanted_bytes(resident)[0] - wanted_bytes(PROFILE)[0] == PROFILE.model.weight_bytes
    assert wanted_in_words(cached) == wanted_in_words(resident) == "what is live, with the weights"
    assert wanted_in_words(PROFILE) == "what is live, with weight staging"


def test_what_the_runtime_keeps_is_wanted_at_every_step():
    kept = replace(PROFILE, reserved=replace(PROFILE.reserved, runtime_bytes=EIGHTH))
    assert {a - b for a, b in zip(wanted_bytes(kept), wanted_bytes(PROFILE), strict=True)} == {EIGHTH}
    assert wanted_in_words(kept) == "what is live, with what the runtime keeps and weight staging"


def test_wanted_is_what_the_ideal_run_uses_with_cached_weights():
    target = load_target("generic-npu").with_overrides(sram_bytes=1 << 20)
    options = AnalyzeOptions(strategies=("interval",), lowering=LoweringOptions(weights=WeightsPolicy.CACHED))
    profile = analyze(read_model(BLOCKS), target, options)
    assert max(wanted_bytes(profile)) == profile.ideal.peak_bytes
    assert "More is live than fits" in demand_sentence(profile)
