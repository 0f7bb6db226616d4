"""Convolution and pooling with the channels on the last axis."""

from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.rule import Case, Rule, Sized


def convolution(weight: int, *, kernel_axes: slice, dtype: int = 0) -> Rule:
    """A convolution; positions of the weight, of its kernel's axes, and of the input that gives the type."""

    def rule(case: Case) -> Sequence[Sized]:
        filters = case.shape(weight)
        kernel = case.numbers("kernel_shape") if "kernel_shape" in case.settings else filters[kernel_axes]
        shape = case.shape(0)
        space = _windows(case, shape[1:-1], kernel)
        return [(case.dtype(dtype if case.has(dtype) else 0), (shape[0], *space, filters[0]))]

    return rule


def pool(case: Case) -> Sequence[Sized]:
    """A pooling operator."""
    shape = case.shape(0)
    return [(case.dtype(0), (shape[0], *_windows(case, shape[1:-1], case.numbers("kernel_shape")), shape[-1]))]


def _windows(case: Case, space: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Positions of the kernel along each axis, as the standard defines them."""
    rank = len(space)
    strides = _setting(case, "strides", rank, 1)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, _setting(case, "dilations", rank, 1), strict=True)]
    automatic = case.settings.get("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        return tuple(-(-size // stride) for size, stride in zip(space, strides, strict=True))
    pads = (0,) * (2 * rank) if automatic == "VALID" else _setting(case, "pads", 2 * rank, 0)
    found = []
    for axis, size in enumerate(space):
        free = size + pads[axis] + pads[axis + rank] - reach[axis]
        if free < 0:
            raise ValueError("the kernel passes the image")
        up = case.number("ceil_mode", 0)
        found.append((-(-free // strides[axis]) if up else free // strides[axis]) + 1)
    return tuple(found)


def _setting(case: Case, name: str, count: int, default: int) -> tuple[int, ...]:
    values = case.numbers(name) if name in case.settings else (default,) * count
    if len(values) != count:
        raise ValueError(name)
    return values


CHANNELS_LAST_RULES: Mapping[str, Rule] = {
    "NhwcConv": convolution(1, kernel_axes=slice(1, -1)),
    "NhwcFusedConv": convolution(1, kernel_axes=slice(2, None)),
    "NhwcMaxPool": pool,
}
"""Domain ``com.microsoft``, by operator type."""
