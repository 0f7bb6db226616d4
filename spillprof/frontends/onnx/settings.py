"""Refuses invalid attribute values that onnx's own inference accepts, before sizes follow from them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from spillprof.frontends.onnx.checked_operator import CheckedOperator
from spillprof.frontends.onnx.elements import ValueType
from spillprof.frontends.onnx.inference import inputs_written, place
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.setting_checks import CHECKS
from spillprof.ir.errors import ShapeError
from spillprof.ir.graph import AttributeValue

DOMAINS = frozenset({"", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc"})
"""Domains whose attributes have the meaning below."""

HINT = "the model contradicts itself: export it again, or mend this node"


class _Range(NamedTuple):
    """The valid range of a number, both ends included."""

    least: int
    most: int = (1 << 63) - 1


_AT_LEAST_ONE, _AT_LEAST_ZERO, _FLAG, _ELEMENT = _Range(1), _Range(0), _Range(0, 1), _Range(0, 1000)

_RANGES: Mapping[str, _Range] = {
    **dict.fromkeys(("kernel_shape", "strides", "dilations", "group", "offset_group", "num_groups"), _AT_LEAST_ONE),
    **dict.fromkeys(("blocksize", "hidden_size", "pooled_shape", "output_height", "output_width"), _AT_LEAST_ONE),
    **dict.fromkeys(("output_padding", "sample_size"), _AT_LEAST_ZERO),
    **dict.fromkeys(("to", "dtype"), _ELEMENT),
}
"""By attribute, for all operators."""

_HEADS = {"num_heads": _AT_LEAST_ONE, "kv_num_heads": _AT_LEAST_ONE}
_PADS = {"pads": _AT_LEAST_ZERO}
_BITS = {"K": _AT_LEAST_ONE, "N": _AT_LEAST_ONE, "bits": _Range(1, 8), "block_size": _AT_LEAST_ONE}
_OWN_RANGES: Mapping[str, Mapping[str, _Range]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "FusedConv", "NhwcConv", "NhwcFusedConv"), _PADS),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool", "MaxUnpool", "QLinearAveragePool", "NhwcMaxPool"), _PADS),
    "DeformConv": _PADS,
    "ConvTranspose": {**_PADS, "output_shape": _AT_LEAST_ONE},
    **{op_type: {"layout": _FLAG} for op_type in ("LSTM", "GRU", "RNN")},
    "LRN": {"size": _AT_LEAST_ONE},
    "LinearAttention": {"q_num_heads": _AT_LEAST_ONE, "kv_num_heads": _AT_LEAST_ONE},
    **dict.fromkeys(("MatMulNBits", "MatMulBnb4"), _BITS),
    "GatherBlockQuantized": {"bits": _Range(1, 8), "block_size": _AT_LEAST_ONE},
    "UnfoldTensor": {"size": _AT_LEAST_ONE, "step": _AT_LEAST_ONE},
    "RotaryEmbedding": {"num_heads": _AT_LEAST_ZERO},
    **dict.fromkeys(("MultiHeadAttention", "DecoderMaskedMultiHeadAttention", "GroupQueryAttention"), _HEADS),
    **dict.fromkeys(("DecoderMaskedSelfAttention", "PackedAttention", "PackedMultiHeadAttention"), _HEADS),
    **dict.fromkeys(("PagedAttention", "QAttention", "SparseAttention", "GatedRelativePositionBias"), _HEADS),
}
"""By operator: attributes with another meaning elsewhere."""

_WORDS = {"auto_pad": frozenset({"", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"})}
_DIRECTIONS = {"direction": frozenset({"forward", "reverse", "bidirectional"})}
_OWN_WORDS: Mapping[str, Mapping[str, frozenset[str]]] = dict.fromkeys(
    ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM", "AttnLSTM"), _DIRECTIONS
)
"""By operator: texts that sizes depend on."""


def refuse_nonsense(node: Node, types: Sequence[ValueType | None], values: Sequence[Array | None]) -> None:
    """``ShapeError`` that names node and attribute, for an invalid attribute or known input."""
    if node.domain not in DOMAINS:
        return
    settings = node.settings
    fault = _attribute_fault(node.op_type, settings) if settings else ""
    check = CHECKS.get(node.op_type)
    if not fault and check is not None:
        fault = check(CheckedOperator(node, settings, types, values))
    if fault:
        raise ShapeError(fault, where=(place(node), *inputs_written(node, types, values)), hint=HINT)


def _attribute_fault(op_type: str, settings: Mapping[str, AttributeValue]) -> str:
    own_ranges, own_words = _OWN_RANGES.get(op_type, {}), _OWN_WORDS.get(op_type, {})
    for name, value in settings.items():
        span = own_ranges.get(name) or _RANGES.get(name)
        if span is not None:
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(n, int) and not span.least <= n <= span.most for n in numbers):
                shown = f"{list(numbers)[:8]}" if isinstance(value, tuple) else f"{value!r}"
                return f"{name} is {shown}, but must be {_written(span)}"
        words = own_words.get(name) or _WORDS.get(name)
        if words is not None and not (isinstance(value, str) and value in words):
            said = value if isinstance(value, str) else repr(value)
            return f"{name} is '{said[:40]}', but must be one of {', '.join(sorted(words - {''}))}"
    return ""


def _written(span: _Range) -> str:
    return f"from {span.least} to {span.most}" if span.most < 1 << 32 else f"at least {span.least}"
