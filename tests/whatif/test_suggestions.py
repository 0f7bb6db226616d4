"""Suggestions do what they say: each, added to the command line, gives exactly the predicted figures."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spillprof.cli import run

SAMPLES = Path(__file__).parents[2] / "sample_models"
Analyze = Callable[..., dict[str, Any]]


@pytest.fixture
def analyzed(capsys: pytest.CaptureFixture[str]) -> Analyze:
    """Runs ``analyze`` in this process, and gives its JSON."""

    def call(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = run(["analyze", *arguments, "--json"])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        found: dict[str, Any] = json.loads(captured.out)
        return found

    return call


CASES = {
    "transformer": ("transformer_blocks.onnx", "--sram", "1250000", "--strategy", "lru,interval"),
    "transformer, cached, in the order found": (
        "transformer_blocks.onnx", "--sram", "1250000", "--strategy", "belady", "--weights", "cached", "--order",
        "memory", "--pin", "scale",
    ),
    "unet, im2col, a bus": (
        "unet.onnx", "--sram", "16MB", "--strategy", "cost", "--conv", "im2col", "--set", "dram-bus=80GB/s",
    ),
    "three branches, oversized": ("three_branch.onnx", "--sram", "600MB", "--strategy", "size"),
    "three branches, everything switched off": (
        "three_branch.onnx", "--sram", "900MB", "--strategy", "lru", "--dma", "demand", "--writeback", "always",
        "--fuse", "none", "--inplace", "off", "--views", "copy", "--release", "end", "--inputs", "resident",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_suggestion_gives_the_predicted_figures(case: str, analyzed: Analyze) -> None:
    model, *options = CASES[case]
    typed = [str(SAMPLES / model), *options]
    before = analyzed(*typed)
    lead = min(before["results"], key=lambda r: (r["spill_time_s"], r["spill_bytes"]))
    found = before["suggestions"]
    assert found
    assert len({s["argument"] for s in found}) == len(found)
    assert [s["saves_s"] for s in found] == sorted((s["saves_s"] for s in found), reverse=True)
    for suggestion in found:
        after = analyzed(*typed, *shlex.split(suggestion["argument"]), "--what-if", "off")
        result = next(r for r in after["results"] if r["strategy"] == suggestion["strategy"])
        assert (result["spill_bytes"], result["latency_s"], result["energy_j"]) == (
            suggestion["spill_bytes"], suggestion["latency_s"], suggestion["energy_j"],
        ), suggestion["argument"]  # fmt: skip
        runs = 2 if suggestion["change"] == "batch" else 1
        assert suggestion["saves_s"] == lead["latency_s"] - runs * result["latency_s"]
        assert suggestion["saves_bytes"] == lead["spill_bytes"] - runs * result["spill_bytes"]
        assert suggestion["saves_j"] == lead["energy_j"] - runs * result["energy_j"]
        assert suggestion["saves_s"] > 0 or (suggestion["saves_s"] == 0 and suggestion["saves_bytes"] > 0)
        assert suggestion["costs"]
