"""Every type of value, from the file to the figures of the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_builders import floats, ints, model, node, value

from spillprof.cli import run

T = onnx.TensorProto
PLAIN = ["--fuse", "none", "--inplace", "off", "--views", "copy", "--fold", "off"]


@pytest.fixture
def inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """JSON of ``inspect`` for the bytes of a model, or the text of its error."""

    def ask(data: bytes, *arguments: str) -> Any:
        path = tmp_path / "m.onnx"
        path.write_bytes(data)
        code = run(["inspect", str(path), "--json", *arguments])
        out, err = capsys.readouterr()
        assert code in (0, 2), err
        return json.loads(out) if code == 0 else err

    return ask


def sizes(found: Any) -> dict[str, tuple[str, int]]:
    return {tensor["name"]: (tensor["dtype"], tensor["bytes"]) for tensor in found["tensors"]}


def with_input(data: bytes, name: str, proto: onnx.TypeProto) -> bytes:
    made = onnx.ModelProto.FromString(data)
    made.graph.input.append(helper.make_value_info(name, proto))
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("element", "dtype", "nbytes"),
    [
        ("FLOAT16", "float16", 30), ("BFLOAT16", "bfloat16", 30), ("FLOAT", "float32", 60), ("DOUBLE", "float64", 120),
        ("FLOAT8E4M3FN", "float8e4m3fn", 15), ("FLOAT8E5M2FNUZ", "float8e5m2fnuz", 15), ("FLOAT4E2M1", "float4e2m1", 8),
        ("INT4", "int4", 8), ("UINT4", "uint4", 8), ("INT8", "int8", 15), ("UINT16", "uint16", 30),
        ("INT64", "int64", 120), ("BOOL", "bool", 15), ("COMPLEX64", "complex64", 120), ("UINT2", "uint2", 4),
        ("INT2", "int2", 4), ("FLOAT8E8M0", "float8e8m0", 15),
    ],
)  # fmt: skip
def test_fifteen_elements_of_each_type(inspect: Any, element: str, dtype: str, nbytes: int) -> None:
    if not hasattr(T, element):
        pytest.skip(f"this onnx has no {element}")
    opset = 25 if element in ("UINT2", "INT2", "FLOAT8E8M0") else 23
    x = value("x", [3, 5], getattr(T, element))
    found = inspect(model([node("Identity", "x", "y")], [x], "y", opset=opset), *PLAIN, "--align", "1")
    assert sizes(found) == {"x": (dtype, nbytes), "y": (dtype, nbytes)}
    assert found["peak_live_bytes"] == 2 * nbytes
    assert found["assumptions"] == []


def test_strings_take_nothing_and_say_so(inspect: Any) -> None:
    found = inspect(model([node("Identity", "x", "y")], [value("x", [3], T.STRING)], "y"), *PLAIN)
    assert sizes(found) == {"x": ("string", 0), "y": ("string", 0)}
    assert found["assumptions"] == [{"what": "a value of type string is counted as 0 bytes", "count": 2}]


def test_what_is_taken_out_of_a_sequence_is_sized(inspect: Any) -> None:
    nodes = [node("SequenceConstruct", "x x", "q"), node("SequenceAt", "q i", "y")]
    found = inspect(model(nodes, [value("x", [4])], "y", initializers=[ints("i", 0)]), *PLAIN)
    assert sizes(found) == {"x": ("float32", 16), "q": ("sequence", 32), "y": ("float32", 16), "i": ("int64", 8)}
    what = "a value of type sequence is counted as all that it holds, and copied where it changes"
    assert found["assumptions"] == [{"what": what, "count": 1}]


def test_dimension_inside_a_sequence_is_bound_or_asked_for(inspect: Any) -> None:
    element = helper.make_tensor_type_proto(T.FLOAT, [7, "N"])
    data = model([node("SequenceAt", "q i", "y")], [], "y", initializers=[ints("i", 0)])
    data = with_input(data, "q", helper.make_sequence_type_proto(element))
    assert sizes(inspect(data, "--dim", "N=3"))["y"] == ("float32", 84)
    assert "hint: the size depends on run-time data" in inspect(data)
    assert "--assume y=7x1" in inspect(data)
    assert sizes(inspect(data, "--assume", "y=7x2"))["y"] == ("float32", 56)


def test_what_is_in_an_optional_is_sized(inspect: Any) -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(T.FLOAT16, [7]))
    found = inspect(with_input(model([node("OptionalGetElement", "o", "y")], [], "y", opset=18), "o", optional))
    assert sizes(found) == {"o": ("optional", 14), "y": ("float16", 14)}
    what = "a value of type optional is counted as all that it holds, and copied where it changes"
    assert found["assumptions"] == [{"what": what, "count": 1}]


def test_map_becomes_a_row_of_its_vocabulary(inspect: Any) -> None:
    mapping = helper.make_map_type_proto(T.STRING, helper.make_tensor_type_proto(T.FLOAT, []))
    nodes = [node("DictVectorizer", "m", "y", domain="ai.onnx.ml", string_vocabulary=["a", "b"])]
    found = inspect(with_input(model(nodes, [], "y", domains={"ai.onnx.ml": 3}), "m", mapping))
    assert sizes(found) == {"m": ("map", 0), "y": ("float32", 8)}


def test_sparse_weight_counts_as_dense_and_says_so(inspect: Any) -> None:
    made = onnx.ModelProto.FromString(model([node("MatMul", "x w", "y")], [value("x", [2, 4])], "y"))
    sparse = made.graph.sparse_initializer.add(dims=[4, 4])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([0, 5]), "at"))
    found = inspect(made.SerializeToString())
    assert found["weight_bytes"] == 64
    assert found["assumptions"] == [{"what": "sparse weights are counted as dense", "count": 1}]


def test_sparse_input_is_refused_with_a_hint(inspect: Any) -> None:
    proto = onnx.TypeProto()
    proto.sparse_tensor_type.elem_type = T.FLOAT
    message = inspect(with_input(model([node("Relu", "x", "y")], [value("x", [2])], "y"), "s", proto))
    assert message.startswith("error: values of kind 'sparse_tensor' are not supported")
    assert "hint: " in message


def qdq() -> bytes:
    """Two convolutions with Q/DQ around each, int8 weights and int32 bias, float at both ends."""
    scale = [floats("s"), helper.make_tensor("z", T.INT8, [], [0])]
    nodes, inits, last = [node("QuantizeLinear", "x s z", "q0")], scale, "q0"
    for k in (1, 2):
        inits += [
            helper.make_tensor(f"wq{k}", T.INT8, [8, 8, 1, 1], bytes(64), raw=True),
            helper.make_tensor(f"bq{k}", T.INT32, [8], bytes(32), raw=True),
        ]
        nodes += [
            node("DequantizeLinear", f"{last} s z", f"d{k}"), node("DequantizeLinear", f"wq{k} s z", f"w{k}"),
            node("DequantizeLinear", f"bq{k} s", f"b{k}"), node("Conv", f"d{k} w{k} b{k}", f"c{k}"),
            node("Relu", f"c{k}", f"r{k}"), node("QuantizeLinear", f"r{k} s z", f"q{k}"),
        ]  # fmt: skip
        last = f"q{k}"
    nodes.append(node("DequantizeLinear", f"{last} s z", "y"))
    return model(nodes, [value("x", [1, 8, 4, 4])], "y", initializers=inits)


def test_float_model_with_quantisers_is_sized_as_deployed(inspect: Any) -> None:
    found = inspect(qdq())
    assert {name: size for name, size in sizes(found).items() if name[0] in "xyqcdr"} == {
        "x": ("float32", 512), "q0": ("int8", 128), "q1": ("int8", 128), "q2": ("int8", 128), "y": ("float32", 512)
    }  # fmt: skip
    assert found["weight_bytes"] == 2 * (64 + 32) + 4 + 1
    assert [o["op_type"] for o in found["operators"]] == ["QuantizeLinear", "Conv", "Conv", "DequantizeLinear"]


def test_of_a_quantised_model_only_what_is_float_changes(inspect: Any) -> None:
    before, after = inspect(qdq()), inspect(qdq(), "--act-dtype", "fp16", "--weight-dtype", "int4")
    assert sizes(after)["x"] == ("float16", 256)
    assert sizes(after)["q1"] == ("int8", 128)
    assert after["weight_bytes"] == before["weight_bytes"]


def test_quantised_operators_are_sized_as_deployed(inspect: Any) -> None:
    scale, zero = floats("s"), helper.make_tensor("z", T.UINT8, [], [0])
    weight = helper.make_tensor("w", T.INT8, [8, 8, 1, 1], bytes(64), raw=True)
    wz = helper.make_tensor("wz", T.INT8, [], [0])
    nodes = [node("QuantizeLinear", "x s z", "q"), node("QLinearConv", "q s z w s wz s z", "c"),
             node("DequantizeLinear", "c s z", "y")]  # fmt: skip
    found = inspect(model(nodes, [value("x", [1, 8, 4, 4])], "y", initializers=[scale, zero, weight, wz]))
    assert sizes(found)["q"] == ("uint8", 128)
    assert sizes(found)["c"] == ("uint8", 128)
    assert found["operators"][1]["macs"] == 8 * 8 * 16


def test_half_byte_weights_stay_packed_through_their_dequantiser(inspect: Any) -> None:
    weights = [helper.make_tensor("w", T.INT4, [3, 5], bytes(8), raw=True), floats("s", 5),
               helper.make_tensor("z", T.INT4, [5], bytes(3), raw=True)]  # fmt: skip
    nodes = [node("DequantizeLinear", "w s z", "d", axis=1), node("MatMul", "x d", "y")]
    found = inspect(model(nodes, [value("x", [2, 3])], "y", initializers=weights, opset=21))
    assert found["weight_bytes"] == 8 + 20 + 3
    assert sizes(found)["y"] == ("float32", 40)
