"""Small models with answers from elsewhere, built by the corpus's own script."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from corpus_models import CORPUS

from spillprof.cli import run

SCRIPT = CORPUS / "cases" / "make_cases.py"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason=f"no cases at {SCRIPT} (set SPILLPROF_CORPUS)")

KIB = 1024
MIB = 1024 * KIB
Capture = pytest.CaptureFixture[str]
PLAIN = ("--fuse", "none", "--inplace", "off", "--fold", "off")
INT8 = ("--act-dtype", "int8", "--weight-dtype", "int8")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([sys.executable, SCRIPT, folder], check=True)
    return folder


@pytest.fixture
def ask(cases: Path, capsys: Capture) -> Any:
    def asked(command: str, model: str, *options: str) -> Any:
        assert run([command, str(cases / f"{model}.onnx"), "--json", "-q", *options]) == 0
        return json.loads(capsys.readouterr().out)

    return asked


def tensors(found: Any) -> dict[str, Any]:
    return {tensor["name"]: tensor for tensor in found["tensors"]}


@pytest.mark.parametrize(
    ("model", "peak_kib", "inner"), [("flat_if", 400, "if"), ("nested_if", 400, "inner"), ("loop_if", 416, "inner")]
)
def test_a_branch_counts_what_it_alone_holds(ask: Any, model: str, peak_kib: int, inner: str) -> None:
    found = ask("inspect", model, *PLAIN, "--align", "1")
    assert found["peak_live_bytes"] // KIB == peak_kib
    (bodies,) = (each["bodies"] for each in found["control_flow"] if each["name"] == inner)
    assert {body["name"]: body["runs"] for body in bodies} == {"then": 0, "else": 1}


def test_what_the_other_branch_might_read_is_held_until_the_condition_is_known(ask: Any) -> None:
    found = ask("analyze", "late_branch", "--branch", "if=else", "--sram", "2112KB", "--what-if", "off")
    assert max(found["live_bytes"]) // MIB == 3
    for result in found["results"]:  # skip is written, and no branch that runs reads it again
        if result["strategy"] != "none":
            assert (result["spill_write_bytes"], result["spill_read_bytes"]) == (MIB, 0)


def test_heads_are_no_channels(ask: Any) -> None:
    found = ask("inspect", "attention_heads", "--target", "hexagon")
    assert found["min_sram_bytes"] == 7.75 * MIB
    assert found["peak_padding_bytes"] == 0


def test_the_input_of_a_network_stays_as_it_is(ask: Any) -> None:
    found = ask("analyze", "image_input", "--target", "ethos-u65", *INT8, "--what-if", "off", "--strategy", "lru")
    x = next(buffer for buffer in found["peak_buffers"] if buffer["name"] == "x")
    assert x["size_bytes"] == 150_528


def test_a_move_inside_sram_is_said_and_what_avoids_it_is_found(ask: Any, cases: Path, capsys: Capture) -> None:
    options = ("--target", "ethos-u65", *INT8, "--sram", "3MiB", "--strategy", "lru")
    found = ask("analyze", "moved_inside", *options)
    (result,) = found["results"]
    assert (result["spill_bytes"], result["compaction_count"]) == (0, 1)
    lost_s = result["latency_s"] - found["ideal"]["latency_s"]
    assert lost_s == pytest.approx(307e-6, abs=1e-6)
    best = found["suggestions"][0]
    assert best["latency_s"] <= found["ideal"]["latency_s"] + 1e-6
    assert run(["analyze", str(cases / "moved_inside.onnx"), *options, "--why", "e", "-o", str(cases / "m.json")]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "1 move inside SRAM" in page
    assert "It is moved inside SRAM 1 time" in page


@pytest.mark.parametrize("model", ["static_cache_decode", "static_cache_prefill", "static_cache_scatter"])
def test_a_cache_of_one_capacity_stays_one(ask: Any, model: str) -> None:
    found = tensors(ask("inspect", model))
    assert found["present_k"]["shape"] == found["present_v"]["shape"] == [1, 8, 4096, 128]


def test_pools_of_old_versions_have_no_window_in_padding_alone(ask: Any) -> None:
    assert tensors(ask("inspect", "ceil_pool_12"))["y"]["shape"] == [1, 3, 3, 3]


def test_what_is_listed_as_supported_is_sized(ask: Any) -> None:
    assert tensors(ask("inspect", "mvn"))["y"]["shape"] == [1, 8, 16, 16]


def test_a_dropout_whose_mask_is_read_shares_its_input(ask: Any) -> None:
    found = ask("analyze", "dropout_mask", "--sram", "1MiB", "--what-if", "off", "--fuse", "none", "--inplace", "off")
    names = {buffer["name"]: buffer for buffer in found["buffers"]}
    assert "b" not in names
    assert "mask" in names


@pytest.mark.slow
def test_of_fourteen_thousand_operators_the_slot_and_the_strategy_that_help_are_found(ask: Any) -> None:
    found = ask("analyze", "oscillation_14k", "--sram", "4200KiB", "--strategy", "lru")
    (result,) = found["results"]
    saved_ms = {s["argument"]: (result["latency_s"] - s["latency_s"]) * 1e3 for s in found["suggestions"]}
    assert saved_ms["--pin f"] == pytest.approx(30.8, abs=0.05)
    assert saved_ms["--strategy cost"] == pytest.approx(30.8, abs=0.05)
