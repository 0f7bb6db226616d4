"""Evaluates small operators whose inputs are known: the arithmetic on shapes that exporters write into the graph."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from spillprof.frontends.onnx.constants import Array, constant_value
from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.frontends.onnx.payload import KEPT_ELEMENTS
from spillprof.model.graph import AttributeValue

Ins = Sequence[Array | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operator to evaluate."""

    op_type: str
    version: int
    attributes: Mapping[str, AttributeValue]
    protos: Sequence[onnx.AttributeProto]  # for the few that hold tensors
    n_outputs: int

    def ints(self, name: str) -> tuple[int, ...] | None:
        """A list attribute, None if absent."""
        value = self.attributes.get(name)
        return tuple(int(v) for v in value) if isinstance(value, tuple) else None

    def number(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default


def fold(call: Call, inputs: Ins) -> tuple[Array, ...] | None:
    """The outputs' contents; None if the operator is not evaluated, its inputs do not fit, or the result is large."""
    rule = _RULES.get(call.op_type)
    if rule is None:
        return None
    try:
        with np.errstate(all="ignore"):
            outputs = rule(call, inputs)
    except (_TooLarge, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return None  # shape inference then says what is wrong with the operator, if anything is
    if any(output.size > KEPT_ELEMENTS for output in outputs):
        return None
    return outputs


def can_fold(op_type: str) -> bool:
    """Whether operators of this type (of the default domain) are evaluated at all."""
    return op_type in _RULES


class _TooLarge(Exception):
    """The result has more elements than are kept."""


def _limit(shape: Sequence[int]) -> tuple[int, ...]:
    if math.prod(shape) > KEPT_ELEMENTS or any(size < 0 for size in shape):
        raise _TooLarge
    return tuple(int(size) for size in shape)


def _given(inputs: Ins, index: int) -> Array:
    value = inputs[index] if index < len(inputs) else None
    if value is None:
        raise ValueError("an input is missing")
    return value


def _optional(inputs: Ins, index: int) -> Array | None:
    return inputs[index] if index < len(inputs) else None


def _ints(value: Array) -> list[int]:
    return [int(v) for v in np.asarray(value).reshape(-1)]


def _axes(call: Call, inputs: Ins, index: int = 1) -> tuple[int, ...] | None:
    given = _optional(inputs, index)
    return call.ints("axes") if given is None else tuple(_ints(given))


def _elementwise(function: Callable[..., object]) -> Callable[[Call, Ins], tuple[Array, ...]]:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        values = [_given(inputs, i) for i in range(len(inputs))]
        _limit(np.broadcast_shapes(*(v.shape for v in values)))
        return (np.asarray(function(*values)),)

    return rule


def _same_type(function: Callable[..., object]) -> Callable[[Call, Ins], tuple[Array, ...]]:
    """Elementwise; the result has the first input's type."""
    rule = _elementwise(function)
    return lambda call, inputs: tuple(out.astype(_given(inputs, 0).dtype) for out in rule(call, inputs))


def _divide(a: Array, b: Array) -> object:
    if not np.issubdtype(a.dtype, np.integer):
        return np.true_divide(a, b)
    if not np.all(b):
        raise ZeroDivisionError
    quotient = np.floor_divide(a, b)  # ONNX truncates towards zero
    return np.where(
        (np.remainder(a, b) != 0) & (np.signbit(a.astype(np.float64)) != np.signbit(b.astype(np.float64))),
        quotient + 1,
        quotient,
    )


def _mod(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return _same_type(np.fmod if call.number("fmod", 0) else np.remainder)(call, inputs)


def _variadic(function: Callable[[Array, Array], object]) -> Callable[[Call, Ins], tuple[Array, ...]]:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        total = _given(inputs, 0)
        for i in range(1, len(inputs)):
            other = _given(inputs, i)
            _limit(np.broadcast_shapes(total.shape, other.shape))
            total = np.asarray(function(total, other)).astype(total.dtype)
        return (total,)

    return rule


def _clip(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, low, high = _given(inputs, 0), _optional(inputs, 1), _optional(inputs, 2)
    if call.version < 11:
        raise ValueError("limits are attributes")
    value = value if low is None else np.maximum(value, low)
    return (value if high is None else np.minimum(value, high),)


def _reduce(function: Callable[..., object]) -> Callable[[Call, Ins], tuple[Array, ...]]:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        value, axes = _given(inputs, 0), _axes(call, inputs)
        if not axes and call.number("noop_with_empty_axes", 0):
            return (value,)
        keep = bool(call.number("keepdims", 1))
        return (np.asarray(function(value, axis=axes or None, keepdims=keep)).astype(value.dtype),)

    return rule


def _arg(function: Callable[..., object]) -> Callable[[Call, Ins], tuple[Array, ...]]:
    def rule(call: Call, inputs: Ins) -> tuple[Array, ...]:
        if call.number("select_last_index", 0):
            raise ValueError("not evaluated")
        value, axis, keep = _given(inputs, 0), call.number("axis", 0), bool(call.number("keepdims", 1))
        return (np.asarray(function(value, axis=axis, keepdims=keep)).astype(np.int64),)

    return rule


def _cast(call: Call, inputs: Ins) -> tuple[Array, ...]:
    dtype = DTYPE_OF_ELEMENT.get(call.number("to", 0), "")
    return (_given(inputs, 0).astype(np.dtype(dtype)),)


def _cast_like(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return (_given(inputs, 0).astype(_given(inputs, 1).dtype),)


def _concat(call: Call, inputs: Ins) -> tuple[Array, ...]:
    values = [_given(inputs, i) for i in range(len(inputs))]
    if sum(v.size for v in values) > KEPT_ELEMENTS:
        raise _TooLarge
    return (np.concatenate(values, axis=call.number("axis", 1)),)


def _constant_of_shape(call: Call, inputs: Ins) -> tuple[Array, ...]:
    shape = _limit(_ints(_given(inputs, 0)))
    stored = next((constant_value(a.t).value for a in call.protos if a.name == "value"), np.zeros(1, np.float32))
    if stored is None:
        raise ValueError("the fill value is not known")
    return (np.full(shape, stored.reshape(-1)[0]),)


def _cumsum(call: Call, inputs: Ins) -> tuple[Array, ...]:
    if call.number("exclusive", 0) or call.number("reverse", 0):
        raise ValueError("not evaluated")
    value = _given(inputs, 0)
    return (np.cumsum(value, axis=int(_given(inputs, 1).reshape(-1)[0])).astype(value.dtype),)


def _expand(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value = _given(inputs, 0)
    return (np.broadcast_to(value, _limit(np.broadcast_shapes(value.shape, tuple(_ints(_given(inputs, 1)))))),)


def _flatten(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, axis = _given(inputs, 0), call.number("axis", 1)
    axis += value.ndim if axis < 0 else 0
    return (value.reshape(math.prod(value.shape[:axis]), -1),)


def _gather(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, indices, axis = _given(inputs, 0), _given(inputs, 1), call.number("axis", 0)
    _limit((value.size // max(value.shape[axis], 1), indices.size))
    return (np.take(value, indices.astype(np.int64), axis=axis),)


def _gather_elements(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return (np.take_along_axis(_given(inputs, 0), _given(inputs, 1).astype(np.int64), axis=call.number("axis", 0)),)


def _nonzero(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return (np.array(np.nonzero(np.atleast_1d(_given(inputs, 0))), np.int64),)


def _range(call: Call, inputs: Ins) -> tuple[Array, ...]:
    start, limit, delta = (_given(inputs, i).reshape(-1)[0] for i in range(3))
    count = max(math.ceil((float(limit) - float(start)) / float(delta)), 0)
    _limit((count,))
    return ((start + np.arange(count, dtype=np.int64).astype(start.dtype) * delta).astype(start.dtype),)


def _reshape(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, given = _given(inputs, 0), _optional(inputs, 1)
    target = list(call.ints("shape") or ()) if given is None else _ints(given)
    if not call.number("allowzero", 0):
        target = [value.shape[i] if size == 0 else size for i, size in enumerate(target)]
    return (value.reshape(target),)


def _scatter_elements(call: Call, inputs: Ins) -> tuple[Array, ...]:
    if call.attributes.get("reduction", "none") != "none":
        raise ValueError("not evaluated")
    result = _given(inputs, 0).copy()
    np.put_along_axis(result, _given(inputs, 1).astype(np.int64), _given(inputs, 2), axis=call.number("axis", 0))
    return (result,)


def _scatter_nd(call: Call, inputs: Ins) -> tuple[Array, ...]:
    if call.attributes.get("reduction", "none") != "none":
        raise ValueError("not evaluated")
    result, indices, updates = _given(inputs, 0).copy(), _given(inputs, 1), _given(inputs, 2)
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return (result,)


def _slice(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value = _given(inputs, 0)
    if call.version < 10:
        starts, ends, axes = call.ints("starts") or (), call.ints("ends") or (), call.ints("axes")
        steps: Sequence[int] = [1] * len(starts)
    else:
        starts, ends = tuple(_ints(_given(inputs, 1))), tuple(_ints(_given(inputs, 2)))
        given_axes, given_steps = _optional(inputs, 3), _optional(inputs, 4)
        axes = None if given_axes is None else tuple(_ints(given_axes))
        steps = [1] * len(starts) if given_steps is None else _ints(given_steps)
    cuts = [slice(None)] * value.ndim
    for axis, start, end, step in zip(axes or range(len(starts)), starts, ends, steps, strict=True):
        size = value.shape[axis]
        stop = None if step < 0 and end < -size else end
        cuts[axis] = slice(start, stop, step)
    return (value[tuple(cuts)],)


def _split(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, axis, given = _given(inputs, 0), call.number("axis", 0), _optional(inputs, 1)
    sizes = call.ints("split") if given is None else tuple(_ints(given))
    if sizes is None:
        each = -(-value.shape[axis] // call.n_outputs)
        return tuple(np.split(value, [each * i for i in range(1, call.n_outputs)], axis=axis))
    if sum(sizes) != value.shape[axis]:
        raise ValueError("the parts do not add up")
    return tuple(np.split(value, np.cumsum(sizes)[:-1], axis=axis))


def _squeeze(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return (np.squeeze(_given(inputs, 0), axis=_axes(call, inputs)),)


def _tile(call: Call, inputs: Ins) -> tuple[Array, ...]:
    value, repeats = _given(inputs, 0), _ints(_given(inputs, 1))
    _limit([size * repeat for size, repeat in zip(value.shape, repeats, strict=True)])
    return (np.tile(value, repeats),)


def _transpose(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return (np.transpose(_given(inputs, 0), call.ints("perm")),)


def _trilu(call: Call, inputs: Ins) -> tuple[Array, ...]:
    offset = _optional(inputs, 1)
    k = 0 if offset is None else int(offset.reshape(-1)[0])
    return ((np.triu if call.number("upper", 1) else np.tril)(_given(inputs, 0), k),)


def _unsqueeze(call: Call, inputs: Ins) -> tuple[Array, ...]:
    return (np.expand_dims(_given(inputs, 0), _axes(call, inputs) or ()),)


def _where(condition: Array, a: Array, b: Array) -> object:
    return np.where(condition, a, b).astype(a.dtype)


_RULES: Mapping[str, Callable[[Call, Ins], tuple[Array, ...]]] = {
    "Abs": _same_type(np.abs),
    "Add": _same_type(np.add),
    "And": _elementwise(np.logical_and),
    "ArgMax": _arg(np.argmax),
    "ArgMin": _arg(np.argmin),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _same_type(np.ceil),
    "Clip": _clip,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cumsum,
    "Div": _same_type(_divide),
    "Equal": _elementwise(np.equal),
    "Exp": _same_type(np.exp),
    "Expand": _expand,
    "Flatten": _flatten,
    "Floor": _same_type(np.floor),
    "Gather": _gather,
    "GatherElements": _gather_elements,
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
    "NonZero": _nonzero,
    "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or),
    "Pow": _same_type(np.power),
    "Range": _range,
    "Reciprocal": _same_type(np.reciprocal),
    "ReduceMax": _reduce(np.max),
    "ReduceMean": _reduce(np.mean),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Reshape": _reshape,
    "Round": _same_type(np.round),
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Sign": _same_type(np.sign),
    "Slice": _slice,
    "Split": _split,
    "Sqrt": _same_type(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _same_type(np.subtract),
    "Sum": _variadic(np.add),
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
    "Where": _elementwise(_where),
    "Xor": _elementwise(np.logical_xor),
}
