"""Models with weights for the benchmark of reading: weights of zeros.

python benchmarks/big_models.py KIND PATH
"""

import sys
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper

RESNET_50 = ((64, 256, 3, 1), (128, 512, 4, 2), (256, 1024, 6, 2), (512, 2048, 3, 2))  # width, out, blocks, stride
_CHUNK = bytes(1 << 24)


def resnet_50(path: Path) -> None:
    """A ResNet-50 for 224 x 224 images, batch normalisation folded, weights of zeros: 102 MB."""
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def stored(name: str, *shape: int) -> str:
        weights.append(_zeros(name, *shape))
        return name

    def conv(x: str, channels: int, out: int, kernel: int, stride: int = 1, *, relu: bool = True) -> str:
        name = f"conv{len(nodes)}"
        inputs = [x, stored(f"{name}.weight", out, channels, kernel, kernel), stored(f"{name}.bias", out)]
        pad = kernel // 2
        nodes.append(
            helper.make_node(
                "Conv", inputs, [name], name=name, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
            )
        )
        return node("Relu", name) if relu else name

    def node(op_type: str, *inputs: str, **attributes: object) -> str:
        name = f"{op_type.lower()}{len(nodes)}"
        nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    x = node("MaxPool", conv("x", 3, 64, 7, 2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for width, out, blocks, first_stride in RESNET_50:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            inner = conv(conv(conv(x, channels, width, 1), width, width, 3, stride), width, out, 1, relu=False)
            around = conv(x, channels, out, 1, stride, relu=False) if block == 0 else x
            x, channels = node("Relu", node("Add", inner, around)), out
    flat = node("Flatten", node("GlobalAveragePool", x))
    nodes.append(helper.make_node("Gemm", [flat, stored("fc.weight", 2048, 1000), stored("fc.bias", 1000)], ["y"]))
    _save(path, nodes, weights, [1, 3, 224, 224], [1, 1000])


def single_file(path: Path) -> None:
    """255 products of 1440 x 1440 matrices of float32, 2.1 GB: the graph written last, payload by payload."""
    n, layers = 1440, 255
    nodes, weights = _chain(layers), [f"w{i}" for i in range(layers)]
    graph = helper.make_graph(nodes, "single file", [_value("x", n)], [_value("y", n)])
    body = graph.SerializeToString()
    payload = 4 * n * n
    heads = []
    for name in weights:
        head = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[n, n]).SerializeToString()
        tensor = head + b"\x4a" + _varint(payload)  # raw_data
        heads.append(b"\x2a" + _varint(len(tensor) + payload) + tensor)  # initializer
    total = len(body) + sum(len(head) + payload for head in heads)
    outer = helper.make_model(onnx.GraphProto(), opset_imports=[helper.make_opsetid("", 17)])
    outer.ClearField("graph")
    with path.open("wb") as file:
        file.write(outer.SerializeToString() + b"\x3a" + _varint(total))
        for head in heads:
            file.write(head)
            _write_zeros(file.write, payload)
        file.write(body)


def external_data(path: Path) -> None:
    """400 products of matrices in one file beside the model, 3.4 GB."""
    n, layers = 1460, 400
    weights, size = [], 4 * n * n
    for i in range(layers):
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[n, n], data_location=1)
        for key, value in (("location", "weights.bin"), ("offset", i * size), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
    with (path.parent / "weights.bin").open("wb") as file:
        _write_zeros(file.write, layers * size)
    _save(path, _chain(layers), weights, [n, n], [n, n])


def _chain(layers: int) -> list[onnx.NodeProto]:
    names = ["x", *(f"t{i}" for i in range(layers - 1)), "y"]
    return [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], name=f"m{i}") for i in range(layers)]


def _value(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [*shape, *shape] if len(shape) == 1 else shape)


def _zeros(name: str, *shape: int) -> onnx.TensorProto:
    count = 1
    for size in shape:
        count *= size
    return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, raw_data=bytes(4 * count))


def _save(path: Path, nodes: list[onnx.NodeProto], weights: list[TensorProto], x: list[int], y: list[int]) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x), ("y", y))]
    graph = helper.make_graph(nodes, path.stem, values[:1], values[1:], weights)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def _write_zeros(write: Callable[[bytes], int], count: int) -> None:
    while count:
        count -= write(_CHUNK[:count])


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes((*encoded, value))


BUILDERS: dict[str, Callable[[Path], None]] = {
    "resnet-50": resnet_50,
    "single-file": single_file,
    "external-data": external_data,
}


if __name__ == "__main__":
    BUILDERS[sys.argv[1]](Path(sys.argv[2]))
