"""``--set``: any field of the target from the command line."""

import json
from pathlib import Path

import pytest

from spillprof.cli import run

MODEL = str(Path(__file__).parents[2] / "sample_models" / "unet.onnx")
Capture = pytest.CaptureFixture[str]


def target_of(capsys: Capture, *options: str) -> dict[str, object]:
    assert run(["analyze", MODEL, "--sram", "64MB", "--strategy", "none", "--json", *options]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)["target"]
    return found


def test_fields_are_set_and_the_last_counts(capsys: Capture) -> None:
    target = target_of(
        capsys, "--set", "dma-read-channels=3", "--set", "dram-read=10GB/s", "--set", "dram_read_bytes_per_s=20GB/s"
    )
    assert (target["dma_read_channels"], target["dram_read_bytes_per_s"]) == (3, 20e9)


def test_a_field_that_is_set_comes_before_its_own_option(capsys: Capture) -> None:
    assert target_of(capsys, "--dram-read", "10GB/s", "--set", "dram-read=20GB/s")["dram_read_bytes_per_s"] == 20e9


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("dram-reed=1GB/s", "a target has no field 'dram-reed'"),
        ("dram-read", "'dram-read' sets nothing"),
        ("dram-read=fast", "'fast' is not a bandwidth"),
        ("sram=1MB", "target field 'sram_bytes' takes no single value"),
        ("cores=0", "0 is too few"),
    ],
)
def test_what_cannot_be_set_is_refused(setting: str, message: str, capsys: Capture) -> None:
    assert run(["analyze", MODEL, "--set", setting]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "--set" in error
