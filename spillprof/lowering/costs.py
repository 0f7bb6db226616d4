"""How the cost of an operator is known: multiply-accumulates counted, bytes alone, or not at all."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import lru_cache

from spillprof.ir.graph import Operator
from spillprof.lowering.families import (
    CONTRIB_DOMAINS,
    CONTROL_DOMAIN,
    KNOWN_DOMAINS,
    ML_DOMAIN,
    PREVIEW_DOMAINS,
    STANDARD_DOMAINS,
)
from spillprof.lowering.macs_attention import ATTENTION_RULES
from spillprof.lowering.macs_products import ML_RULES, PRODUCT_RULES
from spillprof.lowering.operands import Operands


class Cost(StrEnum):
    """What the compute time of an operator comes from, besides its launch."""

    COUNTED = "counted"  # multiply-accumulates and bytes
    BYTES = "bytes"  # elementwise, reductions, data movement, comparisons: bytes read and written
    BODIES = "bodies"  # what its subgraphs cost
    UNKNOWN = "unknown"  # timed by bytes alone, and counted as an assumption


@lru_cache(maxsize=1024)
def cost_class(domain: str, op_type: str) -> Cost:
    """How the cost of an operator type is known."""
    if domain in STANDARD_DOMAINS and op_type in _CONTROL_FLOW:
        return Cost.BODIES
    if mac_rule(domain, op_type) is not None:
        return Cost.COUNTED
    if domain in STANDARD_DOMAINS:
        return Cost.BYTES
    if domain == CONTROL_DOMAIN:
        return Cost.BYTES
    if domain == ML_DOMAIN:
        return Cost.BYTES if op_type in _ML_BYTES else Cost.UNKNOWN
    if domain in CONTRIB_DOMAINS:
        return Cost.BYTES if op_type in CONTRIB_BYTES else Cost.UNKNOWN
    return Cost.BYTES if domain in PREVIEW_DOMAINS and op_type in _TRAINING_BYTES else Cost.UNKNOWN


@lru_cache(maxsize=1024)
def mac_rule(domain: str, op_type: str) -> Callable[[Operands], int] | None:
    """The rule that counts multiply-accumulates, if there is one."""
    if domain == ML_DOMAIN:
        return ML_RULES.get(op_type)
    if domain not in KNOWN_DOMAINS:
        return None
    return PRODUCT_RULES.get(op_type) or ATTENTION_RULES.get(op_type)


def stated_assumptions(op: Operator) -> Iterable[str]:
    """What sizes and costs take as true, for an operator whose definition leaves it open."""
    return _stated(op) if op.op_type in _OPEN or op.domain == ML_DOMAIN else ()


def _stated(op: Operator) -> Iterator[str]:
    if op.domain not in KNOWN_DOMAINS:
        return
    if op.domain == "com.microsoft.nchwc" and op.op_type == "ReorderInput":
        yield "channels of the NCHWc layout come in blocks of 16"
    if op.op_type == "Einsum" and len(op.inputs) > 2:
        yield "an Einsum of three or more operands is contracted in pairs, from the left"
    past = PAST.get(op.op_type)
    if op.domain in CONTRIB_DOMAINS and past is not None and past < len(op.inputs) and op.inputs[past]:
        yield "attention operators copy the keys and values of the past, none are appended in place"
    if op.domain == ML_DOMAIN and attribute_bytes(op):
        yield "parameters in attributes of classical models are weights of 8 bytes a whole number, 4 any other"
    if op.op_type in ASSUMED:
        yield ASSUMED[op.op_type]


def attribute_bytes(op: Operator) -> int:
    """Bytes of the parameters that an operator of classical machine learning keeps in its attributes.

    Trees, coefficients, tables: lists of numbers. Texts and tensors are left out.
    """
    if op.domain != ML_DOMAIN:
        return 0
    lists = (value for value in op.attributes.values() if isinstance(value, tuple))
    return sum(
        len(values) * (8 if isinstance(values[0], int) else 4)
        for values in lists
        if values and not isinstance(values[0], str)
    )


PAST = {
    "Attention": 4, "DecoderMaskedMultiHeadAttention": 5, "DecoderMaskedSelfAttention": 4, "GroupQueryAttention": 3,
    "MultiHeadAttention": 6, "PagedAttention": 3, "QAttention": 8, "SparseAttention": 3,
}  # fmt: skip
"""Position of the keys of earlier tokens."""


ASSUMED = {
    **dict.fromkeys(("DFT", "STFT"), "a Fourier transform of length n costs 2 n log2 n multiply-accumulates"),
    **dict.fromkeys(
        ("PackedAttention", "PackedMultiHeadAttention", "PagedAttention"),
        "sequences of unknown length in one batch are costed as the longest that fits",
    ),
    **dict.fromkeys(("MoE", "QMoE"), "each row of a mixture of experts goes to an expert that no other row needs"),
}

_OPEN = frozenset({"ReorderInput", "Einsum", *PAST, *ASSUMED})
_CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})

_ML_BYTES = frozenset({
    "ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer",
    "Imputer", "LabelEncoder", "Normalizer", "OneHotEncoder", "Scaler", "ZipMap",
})  # fmt: skip

_TRAINING_BYTES = frozenset({"Adagrad", "Adam", "Momentum"})

CONTRIB_BYTES = frozenset({
    # elementwise
    "BiasAdd", "BiasDropout", "BiasGelu", "BiasSplitGelu", "BitmaskBiasDropout", "BitmaskDropout", "ComplexMul",
    "ComplexMulConj", "FastGelu", "Gelu", "IsAllFinite", "MulInteger", "QLinearAdd", "QLinearLeakyRelu",
    "QLinearMul", "QLinearSigmoid", "QLinearWhere", "QOrderedGelu", "QuickGelu", "RotaryEmbedding",
    # quantised forms
    "DequantizeBFP", "DequantizeLinear", "DequantizeWithOrder", "DynamicQuantizeLinear", "QuantizeBFP",
    "QuantizeLinear", "QuantizeWithOrder",
    # normalisation, softmax, reduction, pooling
    "AveragePool", "BiasSoftmax", "EmbedLayerNormalization", "GlobalAveragePool", "GlobalMaxPool", "GroupNorm",
    "LayerNormalization", "MaxPool", "MaxpoolWithMask", "NhwcMaxPool", "QEmbedLayerNormalization",
    "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearReduceMean", "QLinearSoftmax",
    "QOrderedLayerNormalization", "QuickSoftmax", "ReduceSumInteger", "SimplifiedLayerNormalization",
    "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
    # data movement, look-up, interpolation
    "CropAndResize", "ExpandDims", "GatherBlockQuantized", "GatherND", "GridSample", "MurmurHash3",
    "NGramRepeatBlock", "Pad", "QLinearConcat", "Range", "RelativePositionBias", "RemovePadding", "ReorderInput",
    "ReorderOutput", "RestorePadding", "SampleOp", "TorchEmbedding", "Trilu", "UnfoldTensor", "Unique", "Upsample",
})  # fmt: skip
"""Contrib operators that multiply nothing, or so little that bytes decide."""
