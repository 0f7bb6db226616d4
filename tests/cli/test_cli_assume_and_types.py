"""Shapes and element types given by option, environment or configuration, in every command."""

import json
import os
from pathlib import Path

import onnx
import pytest
from onnx import helper

from spillprof.cli import run

SAMPLES = Path(__file__).parents[2] / "sample_models"
UNET = str(SAMPLES / "unet.onnx")


@pytest.fixture(autouse=True)
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model whose output is as large as its data say: at most (12, 2)."""
    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if name.startswith("SPILLPROF_"):
            monkeypatch.delenv(name)
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Transpose", ["at"], ["y"])], "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 4])], [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    Path("boxes.onnx").write_bytes(made.SerializeToString())
    return "boxes.onnx"


def assumptions(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return [a["what"] for a in (found.get("assumptions") or found["model"]["assumptions"])]


def test_assumed_shape_is_shown_by_inspect_and_analyze(boxes: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = "the shape of 'at' is 2x5, as given by --assume"
    for command in ("inspect", "analyze"):
        assert assumptions(capsys, command, boxes, "--assume", "at=2x5") == [said]
    assert run(["analyze", boxes, "--assume", "at=2x5", "--no-report", "-o", "a.md", "-o", "a.html"]) == 0
    assert f"assumed, 1 time: {said}" in capsys.readouterr().out
    assert "--assume" in Path("a.md").read_text("utf-8")
    page = Path("a.html").read_text("utf-8")
    assert "2x5, as given by --assume" in page
    assert "spillprof analyze boxes.onnx --assume at=2x5" in page


def test_assumed_shape_from_the_environment(
    boxes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPILLPROF_ASSUME", "at=2x5")
    assert assumptions(capsys, "inspect", boxes) == ["the shape of 'at' is 2x5, as given by --assume"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("at", "'at' is no shape of a tensor"),
        ("at=2xfive", "'at=2xfive' is no shape of a tensor"),
        ("att=2x5", "the model has no tensor 'att'"),
        ("at=3x5", "contradicts the model"),
        ("x=3x4", "'x' is an input of the model"),
    ],
)
def test_assumed_shape_that_cannot_be(boxes: str, text: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", boxes, "--assume", text]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert "hint: " in err


def test_gate_takes_assumed_shapes_of_each_model_into_account(boxes: str, capsys: pytest.CaptureFixture[str]) -> None:
    entry = '[[models]]\npath = "boxes.onnx"\n'
    Path("spillprof.toml").write_text(entry, "utf-8")
    assert run(["gate", "--update"]) == 0
    (before,) = json.loads(Path("spillprof-baseline.json").read_text("utf-8"))["entries"].values()
    assert "assume" not in before["config"]
    Path("spillprof.toml").write_text(entry + "assume = { at = [2, 5] }\n", "utf-8")
    assert run(["gate"]) == 2
    assert "assume" in capsys.readouterr().out
    assert run(["gate", "--update"]) == 0
    (after,) = json.loads(Path("spillprof-baseline.json").read_text("utf-8"))["entries"].values()
    assert after["config"]["assume"] == "at=2x5"
    assert after["totals"]["peak_live_bytes"] < before["totals"]["peak_live_bytes"]


def test_sweep_takes_assumed_shapes(boxes: str, capsys: pytest.CaptureFixture[str]) -> None:
    keys = []
    for assume in ([], ["--assume", "at=2x5"]):
        assert run(["sweep", boxes, "--sram", "4KiB", "--strategy", "lru", "-j", "1", "--json", *assume]) == 0
        keys.append(json.loads(capsys.readouterr().out)["rows"][0]["key"])
    assert keys[0] != keys[1]


def test_element_types_are_echoed_wherever_results_go(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["analyze", UNET, "--sram", "4MB", "--strategy", "lru", "--act-dtype", "fp16", "--weight-dtype", "int4"]
    assert run([*arguments, "--no-report", "-o", "a.md", "-o", "a.html", "-o", "a.json"]) == 0
    out = capsys.readouterr().out
    assert "activations as float16, weights as int4" in " ".join(out.split())
    assert "activations as float16, weights as int4" in Path("a.md").read_text("utf-8")
    config = json.loads(Path("a.json").read_text("utf-8"))["config"]
    assert (config["act_dtype"], config["weight_dtype"]) == ("float16", "int4")
    page = Path("a.html").read_text("utf-8")
    assert "--act-dtype fp16 --weight-dtype int4" in page


def test_peak_shrinks_with_the_type(capsys: pytest.CaptureFixture[str]) -> None:
    peaks = {}
    for dtype in ("file", "fp16", "int8", "int4"):
        assert run(["inspect", UNET, "--act-dtype", dtype, "--json"]) == 0
        peaks[dtype] = json.loads(capsys.readouterr().out)["peak_live_bytes"]
    assert peaks["file"] == 2 * peaks["fp16"] == 4 * peaks["int8"] == 8 * peaks["int4"]


def test_element_types_from_file_and_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("spillprof.toml").write_text('act-dtype = "int8"\nweight-dtype = "bf16"\n', "utf-8")
    monkeypatch.setenv("SPILLPROF_WEIGHT_DTYPE", "int4")
    assert run(["info", "config"]) == 0
    lines = {line.split()[0]: " ".join(line.split()[1:3]) for line in capsys.readouterr().out.splitlines()}
    assert lines["act-dtype"].startswith("int8")
    assert lines["weight-dtype"] == "int4 environment"
    assert run(["analyze", UNET, "--strategy", "lru", "--json"]) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["act_dtype"], config["weight_dtype"]) == ("int8", "int4")
    assert run(["analyze", UNET, "--strategy", "lru", "--json", "--act-dtype", "file"]) == 0
    assert json.loads(capsys.readouterr().out)["config"]["act_dtype"] is None


def test_unknown_element_type_is_refused_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("analyze", "inspect", "gate", "sweep"):
        assert run([command, UNET, "--act-dtype", "int3"]) == 2
        assert "unknown element type 'int3'" in capsys.readouterr().err
    Path("spillprof.toml").write_text('weight-dtype = "int3"\n', "utf-8")
    assert run(["inspect", UNET]) == 2
    assert "weight-dtype" in capsys.readouterr().err


def test_gate_compares_no_types_with_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gate", UNET, "--update"]) == 0
    assert run(["gate", UNET]) == 0
    capsys.readouterr()
    assert run(["gate", UNET, "--act-dtype", "int8"]) == 2
    assert "act_dtype" in capsys.readouterr().out
