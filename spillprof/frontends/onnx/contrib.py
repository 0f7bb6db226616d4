"""Output sizes of operators for which onnx has no rule: vendor domains, classical machine learning, the oldest sets.

Each rule follows the operator's published definition. A rule that cannot decide raises ``LookupError`` or
``ValueError``, and the output counts as unknown.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spillprof.errors import ModelError
from spillprof.frontends.onnx.body import Node
from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT, ValueType, parse_type, tensor_type
from spillprof.model.graph import AttributeValue

Sized = tuple[str, tuple[int, ...]]
"""Type and shape of one output."""

NCHWC_BLOCK = 16
"""Channels of one block of the NCHWc layout; 8 on older processors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The operator has the shape of one of the default domain, over some of its inputs."""

    op_type: str
    inputs: tuple[int, ...]
    dtype: str | None = None  # if it differs from what the standard operator gives
    version: int = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One operator with what is known of its inputs."""

    node: Node
    types: Sequence[ValueType | None]
    settings: Mapping[str, AttributeValue]

    def has(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def known(self, index: int) -> ValueType:
        """The type of an input; ``LookupError`` unless it is sized."""
        found = self.types[index] if self.has(index) else None
        if found is None or not found.is_sized:
            raise LookupError(index)
        return found

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an input."""
        return self.known(index).sized_shape

    def dtype(self, index: int) -> str:
        """The element type of an input."""
        return self.known(index).dtype

    def number(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.settings.get(name, default)
        return value if isinstance(value, int) else default

    def count(self, *names: str) -> int:
        """The length of the first list attribute that is not empty, else 0."""
        lists = (self.settings.get(name) for name in names)
        return next((len(values) for values in lists if isinstance(values, tuple) and values), 0)


Rule = Callable[[Case], Sequence[Sized] | Standard]


def contrib_rule(node: Node) -> Rule | None:
    """The rule for an operator, if there is one."""
    return _RULES.get((node.domain, node.op_type))


def apply_rule(rule: Rule, case: Case) -> tuple[ValueType | None, ...] | Standard | None:
    """What a rule says; None where it cannot decide. A sequence or map is sized by its kind alone."""
    try:
        result = rule(case)
        if isinstance(result, Standard):
            return result
        found = [_value_type(dtype, shape) for dtype, shape in result]
    except (LookupError, ValueError, TypeError, ModelError):
        return None
    count = len(case.node.outputs)
    return tuple((found + [None] * count)[:count])


def _value_type(dtype: str, shape: tuple[int, ...]) -> ValueType | None:
    if dtype == "sequence":
        return parse_type(_SEQUENCE_OF_MAPS)
    return tensor_type(dtype, shape)


_SEQUENCE_OF_MAPS = bytes.fromhex("22080a062a0408071200")  # seq(map(int64, untyped))


def _same(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), case.shape(0))]


def _same_as_float(case: Case) -> Sequence[Sized]:
    return [("float32", case.shape(0))]


def _legacy_compare(case: Case) -> Sequence[Sized]:
    return [("bool", case.shape(0))]


def _legacy_reshape(case: Case) -> Sequence[Sized]:
    target = case.settings["shape"]
    assert isinstance(target, tuple)
    shape = [case.shape(0)[i] if size == 0 else int(size) for i, size in enumerate(target)]
    if -1 in shape:
        known = -math.prod(shape)
        shape[shape.index(-1)] = math.prod(case.shape(0)) // max(known, 1)
    if math.prod(shape) != math.prod(case.shape(0)):
        raise ValueError("sizes differ")
    return [(case.dtype(0), tuple(shape))]


def _legacy_normalization(case: Case) -> Sequence[Sized]:
    statistics = (case.dtype(0), case.shape(1))
    return [(case.dtype(0), case.shape(0)), *[statistics] * 4]


def _legacy_dropout(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), case.shape(0)), (case.dtype(0), case.shape(0))]


def _legacy_concat(case: Case) -> Standard:
    return Standard(op_type="Concat", inputs=tuple(range(len(case.node.inputs))))


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
    return [(case.dtype(0), (*case.shape(0)[:-1], case.number("N", 0) or _undecided()))]


def _layer_normalization(case: Case) -> Sequence[Sized]:
    shape, axis = case.shape(0), case.number("axis", -1)
    axis += len(shape) if axis < 0 else 0
    statistics = ("float32", (*shape[:axis], *(1,) * (len(shape) - axis)))
    return [(case.dtype(0), shape), statistics, statistics]


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
    heads = case.number("num_heads", 0) or _undecided()
    past = case.shape(4)[3] if case.has(4) else 0
    present = (2, batch, heads, past + length, hidden // heads)
    return [(case.dtype(0), (batch, length, hidden)), (case.dtype(0), present)]


def _multi_head_attention(case: Case) -> Sequence[Sized]:
    query, heads = case.shape(0), case.number("num_heads", 0) or _undecided()
    if len(query) != 3 or not case.has(1) or len(case.shape(1)) != 3 or len(case.shape(2)) != 3 or case.has(6):
        raise ValueError("not decided")
    key, value = case.shape(1), case.shape(2)
    present = [(case.dtype(0), (query[0], heads, x[1], x[2] // heads)) for x in (key, value)]
    return [(case.dtype(0), (query[0], query[1], value[2])), *present]


def _dynamic_lstm(case: Case) -> Sequence[Sized]:
    steps, batch, _ = case.shape(0)
    hidden = case.number("hidden_size", 0) or _undecided()
    directions = 2 if case.settings.get("direction") == "bidirectional" else 1
    last = ("float32", (directions, batch, hidden))
    return [("float32", (steps, directions, batch, hidden)), last, last]


def _blocked_reorder_output(case: Case) -> Sequence[Sized]:
    batch, _, *space = case.shape(0)
    channels = case.number("channels", 0) or _undecided()
    shape = (batch, *space, channels) if case.number("channels_last", 0) else (batch, channels, *space)
    return [(case.dtype(0), shape)]


def _blocked_reorder_input(case: Case) -> Sequence[Sized]:
    shape = case.shape(0)
    last = case.number("channels_last", 0)
    channels = shape[-1] if last else shape[1]
    space = shape[1:-1] if last else shape[2:]
    return [(case.dtype(0), (shape[0], -(-channels // NCHWC_BLOCK) * NCHWC_BLOCK, *space))]


def _blocked_upsample(case: Case) -> Sequence[Sized]:
    scales = case.settings["scales"]
    assert isinstance(scales, tuple)
    return [(case.dtype(0), tuple(size * int(scale) for size, scale in zip(case.shape(0), scales, strict=True)))]


def _standard(op_type: str, *inputs: int) -> Rule:
    def rule(case: Case) -> Standard:
        return Standard(op_type=op_type, inputs=tuple(i for i in inputs if case.has(i)))

    return rule


def _rows(case: Case) -> int:
    shape = case.shape(0)
    return shape[0] if len(shape) > 1 else 1


def _classifier(case: Case) -> Sequence[Sized]:
    texts = case.count("classlabels_strings")
    classes = texts or case.count("classlabels_int64s", "classlabels_ints", "intercepts")
    label = "string" if texts else "int64"
    return [(label, (_rows(case),)), ("float32", (_rows(case), max(classes, 2)))]


def _support_vector_classifier(case: Case) -> Sequence[Sized]:
    texts = case.count("classlabels_strings")
    classes = texts or case.count("classlabels_ints")
    pairs = classes * (classes - 1) // 2
    columns = classes if case.count("prob_a") or not case.count("vectors_per_class") else max(pairs, 2)
    return [("string" if texts else "int64", (_rows(case),)), ("float32", (_rows(case), columns))]


def _regressor(case: Case) -> Sequence[Sized]:
    targets = case.number("n_targets", case.number("targets", 1))
    return [("float32", (_rows(case), targets))]


def _zip_map(case: Case) -> Sequence[Sized]:
    return [("sequence", ())]


def _one_hot_encoder(case: Case) -> Sequence[Sized]:
    return [("float32", (*case.shape(0), case.count("cats_int64s", "cats_strings") or _undecided()))]


def _label_encoder(case: Case) -> Sequence[Sized]:
    shape = case.shape(0)
    for name, dtype in (("values_strings", "string"), ("values_int64s", "int64"), ("values_floats", "float32")):
        if case.count(name):
            return [(dtype, shape)]
    for attribute in case.node.attributes:
        if attribute.name == "values_tensor":
            return [(DTYPE_OF_ELEMENT[attribute.t.data_type], shape)]
    return [("int64" if case.dtype(0) == "string" else "string", shape)]


def _array_feature_extractor(case: Case) -> Sequence[Sized]:
    shape, picked = case.shape(0), math.prod(case.shape(1))
    return [(case.dtype(0), (*(shape[:-1] or (1,)), picked))]


def _feature_vectorizer(case: Case) -> Sequence[Sized]:
    widths = case.settings["inputdimensions"]
    assert isinstance(widths, tuple)
    return [("float32", (_rows(case), sum(int(width) for width in widths)))]


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(size) for size in np.broadcast_shapes(*shapes))


def _matmul(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    left, right = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    if left[-1] != right[-2]:
        raise ValueError("inner sizes differ")
    shape = (*_broadcast(left[:-2], right[:-2]), left[-2], right[-1])
    shape = shape if len(a) > 1 else (*shape[:-2], shape[-1])
    return shape if len(b) > 1 else shape[:-1]


def _undecided() -> int:
    raise ValueError("an attribute is missing")


_MS, _NCHWC, _ML = "com.microsoft", "com.microsoft.nchwc", "ai.onnx.ml"

_RULES: Mapping[tuple[str, str], Rule] = {
    **{("", op): _same for op in ("Add", "Sub", "Mul", "Div", "Pow")},
    **{("", op): _same for op in "Relu Sigmoid Tanh Exp Log Sqrt Abs Neg Floor Ceil Reciprocal Softplus".split()},  # noqa: SIM905
    **{
        ("", op): _same
        for op in [
            "Elu",
            "Selu",
            "LeakyRelu",
            "PRelu",
            "HardSigmoid",
            "Clip",
            "Softmax",
            "Identity",
            "Softsign",
            "Sum",
            "Max",
            "Min",
        ]
    },
    **{("", op): _legacy_compare for op in ("And", "Or", "Xor", "Greater", "Less", "Equal")},
    ("", "BatchNormalization"): _legacy_normalization,
    ("", "InstanceNormalization"): _same,
    ("", "LRN"): _same,
    ("", "Dropout"): _legacy_dropout,
    ("", "Reshape"): _legacy_reshape,
    ("", "Concat"): _legacy_concat,
    ("", "LayerNormalization"): _layer_normalization,
    ("", "SimplifiedLayerNormalization"): _layer_normalization,
    (_MS, "LayerNormalization"): _layer_normalization,
    (_MS, "SimplifiedLayerNormalization"): _layer_normalization,
    (_MS, "SkipLayerNormalization"): _skip_normalization,
    (_MS, "SkipSimplifiedLayerNormalization"): _skip_normalization,
    (_MS, "EmbedLayerNormalization"): _embed_normalization,
    **{(_MS, op): _same for op in ("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "RotaryEmbedding")},
    **{(_MS, op): _same for op in ("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax")},
    (_MS, "QLinearAdd"): _quantized_binary,
    (_MS, "QLinearMul"): _quantized_binary,
    (_MS, "QLinearConcat"): _quantized_concat,
    (_MS, "QLinearGlobalAveragePool"): _quantized_global_pool,
    (_MS, "QLinearAveragePool"): _standard("AveragePool", 0),
    (_MS, "QGemm"): _quantized_gemm,
    (_MS, "FusedConv"): _standard("Conv", 0, 1, 2),
    (_MS, "FusedGemm"): _standard("Gemm", 0, 1, 2),
    (_MS, "FusedMatMul"): _fused_matmul,
    (_MS, "MatMulIntegerToFloat"): _matmul_to_float,
    (_MS, "DynamicQuantizeMatMul"): _matmul_dynamic,
    (_MS, "MatMulNBits"): _matmul_bits,
    (_MS, "Attention"): _attention,
    (_MS, "MultiHeadAttention"): _multi_head_attention,
    (_MS, "DynamicQuantizeLSTM"): _dynamic_lstm,
    (_NCHWC, "Conv"): _standard("Conv", 0, 1, 2),
    (_NCHWC, "MaxPool"): _standard("MaxPool", 0),
    (_NCHWC, "AveragePool"): _standard("AveragePool", 0),
    (_NCHWC, "GlobalMaxPool"): _standard("GlobalMaxPool", 0),
    (_NCHWC, "GlobalAveragePool"): _standard("GlobalAveragePool", 0),
    (_NCHWC, "ReorderInput"): _blocked_reorder_input,
    (_NCHWC, "ReorderOutput"): _blocked_reorder_output,
    (_NCHWC, "Upsample"): _blocked_upsample,
    **{(_ML, op): _same_as_float for op in ("Scaler", "Normalizer", "Binarizer")},
    (_ML, "Imputer"): _same,
    (_ML, "LinearClassifier"): _classifier,
    (_ML, "TreeEnsembleClassifier"): _classifier,
    (_ML, "SVMClassifier"): _support_vector_classifier,
    (_ML, "LinearRegressor"): _regressor,
    (_ML, "TreeEnsembleRegressor"): _regressor,
    (_ML, "TreeEnsemble"): _regressor,
    (_ML, "SVMRegressor"): _regressor,
    (_ML, "ZipMap"): _zip_map,
    (_ML, "OneHotEncoder"): _one_hot_encoder,
    (_ML, "LabelEncoder"): _label_encoder,
    (_ML, "ArrayFeatureExtractor"): _array_feature_extractor,
    (_ML, "FeatureVectorizer"): _feature_vectorizer,
}
