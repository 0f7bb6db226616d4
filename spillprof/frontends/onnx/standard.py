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


def _gather_nd(case: Case) -> Sequence[Sized]:
    """Also where the indices name all axes, so that the output is a scalar."""
    data, indices, batch_dims = case.shape(0), case.shape(1), case.number("batch_dims", 0)
    return [(case.dtype(0), (*indices[:-1], *data[batch_dims + indices[-1] :]))]


def _max_unpool(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), case.contents(2))]


OVERRULED: Mapping[str, Rule] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
    "ConvTranspose": _conv_transpose,
}
"""By operator type: what these decide stands in place of onnx's answer.

Pools rounded up, in operator sets before 22 (LpPool: all that round up): onnx counts a window that lies in padding
alone, which runtimes do not. ConvTranspose: onnx adds the output padding to a size that automatic padding has fixed
already, and loses the axes that a stated output shape makes smaller than the input's.
"""

GAPS: Mapping[str, Rule] = {
    "GatherND": _gather_nd,
    "GroupNormalization": same,
    "MaxUnpool": _max_unpool,
    "MeanVarianceNormalization": same,
}
"""By operator type: what these decide fills gaps in onnx's answer.

The normalizations are defined by other operators alone, which onnx does not infer through.
"""
