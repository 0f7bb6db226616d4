"""``--recompute`` on the command line: the summary, the JSON, the reports, a plan written and checked."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from spillprof.cli import run

KB = 256  # floats


pytestmark = pytest.mark.usefixtures("empty_folder")


def long_skip() -> onnx.ModelProto:
    """s (1 KiB) is repeated to a (40 KiB), which is read at once and again behind two more tensors of 40 KiB."""
    nodes = [
        helper.make_node("Relu", ["x"], ["s"], name="small"),
        helper.make_node("Concat", ["s"] * 40, ["a"], name="grow", axis=2),
        helper.make_node("Concat", ["a"], ["b"], name="copy1", axis=2),
        helper.make_node("Concat", ["b"], ["c"], name="copy2", axis=2),
        helper.make_node("MaxPool", ["c"], ["d"], name="shrink", kernel_shape=[40], strides=[40]),
        helper.make_node("MaxPool", ["a"], ["e"], name="late", kernel_shape=[40], strides=[40]),
        helper.make_node("Concat", ["d", "e", "s"], ["y"], name="join", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "skip",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, KB])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def analyzed(*options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["analyze", "m.onnx", "--sram", "88KiB", "--json", "--strategy", "interval", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_concat_is_run_again_and_nothing_spills(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    off = analyzed(capsys=capsys)
    rules = analyzed("--recompute", "rules", capsys=capsys)
    assert off["config"]["recompute"] == "off"
    assert (off["recompute"], off["recomputed"]) == (None, [])
    assert off["results"][0]["spill_bytes"] == 80 * 1024
    assert rules["config"]["recompute"] == "rules"
    assert rules["results"][0]["spill_bytes"] == 0
    (copy,) = rules["recomputed"]
    assert (copy["buffer"], copy["saves_bytes"]) == ("a", 80 * 1024)
    assert rules["steps"][copy["step"]]["name"] == "grow (recomputed)"
    assert rules["recompute"]["operators"] == 1
    assert rules["recompute"]["spill_bytes_before"] == 80 * 1024
    assert rules["model"]["macs"] == off["model"]["macs"]
    assert rules["ideal"] == off["ideal"]  # infinite memory runs nothing twice
    latency = rules["results"][0]["latency_s"]
    assert off["ideal"]["latency_s"] < latency < off["results"][0]["latency_s"]
    assert rules["results"][0]["spill_time_s"] == pytest.approx(latency - off["ideal"]["latency_s"])


def test_reports_say_what_runs_twice(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    options = ["--sram", "88KiB", "--recompute", "rules", "--strategy", "lru,interval,none"]
    assert run(["analyze", "m.onnx", *options, "-o", "m.html", "-o", "m.md"]) == 0
    page = capsys.readouterr().out
    assert "1 operator runs twice (--recompute rules)" in page
    assert "with the same operators run twice" in page
    assert "grow (recomputed)" in Path("m.html").read_text("utf-8")
    assert "Operators that run twice" in Path("m.html").read_text("utf-8")
    assert "1 operator runs twice" in Path("m.md").read_text("utf-8")


def test_plan_of_the_changed_program_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    options = ["m.onnx", "--sram", "88KiB", "--recompute", "rules"]
    assert run(["analyze", *options, "--strategy", "interval", "--plan", "plan.json", "--no-report"]) == 0
    plan = json.loads(Path("plan.json").read_text("utf-8"))
    assert "a (recomputed)" in {segment["buffer"] for segment in plan["segments"]}
    assert run(["verify", "m.onnx", "plan.json", *options[1:]]) == 0


def test_it_is_suggested_and_gives_what_was_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    (found,) = [s for s in analyzed(capsys=capsys)["suggestions"] if s["change"] == "recompute"]
    assert found["argument"] == "--recompute rules"
    assert found["costs"].startswith("1 operator runs twice, ")
    (result,) = analyzed("--recompute", "rules", capsys=capsys)["results"]
    assert (result["spill_bytes"], result["latency_s"]) == (found["spill_bytes"], found["latency_s"])


def test_suggestions_beside_it_search_for_what_runs_twice_too(capsys: pytest.CaptureFixture[str]) -> None:
    """At 30 KiB operators are tiled, and nothing is worth a second run; in the memory that is suggested it is."""
    onnx.save(long_skip(), "m.onnx")
    options = ["analyze", "m.onnx", "--json", "--recompute", "rules", "--strategy", "lru"]
    assert run([*options, "--sram", "30KiB"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["recomputed"] == []
    (larger,) = [s for s in found["suggestions"] if s["change"] == "sram"]
    assert run([*options, *larger["argument"].split()]) == 0
    applied = json.loads(capsys.readouterr().out)
    assert len(applied["recomputed"]) == 1
    assert applied["results"][0]["spill_bytes"] == larger["spill_bytes"]
    assert applied["results"][0]["latency_s"] == larger["latency_s"]


def test_sweep_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    capsys.readouterr()
    sweep = ["sweep", "m.onnx", "--sram", "88KiB", "--strategy", "interval", "--jobs", "1", "--json"]
    spilled = []
    for mode in ("off", "rules"):
        assert run([*sweep, "--recompute", mode]) == 0
        spilled.append(json.loads(capsys.readouterr().out)["rows"][0]["spill_bytes"])
    assert spilled == [80 * 1024, 0]


def test_configuration_file_sets_it(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    Path("spillprof.toml").write_text('recompute = "rules"\n', "utf-8")
    assert analyzed(capsys=capsys)["config"]["recompute"] == "rules"
    Path("spillprof.toml").write_text('recompute = "always"\n', "utf-8")
    assert run(["analyze", "m.onnx", "--sram", "88KiB", "--no-report"]) == 2
    assert "off, rules, joint" in capsys.readouterr().err


def test_one_tensor_is_suggested_by_name_and_gives_what_was_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    (found,) = [s for s in analyzed(capsys=capsys)["suggestions"] if s["change"] == "recompute-tensor"]
    assert found["argument"] == "--recompute-tensor a"
    assert found["costs"].startswith("Concat runs twice: 0 MACs, ")
    after = analyzed("--recompute-tensor", "a", capsys=capsys)
    (result,) = after["results"]
    assert (result["spill_bytes"], result["latency_s"]) == (found["spill_bytes"], found["latency_s"])
    assert after["config"]["recompute_tensor"] == ["a"]
    (copy,) = after["recomputed"]
    assert (copy["buffer"], copy["saves_bytes"]) == ("a", 80 * 1024)
    assert after["recompute"]["spill_bytes_before"] == 80 * 1024
    assert not any(s["change"].startswith("recompute") for s in after["suggestions"])


def test_reports_say_which_option_named_it(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    options = ["analyze", "m.onnx", "--sram", "88KiB", "--strategy", "interval", "--no-report"]
    assert run([*options, "--recompute-tensor", "a"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "1 operator runs twice (--recompute-tensor): 0 MACs" in page
    assert "that spills 0 in place of 80 KiB" in page
    assert run([*options, "--recompute-tensor", "b"]) == 2
    assert "cannot compute tensor 'b' again: nothing runs between its uses" in capsys.readouterr().err


def test_every_command_takes_both_options_and_so_does_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(long_skip(), "m.onnx")
    Path("spillprof.toml").write_text('recompute-tensor = "a"\nfuse-tensor = []\n', "utf-8")
    assert run(["analyze", "m.onnx", "--sram", "88KiB", "--no-report"]) == 2
    assert "an empty list" in capsys.readouterr().err
    Path("spillprof.toml").write_text('recompute-tensor = ["a"]\n', "utf-8")
    assert analyzed(capsys=capsys)["config"]["recompute_tensor"] == ["a"]
    options = ["m.onnx", "--sram", "88KiB"]
    assert run(["analyze", *options, "--strategy", "interval", "--plan", "plan.json", "--no-report"]) == 0
    assert run(["verify", "m.onnx", "plan.json", *options[1:]]) == 0
    capsys.readouterr()
    assert run(["sweep", *options, "--strategy", "interval", "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["spill_bytes"] == 0
    assert run(["gate", *options, "--update"]) == 0
    assert '"recompute_tensor": "a"' in Path("spillprof-baseline.json").read_text("utf-8")
