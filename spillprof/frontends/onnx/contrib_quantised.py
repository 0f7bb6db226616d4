"""Quantised operators of ``com.microsoft``: their sizes, in the type that they are stored in."""

from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.contrib_channels_last import convolution, pool
from spillprof.frontends.onnx.rule import Case, Rule, Sized, Standard, broadcast, matmul_of, same, same_as


def _quantized_binary(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), broadcast(case.shape(0), case.shape(3)))]


def _quantized_concat(case: Case) -> Standard:
    return Standard(op_type="Concat", inputs=tuple(range(2, len(case.node.inputs), 3)), dtype=case.dtype(1))


def _quantized_pool(case: Case) -> Sequence[Sized] | Standard:
    if case.number("channels_last", 0):
        return pool(case)
    return Standard(op_type="AveragePool", inputs=(0,), dtype=case.dtype(0))


def _quantized_global_pool(case: Case) -> Sequence[Sized]:
    shape, last = case.shape(0), case.number("channels_last", 0)
    ones = (1,) * (len(shape) - 2)
    pooled = (shape[0], *ones, shape[-1]) if last else (shape[0], shape[1], *ones)
    return [(case.dtype(0), pooled)]


def _quantized_gemm(case: Case) -> Sequence[Sized]:
    a, b = case.shape(0), case.shape(3)
    rows = a[1] if case.number("transA", 0) else a[0]
    columns = b[0] if case.number("transB", 0) else b[1]
    return [(case.dtype(0) if case.has(7) else "float32", (rows, columns))]


def _quantized_conv(case: Case) -> Sequence[Sized] | Standard:
    if case.number("channels_last", 0):
        return convolution(3, kernel_axes=slice(2, None), dtype=7)(case)
    return Standard(op_type="QLinearConv", inputs=tuple(i for i in range(9) if case.has(i)))


def _quantized_mean(case: Case) -> Standard:
    return Standard(op_type="ReduceMean", inputs=(0,), dtype=case.dtype(0))


def _quantized_where(case: Case) -> Sequence[Sized]:
    return [(case.dtype(1), broadcast(case.shape(0), case.shape(1), case.shape(4)))]


def _quantize(case: Case) -> Sequence[Sized]:
    return [(case.dtype(2) if case.has(2) else "uint8", case.shape(0))]


def _dequantize(case: Case) -> Sequence[Sized]:
    return [(case.dtype(1), case.shape(0))]


def _dynamic_quantize(case: Case) -> Sequence[Sized]:
    return [("uint8", case.shape(0)), ("float32", ()), ("uint8", ())]


QUANTISED_RULES: Mapping[str, Rule] = {
    "DequantizeLinear": _dequantize,
    "DequantizeWithOrder": same_as(0, "float32"),
    "DynamicQuantizeLinear": _dynamic_quantize,
    "QGemm": _quantized_gemm,
    "QLinearAveragePool": _quantized_pool,
    "QLinearConcat": _quantized_concat,
    "QLinearConv": _quantized_conv,
    "QLinearGlobalAveragePool": _quantized_global_pool,
    "QLinearReduceMean": _quantized_mean,
    "QLinearWhere": _quantized_where,
    "QOrderedMatMul": matmul_of(0, 2),
    "QuantizeLinear": _quantize,
    "QuantizeWithOrder": same_as(0, "int8"),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _quantized_binary),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"), same),
    **dict.fromkeys(("QOrderedGelu", "QOrderedLayerNormalization"), same),
}
"""By operator type."""
