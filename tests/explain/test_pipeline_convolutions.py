"""Convolution algorithms in an analysis."""

from pathlib import Path

import pytest

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.profile import Profile
from spillprof.ir.target import load_target
from spillprof.ir.units import parse_size
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions

UNET = Path(__file__).parents[2] / "sample_models" / "unet.onnx"


def analysed(conv: ConvAlgorithm, sram: str) -> Profile:
    target = load_target("generic-npu").with_overrides(sram_bytes=parse_size(sram))
    options = AnalyzeOptions(strategies=("cost",), lowering=LoweringOptions(conv=conv))
    return analyze(read_model(UNET), target, options)


@pytest.mark.parametrize("sram", ["12MB", "32MB", "64MB"])
def test_convolutions_are_counted_by_algorithm_and_those_that_fell_back(sram: str) -> None:
    """Fourteen of fifteen convolutions are 3 x 3 at stride 1."""
    profile = analysed(ConvAlgorithm.AUTO, sram)
    facts = {c.algorithm: c for c in profile.convolutions}
    assert sum(c.steps for c in profile.convolutions) == 15
    counted = [step.algorithm for step in profile.steps if step.algorithm is not None]
    assert {name: counted.count(name) for name in facts} == {name: c.steps for name, c in facts.items()}
    assert 0 < facts["winograd"].workspace_bytes <= profile.target.sram_bytes // 2
    assert profile.reserved.shared_workspace_bytes == facts["winograd"].workspace_bytes
    fell_back = facts["direct"].fell_back
    said = [note for note in profile.model.notes if "slower algorithm" in note]
    assert len(said) == (1 if fell_back else 0)
    assert all(note.startswith(f"{fell_back} of 15 convolutions ") for note in said)


def test_the_more_memory_the_fewer_fall_back() -> None:
    def fell_back(sram: str) -> int:
        return sum(c.fell_back for c in analysed(ConvAlgorithm.AUTO, sram).convolutions)

    counts = [fell_back(sram) for sram in ("8MB", "12MB", "32MB", "1GB")]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


def test_blocks_of_im2col_grow_with_the_memory() -> None:
    """At 1 GB every matrix is whole."""
    small, large = (analysed(ConvAlgorithm.IM2COL, sram).convolutions for sram in ("2MB", "1GB"))
    assert [(c.algorithm, c.steps, c.fell_back) for c in (*small, *large)] == [("im2col", 15, 0)] * 2
    assert small[0].blocks > 15
    assert large[0].blocks == 0
    assert small[0].workspace_bytes <= 1 << 20 < large[0].workspace_bytes


def test_direct_convolutions_say_nothing() -> None:
    profile = analysed(ConvAlgorithm.DIRECT, "8MB")
    assert [(c.algorithm, c.steps, c.workspace_bytes, c.fell_back) for c in profile.convolutions] == [
        ("direct", 15, 0, 0)
    ]
    assert not any("convolution" in note for note in profile.model.notes)
    assert profile.reserved.shared_workspace_bytes == 0
