"""Library use: ``estimate`` against the whole analysis, and the example of docs/library.md."""

import re
from pathlib import Path

import pytest

import spillprof
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.lowering.options import LoweringOptions, Oversized, WeightsPolicy
from spillprof.planning.options import Dma, PlanningOptions
from spillprof.planning.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "sample_models").glob("*.onnx"))
MIB = 1 << 20


@pytest.mark.parametrize("model", SAMPLES, ids=lambda path: path.stem)
def test_estimate_of_the_file_order_equals_analyze_on_demand(model):
    target = spillprof.load_target("generic-npu").with_overrides(sram_bytes=8 * MIB)
    program = spillprof.load_program(model, target)
    options = AnalyzeOptions(strategies=("lru", "cost"), planning=PlanningOptions(dma=Dma.DEMAND))
    for result in analyze(read_model(model), target, options).results:
        found = spillprof.estimate(program, target, result.strategy, order=range(len(program.steps)))
        assert found == spillprof.estimate(program, target, result.strategy)
        assert found.spill_bytes == result.spill_bytes
        assert found.latency_s == pytest.approx(result.latency_s, rel=1e-12)
        assert found.energy_j == pytest.approx(result.energy_j, rel=1e-12)


def test_ideal_spills_nothing_in_any_memory():
    target = spillprof.load_target("generic-npu").with_overrides(sram_bytes=8 * MIB)
    program = spillprof.load_program(ROOT / "sample_models" / "unet.onnx", target)
    assert spillprof.estimate(program, target, "none").spill_bytes == 0
    assert all(spillprof.estimate(program, target, s).spill_bytes > 0 for s in STRATEGIES)


def test_invalid_arguments_of_estimate_are_errors():
    target = spillprof.load_target("generic-npu").with_overrides(sram_bytes=8 * MIB)
    program = spillprof.load_program(ROOT / "sample_models" / "unet.onnx", target)
    with pytest.raises(UsageError):
        spillprof.estimate(program, target, "luck")
    with pytest.raises(ValueError, match="before it is written"):
        spillprof.estimate(program, target, order=range(len(program.steps))[::-1])
    with pytest.raises(CapacityError):
        spillprof.estimate(program, target.with_overrides(sram_bytes=64))


def test_an_estimate_uses_the_options_that_the_program_was_lowered_with():
    # The weights of 1.84 MiB stay on-chip: there is no room for them in 1 MiB, where they could stream.
    model, resident = ROOT / "sample_models" / "unet.onnx", LoweringOptions(weights=WeightsPolicy.RESIDENT)
    target = spillprof.load_target("generic-npu").with_overrides(sram_bytes=64 * MIB)
    program = spillprof.load_program(model, target, resident)
    options = AnalyzeOptions(strategies=("cost",), lowering=resident, planning=PlanningOptions(dma=Dma.DEMAND))
    (result,) = analyze(read_model(model), target, options).results
    found = spillprof.estimate(program, target)
    assert found == spillprof.estimate(program, target, order=range(len(program.steps)), lowering=resident)
    assert found.latency_s == pytest.approx(result.latency_s, rel=1e-12)
    small = target.with_overrides(sram_bytes=MIB)
    with pytest.raises(CapacityError, match="what stays on-chip"):
        spillprof.estimate(program, small)
    with pytest.raises(CapacityError, match="what stays on-chip"):
        spillprof.estimate(program, small, order=range(len(program.steps)))
    assert spillprof.estimate(spillprof.load_program(model, small), small).spill_bytes > 0


def test_the_oversized_option_is_kept_and_may_be_given_anew():
    target = spillprof.load_target("generic-npu").with_overrides(sram_bytes=2 * MIB)
    strict = LoweringOptions(oversized=Oversized.ERROR)
    program = spillprof.load_program(ROOT / "sample_models" / "unet.onnx", target, strict)
    with pytest.raises(CapacityError):
        spillprof.estimate(program, target)
    assert spillprof.estimate(program, target, lowering=LoweringOptions()).streamed_bytes > 0


def test_other_options_need_another_program():
    target = spillprof.load_target("generic-npu")
    program = spillprof.load_program(ROOT / "sample_models" / "unet.onnx", target)
    with pytest.raises(UsageError, match="lowered with other options"):
        spillprof.estimate(program, target, lowering=LoweringOptions(weights=WeightsPolicy.RESIDENT))


def test_the_documented_examples_run(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    analyses, estimates = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "library.md").read_text("utf-8"), re.DOTALL
    )
    exec(compile(analyses, "docs/library.md", "exec"), {})
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [int(row[0]) for row in rows] == [8, 12, 16]
    assert [int(row[1]) for row in rows] == sorted((int(row[1]) for row in rows), reverse=True)
    exec(compile(estimates, "docs/library.md", "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert first.split()[0] == second
    assert int(second) > 0


def test_the_package_offers_what_it_lists():
    assert all(getattr(spillprof, name) is not None for name in spillprof.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spillprof.nothing
