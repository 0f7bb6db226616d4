"""Output sizes of operators that onnxruntime's tools write: fused, quantised, channels last, blocked (NCHWc)."""

import math
from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.attention import ATTENTION_SIZES
from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.frontends.onnx.rule import (
    OperatorCase,
    Sized,
    SizeRule,
    Standard,
    broadcast,
    matmul,
    matmul_of,
    same,
    same_as,
    standard,
    undecided,
)
from spillprof.frontends.onnx.standard import layer_normalization, window_places


def convolution(weight: int, *, kernel_axes: slice, dtype: int = 0) -> SizeRule:
    """A convolution; positions of the weight, of its kernel's axes, and of the input that gives the type."""

    def rule(case: OperatorCase) -> Sequence[Sized]:
        filters = case.shape(weight)
        kernel = case.numbers("kernel_shape") if "kernel_shape" in case.settings else filters[kernel_axes]
        shape = case.shape(0)
        space = window_places(case, shape[1:-1], kernel)
        return [(case.dtype(dtype if case.has(dtype) else 0), (shape[0], *space, filters[0]))]

    return rule


def pool(case: OperatorCase) -> Sequence[Sized]:
    """A pooling operator."""
    shape = case.shape(0)
    return [(case.dtype(0), (shape[0], *window_places(case, shape[1:-1], case.numbers("kernel_shape")), shape[-1]))]


CHANNELS_LAST_SIZES: Mapping[str, SizeRule] = {
    "NhwcConv": convolution(1, kernel_axes=slice(1, -1)),
    "NhwcFusedConv": convolution(1, kernel_axes=slice(2, None)),
    "NhwcMaxPool": pool,
}
"""Domain ``com.microsoft``, by operator type."""


def _product(*factors: int, integer: str | None = "int32") -> SizeRule:
    """Elementwise operator over some of the inputs, broadcast; ``integer``: output type where the first is integer."""

    def rule(case: OperatorCase) -> Sequence[Sized]:
        dtype = case.dtype(factors[0])
        return [(integer if integer and "int" in dtype else dtype, broadcast(*map(case.shape, factors)))]

    return rule


def _gemm(case: OperatorCase, first: int, second: int) -> tuple[int, int]:
    """Rows and columns of the product of two matrices, each transposed if its attribute says so."""
    a, b = case.shape(first), case.shape(second)
    return a[1] if case.number("transA", 0) else a[0], b[0] if case.number("transB", 0) else b[1]


def _quantized_pool(case: OperatorCase) -> Sequence[Sized] | Standard:
    if case.number("channels_last", 0):
        return pool(case)
    return Standard(op_type="AveragePool", inputs=(0,), dtype=case.dtype(0))


def _quantized_global_pool(case: OperatorCase) -> Sequence[Sized]:
    shape, last = case.shape(0), case.number("channels_last", 0)
    ones = (1,) * (len(shape) - 2)
    pooled = (shape[0], *ones, shape[-1]) if last else (shape[0], shape[1], *ones)
    return [(case.dtype(0), pooled)]


def _quantized_conv(case: OperatorCase) -> Sequence[Sized] | Standard:
    if case.number("channels_last", 0):
        return convolution(3, kernel_axes=slice(2, None), dtype=7)(case)
    return Standard(op_type="QLinearConv", inputs=tuple(i for i in range(9) if case.has(i)))


QUANTISED_SIZES: Mapping[str, SizeRule] = {
    "DequantizeLinear": lambda c: [(c.dtype(1), c.shape(0))],
    "DequantizeWithOrder": same_as(0, "float32"),
    "DynamicQuantizeLinear": lambda c: [("uint8", c.shape(0)), ("float32", ()), ("uint8", ())],
    "QGemm": lambda c: [(c.dtype(0) if c.has(7) else "float32", _gemm(c, 0, 3))],
    "QLinearAveragePool": _quantized_pool,
    "QLinearConcat": lambda c: Standard("Concat", tuple(range(2, len(c.node.inputs), 3)), c.dtype(1)),
    "QLinearConv": _quantized_conv,
    "QLinearGlobalAveragePool": _quantized_global_pool,
    "QLinearReduceMean": lambda c: Standard("ReduceMean", (0,), c.dtype(0)),
    "QLinearWhere": lambda c: [(c.dtype(1), broadcast(c.shape(0), c.shape(1), c.shape(4)))],
    "QOrderedMatMul": matmul_of(0, 2),
    "QuantizeLinear": lambda c: [(c.dtype(2) if c.has(2) else "uint8", c.shape(0))],
    "QuantizeWithOrder": same_as(0, "int8"),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _product(0, 3, integer=None)),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"), same),
    **dict.fromkeys(("QOrderedGelu", "QOrderedLayerNormalization"), same),
}
"""By operator type."""


NCHWC_BLOCK = 16
"""Channels per block of the NCHWc layout; 8 on older processors."""


def _fused_matmul(case: OperatorCase) -> Sequence[Sized]:
    a, b = (_transposed(case, index, letter) for index, letter in ((0, "A"), (1, "B")))
    return [(case.dtype(0), matmul(a, b))]


def _transposed(case: OperatorCase, index: int, letter: str) -> tuple[int, ...]:
    """Shape of an operand: ``transBatch`` moves axis 0 behind the other batch axes, ``trans`` swaps the last two."""
    shape = case.shape(index)
    if len(shape) > 2 and case.number(f"transBatch{letter}", 0):
        shape = (*shape[1:-1], shape[0], shape[-1])
    if len(shape) > 1 and case.number(f"trans{letter}", 0):
        shape = (*shape[:-2], shape[-1], shape[-2])
    return shape


def _matmul_bits(case: OperatorCase) -> Sequence[Sized]:
    return [(case.dtype(0), (*case.shape(0)[:-1], case.number("N", 0) or undecided()))]


def _bitmask_dropout(case: OperatorCase) -> Sequence[Sized]:
    return [(case.dtype(0), case.shape(0)), ("uint32", (-(-math.prod(case.shape(0)) // 32),))]


def _block_rows(case: OperatorCase) -> Sequence[Sized]:
    """GatherBlockQuantized: rows of a table that packs several elements into a byte."""
    table, packed = list(case.shape(0)), case.number("bits", 4)
    if case.dtype(0) == "uint8" and packed < 8:
        table[-1] *= 8 // packed
    axis = case.number("gather_axis", 0) % len(table)
    return [(case.dtype(2), (*table[:axis], *case.shape(1), *table[axis + 1 :]))]


def _expand_dims(case: OperatorCase) -> Sequence[Sized]:
    shape, (axis,) = case.shape(0), case.contents(1)
    axis %= len(shape) + 1
    return [(case.dtype(0), (*shape[:axis], 1, *shape[axis:]))]


def _crop(case: OperatorCase) -> Sequence[Sized]:
    height, width = case.contents(3)
    return [(case.dtype(0), (case.shape(1)[0], case.shape(0)[1], height, width))]


def _unfold(case: OperatorCase) -> Sequence[Sized]:
    shape, size = list(case.shape(0)), case.number("size", 0) or undecided()
    axis, step = case.number("dim", -1) % len(shape), case.number("step", 1)
    shape[axis] = (shape[axis] - size) // step + 1
    return [(case.dtype(0), (*shape, size))]


def _skip_normalization(case: OperatorCase) -> Sequence[Sized]:
    shape = case.shape(0)
    statistics = ("float32", (*shape[:-1], 1))
    return [(case.dtype(0), shape), statistics, statistics, (case.dtype(0), shape)]


def _embed_normalization(case: OperatorCase) -> Sequence[Sized]:
    dtype = case.dtype(2) if case.node.op_type == "EmbedLayerNormalization" else "float32"
    embedded = (dtype, (*case.shape(0), case.shape(2)[1]))
    return [embedded, ("int32", case.shape(0)[:1]), embedded]


def _dynamic_lstm(case: OperatorCase) -> Sequence[Sized]:
    steps, batch, _ = case.shape(0)
    hidden = case.number("hidden_size", 0) or undecided()
    directions = 2 if case.settings.get("direction") == "bidirectional" else 1
    last = ("float32", (directions, batch, hidden))
    return [("float32", (steps, directions, batch, hidden)), last, last]


def _blocked_reorder_output(case: OperatorCase) -> Sequence[Sized]:
    batch, _, *space = case.shape(0)
    channels = case.number("channels", 0) or undecided()
    shape = (batch, *space, channels) if case.number("channels_last", 0) else (batch, channels, *space)
    return [(case.dtype(0), shape)]


def _blocked_reorder_input(case: OperatorCase) -> Sequence[Sized]:
    shape = case.shape(0)
    last = case.number("channels_last", 0)
    channels = shape[-1] if last else shape[1]
    space = shape[1:-1] if last else shape[2:]
    return [(case.dtype(0), (shape[0], -(-channels // NCHWC_BLOCK) * NCHWC_BLOCK, *space))]


MICROSOFT_SIZES: Mapping[str, SizeRule] = {
    **ATTENTION_SIZES,
    **CHANNELS_LAST_SIZES,
    **QUANTISED_SIZES,
    "AttnLSTM": _dynamic_lstm,
    "BiasSplitGelu": lambda c: [(c.dtype(0), (*c.shape(0)[:-1], c.shape(0)[-1] // 2))],
    "CDist": lambda c: [(c.dtype(0), (c.shape(0)[0], c.shape(1)[0]))],
    "CropAndResize": _crop,
    "DynamicQuantizeLSTM": _dynamic_lstm,
    "DynamicQuantizeMatMul": matmul_of(0, 1),
    "ExpandDims": _expand_dims,
    "FusedConv": standard("Conv", 0, 1, 2),
    "FusedGemm": standard("Gemm", 0, 1, 2),
    "GatherBlockQuantized": _block_rows,
    "GatherND": standard("GatherND", 0, 1),
    "GemmFastGelu": matmul_of(0, 1),
    "GemmFloat8": lambda c: [(DTYPE_OF_ELEMENT[c.number("dtype", 1)], _gemm(c, 0, 1))],
    "GridSample": standard("GridSample", 0, 1, version=16),
    "IsAllFinite": lambda c: [("bool", ())],
    "LayerNormalization": layer_normalization,
    "MatMulFpQ4": lambda c: [(c.dtype(0), (*c.shape(0)[:-1], c.contents(2)[1]))],
    "MatMulInteger16": matmul_of(0, 1, "int32"),
    "MatMulIntegerToFloat": lambda c: [(c.dtype(2), matmul(c.shape(0), c.shape(1)))],
    "MaxpoolWithMask": standard("MaxPool", 0),
    "MulInteger": _product(0, 2),
    "MurmurHash3": lambda c: [("uint32" if c.number("positive", 1) else "int32", c.shape(0))],
    "NGramRepeatBlock": same_as(1),
    "Pad": standard("Pad", 0, 1, 2),
    "Range": standard("Range", 0, 1, 2),
    "ReduceSumInteger": standard("ReduceSum", 0, version=11, dtype="int32"),
    "RestorePadding": lambda c: [(c.dtype(0), (*c.shape(1), c.shape(0)[-1]))],
    "TorchEmbedding": lambda c: [(c.dtype(0), (*c.shape(1), *c.shape(0)[1:]))],
    "UnfoldTensor": _unfold,
    **dict.fromkeys(("BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "Gelu", "QuickGelu", "QuickSoftmax"), same),
    "BiasDropout": lambda c: [(c.dtype(0), c.shape(0)), ("bool", c.shape(0))],
    **dict.fromkeys(("BitmaskBiasDropout", "BitmaskDropout"), _bitmask_dropout),
    **dict.fromkeys(("ComplexMul", "ComplexMulConj"), _product(0, 1)),
    **dict.fromkeys(("EmbedLayerNormalization", "QEmbedLayerNormalization"), _embed_normalization),
    **dict.fromkeys(("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul"), _fused_matmul),
    **dict.fromkeys(("GroupNorm", "Inverse", "LongformerAttention", "MoE", "QMoE"), same),
    **dict.fromkeys(("MatMulBnb4", "MatMulNBits"), _matmul_bits),
    **dict.fromkeys(("RotaryEmbedding", "SampleOp", "Trilu"), same),
    "SimplifiedLayerNormalization": layer_normalization,
    "SkipGroupNorm": lambda c: [(c.dtype(0), c.shape(0))] * 2,
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skip_normalization),
}
"""Domain ``com.microsoft``, by operator type."""

NCHWC_SIZES: Mapping[str, SizeRule] = {
    "AveragePool": standard("AveragePool", 0),
    "Conv": standard("Conv", 0, 1, 2),
    "GlobalAveragePool": standard("GlobalAveragePool", 0),
    "GlobalMaxPool": standard("GlobalMaxPool", 0),
    "MaxPool": standard("MaxPool", 0),
    "ReorderInput": _blocked_reorder_input,
    "ReorderOutput": _blocked_reorder_output,
    "Upsample": lambda c: [(c.dtype(0), tuple(s * k for s, k in zip(c.shape(0), c.numbers("scales"), strict=True)))],
}
"""Domain ``com.microsoft.nchwc``, by operator type."""
