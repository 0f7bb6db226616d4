"""Operators that onnxruntime's tools write: quantized, fused, blocked (NCHWc)."""

from collections.abc import Mapping, Sequence

import numpy as np

from spillprof.frontends.onnx.contrib_legacy import layer_normalization
from spillprof.frontends.onnx.rule import Case, Rule, Sized, Standard, same, undecided

NCHWC_BLOCK = 16
"""Channels of one block of the NCHWc layout; 8 on older processors."""


def _quantized_binary(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), _broadcast(case.shape(0), case.shape(3)))]


def _quantized_concat(case: Case) -> Standard:
    return Standard(op_type="Concat", inputs=tuple(range(2, len(case.node.inputs), 3)), dtype=case.dtype(1))


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


def _fused_matmul(case: Case) -> Sequence[Sized]:
    a, b = list(case.shape(0)), list(case.shape(1))
    if case.number("transBatchA", 0) or case.number("transBatchB", 0):
        raise ValueError("not decided")
    if case.number("transA", 0) and len(a) > 1:
        a[-2:] = a[:-3:-1]
    if case.number("transB", 0) and len(b) > 1:
        b[-2:] = b[:-3:-1]
    return [(case.dtype(0), _matmul(tuple(a), tuple(b)))]


def _matmul_to_float(case: Case) -> Sequence[Sized]:
    return [(case.dtype(2), _matmul(case.shape(0), case.shape(1)))]


def _matmul_dynamic(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), _matmul(case.shape(0), case.shape(1)))]


def _matmul_bits(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), (*case.shape(0)[:-1], case.number("N", 0) or undecided()))]


def _skip_normalization(case: Case) -> Sequence[Sized]:
    shape = case.shape(0)
    statistics = ("float32", (*shape[:-1], 1))
    return [(case.dtype(0), shape), statistics, statistics, (case.dtype(0), shape)]


def _embed_normalization(case: Case) -> Sequence[Sized]:
    embedded = (case.dtype(2), (*case.shape(0), case.shape(2)[1]))
    return [embedded, ("int32", case.shape(0)[:1]), embedded]


def _attention(case: Case) -> Sequence[Sized]:
    batch, length, _ = case.shape(0)
    sizes = case.settings.get("qkv_hidden_sizes")
    width = case.shape(1)[1] // 3
    hidden = int(sizes[2]) if isinstance(sizes, tuple) and sizes else width
    heads = case.number("num_heads", 0) or undecided()
    past = case.shape(4)[3] if case.has(4) else 0
    present = (2, batch, heads, past + length, hidden // heads)
    return [(case.dtype(0), (batch, length, hidden)), (case.dtype(0), present)]


def _multi_head_attention(case: Case) -> Sequence[Sized]:
    query, heads = case.shape(0), case.number("num_heads", 0) or undecided()
    if len(query) != 3 or not case.has(1) or len(case.shape(1)) != 3 or len(case.shape(2)) != 3 or case.has(6):
        raise ValueError("not decided")
    key, value = case.shape(1), case.shape(2)
    present = [(case.dtype(0), (query[0], heads, x[1], x[2] // heads)) for x in (key, value)]
    return [(case.dtype(0), (query[0], query[1], value[2])), *present]


def _dynamic_lstm(case: Case) -> Sequence[Sized]:
    steps, batch, _ = case.shape(0)
    hidden = case.number("hidden_size", 0) or undecided()
    directions = 2 if case.settings.get("direction") == "bidirectional" else 1
    last = ("float32", (directions, batch, hidden))
    return [("float32", (steps, directions, batch, hidden)), last, last]


def _blocked_reorder_output(case: Case) -> Sequence[Sized]:
    batch, _, *space = case.shape(0)
    channels = case.number("channels", 0) or undecided()
    shape = (batch, *space, channels) if case.number("channels_last", 0) else (batch, channels, *space)
    return [(case.dtype(0), shape)]


def _blocked_reorder_input(case: Case) -> Sequence[Sized]:
    shape = case.shape(0)
    last = case.number("channels_last", 0)
    channels = shape[-1] if last else shape[1]
    space = shape[1:-1] if last else shape[2:]
    return [(case.dtype(0), (shape[0], -(-channels // NCHWC_BLOCK) * NCHWC_BLOCK, *space))]


def _blocked_upsample(case: Case) -> Sequence[Sized]:
    pairs = zip(case.shape(0), case.numbers("scales"), strict=True)
    return [(case.dtype(0), tuple(size * scale for size, scale in pairs))]


def _standard(op_type: str, *inputs: int) -> Rule:
    def rule(case: Case) -> Standard:
        return Standard(op_type=op_type, inputs=tuple(i for i in inputs if case.has(i)))

    return rule


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(size) for size in np.broadcast_shapes(*shapes))


def _matmul(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    left, right = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    if left[-1] != right[-2]:
        raise ValueError("inner sizes differ")
    shape = (*_broadcast(left[:-2], right[:-2]), left[-2], right[-1])
    shape = shape if len(a) > 1 else (*shape[:-2], shape[-1])
    return shape if len(b) > 1 else shape[:-1]


MICROSOFT_RULES: Mapping[str, Rule] = {
    "Attention": _attention,
    "DynamicQuantizeLSTM": _dynamic_lstm,
    "DynamicQuantizeMatMul": _matmul_dynamic,
    "EmbedLayerNormalization": _embed_normalization,
    "FusedConv": _standard("Conv", 0, 1, 2),
    "FusedGemm": _standard("Gemm", 0, 1, 2),
    "FusedMatMul": _fused_matmul,
    "LayerNormalization": layer_normalization,
    "MatMulIntegerToFloat": _matmul_to_float,
    "MatMulNBits": _matmul_bits,
    "MultiHeadAttention": _multi_head_attention,
    "QGemm": _quantized_gemm,
    "QLinearAdd": _quantized_binary,
    "QLinearAveragePool": _standard("AveragePool", 0),
    "QLinearConcat": _quantized_concat,
    "QLinearGlobalAveragePool": _quantized_global_pool,
    "QLinearMul": _quantized_binary,
    "SimplifiedLayerNormalization": layer_normalization,
    "SkipLayerNormalization": _skip_normalization,
    "SkipSimplifiedLayerNormalization": _skip_normalization,
    **dict.fromkeys(("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "RotaryEmbedding"), same),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"), same),
}
"""Domain ``com.microsoft``, by operator type."""

NCHWC_RULES: Mapping[str, Rule] = {
    "AveragePool": _standard("AveragePool", 0),
    "Conv": _standard("Conv", 0, 1, 2),
    "GlobalAveragePool": _standard("GlobalAveragePool", 0),
    "GlobalMaxPool": _standard("GlobalMaxPool", 0),
    "MaxPool": _standard("MaxPool", 0),
    "ReorderInput": _blocked_reorder_input,
    "ReorderOutput": _blocked_reorder_output,
    "Upsample": _blocked_upsample,
}
"""Domain ``com.microsoft.nchwc``, by operator type."""
