"""The scanner over the wire format: skipped payloads and refused files."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_builders import body, floats, ints, model, node, read, value

from spillprof.frontends import read_model
from spillprof.frontends.onnx.wire import strip_payloads
from spillprof.ir.errors import ModelError, SpillprofError


def stripped(data: bytes) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(strip_payloads(data))


def add_weight(weight: onnx.TensorProto) -> bytes:
    return model([node("Add", "x w", "y")], [value("x", [1])], "y", initializers=[weight])


def test_large_payload_goes_and_shape_stays() -> None:
    data = add_weight(floats("w", 64, 32))
    tensor = stripped(data).graph.initializer[0]
    assert (list(tensor.dims), tensor.raw_data) == ([64, 32], b"")
    assert len(data) - len(strip_payloads(data)) > 64 * 32 * 4


def test_small_payload_stays() -> None:
    tensor = stripped(add_weight(floats("w", 16))).graph.initializer[0]
    assert len(tensor.raw_data) == 64


def test_integers_that_shapes_may_need_stay_up_to_4096() -> None:
    kept, dropped = (stripped(add_weight(ints("w", range(n)))).graph.initializer[0] for n in (4096, 4097))
    assert len(kept.raw_data) == 8 * 4096
    assert dropped.raw_data == b""


@pytest.mark.parametrize(
    "place", ["initializer", "constant node", "body", "function", "sparse initializer", "attribute list"]
)
def test_payload_goes_wherever_it_is(place: str) -> None:
    big = floats("w", 1024)
    nodes, initializers, functions = [node("Relu", "x", "y")], [], []
    constant = node("Constant", "", "c", value=big)
    if place == "initializer":
        initializers = [big]
    elif place == "constant node":
        nodes.append(constant)
    elif place == "body":
        nodes.append(node("If", "b", "z", then_branch=body([constant], "c"), else_branch=body([constant], "c")))
    elif place == "function":
        opsets = [helper.make_opsetid("", 17)]
        functions = [helper.make_function("f", "F", [], ["c"], [constant], opsets)]
    elif place == "attribute list":
        nodes[0].attribute.add(name="many", type=onnx.AttributeProto.TENSORS).tensors.append(big)
    data = model(nodes, [value("x", [1])], "y", initializers=initializers, functions=functions)
    if place == "sparse initializer":
        proto = onnx.ModelProto.FromString(data)
        indices = numpy_helper.from_array(np.arange(1024, dtype=np.int64), "i")
        proto.graph.sparse_initializer.append(helper.make_sparse_tensor(big, indices, [4096]))
        data = proto.SerializeToString()
    assert len(strip_payloads(data)) < len(data) - 4096 + 64
    stripped(data)


def test_unpacked_floats_are_payload_too() -> None:
    key_and_number = bytes([4 << 3 | 5]) + np.float32(1).tobytes()
    tensor = bytes([1 << 3, 0x80, 0x08, 2 << 3, 1]) + key_and_number * 1024  # dims = [1024], float
    assert TensorProto.FromString(tensor).float_data[1023] == 1
    proto = onnx.ModelProto.FromString(add_weight(TensorProto.FromString(tensor)))
    assert len(strip_payloads(wrapped_initializer(tensor))) < 32
    assert len(proto.graph.initializer) == 1


def wrapped_initializer(tensor: bytes) -> bytes:
    """A model whose graph holds one initializer, given as bytes."""
    inner = field(5, tensor)
    return field(7, inner)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


@pytest.mark.parametrize("cut", [1, 2, 3, 10, 40])
def test_cut_off_file_is_refused(cut: int) -> None:
    with pytest.raises(ModelError, match="cut off"):
        strip_payloads(add_weight(floats("w", 3))[:-cut])


def test_two_models_in_one_file_are_refused() -> None:
    data = add_weight(floats("w", 3))
    with pytest.raises(ModelError, match="occurs twice"):
        strip_payloads(data + data)


def test_wrong_wire_type_is_refused() -> None:
    with pytest.raises(ModelError, match="field 7 has the wrong wire type 0"):
        strip_payloads(bytes([7 << 3, 1]))


def test_overlong_number_is_refused() -> None:
    with pytest.raises(ModelError, match="longer than ten bytes"):
        strip_payloads(bytes([8]) + b"\xff" * 11)


def test_unknown_field_inside_is_skipped_and_at_the_top_refused() -> None:
    newer = field(7, field(2, b"g") + field(99, b"new"))
    assert onnx.ModelProto.FromString(strip_payloads(newer)).graph.name == "g"
    with pytest.raises(ModelError, match="has no field 99"):
        strip_payloads(field(99, b"new"))


def test_deep_nesting_is_refused() -> None:
    data = b""
    for _ in range(2000):
        data = field(1, field(5, field(6, data)))  # node { attribute { g
    with pytest.raises(ModelError, match="nested more than 100"):
        strip_payloads(field(7, data))


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(ModelError, match="'name' is not valid UTF-8"):
        strip_payloads(field(7, field(2, b"\xff\xfe")))


def test_half_characters_of_two_names_make_no_text() -> None:
    with pytest.raises(ModelError, match="'input' is not valid UTF-8"):
        strip_payloads(field(7, field(1, field(1, b"\xc3") + field(2, b"\xa9") + field(4, b"Relu"))))


@pytest.mark.parametrize("end", ["", "y" * 200])
def test_operator_that_is_cut_off_is_refused(end: str) -> None:
    named = field(1, b"x") + field(2, b"y" + end.encode()) + field(4, b"Relu")
    assert stripped(field(7, field(1, named))).graph.node[0].op_type == "Relu"
    for cut in range(1, len(named)):
        whole = named[:cut] in (field(1, b"x"), named[: -len(field(4, b"Relu"))])
        data = field(7, field(1, named[:cut]))
        if whole:
            assert len(stripped(data).graph.node) == 1
        else:
            with pytest.raises(ModelError, match="cut off"):
                strip_payloads(data)


@pytest.mark.parametrize(
    ("dims", "nbytes"), [([3], 8), ([3], 13), ([0], 4), ([2**62, 2**62], 4), ([-1], 4), ([2**61], 8)]
)
def test_contents_that_contradict_the_shape_are_refused(dims: list[int], nbytes: int) -> None:
    tensor = TensorProto(dims=dims, data_type=TensorProto.FLOAT, raw_data=bytes(nbytes))
    with pytest.raises(ModelError, match=r"bytes of contents|63 bits|negative"):
        strip_payloads(wrapped_initializer(tensor.SerializeToString()))


def test_half_bytes_are_counted_packed() -> None:
    for nbytes in (10, 11, 12):
        tensor = TensorProto(dims=[21], data_type=TensorProto.INT4, raw_data=bytes(nbytes)).SerializeToString()
        if nbytes == 11:
            strip_payloads(wrapped_initializer(tensor))
            continue
        with pytest.raises(ModelError, match="21 elements has"):
            strip_payloads(wrapped_initializer(tensor))


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "PNG"),
        (b"\x1f\x8b\x08\x00" + bytes(40), "gzip"),
        (b"PK\x03\x04" + bytes(40), "zip"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"just some words\n", "text"),
        (b'{"nodes": []}', "JSON"),
    ],
)
def test_hint_says_what_the_file_looks_like(data: bytes, hint: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(data)
    assert hint in str(caught.value.hint)


def test_no_file_no_model(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").touch()
    os.mkfifo(tmp_path / "pipe.onnx")
    for name, what in (
        ("absent.onnx", "no such file"),
        ("empty.onnx", "empty"),
        ("pipe.onnx", "regular"),
        (".", "directory"),
        ("a\0b", "null"),
    ):
        with pytest.raises(SpillprofError, match=what):
            read_model(tmp_path / name)
    with pytest.raises(ModelError, match="empty"):
        read(b"")


def test_file_and_bytes_give_the_same_graph(tmp_path: Path) -> None:
    data = add_weight(floats("w", 64, 32))
    (tmp_path / "m.onnx").write_bytes(data)
    from_file, from_bytes = read_model(tmp_path / "m.onnx"), read(data)
    assert from_file.tensors == from_bytes.tensors
    assert from_file.operators == from_bytes.operators
    assert from_file.sha256 == from_bytes.sha256
    assert from_file.path == str(tmp_path / "m.onnx")


@pytest.mark.slow
def test_two_gigabytes_of_weights_are_not_held_in_memory(tmp_path: Path) -> None:
    count = 5 << 27  # float32 elements: 2.5 GiB
    head = field(2, b"g") + field(1, node("Relu", "x", "y").SerializeToString())
    head += field(11, value("x", [4]).SerializeToString()) + field(12, value("y", [4]).SerializeToString())
    tensor_head = TensorProto(name="w", dims=[count], data_type=1).SerializeToString() + varint(9 << 3 | 2)
    tensor_head += varint(4 * count)
    weight_head = varint(5 << 3 | 2) + varint(len(tensor_head) + 4 * count) + tensor_head
    graph_size = len(head) + len(weight_head) + 4 * count
    opset = field(8, helper.make_opsetid("", 17).SerializeToString())
    path = tmp_path / "big.onnx"
    with path.open("wb") as file:
        file.write(opset + varint(7 << 3 | 2) + varint(graph_size) + head + weight_head)
        file.truncate(file.tell() + 4 * count)
    script = (
        "import resource, sys; from spillprof.frontends import read_model\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "graph = read_model(sys.argv[1])\n"
        "print(graph.tensors['y'].shape, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    shape, grown_kib = done.stdout.rsplit(" ", 1)
    assert shape == "(4,)"
    assert int(grown_kib) < 64 * 1024
