"""Damaged models give a graph or one of our errors, nothing else."""

import contextlib
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_builders import body, floats, ints, model, node, read, value

from spillprof.ir.errors import ShapeError, SpillprofError

X = value("x", [2, 4])


def _samples() -> list[bytes]:
    inner = body([node("Relu", "x", "o")], "o")
    step = body(
        [node("Add", "a a", "b")],
        "go b b",
        [value("i", [], onnx.TensorProto.INT64), value("go", [], onnx.TensorProto.BOOL), value("a", [2, 4])],
    )
    double = helper.make_function("f", "Double", ["a"], ["r"], [node("Add", "a a", "r")], [helper.make_opsetid("", 17)])
    nodes = [
        node("Constant", "", "k", value_ints=[4, -1]),
        node("Reshape", "x k", "r"),
        node("If", "c", "i", then_branch=inner, else_branch=inner),
        node("Loop", "n - x", "l all", body=step),
        node("Double", "x", "d", domain="f"),
        node("MatMul", "r w", "m"),
    ]
    inputs = [X, value("c", [], onnx.TensorProto.BOOL)]
    control = model(
        nodes,
        inputs,
        "m i l d all",
        initializers=[floats("w", 2, 3), ints("n", 3)],
        domains={"f": 1},
        functions=[double],
    )
    shapes = [
        node("Shape", "x", "s"),
        node("Slice", "s a b", "t"),
        node("ConstantOfShape", "t", "z"),
        node("Range", "one n one", "q"),
        node("Expand", "z s", "e"),
        node("Split", "x parts", "p u", axis=1),
        node("Conv", "image kernel", "v", pads=[1, 1, 1, 1], strides=[2, 2]),
    ]
    stored = [
        ints("a", [0]),
        ints("b", [2]),
        ints("one", 1),
        ints("n", 9),
        ints("parts", [1, 3]),
        floats("kernel", 2, 2, 3, 3),
    ]
    arithmetic = model(shapes, [X, value("image", [1, 2, 8, 8])], "e q p u v", initializers=stored)
    return [control, arithmetic]


SAMPLES = _samples()


def reads_or_refuses(data: bytes) -> None:
    with contextlib.suppress(SpillprofError):
        graph = read(data)
        assert all(size >= 0 for tensor in graph.tensors.values() for size in tensor.shape)


def test_samples_are_sound() -> None:
    for sample in SAMPLES:
        assert read(sample).operators


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sample=st.sampled_from(SAMPLES),
    changes=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_changed_bytes(sample: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(sample)
    for place, byte in changes:
        damaged[place % len(damaged)] = byte
    reads_or_refuses(bytes(damaged))


@settings(max_examples=150, deadline=None)
@given(
    sample=st.sampled_from(SAMPLES),
    start=st.integers(0, 1 << 16),
    length=st.integers(1, 40),
    insert=st.binary(max_size=8),
)
def test_replaced_stretch(sample: bytes, start: int, length: int, insert: bytes) -> None:
    start %= len(sample)
    reads_or_refuses(sample[:start] + insert + sample[start + length :])


@settings(max_examples=150, deadline=None)
@given(data=st.binary(min_size=1, max_size=200))
def test_any_bytes(data: bytes) -> None:
    reads_or_refuses(data)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sample=st.sampled_from(SAMPLES), data=st.data())
def test_damaged_structure(sample: bytes, data: st.DataObject) -> None:
    """Valid protobuf that says something else: numbers, names and attributes changed, nodes gone or doubled."""
    proto = onnx.ModelProto.FromString(sample)
    nodes = proto.graph.node
    chosen = nodes[data.draw(st.integers(0, len(nodes) - 1))]
    names = sorted({n for m in nodes for n in (*m.input, *m.output)})
    match data.draw(
        st.sampled_from(["input", "output", "op", "ints", "drop", "double", "dim", "opset", "type", "extra"])
    ):
        case "input" if chosen.input:
            chosen.input[data.draw(st.integers(0, len(chosen.input) - 1))] = data.draw(st.sampled_from(names))
        case "output":
            chosen.output[0] = data.draw(st.sampled_from(names))
        case "op":
            chosen.op_type = data.draw(
                st.sampled_from(["If", "Loop", "Scan", "Concat", "Gather", "Constant", "LSTM", "Tile"])
            )
        case "ints" if chosen.attribute:
            chosen.attribute[0].ints[:] = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4))
        case "drop":
            nodes.remove(chosen)
        case "double":
            nodes.append(chosen)
        case "dim":
            for dim in proto.graph.input[0].type.tensor_type.shape.dim:
                dim.dim_value = data.draw(st.integers(-(2**63), 2**63 - 1))
        case "opset":
            proto.opset_import[0].version = data.draw(st.integers(-(2**63), 2**63 - 1))
        case "type":
            proto.graph.input[0].type.tensor_type.elem_type = data.draw(st.integers(-5, 40))
        case "extra":
            chosen.input.extend(data.draw(st.lists(st.sampled_from(names), max_size=5)))
    reads_or_refuses(proto.SerializeToString())


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (node("Split", "x", "p q", num_outputs=4), "num_outputs is 4, but the node has 2 outputs"),
        (node("LayerNormalization", "x w", "p q u", axis=1 << 31), "axis 2147483648 of a tensor with 2 dimensions"),
        (node("LayerNormalization", "x w", "p q u", axis=-3), "axis -3 of a tensor with 2 dimensions"),
        (node("GatherND", "x i", "p", batch_dims=-3), "batch_dims is -3, of tensors with 2 and 2 dimensions"),
        (node("GatherND", "x i", "p", batch_dims=2), "batch_dims is 2, of tensors with 2 and 2 dimensions"),
        (node("GatherND", "x i", "p"), "the indices name 3 dimensions of a tensor with 2"),
    ],
)
def test_nodes_that_lead_onnx_outside_of_its_memory_are_refused(damaged: onnx.NodeProto, message: str) -> None:
    data = model([damaged], [X], "p", initializers=[floats("w", 4), ints("i", [[0, 0, 0]])], opset=20)
    with pytest.raises(ShapeError) as refused:
        read(data)
    assert refused.value.message == message
    assert refused.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked, and limited by POSIX means")
def test_no_node_ends_or_holds_its_process() -> None:
    """Random nodes, one process for many: each must be read or refused within seconds of the processor."""
    script = Path(__file__).parents[2] / "benchmarks" / "fuzz_nodes.py"
    command = [sys.executable, str(script), "--models", "700"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("700 models, 0 ended")


def test_a_shape_of_absurd_length_is_refused_before_onnx_adds_axis_by_axis() -> None:
    data = model([node("Expand", "x s", "y")], [X, value("s", [1 << 40], onnx.TensorProto.INT64)], "y", opset=8)
    with pytest.raises(ShapeError, match="1,099,511,627,776 axes"):
        read(data)


def test_their_neighbours_are_read() -> None:
    nodes = [
        node("Split", "x", "p q", num_outputs=2, axis=1),
        node("LayerNormalization", "x w", "r s t", axis=-2),
        node("GatherND", "x i", "u", batch_dims=1),
        node("GatherND", "x j", "v"),
    ]
    stored = [floats("w", 2, 4), ints("i", [[3], [0]]), ints("j", [[0, 3]])]
    shapes = {
        name: t.shape for name, t in read(model(nodes, [X], "p r u v", initializers=stored, opset=20)).tensors.items()
    }
    assert (shapes["p"], shapes["r"], shapes["u"], shapes["v"]) == ((2, 2), (2, 4), (2,), (1,))
