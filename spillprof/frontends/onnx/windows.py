"""How many places a window has along the axes of an image: convolutions and pools."""

from collections.abc import Sequence

from spillprof.frontends.onnx.rule import Case

SAME = ("SAME_UPPER", "SAME_LOWER")
"""Paddings that make the output as large as the input, divided (or multiplied) by the strides."""


def places(case: Case, space: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Places of the window along each axis. ``ValueError`` for settings that fit no axis.

    Rounded up, a last window that would begin in the padding behind the image does not exist: so the standard has it
    today, and so runtimes run all of its versions. A negative count is that of a window larger than the image.
    """
    rank = len(space)
    strides, reach = setting(case, "strides", rank, 1), reaches(case, kernel)
    if len(reach) != rank:
        raise ValueError("the window has other axes than the image")
    automatic = case.settings.get("auto_pad", "NOTSET")
    if min(strides, default=1) < 1:
        raise ValueError("a stride is below 1")
    if automatic in SAME:
        return tuple(-(-size // stride) for size, stride in zip(space, strides, strict=True))
    pads = (0,) * (2 * rank) if automatic == "VALID" else setting(case, "pads", 2 * rank, 0)
    rounds_up = case.number("ceil_mode", 0) != 0
    found = []
    for axis, size in enumerate(space):
        stride, free = strides[axis], size + pads[axis] + pads[axis + rank] - reach[axis]
        count = (-(-free // stride) if rounds_up or free < 0 else free // stride) + 1  # down: towards zero
        is_beyond = rounds_up and (count - 1) * stride >= size + pads[axis]
        found.append(count - 1 if is_beyond else count)
    return tuple(found)


def reaches(case: Case, kernel: Sequence[int]) -> tuple[int, ...]:
    """How far the window reaches along each axis, its dilations included."""
    dilations = setting(case, "dilations", len(kernel), 1)
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))


def setting(case: Case, name: str, count: int, default: int) -> tuple[int, ...]:
    """An attribute with so many numbers, all the default if it is left out. ``ValueError`` for another count."""
    values = case.numbers(name) if name in case.settings else (default,) * count
    if len(values) != count:
        raise ValueError(name)
    return values
