"""ResNet-50 in int8 as a .tflite file, from the layer shapes of an ONNX ResNet-50, for compilers that read TFLite only.

    python benchmarks/resnet50_tflite.py resnet50.onnx resnet50_int8.tflite

Needs the package ``ethos-u-vela`` for its flatbuffer classes; no TensorFlow. Reads names, attributes and shapes alone,
so ONNX files without weight data will do. Exact: operators, order, shapes in NHWC, strides, and so MACs. Approximated:

- Weights and biases are random (fixed seed), uniform over int8. Real weights compress better: on a core that stores
  them encoded, bytes of weights are an upper estimate.
- Quantisation parameters are plausible constants: activations 0.05 at zero point -128 or 0, weights per channel 0.005.
- Padding is TFLite's SAME: with stride 2 it pads one row less before than after, where ONNX pads both sides alike.
  Output shapes are the same.
- A Relu is the fused activation of the convolution or Add before it, and GlobalAveragePool and Flatten are one MEAN,
  as TensorFlow's converter writes them. The classifier has no softmax.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

_INT8, _INT32 = 9, 2
_ACTIVATION_SCALE, _WEIGHT_SCALE = 0.05, 0.005
_SEED = 50


class TfliteWriter:
    """Collects tensors and operators of one subgraph, and writes them as a flatbuffer."""

    def __init__(self) -> None:
        import flatbuffers
        from ethosu.vela import tflite

        self._tflite_package = tflite.__name__
        self._builder = flatbuffers.Builder(1 << 20)
        self._buffers: list[int] = [self._table("Buffer")]
        self._tensors: list[int] = []
        self._operators: list[int] = []
        self._codes: list[str] = []

    def _class(self, name: str) -> Any:
        import importlib

        return importlib.import_module(f"{self._tflite_package}.{name}")

    def _table(self, kind: str, **fields: Any) -> int:
        """Writes one table; values are numbers or offsets of what is written already."""
        module = self._class(kind)
        getattr(module, f"{kind}Start")(self._builder)
        for field, value in fields.items():
            getattr(module, f"{kind}Add{field}")(self._builder, value)
        offset: int = getattr(module, f"{kind}End")(self._builder)
        return offset

    def _vector(self, start: Callable[[Any, int], Any], offsets: list[int]) -> int:
        start(self._builder, len(offsets))
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        end: int = self._builder.EndVector()
        return end

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        data: Any = None,
        dtype: int = _INT8,
        scales: Any = None,
        zero: int = 0,
    ) -> int:
        """Adds a tensor (``data``: a numpy array for constants) and returns its index."""
        import numpy as np

        builder = self._builder
        buffer = 0
        if data is not None:
            builder.Prep(16, data.nbytes + 4)
            buffer = len(self._buffers)
            self._buffers.append(self._table("Buffer", Data=builder.CreateNumpyVector(data.reshape(-1).view(np.uint8))))
        fields: dict[str, int] = {}
        if scales is not None:
            scale = builder.CreateNumpyVector(np.asarray(scales, np.float32))
            point = builder.CreateNumpyVector(np.full(len(scales), zero, np.int64))
            fields["Quantization"] = self._table("QuantizationParameters", Scale=scale, ZeroPoint=point)
        text = builder.CreateString(name)
        dims = builder.CreateNumpyVector(np.asarray(shape, np.int32))
        self._tensors.append(self._table("Tensor", Shape=dims, Type=dtype, Buffer=buffer, Name=text, **fields))
        return len(self._tensors) - 1

    def operator(self, code: str, options: str, inputs: list[int], output: int, **fields: int) -> None:
        """Adds a builtin operator with its table of options."""
        import numpy as np

        if code not in self._codes:
            self._codes.append(code)
        table = self._table(options, **fields)
        kind = getattr(self._class("BuiltinOptions").BuiltinOptions, options)
        ins = self._builder.CreateNumpyVector(np.asarray(inputs, np.int32))
        outs = self._builder.CreateNumpyVector(np.asarray([output], np.int32))
        self._operators.append(
            self._table(
                "Operator", OpcodeIndex=self._codes.index(code), Inputs=ins, Outputs=outs,
                BuiltinOptionsType=kind, BuiltinOptions=table,
            )
        )  # fmt: skip

    def finish(self, inputs: list[int], outputs: list[int]) -> bytes:
        """Writes the model with one subgraph."""
        import numpy as np

        builder = self._builder
        enum = self._class("BuiltinOperator").BuiltinOperator
        values = [getattr(enum, code) for code in self._codes]
        codes = [self._table("OperatorCode", DeprecatedBuiltinCode=v, BuiltinCode=v, Version=1) for v in values]
        graph = self._class("SubGraph")
        tensors = self._vector(graph.SubGraphStartTensorsVector, self._tensors)
        operators = self._vector(graph.SubGraphStartOperatorsVector, self._operators)
        ins = builder.CreateNumpyVector(np.asarray(inputs, np.int32))
        outs = builder.CreateNumpyVector(np.asarray(outputs, np.int32))
        sub = self._table("SubGraph", Tensors=tensors, Inputs=ins, Outputs=outs, Operators=operators)
        model = self._class("Model")
        fields = {
            "OperatorCodes": self._vector(model.ModelStartOperatorCodesVector, codes),
            "Subgraphs": self._vector(model.ModelStartSubgraphsVector, [sub]),
            "Buffers": self._vector(model.ModelStartBuffersVector, self._buffers),
        }
        builder.Finish(self._table("Model", Version=3, **fields), file_identifier=b"TFL3")
        return bytes(builder.Output())


def convert(onnx_path: Path) -> bytes:
    """Returns the TFLite model of an ONNX ResNet (Conv, Relu, MaxPool, Add, GlobalAveragePool, Flatten, Gemm)."""
    import numpy as np
    import onnx

    graph = onnx.load(onnx_path, load_external_data=False).graph
    weights = {t.name: tuple(t.dims) for t in graph.initializer}
    random = np.random.default_rng(_SEED)
    writer = TfliteWriter()
    source = graph.input[0].name
    _, channels, height, width = (d.dim_value for d in graph.input[0].type.tensor_type.shape.dim)
    shapes = {source: (1, height, width, channels)}
    indices = {source: writer.tensor(source, shapes[source], scales=[_ACTIVATION_SCALE])}
    relu_of = {n.input[0]: n.output[0] for n in graph.node if n.op_type == "Relu"}

    def activation(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
        """Adds the output of an operator, under the name of a Relu that follows; returns index and activation."""
        fused = name in relu_of
        index = writer.tensor(relu_of.get(name, name), shape, scales=[_ACTIVATION_SCALE], zero=-128 if fused else 0)
        for alias in (name, relu_of.get(name, name)):
            indices[alias], shapes[alias] = index, shape
        return index, int(fused)

    def parameters(name: str, shape: tuple[int, ...], per_channel: bool) -> list[int]:
        """Adds random weights and biases of one operator."""
        count = shape[0] if per_channel else 1
        data = random.integers(-127, 128, shape, np.int8)
        bias = random.integers(-1000, 1000, shape[0], np.int32)
        both = [_WEIGHT_SCALE * _ACTIVATION_SCALE] * count
        return [
            writer.tensor(f"{name}/weights", shape, data=data, scales=[_WEIGHT_SCALE] * count),
            writer.tensor(f"{name}/bias", (shape[0],), data=bias, dtype=_INT32, scales=both),
        ]

    for node in graph.node:
        attributes = {a.name: list(a.ints) or a.i for a in node.attribute}
        if node.op_type == "Identity":
            weights[node.output[0]] = weights[node.input[0]]
        elif node.op_type in ("Conv", "MaxPool"):
            _, h, w, c = shapes[node.input[0]]
            stride = attributes["strides"][0]
            assert attributes["kernel_shape"][0] // 2 == attributes["pads"][0], f"{node.name}: not SAME"
            out_shape = (1, -(-h // stride), -(-w // stride))
            if node.op_type == "MaxPool":
                out, relu = activation(node.output[0], (*out_shape, c))
                kernel_h, kernel_w = attributes["kernel_shape"]
                writer.operator(
                    "MAX_POOL_2D", "Pool2DOptions", [indices[node.input[0]]], out, StrideW=stride, StrideH=stride,
                    FilterWidth=kernel_w, FilterHeight=kernel_h, FusedActivationFunction=relu,
                )  # fmt: skip
                continue
            out_channels, in_channels, kernel_h, kernel_w = weights[node.input[1]]
            assert in_channels == c, f"{node.name}: grouped"
            out, relu = activation(node.output[0], (*out_shape, out_channels))
            inputs = parameters(node.name, (out_channels, kernel_h, kernel_w, in_channels), True)
            writer.operator(
                "CONV_2D", "Conv2DOptions", [indices[node.input[0]], *inputs], out, StrideW=stride, StrideH=stride,
                FusedActivationFunction=relu,
            )  # fmt: skip
        elif node.op_type == "Add":
            out, relu = activation(node.output[0], shapes[node.input[0]])
            writer.operator("ADD", "AddOptions", [indices[n] for n in node.input], out, FusedActivationFunction=relu)
        elif node.op_type == "GlobalAveragePool":
            shape = shapes[node.input[0]]
            axes = writer.tensor(f"{node.name}/axes", (2,), data=np.asarray([1, 2], np.int32), dtype=_INT32)
            out, _ = activation(node.output[0], (1, shape[3]))
            writer.operator("MEAN", "ReducerOptions", [indices[node.input[0]], axes], out, KeepDims=0)
        elif node.op_type == "Flatten":
            indices[node.output[0]], shapes[node.output[0]] = indices[node.input[0]], shapes[node.input[0]]
        elif node.op_type == "Gemm":
            shape = weights[node.input[1]]
            out, _ = activation(node.output[0], (1, shape[0]))
            inputs = [indices[node.input[0]], *parameters(node.name, shape, False)]
            writer.operator("FULLY_CONNECTED", "FullyConnectedOptions", inputs, out)
        elif node.op_type != "Relu":
            raise SystemExit(f"error: {onnx_path}: no conversion of {node.op_type}")
    return writer.finish([indices[source]], [indices[graph.output[0].name]])


def main() -> None:
    """Write the .tflite file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onnx", type=Path)
    parser.add_argument("tflite", type=Path)
    args = parser.parse_args()
    try:
        args.tflite.write_bytes(convert(args.onnx))
    except ModuleNotFoundError as error:
        raise SystemExit(f"error: no module {error.name}\nhint: pip install ethos-u-vela") from None


if __name__ == "__main__":
    main()
