"""Folding rules of elementwise operators and reductions."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from spillprof.frontends.onnx.folding_call import Call, FoldRule, Impossible, Ins, axes_of, given, limit, optional_input
from spillprof.frontends.onnx.proto import Array


def _elementwise(function: Callable[..., object]) -> FoldRule:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        values = [given(inputs, i) for i in range(len(inputs))]
        limit(np.broadcast_shapes(*(v.shape for v in values)))
        return (np.asarray(function(*values)),)

    return rule


def as_integers(values: Array, dtype: np.dtype[Any]) -> Array:
    """Casts values; floats to integers round towards zero. ``Impossible`` if one is not finite or out of range."""
    if values.dtype.kind == "f" and dtype.kind in "iu":
        wide, held = values.astype(np.float64), np.iinfo(dtype)
        fits = (wide > float(held.min) - 1) & (wide < float(held.max) + 1)
        if held.bits == 64:  # of the 64-bit limits, only the lower is a double
            fits |= wide == float(held.min)
        if not np.all(fits):
            raise Impossible(f"{float(wide[~fits].reshape(-1)[0]):g} as {dtype}")
    return values.astype(dtype)


def _held(result: Array, estimate: Array) -> Array:
    """The integer result if it is close to the same in floating point. ``Impossible``: it wrapped around."""
    apart = np.abs(estimate - result.astype(np.float64))
    if not np.all(apart < 2.0 ** (8 * result.dtype.itemsize - 2)):
        raise Impossible(f"a result that passes {result.dtype}")
    return result


def in_type(function: Callable[..., object], dtype: np.dtype[Any], *values: Array) -> Array:
    """The result of a function, cast to ``dtype``. ``Impossible`` if integers wrap around."""
    found = np.asarray(function(*values))
    if dtype.kind not in "iu":
        return found.astype(dtype)
    if found.dtype.kind in "iu":
        found = _held(found, np.asarray(function(*[v.astype(np.float64) for v in values])))
    return as_integers(found, dtype)


def _same_type(function: Callable[..., object]) -> FoldRule:
    """Elementwise; the result has the first input's type."""

    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        values = [given(inputs, i) for i in range(len(inputs))]
        limit(np.broadcast_shapes(*(v.shape for v in values)))
        return (in_type(function, values[0].dtype, *values),)

    return rule


def _divide(a: Array, b: Array) -> object:
    if not np.issubdtype(a.dtype, np.integer):
        return np.true_divide(a, b)
    quotient = np.floor_divide(a, b)  # ONNX truncates towards zero
    return np.where(
        (np.remainder(a, b) != 0) & (np.signbit(a.astype(np.float64)) != np.signbit(b.astype(np.float64))),
        quotient + 1,
        quotient,
    )


def _division(function: Callable[..., object]) -> FoldRule:
    """Elementwise. ``Impossible`` for integer division by zero, and of the least integer by -1."""
    divided = _elementwise(function)

    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        a, b = given(inputs, 0), given(inputs, 1)
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            if not np.all(b):
                raise Impossible("a division by zero")
            if call.op_type == "Div" and a.dtype.kind == "i" and np.any((a == np.iinfo(str(a.dtype)).min) & (b == -1)):
                raise Impossible(f"a result that passes {a.dtype}")
        return tuple(out.astype(a.dtype) for out in divided(call, inputs))

    return rule


def _mod(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return _division(np.fmod if call.number("fmod", 0) else np.remainder)(call, inputs)


def _variadic(function: Callable[[Array, Array], object]) -> FoldRule:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        total = given(inputs, 0)
        for i in range(1, len(inputs)):
            other = given(inputs, i)
            limit(np.broadcast_shapes(total.shape, other.shape))
            total = in_type(function, total.dtype, total, other)
        return (total,)

    return rule


def _clip(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, low, high = given(inputs, 0), optional_input(inputs, 1), optional_input(inputs, 2)
    if call.version < 11:
        raise ValueError("limits are attributes")
    value = value if low is None else np.maximum(value, low)
    return (value if high is None else np.minimum(value, high),)


def _reduce(function: Callable[..., object]) -> FoldRule:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        value, axes = given(inputs, 0), axes_of(call, inputs)
        if not axes and call.number("noop_with_empty_axes", 0):
            return (value,)
        keep = bool(call.number("keepdims", 1))
        return (in_type(partial(function, axis=axes or None, keepdims=keep), value.dtype, value),)

    return rule


def _mean(value: Array, **settings: Any) -> object:
    if not value.size:
        raise ValueError("the mean of nothing")
    mean: Callable[..., object] = np.mean
    return mean(value, **settings)


def _arg(function: Callable[..., object]) -> FoldRule:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        if call.number("select_last_index", 0):
            raise ValueError("not evaluated")
        value, axis, keep = given(inputs, 0), call.number("axis", 0), bool(call.number("keepdims", 1))
        return (np.asarray(function(value, axis=axis, keepdims=keep)).astype(np.int64),)

    return rule


def _where(condition: Array, a: Array, b: Array) -> object:
    return np.where(condition, a, b).astype(a.dtype)


ARITHMETIC: Mapping[str, FoldRule] = {
    "Abs": _same_type(np.abs),
    "Add": _same_type(np.add),
    "And": _elementwise(np.logical_and),
    "ArgMax": _arg(np.argmax),
    "ArgMin": _arg(np.argmin),
    "Ceil": _same_type(np.ceil),
    "Clip": _clip,
    "Div": _division(_divide),
    "Equal": _elementwise(np.equal),
    "Exp": _same_type(np.exp),
    "Floor": _same_type(np.floor),
    "Greater": _elementwise(np.greater),
    "GreaterOrEqual": _elementwise(np.greater_equal),
    "Identity": _elementwise(np.array),
    "Less": _elementwise(np.less),
    "LessOrEqual": _elementwise(np.less_equal),
    "Log": _same_type(np.log),
    "Max": _variadic(np.maximum),
    "Min": _variadic(np.minimum),
    "Mod": _mod,
    "Mul": _same_type(np.multiply),
    "Neg": _same_type(np.negative),
    "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or),
    "Pow": _same_type(np.power),
    "Reciprocal": _same_type(np.reciprocal),
    "ReduceMax": _reduce(np.max),
    "ReduceMean": _reduce(_mean),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Round": _same_type(np.round),
    "Sign": _same_type(np.sign),
    "Sqrt": _same_type(np.sqrt),
    "Sub": _same_type(np.subtract),
    "Sum": _variadic(np.add),
    "Where": _elementwise(_where),
    "Xor": _elementwise(np.logical_xor),
}
"""By operator type."""
