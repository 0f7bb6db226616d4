"""Output sizes of standard operators where onnx infers nothing, or not what runtimes do; and of the oldest sets."""

import math
from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.rule import OperatorCase, Sized, SizeRule, same

SAME = ("SAME_UPPER", "SAME_LOWER")
"""Paddings that make the output as large as the input, divided (or multiplied) by the strides."""


def window_places(case: OperatorCase, space: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Places of the window along each axis. ``ValueError`` for settings that fit no axis.

    Rounded up, a last window that would begin in the padding behind the image does not exist: so the standard has it
    today, and so runtimes run all of its versions. A negative count is that of a window larger than the image.
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
    """How far the window reaches along each axis, its dilations included."""
    dilations = window_setting(case, "dilations", len(kernel), 1)
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))


def window_setting(case: OperatorCase, name: str, count: int, default: int) -> tuple[int, ...]:
    """An attribute with so many numbers, all the default if it is left out. ``ValueError`` for another count."""
    values = case.numbers(name) if name in case.settings else (default,) * count
    if len(values) != count:
        raise ValueError(name)
    return values


def _compare(case: OperatorCase) -> Sequence[Sized]:
    return [("bool", case.shape(0))]


def _reshape(case: OperatorCase) -> Sequence[Sized]:
    shape = [case.shape(0)[i] if size == 0 else size for i, size in enumerate(case.numbers("shape"))]
    if -1 in shape:
        known = -math.prod(shape)
        shape[shape.index(-1)] = math.prod(case.shape(0)) // max(known, 1)
    if math.prod(shape) != math.prod(case.shape(0)):
        raise ValueError("sizes differ")
    return [(case.dtype(0), tuple(shape))]


def _normalization(case: OperatorCase) -> Sequence[Sized]:
    statistics = (case.dtype(0), case.shape(1))
    return [(case.dtype(0), case.shape(0)), *[statistics] * 4]


def _dropout(case: OperatorCase) -> Sequence[Sized]:
    return [(case.dtype(0), case.shape(0)), (case.dtype(0), case.shape(0))]


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
    **dict.fromkeys(("And", "Or", "Xor", "Greater", "Less", "Equal"), _compare),
    "BatchNormalization": _normalization,
    "Dropout": _dropout,
    "LayerNormalization": layer_normalization,
    "Reshape": _reshape,
    "SimplifiedLayerNormalization": layer_normalization,
}
"""By operator type. ``LayerNormalization`` was written by tools before the standard had it."""


def _pool(case: OperatorCase) -> Sequence[Sized]:
    batch, channels, *space = case.shape(0)
    shape = (batch, channels, *window_places(case, space, case.numbers("kernel_shape")))
    return [(case.dtype(0), shape), ("int64", shape)]


def _conv_transpose(case: OperatorCase) -> Sequence[Sized]:
    """Of a stated output shape; or padded so that the output is at most the strides times as large."""
    (batch, _, *space), (_, per_group, *kernel) = case.shape(0), case.shape(1)
    channels = per_group * case.number("group", 1)
    if case.count("output_shape"):
        return [(case.dtype(0), (batch, channels, *window_setting(case, "output_shape", len(space), 0)))]
    if case.settings.get("auto_pad") not in SAME:
        raise LookupError("auto_pad")
    found = []
    for size, stride, reach, more in zip(
        space,
        window_setting(case, "strides", len(space), 1),
        window_reaches(case, kernel),
        window_setting(case, "output_padding", len(space), 0),
        strict=True,
    ):
        found.append(min((size - 1) * stride + reach + more, size * stride))
    return [(case.dtype(0), (batch, channels, *found))]


def _squeeze(case: OperatorCase) -> Sequence[Sized]:
    """With the axes in an attribute: in any order, and counted from behind in versions that do not have that yet."""
    shape, axes = case.shape(0), _stated_axes(case, len(case.shape(0)))
    if any(shape[axis] != 1 for axis in axes):
        raise ValueError("an axis is longer than 1")
    return [(case.dtype(0), tuple(size for axis, size in enumerate(shape) if axis not in axes))]


def _unsqueeze(case: OperatorCase) -> Sequence[Sized]:
    rest, rank = iter(case.shape(0)), len(case.shape(0)) + len(case.numbers("axes"))
    axes = _stated_axes(case, rank)
    return [(case.dtype(0), tuple(1 if axis in axes else next(rest) for axis in range(rank)))]


def _stated_axes(case: OperatorCase, rank: int) -> set[int]:
    """The axes of an attribute. ``ValueError`` if one is named twice, or is none."""
    axes = case.numbers("axes")
    found = {axis + rank if axis < 0 else axis for axis in axes}
    if len(found) != len(axes) or not found <= set(range(rank)):
        raise ValueError("axes")
    return found


def _concat(case: OperatorCase) -> Sequence[Sized]:
    """With an axis counted from behind, which the oldest versions do not have."""
    shapes = [case.shape(i) for i in range(len(case.node.inputs))]
    first = list(shapes[0])
    axis = case.number("axis", 1) % len(first)
    if any(len(s) != len(first) or (*s[:axis], *s[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) for s in shapes):
        raise ValueError("sizes differ")
    first[axis] = sum(shape[axis] for shape in shapes)
    return [(case.dtype(0), tuple(first))]


def _normalized_texts(case: OperatorCase) -> Sequence[Sized]:
    """Without stop words none is left out."""
    if case.count("stopwords"):
        raise LookupError("stopwords")
    return same(case)


def _scalar(case: OperatorCase) -> Sequence[Sized]:
    """Of a scalar alone, a scalar."""
    if case.shape(0) or len(case.node.inputs) > 1:
        raise LookupError("rank")
    return same(case)


def _gather_nd(case: OperatorCase) -> Sequence[Sized]:
    """Also where the indices name all axes, so that the output is a scalar."""
    data, indices, batch_dims = case.shape(0), case.shape(1), case.number("batch_dims", 0)
    return [(case.dtype(0), (*indices[:-1], *data[batch_dims + indices[-1] :]))]


def _max_unpool(case: OperatorCase) -> Sequence[Sized]:
    return [(case.dtype(0), case.contents(2))]


OVERRULED: Mapping[str, SizeRule] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
    "ConvTranspose": _conv_transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
"""By operator type: what these decide stands in place of onnx's answer.

Pools rounded up, in operator sets before 22 (LpPool: all that round up): onnx counts a window that lies in padding
alone, which runtimes do not. ConvTranspose: onnx adds the output padding to a size that automatic padding has fixed
already, and loses the axes that a stated output shape makes smaller than the input's. Squeeze, Unsqueeze with an
attribute: onnx passes over axes that are counted from behind, or not in ascending order.
"""

GAPS: Mapping[str, SizeRule] = {
    "Concat": _concat,
    "Einsum": _scalar,
    "GatherND": _gather_nd,
    "GroupNormalization": same,
    "MaxUnpool": _max_unpool,
    "MeanVarianceNormalization": same,
    "StringNormalizer": _normalized_texts,
    "Transpose": _scalar,
}
"""By operator type: what these decide fills gaps in onnx's answer.

The normalizations are defined by other operators alone, which onnx does not infer through.
"""
