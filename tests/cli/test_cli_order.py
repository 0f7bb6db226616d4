"""``--order memory``: the order found, the model written in it, and the same figures from that model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spillprof.cli import run
from spillprof.frontends.onnx.rewriting import in_node_order

KB = 256  # floats


pytestmark = pytest.mark.usefixtures("empty_folder")


def breadth_first(arms: int = 4) -> onnx.ModelProto:
    """x feeds every arm; all arms grow before the first one shrinks. Constants lie among the nodes, one on each arm."""
    nodes, outputs = [], []
    for k in range(arms):
        axis = numpy_helper.from_array(np.array([0], np.int64), f"axis{k}")
        nodes.append(helper.make_node("Constant", [], [f"c{k}"], name=f"constant{k}", value=axis))
        nodes.append(helper.make_node("Concat", ["x"] * 40, [f"a{k}"], name=f"grow{k}", axis=0))
    for k in range(arms):
        nodes.append(helper.make_node("ReduceSum", [f"a{k}", f"c{k}"], [f"s{k}"], name=f"shrink{k}", keepdims=0))
        outputs.append(f"s{k}")
    nodes.append(helper.make_node("Concat", outputs, ["y"], name="join", axis=0))
    graph = helper.make_graph(
        nodes,
        "arms",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, KB])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [arms * KB])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def analyzed(path: str, *options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["analyze", path, "--sram", "64KiB", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_memory_order_goes_arm_by_arm_and_spills_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Four tensors of 40 KiB at once against one at a time, in 64 KiB."""
    onnx.save(breadth_first(), "m.onnx")
    file = analyzed("m.onnx", capsys=capsys)
    found = analyzed("m.onnx", "--order", "memory", capsys=capsys)
    assert file["bounds"]["spill_bytes_lower"] > 0
    assert [r["spill_bytes"] for r in found["results"]] == [0] * len(found["results"])
    assert (file["config"]["order"], found["config"]["order"]) == ("file", "memory")


def test_saved_order_gives_the_predicted_figures_from_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(breadth_first(6), "m.onnx")
    found = analyzed("m.onnx", "--order", "memory", "--save-order", "n.onnx", capsys=capsys)
    again = analyzed("n.onnx", capsys=capsys)
    for key in ("spill_bytes", "latency_s", "peak_bytes"):
        assert [r[key] for r in found["results"]] == [r[key] for r in again["results"]]
    assert [s["name"] for s in found["steps"]] == [s["name"] for s in again["steps"]]


def test_saved_model_is_the_same_but_for_the_order_of_its_nodes() -> None:
    model = breadth_first()
    onnx.save(model, "m.onnx")
    ranks = {"a3": 0, "s3": 1, "a0": 2, "s0": 3, "a1": 4, "s1": 5, "a2": 6, "s2": 7, "y": 8}
    data = b"".join(in_node_order("m.onnx", ranks))
    other = onnx.load_from_string(data)
    onnx.checker.check_model(other)
    assert len(data) == Path("m.onnx").stat().st_size
    names = [n.name for n in other.graph.node]
    arms = [f"{what}{k}" for k in (3, 0, 1, 2) for what in ("grow", "constant", "shrink")]
    assert names == [*arms, "join"]
    assert sorted(n.SerializeToString() for n in other.graph.node) == sorted(
        n.SerializeToString() for n in model.graph.node
    )
    del other.graph.node[:], model.graph.node[:]
    assert other == model


def test_node_is_not_put_before_what_its_subgraph_reads() -> None:
    """The If reads ``late`` inside of a branch only; its rank would put it first."""
    then_branch = helper.make_graph(
        [helper.make_node("Identity", ["late"], ["t"])], "t", [], [onnx.ValueInfoProto(name="t")]
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["late"], name="late"),
        helper.make_node("If", ["p"], ["y"], name="if", then_branch=then_branch, else_branch=then_branch),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]),
        helper.make_tensor_value_info("p", TensorProto.BOOL, []),
    ]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")])), "m.onnx")
    data = b"".join(in_node_order("m.onnx", {"y": 0, "late": 5}))
    assert [n.name for n in onnx.load_from_string(data).graph.node] == ["late", "if"]


@pytest.mark.parametrize(
    "options",
    [
        ["--save-order", "n.onnx"],
        ["--order", "memory", "--save-order", "m.onnx"],
        ["--order", "memory", "--save-order", "missing/n.onnx"],
        ["--order", "fastest"],
    ],
)
def test_order_that_cannot_be_saved_is_an_error(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(breadth_first(), "m.onnx")
    before = Path("m.onnx").read_bytes()
    assert run(["analyze", "m.onnx", "--sram", "64KiB", "--no-report", *options]) == 2
    assert "error:" in capsys.readouterr().err
    assert Path("m.onnx").read_bytes() == before
    assert [p.name for p in Path().iterdir()] == ["m.onnx"]
