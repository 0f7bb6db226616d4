"""--branch, --trips and --control-flow, in every command that reads a model."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from spillprof.cli import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An If whose branches differ in size, then a Loop that runs as often as an input says."""
    monkeypatch.chdir(tmp_path)
    wide = helper.make_graph(
        [helper.make_node("Concat", ["x", "x", "x"], ["w"], axis=0), helper.make_node("ReduceMax", ["w"], ["r"])],
        "wide", [], [onnx.ValueInfoProto(name="r")],
    )  # fmt: skip
    narrow = helper.make_graph(
        [helper.make_node("ReduceMax", ["x"], ["r"])], "narrow", [], [onnx.ValueInfoProto(name="r")]
    )
    info = helper.make_tensor_value_info
    trip = helper.make_graph(
        [helper.make_node("Relu", ["s"], ["t"])], "trip",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, [64])],
        [onnx.ValueInfoProto(name="go"), onnx.ValueInfoProto(name="t")],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], name="choose", then_branch=wide, else_branch=narrow),
         helper.make_node("Loop", ["n", "", "x"], ["z"], name="again", body=trip)],
        "g",
        [info("c", TensorProto.BOOL, []), info("n", TensorProto.INT64, []), info("x", TensorProto.FLOAT, [64])],
        [onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto(name="z")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def inspected(capsys: Capture, *arguments: str) -> dict[str, object]:
    assert run(["inspect", "m.onnx", "--json", *arguments]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def types(found: dict[str, object]) -> list[str]:
    operators = found["operators"]
    assert isinstance(operators, list)
    return [operator["op_type"] for operator in operators]


@pytest.mark.usefixtures("path")
def test_inspect_shows_branches_and_trips(capsys: Capture) -> None:
    found = inspected(capsys)
    assert types(found) == ["If", "Concat", "ReduceMax", "Loop", "Relu", "Loop", "Relu", "Loop"]
    assert found["control_flow"] == [
        {"name": "choose", "inside": "", "op_type": "If", "trips": None, "is_unfolded": True, "bodies": [
            {"name": "else", "runs": 0, "operators": 1, "macs": 0, "peak_live_bytes": 4},  # as the file has it
            {"name": "then", "runs": 1, "operators": 2, "macs": 0, "peak_live_bytes": 772},
        ]},
        {"name": "again", "inside": "", "op_type": "Loop", "trips": "assumed", "is_unfolded": True, "bodies": [
            {"name": "body", "runs": 2, "operators": 1, "macs": 0, "peak_live_bytes": 256},
        ]},
    ]  # fmt: skip
    told = inspected(capsys, "--branch", "choose=else", "--trips", "1")
    assert types(told) == ["If", "ReduceMax", "Loop", "Relu", "Loop"]
    assert types(inspected(capsys, "--control-flow", "step")) == ["If", "Loop"]
    assert run(["inspect", "m.onnx"]) == 0
    shown = capsys.readouterr().out
    assert "Control flow (2 of 2, one run of each body)" in shown
    assert "--branch choose=then or else" in shown
    assert "--trips again=N" in shown


@pytest.mark.usefixtures("path")
def test_profile_names_the_choice(capsys: Capture) -> None:
    assert run(["analyze", "m.onnx", "--sram", "2KiB", "--trips", "again=3", "--json"]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert [body["runs"] for each in profile["model"]["control_flow"] for body in each["bodies"]] == [0, 1, 3]
    assert profile["config"]["control_flow"] == "unfold"


@pytest.mark.usefixtures("path")
def test_sweep_takes_them_too(capsys: Capture) -> None:
    arguments = [
        "sweep",
        "m.onnx",
        "--sram",
        "1KiB",
        "--strategy",
        "lru",
        "--trips",
        "2",
        "--jobs",
        "1",
        "-q",
        "-o",
        "-",
    ]
    assert run([*arguments, "--branch", "choose=else"]) == 0
    assert "m.onnx" in capsys.readouterr().out


def test_gate_takes_them_from_its_file_and_keeps_them_in_the_baseline(path: Path, capsys: Capture) -> None:
    (path.parent / "spillprof.toml").write_text(
        'control-flow = "unfold"\n[[models]]\npath = "m.onnx"\nbranches = { choose = "else" }\ntrips = { again = 4 }\n',
        "utf-8",
    )
    assert run(["gate", "--update"]) == 0
    (entry,) = json.loads((path.parent / "spillprof-baseline.json").read_text("utf-8"))["entries"].values()
    assert (entry["config"]["branches"], entry["config"]["trips"]) == ("choose=else", "again=4")
    capsys.readouterr()
    assert run(["gate", "--trips", "again=5"]) == 2  # another configuration is not compared


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--branch", "choose"], "'choose' chooses no branch"),
        (["--branch", "choose=maybe"], "'choose=maybe' chooses no branch"),
        (["--trips", "again=-1"], "'again=-1' is no number of trips"),
        (["--trips", "=3"], "'=3' is no number of trips"),
        (["--trips", "1", "--trips", "2"], "--trips gives '' two values"),
        (["--branch", "chose=then"], "no If is called 'chose'"),
    ],
)
@pytest.mark.usefixtures("path")
def test_what_makes_no_sense_is_an_error(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run(["inspect", "m.onnx", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
