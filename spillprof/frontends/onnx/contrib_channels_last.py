"""Convolution and pooling with the channels on the last axis."""

from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.rule import Case, Rule, Sized
from spillprof.frontends.onnx.windows import places


def convolution(weight: int, *, kernel_axes: slice, dtype: int = 0) -> Rule:
    """A convolution; positions of the weight, of its kernel's axes, and of the input that gives the type."""

    def rule(case: Case) -> Sequence[Sized]:
        filters = case.shape(weight)
        kernel = case.numbers("kernel_shape") if "kernel_shape" in case.settings else filters[kernel_axes]
        shape = case.shape(0)
        space = places(case, shape[1:-1], kernel)
        return [(case.dtype(dtype if case.has(dtype) else 0), (shape[0], *space, filters[0]))]

    return rule


def pool(case: Case) -> Sequence[Sized]:
    """A pooling operator."""
    shape = case.shape(0)
    return [(case.dtype(0), (shape[0], *places(case, shape[1:-1], case.numbers("kernel_shape")), shape[-1]))]


CHANNELS_LAST_RULES: Mapping[str, Rule] = {
    "NhwcConv": convolution(1, kernel_axes=slice(1, -1)),
    "NhwcFusedConv": convolution(1, kernel_axes=slice(2, None)),
    "NhwcMaxPool": pool,
}
"""Domain ``com.microsoft``, by operator type."""
