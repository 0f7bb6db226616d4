"""Constant folding of small operators: shape arithmetic and data movement that exporters write into the graph."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.frontends.onnx.folding_arithmetic import ARITHMETIC, as_integers, in_type
from spillprof.frontends.onnx.folding_call import (
    Call,
    FoldRule,
    Ins,
    TooLarge,
    axes_of,
    given,
    integers,
    limit,
    optional_input,
)
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.stored_tensors import KEPT_ELEMENTS, constant_value
from spillprof.ir.errors import ModelError


def _concat(call: Call, inputs: Ins) -> tuple[Array, ...]:
    values = [given(inputs, i) for i in range(len(inputs))]
    if sum(v.size for v in values) > KEPT_ELEMENTS:
        raise TooLarge
    return (np.concatenate(values, axis=call.number("axis", 1)),)


def _constant_of_shape(call: Call, inputs: Ins) -> tuple[Array, ...]:
    shape = limit(integers(given(inputs, 0)))
    stored = next((constant_value(a.t).value for a in call.protos if a.name == "value"), np.zeros(1, np.float32))
    if stored is None:
        raise ValueError("the fill value is not known")
    return (np.full(shape, stored.reshape(-1)[0]),)


def _cumsum(call: Call, inputs: Ins) -> tuple[Array, ...]:
    if call.number("exclusive", 0) or call.number("reverse", 0):
        raise ValueError("not evaluated")
    value = given(inputs, 0)
    axis = int(given(inputs, 1).reshape(-1)[0])
    return (in_type(partial(np.cumsum, axis=axis), value.dtype, value),)


def _expand(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value = given(inputs, 0)
    return (np.broadcast_to(value, limit(np.broadcast_shapes(value.shape, tuple(integers(given(inputs, 1)))))),)


def _flatten(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, axis = given(inputs, 0), call.number("axis", 1)
    axis += value.ndim if axis < 0 else 0
    return (value.reshape(math.prod(value.shape[:axis]), -1),)


def _gather(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, indices, axis = given(inputs, 0), given(inputs, 1), call.number("axis", 0)
    limit((value.size // max(value.shape[axis], 1), indices.size))
    return (np.take(value, indices.astype(np.int64), axis=axis),)


def _range(call: Call, inputs: Ins) -> tuple[Array, ...]:
    start, stop, delta = (given(inputs, i).reshape(-1)[0] for i in range(3))
    first, last, step = (v.item() for v in (start, stop, delta))  # Python numbers: exact for integers beyond 2^53
    count = max(-((first - last) // step) if isinstance(step, int) else math.ceil((last - first) / step), 0)
    limit((count,))
    return ((start + np.arange(count, dtype=np.int64).astype(start.dtype) * delta).astype(start.dtype),)


def _reshape(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, shape = given(inputs, 0), optional_input(inputs, 1)
    target = list(call.ints("shape") or ()) if shape is None else integers(shape)
    if not call.number("allowzero", 0):
        target = [value.shape[i] if size == 0 else size for i, size in enumerate(target)]
    return (value.reshape(target),)


def _scatter_elements(call: Call, inputs: Ins) -> tuple[Array, ...]:
    if call.attributes.get("reduction", "none") != "none":
        raise ValueError("not evaluated")
    result = given(inputs, 0).copy()
    np.put_along_axis(result, given(inputs, 1).astype(np.int64), given(inputs, 2), axis=call.number("axis", 0))
    return (result,)


def _scatter_nd(call: Call, inputs: Ins) -> tuple[Array, ...]:
    if call.attributes.get("reduction", "none") != "none":
        raise ValueError("not evaluated")
    result, indices, updates = given(inputs, 0).copy(), given(inputs, 1), given(inputs, 2)
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return (result,)


def _slice(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value = given(inputs, 0)
    if call.version < 10:
        starts, ends, axes = call.ints("starts") or (), call.ints("ends") or (), call.ints("axes")
        steps: Sequence[int] = [1] * len(starts)
    else:
        starts, ends = tuple(integers(given(inputs, 1))), tuple(integers(given(inputs, 2)))
        given_axes, given_steps = optional_input(inputs, 3), optional_input(inputs, 4)
        axes = None if given_axes is None else tuple(integers(given_axes))
        steps = [1] * len(starts) if given_steps is None else integers(given_steps)
    cuts = [slice(None)] * value.ndim
    for axis, start, end, step in zip(axes or range(len(starts)), starts, ends, steps, strict=True):
        size = value.shape[axis]
        stop = None if step < 0 and end < -size else end
        cuts[axis] = slice(start, stop, step)
    return (value[tuple(cuts)],)


def _split(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, axis, parts = given(inputs, 0), call.number("axis", 0), optional_input(inputs, 1)
    sizes = call.ints("split") if parts is None else tuple(integers(parts))
    if sizes is None:
        each = -(-value.shape[axis] // call.n_outputs)
        return tuple(np.split(value, [each * i for i in range(1, call.n_outputs)], axis=axis))
    if sum(sizes) != value.shape[axis]:
        raise ValueError("the parts do not add up")
    return tuple(np.split(value, np.cumsum(sizes)[:-1], axis=axis))


def _tile(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, repeats = given(inputs, 0), integers(given(inputs, 1))
    limit([size * repeat for size, repeat in zip(value.shape, repeats, strict=True)])
    return (np.tile(value, repeats),)


def _trilu(call: Call, inputs: Ins) -> tuple[Array, ...]:
    offset = optional_input(inputs, 1)
    k = 0 if offset is None else int(offset.reshape(-1)[0])
    return ((np.triu if call.number("upper", 1) else np.tril)(given(inputs, 0), k),)


_RULES: Mapping[str, FoldRule] = {
    **ARITHMETIC,
    "Cast": lambda call, inputs: (
        as_integers(given(inputs, 0), np.dtype(DTYPE_OF_ELEMENT.get(call.number("to", 0), ""))),
    ),
    "CastLike": lambda call, inputs: (as_integers(given(inputs, 0), given(inputs, 1).dtype),),
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cumsum,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": lambda call, inputs: (
        np.take_along_axis(given(inputs, 0), given(inputs, 1).astype(np.int64), axis=call.number("axis", 0)),
    ),
    "NonZero": lambda call, inputs: (np.array(np.nonzero(np.atleast_1d(given(inputs, 0))), np.int64),),
    "Range": _range,
    "Reshape": _reshape,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": lambda call, inputs: (np.squeeze(given(inputs, 0), axis=axes_of(call, inputs)),),
    "Tile": _tile,
    "Transpose": lambda call, inputs: (np.transpose(given(inputs, 0), call.ints("perm")),),
    "Trilu": _trilu,
    "Unsqueeze": lambda call, inputs: (np.expand_dims(given(inputs, 0), axes_of(call, inputs) or ()),),
}
"""By operator type."""


def fold(call: Call, inputs: Ins) -> tuple[Array, ...] | None:
    """The outputs' contents; None if no rule evaluates the operator, its inputs do not fit, or the result is large.

    ``Impossible`` if there is no result: division of integers by zero, a number that its type does not hold.
    """
    rule = _RULES.get(call.op_type)
    if rule is None:
        return None
    try:
        with np.errstate(all="ignore"):
            outputs = rule(call, inputs)
    except (TooLarge, ModelError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RuntimeError):
        # Shape inference reports invalid operators; numpy also refuses valid ones, of more than 32 axes.
        return None
    if any(output.size > KEPT_ELEMENTS for output in outputs):
        return None
    return outputs


def can_fold(op_type: str) -> bool:
    """Whether operators of this type (of the default domain) are evaluated at all."""
    return op_type in _RULES
