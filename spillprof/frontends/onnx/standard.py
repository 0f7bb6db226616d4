"""Output sizes of standard operators that onnx does not infer, infers unlike runtimes, or has only in old opsets."""

import math
from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.rule import OperatorCase, Sized, SizeRule, same, same_as

SAME = ("SAME_UPPER", "SAME_LOWER")
"""Values of ``auto_pad`` that make the output size the input size divided (or multiplied) by the strides."""


def window_places(case: OperatorCase, space: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Number of window positions along each axis. ``ValueError`` for attributes that do not fit the axes.

    With ``ceil_mode``, a last window that starts in the padding behind the image is dropped: the current standard says
    so, and runtimes apply it to every opset. A count is negative where the window is larger than the image.
    """
    rank = len(space)
    strides, reach = window_setting(case, "strides", rank, 1), window_reaches(case, kernel)
    if len(reach) != rank:
        raise ValueError("the window has other axes than the image")
    automatic = case.settings.get("auto_pad", "NOTSET")
    if min(strides, default=1) < 1:
        raise ValueError("a stride is below 1")
    if automatic in SAME:
        return tuple(-(-size // stride) for size, stride in zip(space, strides, strict=True))
    pads = (0,) * (2 * rank) if automatic == "VALID" else window_setting(case, "pads", 2 * rank, 0)
    rounds_up = case.number("ceil_mode", 0) != 0
    found = []
    for axis, size in enumerate(space):
        stride, free = strides[axis], size + pads[axis] + pads[axis + rank] - reach[axis]
        count = (-(-free // stride) if rounds_up or free < 0 else free // stride) + 1  # down: towards zero
        is_beyond = rounds_up and (count - 1) * stride >= size + pads[axis]
        found.append(count - 1 if is_beyond else count)
    return tuple(found)


def window_reaches(case: OperatorCase, kernel: Sequence[int]) -> tuple[int, ...]:
    """Extent of the window along each axis, with dilations."""
    dilations = window_setting(case, "dilations", len(kernel), 1)
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))


def window_setting(case: OperatorCase, name: str, count: int, default: int) -> tuple[int, ...]:
    """A list attribute of ``count`` numbers, by default all ``default``. ``ValueError`` for another count."""
    values = case.numbers(name) if name in case.settings else (default,) * count
    if len(values) != count:
        raise ValueError(name)
    return values


def _reshape(case: OperatorCase) -> Sequence[Sized]:
    shape = [case.shape(0)[i] if size == 0 else size for i, size in enumerate(case.numbers("shape"))]
    if -1 in shape:
        known = -math.prod(shape)
        shape[shape.index(-1)] = math.prod(case.shape(0)) // max(known, 1)
    if math.prod(shape) != math.prod(case.shape(0)):
        raise ValueError("sizes differ")
    return [(case.dtype(0), tuple(shape))]


def layer_normalization(case: OperatorCase) -> Sequence[Sized]:
    """The input's shape, then mean and inverse deviation over the normalized axes."""
    shape, axis = case.shape(0), case.number("axis", -1)
    axis += len(shape) if axis < 0 else 0
    statistics = ("float32", (*shape[:axis], *(1,) * (len(shape) - axis)))
    return [(case.dtype(0), shape), statistics, statistics]


LEGACY_SIZES: Mapping[str, SizeRule] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "Sum", "Max", "Min", "PRelu"), same),  # B broadcasts to A
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Neg", "Floor", "Ceil"), same),
    **dict.fromkeys(("Reciprocal", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "Clip"), same),
    **dict.fromkeys(("Softmax", "Identity", "InstanceNormalization", "LRN"), same),
    **dict.fromkeys(("And", "Or", "Xor", "Greater", "Less", "Equal"), same_as(0, "bool")),
    "BatchNormalization": lambda c: [(c.dtype(0), c.shape(0)), *[(c.dtype(0), c.shape(1))] * 4],
    "Dropout": lambda c: [(c.dtype(0), c.shape(0))] * 2,
    "LayerNormalization": layer_normalization,
    "Reshape": _reshape,
    "SimplifiedLayerNormalization": layer_normalization,
}
"""By operator type. Tools wrote ``LayerNormalization`` before it was in the standard."""


def _pool(case: OperatorCase) -> Sequence[Sized]:
    batch, channels, *space = case.shape(0)
    shape = (batch, channels, *window_places(case, space, case.numbers("kernel_shape")))
    return [(case.dtype(0), shape), ("int64", shape)]


def _conv_transpose(case: OperatorCase) -> Sequence[Sized]:
    """ConvTranspose with ``output_shape``, or with automatic padding: the output is at most strides x input."""
    (batch, _, *space), (_, per_group, *kernel) = case.shape(0), case.shape(1)
    channels = per_group * case.number("group", 1)
    if case.count("output_shape"):
        return [(case.dtype(0), (batch, channels, *window_setting(case, "output_shape", len(space), 0)))]
    if case.settings.get("auto_pad") not in SAME:
        raise LookupError("auto_pad")
    strides = window_setting(case, "strides", len(space), 1)
    padding = window_setting(case, "output_padding", len(space), 0)
    axes = zip(space, strides, window_reaches(case, kernel), padding, strict=True)
    found = (min((size - 1) * stride + reach + more, size * stride) for size, stride, reach, more in axes)
    return [(case.dtype(0), (batch, channels, *found))]


def _squeeze(case: OperatorCase) -> Sequence[Sized]:
    """Squeeze with the axes in an attribute: in any order, and negative ones in opsets before they were allowed."""
    shape, axes = case.shape(0), _stated_axes(case, len(case.shape(0)))
    if any(shape[axis] != 1 for axis in axes):
        raise ValueError("an axis is longer than 1")
    return [(case.dtype(0), tuple(size for axis, size in enumerate(shape) if axis not in axes))]


def _unsqueeze(case: OperatorCase) -> Sequence[Sized]:
    rest, rank = iter(case.shape(0)), len(case.shape(0)) + len(case.numbers("axes"))
    axes = _stated_axes(case, rank)
    return [(case.dtype(0), tuple(1 if axis in axes else next(rest) for axis in range(rank)))]


def _stated_axes(case: OperatorCase, rank: int) -> set[int]:
    """The axes in the attribute ``axes``. ``ValueError`` for duplicates and axes out of range."""
    axes = case.numbers("axes")
    found = {axis + rank if axis < 0 else axis for axis in axes}
    if len(found) != len(axes) or not found <= set(range(rank)):
        raise ValueError("axes")
    return found


def _concat(case: OperatorCase) -> Sequence[Sized]:
    """Concat with a negative axis, which the oldest opsets do not allow."""
    shapes = [case.shape(i) for i in range(len(case.node.inputs))]
    first = list(shapes[0])
    axis = case.number("axis", 1) % len(first)
    if any(len(s) != len(first) or (*s[:axis], *s[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) for s in shapes):
        raise ValueError("sizes differ")
    first[axis] = sum(shape[axis] for shape in shapes)
    return [(case.dtype(0), tuple(first))]


def _normalized_texts(case: OperatorCase) -> Sequence[Sized]:
    """StringNormalizer without stop words keeps every text."""
    if case.count("stopwords"):
        raise LookupError("stopwords")
    return same(case)


def _scalar(case: OperatorCase) -> Sequence[Sized]:
    """One scalar operand gives a scalar."""
    if case.shape(0) or len(case.node.inputs) > 1:
        raise LookupError("rank")
    return same(case)


def _gather_nd(case: OperatorCase) -> Sequence[Sized]:
    """GatherND, also where the indices cover all axes and the output is a scalar."""
    data, indices, batch_dims = case.shape(0), case.shape(1), case.number("batch_dims", 0)
    return [(case.dtype(0), (*indices[:-1], *data[batch_dims + indices[-1] :]))]


OVERRULED: Mapping[str, SizeRule] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
    "ConvTranspose": _conv_transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
"""By operator type: a size that these rules give replaces onnx's.

Pools with ``ceil_mode`` before opset 22 (LpPool: in every opset): onnx counts a window that lies in padding alone,
runtimes do not. ConvTranspose: onnx adds the output padding to a size that automatic padding has already fixed, and
drops the axes that ``output_shape`` makes smaller than the input's. Squeeze and Unsqueeze with an attribute: onnx
ignores axes that are negative or not ascending.
"""

GAPS: Mapping[str, SizeRule] = {
    "Concat": _concat,
    "Einsum": _scalar,
    "GatherND": _gather_nd,
    "GroupNormalization": same,
    "MaxUnpool": lambda c: [(c.dtype(0), c.contents(2))],
    "MeanVarianceNormalization": same,
    "StringNormalizer": _normalized_texts,
    "Transpose": _scalar,
}
"""By operator type: a size that these rules give is used where onnx gives none.

The standard defines the normalizations as functions of other operators, through which onnx does not infer.
"""
