"""Standard operators that are sized by rules of ours: onnx's inference says nothing there, or not what runs."""

from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.rule import Case, Rule, Sized, same
from spillprof.frontends.onnx.windows import SAME, places, reaches, setting


def _pool(case: Case) -> Sequence[Sized]:
    batch, channels, *space = case.shape(0)
    shape = (batch, channels, *places(case, space, case.numbers("kernel_shape")))
    return [(case.dtype(0), shape), ("int64", shape)]


def _conv_transpose(case: Case) -> Sequence[Sized]:
    """Of a stated output shape; or padded so that the output is at most the strides times as large."""
    (batch, _, *space), (_, per_group, *kernel) = case.shape(0), case.shape(1)
    channels = per_group * case.number("group", 1)
    if case.count("output_shape"):
        return [(case.dtype(0), (batch, channels, *setting(case, "output_shape", len(space), 0)))]
    if case.settings.get("auto_pad") not in SAME:
        raise LookupError("auto_pad")
    found = []
    for size, stride, reach, more in zip(
        space,
        setting(case, "strides", len(space), 1),
        reaches(case, kernel),
        setting(case, "output_padding", len(space), 0),
        strict=True,
    ):
        found.append(min((size - 1) * stride + reach + more, size * stride))
    return [(case.dtype(0), (batch, channels, *found))]


def _squeeze(case: Case) -> Sequence[Sized]:
    """With the axes in an attribute: in any order, and counted from behind in versions that do not have that yet."""
    shape, axes = case.shape(0), _stated_axes(case, len(case.shape(0)))
    if any(shape[axis] != 1 for axis in axes):
        raise ValueError("an axis is longer than 1")
    return [(case.dtype(0), tuple(size for axis, size in enumerate(shape) if axis not in axes))]


def _unsqueeze(case: Case) -> Sequence[Sized]:
    rest, rank = iter(case.shape(0)), len(case.shape(0)) + len(case.numbers("axes"))
    axes = _stated_axes(case, rank)
    return [(case.dtype(0), tuple(1 if axis in axes else next(rest) for axis in range(rank)))]


def _stated_axes(case: Case, rank: int) -> set[int]:
    """The axes of an attribute. ``ValueError`` if one is named twice, or is none."""
    axes = case.numbers("axes")
    found = {axis + rank if axis < 0 else axis for axis in axes}
    if len(found) != len(axes) or not found <= set(range(rank)):
        raise ValueError("axes")
    return found


def _concat(case: Case) -> Sequence[Sized]:
    """With an axis counted from behind, which the oldest versions do not have."""
    shapes = [case.shape(i) for i in range(len(case.node.inputs))]
    first = list(shapes[0])
    axis = case.number("axis", 1) % len(first)
    if any(len(s) != len(first) or (*s[:axis], *s[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) for s in shapes):
        raise ValueError("sizes differ")
    first[axis] = sum(shape[axis] for shape in shapes)
    return [(case.dtype(0), tuple(first))]


def _normalized_texts(case: Case) -> Sequence[Sized]:
    """Without stop words none is left out."""
    if case.count("stopwords"):
        raise LookupError("stopwords")
    return same(case)


def _scalar(case: Case) -> Sequence[Sized]:
    """Of a scalar alone, a scalar."""
    if case.shape(0) or len(case.node.inputs) > 1:
        raise LookupError("rank")
    return same(case)


def _gather_nd(case: Case) -> Sequence[Sized]:
    """Also where the indices name all axes, so that the output is a scalar."""
    data, indices, batch_dims = case.shape(0), case.shape(1), case.number("batch_dims", 0)
    return [(case.dtype(0), (*indices[:-1], *data[batch_dims + indices[-1] :]))]


def _max_unpool(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), case.contents(2))]


OVERRULED: Mapping[str, Rule] = {
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

GAPS: Mapping[str, Rule] = {
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
