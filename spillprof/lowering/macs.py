"""Multiply-accumulates of an operator, from the shapes of its operands."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from spillprof.lowering.families import KNOWN_DOMAINS, ML_DOMAIN, STANDARD_DOMAINS
from spillprof.model.graph import Graph, Operator

_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MacCount:
    """Multiply-accumulates, and how many operators were left out of the count or counted for one iteration."""

    macs: int
    uncosted: int = 0  # operators of unknown cost
    single_iterations: int = 0  # loops of unknown trip count
    branches: int = 0  # conditionals, costed by their larger branch


def count_macs(op: Operator, graph: Graph) -> MacCount:
    """Multiply-accumulates of an operator, the bodies of a control-flow operator included."""
    if op.subgraphs:
        return _control_flow(op, graph)
    macs = operator_macs(op, graph)
    return MacCount(macs=macs or 0, uncosted=int(macs is None))


def operator_macs(op: Operator, graph: Graph) -> int | None:
    """Multiply-accumulates of an operator; None if they cannot be told. Elementwise and data movement have none."""
    if op.subgraphs:
        return _control_flow(op, graph).macs
    if op.domain not in KNOWN_DOMAINS:
        return None
    rule = _ML_RULES.get(op.op_type) if op.domain == ML_DOMAIN else _RULES.get(op.op_type)
    if rule is None:
        return 0 if _is_free(op) else None
    try:
        return rule(_Operands(op=op, graph=graph))
    except (IndexError, KeyError, ValueError, TypeError, ZeroDivisionError):
        return None  # operands that the rule does not foresee


def body_macs(body: Graph) -> MacCount:
    """Multiply-accumulates of one run of a body."""
    counts = [count_macs(op, body) for op in body.operators]
    return MacCount(
        macs=sum(c.macs for c in counts),
        uncosted=sum(c.uncosted for c in counts),
        single_iterations=sum(c.single_iterations for c in counts),
        branches=sum(c.branches for c in counts),
    )


def _is_free(op: Operator) -> bool:
    """Whether the operator is known to multiply nothing: elementwise, reductions, data movement."""
    if op.domain in STANDARD_DOMAINS:
        return op.op_type not in _UNKNOWN
    return op.op_type in (_ML_FREE if op.domain == ML_DOMAIN else _CONTRIB_FREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operands:
    """Shapes and attributes of one operator. Absent operands raise ``KeyError`` or ``IndexError``."""

    op: Operator
    graph: Graph

    def input(self, index: int) -> _Shape:
        return self.graph.tensors[self.op.inputs[index]].shape

    def output(self, index: int = 0) -> _Shape:
        return self.graph.tensors[self.op.outputs[index]].shape

    def has_input(self, index: int) -> bool:
        return index < len(self.op.inputs) and bool(self.op.inputs[index])

    def integer(self, attribute: str, default: int = 0) -> int:
        value = self.op.attributes.get(attribute, default)
        if not isinstance(value, int):
            raise TypeError(attribute)
        return value


def _control_flow(op: Operator, graph: Graph) -> MacCount:
    bodies = [body_macs(body) for body in op.subgraphs]
    if op.op_type == "If":
        larger = max(bodies, key=lambda count: count.macs)
        return MacCount(
            macs=larger.macs,
            uncosted=larger.uncosted,
            single_iterations=larger.single_iterations,
            branches=larger.branches + 1,
        )
    trips = _trip_count(op, graph) if op.op_type in ("Loop", "Scan") else 1
    return MacCount(
        macs=sum(c.macs for c in bodies) * (1 if trips is None else trips),
        uncosted=sum(c.uncosted for c in bodies),
        single_iterations=sum(c.single_iterations for c in bodies) + (trips is None),
        branches=sum(c.branches for c in bodies),
    )


def _trip_count(op: Operator, graph: Graph) -> int | None:
    """Iterations of a Loop (the length of its stacked outputs) or Scan (of its scanned axis); None if unknown."""
    try:
        if op.op_type == "Loop":
            carried = len(op.inputs) - 2
            stacked = [name for name in op.outputs[carried:] if name]
            return graph.tensors[stacked[0]].shape[0]
        if graph.opset is not None and graph.opset < 9:
            return None  # Scan had a batch axis then
        scanned = op.attributes["num_scan_inputs"]
        axes = op.attributes.get("scan_input_axes", ())
        axis = int(axes[0]) if isinstance(axes, tuple) and axes else 0
        if not isinstance(scanned, int):
            return None
        return graph.tensors[op.inputs[-scanned]].shape[axis]
    except (IndexError, KeyError):
        return None


def _conv(o: _Operands) -> int:
    return prod(o.output()) * prod(o.input(1)[1:])  # each output element: C/groups x kernel


def _qlinear_conv(o: _Operands) -> int:
    return prod(o.output()) * prod(o.input(3)[1:])


def _conv_transpose(o: _Operands) -> int:
    return prod(o.input(0)) * prod(o.input(1)[1:])  # each input element: M/groups x kernel


def _gemm(o: _Operands) -> int:
    return prod(o.output()) * o.input(0)[0 if o.integer("transA") else 1]


def _matmul(o: _Operands) -> int:
    return prod(o.output()) * o.input(0)[-1]


def _fused_matmul(o: _Operands) -> int:
    if o.integer("transBatchA"):
        raise ValueError("transBatchA")
    return prod(o.output()) * o.input(0)[-2 if o.integer("transA") else -1]


def _matmul_nbits(o: _Operands) -> int:
    return prod(o.output()) * o.integer("K")


def _recurrent(o: _Operands) -> int:
    """Every step multiplies the input by W and the state by R; ``layout`` does not matter to the product."""
    sequence, batch = o.input(0)[:2]
    return sequence * batch * (prod(o.input(1)) + prod(o.input(2)))


def _einsum(o: _Operands) -> int:
    """Product of the sizes of all letters. One operand alone is moved or summed, not multiplied."""
    equation = o.op.attributes["equation"]
    text = (equation.decode() if isinstance(equation, bytes) else str(equation)).replace(" ", "")
    terms = text.split("->")[0].split(",")
    if len(terms) != len(o.op.inputs):
        raise ValueError(text)
    if len(terms) == 1:
        return 0
    sizes: dict[str, int] = {}
    broadcast: dict[int, int] = {}  # axes of the ellipsis, counted from its end
    for index, term in enumerate(terms):
        shape = o.input(index)
        before, dots, after = term.partition("...")
        if len(before) + len(after) > len(shape) or (not dots and len(before) != len(shape)):
            raise ValueError(text)
        middle = shape[len(before) : len(shape) - len(after)] if dots else ()
        for letter, size in zip(before + after, shape[: len(before)] + shape[len(shape) - len(after) :], strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
        for axis, size in enumerate(reversed(middle)):
            broadcast[axis] = max(size, broadcast.get(axis, 1))
    return prod(sizes.values()) * prod(broadcast.values())


def _attention(o: _Operands) -> int:
    """Scaled dot products of standard Attention: Q·K and the weighted sum of V. Heads packed or on axis 1."""
    query, key, value = o.input(0), o.input(1), o.input(2)
    past = o.input(4)[2] if o.has_input(4) else 0
    if len(query) == 4:
        batch, heads, length, width = query
        value_width = value[3]
    else:
        batch, length, packed = query
        heads = o.integer("q_num_heads")
        width, value_width = packed // heads, value[2] // o.integer("kv_num_heads")
    return batch * heads * length * (key[-2] + past) * (width + value_width)


def _multi_head_attention(o: _Operands) -> int:
    (batch, length, hidden), key = o.input(0), o.input(1)
    total = key[2] if len(key) == 4 else key[1]
    if o.has_input(6):
        total += o.input(6)[2]  # past key: batch, heads, past, width
    value = o.input(2)
    value_hidden = value[1] * value[3] if len(value) == 4 else value[2]
    return batch * length * total * (hidden + value_hidden)


def _group_query_attention(o: _Operands) -> int:
    (batch, length, hidden), heads = o.output(), o.integer("num_heads")
    total = o.output(1)[2]  # present key: batch, heads, total, width
    return batch * heads * length * total * 2 * (hidden // heads)


def _projected_attention(o: _Operands) -> int:
    """Contrib Attention: the projection of the input to Q, K and V, then the two products."""
    (batch, length, _), (inputs, projected) = o.input(0), o.input(1)
    if o.has_input(4) or "qkv_hidden_sizes" in o.op.attributes:
        raise ValueError("past or uneven heads")
    return batch * length * inputs * projected + 2 * batch * length * length * (projected // 3)


def _any_attention(o: _Operands) -> int:
    return _attention(o) if o.op.domain in STANDARD_DOMAINS else _projected_attention(o)


def _linear_model(o: _Operands) -> int:
    coefficients = o.op.attributes["coefficients"]
    shape = o.input(0)
    return (shape[0] if len(shape) > 1 else 1) * len(coefficients if isinstance(coefficients, tuple) else (1,))


_RULES: dict[str, Callable[[_Operands], int]] = {
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger", "NhwcConv", "NhwcFusedConv", "DeformConv"), _conv),
    "QLinearConv": _qlinear_conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm, "FusedGemm": _gemm, "QGemm": _gemm,
    **dict.fromkeys(
        ("MatMul", "MatMulInteger", "QLinearMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"), _matmul
    ),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation"), _fused_matmul),
    "MatMulNBits": _matmul_nbits, "MatMulBnb4": _matmul_nbits,
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), _recurrent),
    "Einsum": _einsum,
    "Attention": _any_attention,
    "MultiHeadAttention": _multi_head_attention,
    "GroupQueryAttention": _group_query_attention,
}  # fmt: skip

_ML_RULES: dict[str, Callable[[_Operands], int]] = {
    "LinearRegressor": _linear_model,
    "LinearClassifier": _linear_model,
}

_ML_FREE = frozenset({
    "ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer",
    "Imputer", "LabelEncoder", "Normalizer", "OneHotEncoder", "Scaler", "ZipMap",
})  # fmt: skip

_CONTRIB_FREE = frozenset({
    "BiasAdd", "BiasGelu", "BiasSoftmax", "BiasSplitGelu", "BiasDropout", "DequantizeLinear", "QuantizeLinear",
    "DynamicQuantizeLinear", "EmbedLayerNormalization", "FastGelu", "Gelu", "GroupNorm", "SkipGroupNorm",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization",
    "LayerNormalization", "QEmbedLayerNormalization", "QuickGelu", "RotaryEmbedding", "RelativePositionBias",
    "GatedRelativePositionBias", "NhwcMaxPool", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax",
    "QLinearLeakyRelu", "QLinearConcat", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearReduceMean",
    "QLinearWhere", "ReorderInput", "ReorderOutput", "MaxPool", "AveragePool", "GlobalMaxPool",
    "GlobalAveragePool", "Upsample", "ExpandDims", "GatherND", "Pad", "Trilu", "Unique", "Inverse", "Sampling",
    "NGramRepeatBlock", "RemovePadding", "RestorePadding", "QuickSoftmax", "GatherBlockQuantized",
})  # fmt: skip

_UNKNOWN = frozenset({"DFT", "STFT", "LinearAttention", "TreeEnsemble"})
"""Standard operators whose work is neither elementwise nor counted here."""
