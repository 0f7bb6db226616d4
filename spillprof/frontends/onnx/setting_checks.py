"""Checks of attributes and operands, by operator type, that onnx's own inference omits."""

import math
import re
from collections.abc import Callable, Mapping, Sequence

from spillprof.frontends.onnx.checked_operator import CheckedOperator

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def equation_fault(equation: str, ranks: Sequence[int | None]) -> str:
    """What is wrong with an Einsum equation for operands of these ranks (None: unknown); "" if it is valid."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        if not _TERM.fullmatch(term):
            return f"'{term[:40]}' is no term: letters, and at most one ellipsis '...'"
    if len(terms) != len(ranks):
        return f"{len(terms)} terms for {len(ranks)} operands"
    for term, rank in zip(terms, ranks, strict=True):
        letters = len(term.replace("...", ""))
        if rank is not None and (letters > rank or (letters < rank and "..." not in term)):
            return f"the term '{term[:40]}' does not fit an operand with {rank} dimensions"
    if arrow:
        shown = right.replace("...", "")
        if len(set(shown)) != len(shown):
            return f"a letter repeats in the result '{right[:40]}'"
        if unknown := set(right) - set(left):
            return f"the result has '{min(unknown)}', and no operand has it"
    return ""


SettingCheck = Callable[[CheckedOperator], str]


def _all_of(*checks: SettingCheck) -> SettingCheck:
    return lambda operator: next((fault for check in checks if (fault := check(operator))), "")


def _divides(what: str, size: int | None, by: str, number: int | None) -> str:
    """The fault if ``size`` is no multiple of ``number``; "" where either is unknown."""
    if size is None or number is None or (number > 0 and size % number == 0):
        return ""
    return f"{by} is {number}, which does not divide {what}, {size}"


def _convolution(
    weight: int, *, image_channels: int = 1, weight_channels: int = 1, kernel: slice = slice(2, None)
) -> SettingCheck:
    """Channels = filter channels x groups, filters divide into groups, and ``kernel_shape`` is that of the weight."""

    def check(operator: CheckedOperator) -> str:
        group = operator.number("group") or 1
        channels, each = operator.dim(0, image_channels), operator.dim(weight, weight_channels)
        if channels is not None and each is not None and channels != each * group:
            return f"group is {group}, with {channels} channels of the input and {each} of each filter"
        return _divides("the number of filters", operator.dim(weight, 0), "group", group) or _kernel(
            operator, weight, kernel
        )

    return check


def _divided_channels(name: str, *, power: int = 1) -> SettingCheck:
    """An attribute, or a power of it, divides the number of channels."""

    def check(operator: CheckedOperator) -> str:
        number, by = operator.number(name), name if power == 1 else f"{name} squared"
        return _divides("the number of channels", operator.dim(0, 1), by, None if number is None else number**power)

    return check


def _kernel(operator: CheckedOperator, weight: int, axes: slice) -> str:
    stated, shape = operator.numbers("kernel_shape"), operator.shape(weight)
    if stated is None or shape is None or len(shape) < 3 or len(stated) != len(shape) - 2:
        return ""
    if any(size is not None and size != said for said, size in zip(stated, shape[axes], strict=True)):
        return f"kernel_shape is {list(stated)}, but the filters are {list(shape[axes])}"
    return ""


def _transposed_convolution(operator: CheckedOperator) -> str:
    channels, filters = operator.dim(0, 1), operator.dim(1, 0)
    if channels is not None and filters is not None and channels != filters:
        return f"the filters take {filters} channels, and the input has {channels}"
    return _divides("the number of channels", channels, "group", operator.number("group")) or _kernel(
        operator, 1, slice(2, None)
    )


def _quantised_convolution(operator: CheckedOperator) -> str:
    if operator.node.domain and operator.number("channels_last"):
        return _convolution(3, image_channels=-1)(operator)
    return _convolution(3)(operator)


def _axis(*, below: int = 0, above: int = 0, above_before_13: int = 0) -> SettingCheck:
    """``axis`` lies in [-rank - below, rank + above) of the first input."""

    def check(operator: CheckedOperator) -> str:
        reach = above + (above_before_13 if operator.node.version < 13 else 0)
        return _axis_fault("axis", operator.number("axis"), operator.rank(0), below, reach)

    return check


def _axis_fault(name: str, axis: int | float | None, rank: int | None, below: int = 0, above: int = 0) -> str:
    if axis is None or rank is None:
        return ""
    reach = max(rank, 1)  # a scalar counts as one row
    return "" if -reach - below <= axis < reach + above else f"{name} is {axis}, of a tensor with {rank} dimensions"


def _quantisation(operator: CheckedOperator) -> str:
    """``axis`` matters only with one scale per row."""
    if operator.node.domain or not operator.rank(1) or operator.dim(1, 0) == 1:
        return ""
    return _axis()(operator)


def _axes(operator: CheckedOperator) -> str:
    axes, rank = operator.numbers("axes"), operator.rank(0)
    if axes is None or rank is None:
        return ""
    reach = max(rank + (len(axes) if operator.node.op_type == "Unsqueeze" else 0), 1)
    wrong = next((axis for axis in axes if not -reach <= axis < reach), None)
    return "" if wrong is None else f"axes is {list(axes)[:8]}, of a tensor with {rank} dimensions"


def _cumulated(operator: CheckedOperator) -> str:
    axis = operator.value(1)
    return _axis_fault("the input axis", axis[0], operator.rank(0)) if axis else ""


def _reversed_sequence(operator: CheckedOperator) -> str:
    rank = operator.rank(0)
    return next((f for n in ("batch_axis", "time_axis") if (f := _axis_fault(n, operator.number(n), rank))), "")


def _einsum(operator: CheckedOperator) -> str:
    equation = operator.text("equation")
    fault = equation_fault(equation, [operator.rank(i) for i in range(len(operator.node.inputs))])
    return f"equation is '{equation[:80]}': {fault}" if fault else ""


def _permutation(operator: CheckedOperator) -> str:
    perm, rank = operator.numbers("perm"), operator.rank(0)
    if perm is None or rank is None or sorted(perm) == list(range(rank)):
        return ""
    return f"perm is {list(perm)[:8]}, which is no permutation of {rank} dimensions"


def _space_to_depth(operator: CheckedOperator) -> str:
    size = operator.number("blocksize")
    found = (_divides(f"dimension {axis} of the input", operator.dim(0, axis), "blocksize", size) for axis in (2, 3))
    return next(filter(None, found), "")


def _recurrent(operator: CheckedOperator) -> str:
    hidden, state = operator.number("hidden_size"), operator.dim(2, 2)
    if hidden is not None and state is not None and hidden != state:
        return f"hidden_size is {hidden}, but the recurrent weights are for {state}"
    directions = 2 if operator.settings.get("direction") == "bidirectional" else 1
    stored = operator.dim(1, 0)
    if stored is not None and stored != directions:
        return f"direction is '{operator.text('direction') or 'forward'}', but the weights are for {stored} of them"
    return ""


def _standard_attention(operator: CheckedOperator) -> str:
    """Checks head counts of 3-D inputs, whose last axis concatenates heads; 4-D inputs ignore the attributes."""
    queries, groups = operator.number("q_num_heads"), operator.number("kv_num_heads")
    if operator.rank(0) != 3 or queries is None or groups is None:
        return ""
    if min(queries, groups) < 1:
        return f"q_num_heads is {queries} and kv_num_heads {groups}, but both must be at least 1"
    return (
        _divides("the width of the queries", operator.dim(0, 2), "q_num_heads", queries)
        or _divides("the width of the keys", operator.dim(1, 2), "kv_num_heads", groups)
        or _divides("the width of the values", operator.dim(2, 2), "kv_num_heads", groups)
        or _divides("q_num_heads", queries, "kv_num_heads", groups)
    )


def _attention(operator: CheckedOperator) -> str:
    """Attention of the standard, or of ``com.microsoft``, which contains the projection."""
    if operator.node.domain == "":
        return _standard_attention(operator)
    heads, sizes = operator.number("num_heads"), operator.numbers("qkv_hidden_sizes")
    if heads is not None and heads < 1:
        return f"num_heads is {heads}, but must be at least 1"
    projected = operator.dim(1, 1)
    widths = sizes or (() if projected is None else (projected // 3,))
    return next((f for w in widths if (f := _divides("the width of all heads", w, "num_heads", heads))), "")


def _packed_heads(operator: CheckedOperator) -> str:
    """``num_heads`` divides the width of the queries; the first input may hold keys and values too."""
    width = operator.dim(0, 2) if operator.rank(0) == 3 else None
    if width is not None and not operator.has(1):
        width //= 3
    return _divides("the width of the queries", width, "num_heads", operator.number("num_heads"))


def _grouped_heads(operator: CheckedOperator) -> str:
    heads, groups, width = operator.number("num_heads"), operator.number("kv_num_heads"), operator.dim(0, 2)
    if heads is None or groups is None:
        return ""
    packed = not operator.has(1)
    told = "num_heads + 2 kv_num_heads" if packed else "num_heads"
    return _divides("num_heads", heads, "kv_num_heads", groups) or _divides(
        "the width of the queries", width, told, heads + 2 * groups if packed else heads
    )


def _product_of_bits(operator: CheckedOperator) -> str:
    rows, stated = operator.dim(0, -1), operator.number("K")
    return "" if None in (rows, stated) or rows == stated else f"K is {stated}, but the input has {rows} columns"


def _scales(operator: CheckedOperator) -> str:
    """Resize, Upsample: scales are finite and positive; sizes are positive unless the input is empty."""
    at = 2 if operator.node.op_type == "Resize" and operator.node.version > 10 else 1
    scales = operator.value(at) or operator.settings.get("scales") or ()
    given = [*scales] if isinstance(scales, list | tuple) else []
    given += [operator.settings[name] for name in ("width_scale", "height_scale") if name in operator.settings]
    if any(isinstance(s, int | float) and not 0 < s < math.inf for s in given):
        return f"scales is {given[:8]}, but each must be finite and above 0"
    sizes = operator.value(3) if at == 2 else None
    if sizes and 0 not in (operator.shape(0) or ()) and min(sizes) < 1:
        return f"sizes is {sizes[:8]}, but each must be at least 1"
    return ""


def _range(operator: CheckedOperator) -> str:
    for index, name in enumerate(("start", "limit", "delta")):
        value = operator.value(index)
        if value and (not math.isfinite(value[0]) or (name == "delta" and not value[0])):
            return f"{name} is {value[0]}, which makes no range"
    ends = [value[0] for index in range(3) if (value := operator.value(index))]
    if len(ends) == 3 and (ends[1] - ends[0]) / ends[2] >= _MOST_ELEMENTS:
        return f"limit is {ends[1]}, with a delta of {ends[2]}: more elements than any memory holds"
    return ""


_MOST_ELEMENTS = 1 << 62
"""Of a Range. Beyond this, onnx's own inference gives 0 elements."""


def _known(least: int, **inputs: int) -> SettingCheck:
    """Known elements of these inputs (name to index) are at least ``least``."""

    def check(operator: CheckedOperator) -> str:
        for name, index in inputs.items():
            values = operator.value(index)
            if values and not all(value >= least for value in values):
                shown = values[0] if len(values) == 1 else values[:8]
                return f"{name} is {shown}, but must be at least {least}"
        return ""

    return check


def _frames(operator: CheckedOperator) -> str:
    length, signal = operator.value(3), operator.dim(0, 1)
    frame = length[0] if length else operator.dim(2, 0)
    if frame is not None and signal is not None and frame > signal:
        return f"frame_length is {frame}, and the signal has {signal} samples"
    return ""


def _columns(operator: CheckedOperator) -> str:
    block = operator.value(2)
    if not block or not all(isinstance(size, int) for size in block):
        return ""
    return _divides("dimension 1 of the input", operator.dim(0, 1), "the product of block_shape", int(math.prod(block)))


_RECURRENT = ("LSTM", "GRU", "RNN")

CHECKS: Mapping[str, SettingCheck] = {
    **dict.fromkeys(("ArgMax", "ArgMin", "Compress", "Concat", "Gather", "GatherElements", "LpNormalization"), _axis()),
    **dict.fromkeys(("RMSNormalization", "Scatter", "ScatterElements", "Split", "SplitToSequence"), _axis()),
    **dict.fromkeys(("TensorScatter", "TopK", "Unique"), _axis()),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _axis(above_before_13=1)),
    "DFT": _all_of(_axis(), _known(1, dft_length=1)),
    "Flatten": _axis(above=1),
    "OneHot": _axis(below=1, above=1),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantisation),
    **dict.fromkeys(("Slice", "Squeeze", "Unsqueeze", "ReduceL1", "ReduceL2", "ReduceLogSum"), _axes),
    **dict.fromkeys(("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"), _axes),
    **dict.fromkeys(("ReduceSum", "ReduceSumSquare", "MeanVarianceNormalization"), _axes),
    **dict.fromkeys(("CumSum", "CumProd"), _cumulated),
    "ReverseSequence": _reversed_sequence,
    "Einsum": _einsum,
    "Transpose": _permutation,
    "DepthToSpace": _divided_channels("blocksize", power=2),
    "SpaceToDepth": _space_to_depth,
    "GroupNormalization": _divided_channels("num_groups"),
    "Conv": lambda operator: "" if operator.node.domain == "com.microsoft.nchwc" else _convolution(1)(operator),
    **dict.fromkeys(("ConvInteger", "FusedConv"), _convolution(1)),
    "QLinearConv": _quantised_convolution,
    "DeformConv": _all_of(_convolution(1), _divided_channels("offset_group")),
    "NhwcConv": _convolution(1, image_channels=-1, weight_channels=-1, kernel=slice(1, -1)),
    "NhwcFusedConv": _convolution(1, image_channels=-1),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(_RECURRENT, _recurrent),
    "Attention": _attention,
    "MultiHeadAttention": _packed_heads,
    **dict.fromkeys(("GroupQueryAttention", "SparseAttention"), _grouped_heads),
    "MatMulNBits": _product_of_bits,
    **dict.fromkeys(("Resize", "Upsample"), _scales),
    "Range": _range,
    "STFT": _all_of(_known(1, frame_step=1, frame_length=3), _frames),
    "MelWeightMatrix": _known(1, num_mel_bins=0, dft_length=1, sample_rate=2),
    "Col2Im": _all_of(_known(1, image_shape=1, block_shape=2), _columns),
    "AffineGrid": _known(1, size=1),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _known(1, size=0)),
    "CenterCropPad": _all_of(_known(0, shape=1), _axes),
    "ConstantOfShape": _known(0, input=0),
    "Tile": _known(0, repeats=1),
}
"""By operator type."""
