"""Small ONNX models for tests, as bytes."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from spillprof.frontends import read_model
from spillprof.ir.graph import Graph

Dims = Sequence[int | str | None]


def value(name: str, shape: Dims | None, element: int = onnx.TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def ints(name: str, values: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def floats(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def node(op_type: str, inputs: str, outputs: str, **settings: object) -> onnx.NodeProto:
    """A node from space-separated names; ``-`` stands for an absent one."""
    names = [["" if n == "-" else n for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, *names, **settings)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: str,
    *,
    initializers: Sequence[onnx.TensorProto] = (),
    value_info: Sequence[onnx.ValueInfoProto] = (),
    opset: int = 17,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> bytes:
    graph = helper.make_graph(
        nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs.split()], initializers
    )
    graph.value_info.extend(value_info)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in (domains or {}).items())]
    made = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)
    return made.SerializeToString()


def body(
    nodes: Sequence[onnx.NodeProto], outputs: str, inputs: Sequence[onnx.ValueInfoProto] = (), **more: object
) -> onnx.GraphProto:
    return helper.make_graph(nodes, "b", inputs, [onnx.ValueInfoProto(name=name) for name in outputs.split()], **more)


def read(data: bytes, **bindings: object) -> Graph:
    return read_model(data, name="m.onnx", **bindings)  # type: ignore[arg-type]


def shape_of(data: bytes, name: str, **bindings: object) -> tuple[int, ...]:
    return read(data, **bindings).tensors[name].shape
