"""Upper bounds on outputs whose size depends on the data."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from spillprof.frontends.onnx.elements import ValueType, tensor_type
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.proto import Array


class Bound(NamedTuple):
    """The largest types that the outputs can have, and the assumption that the reports state."""

    types: tuple[ValueType | None, ...]
    assumption: str
    least: tuple[ValueType | None, ...] = ()  # the smallest, where known; a stated type in between can be true


_Known = Sequence[ValueType | None]
_Values = Sequence[Array | None]
_Bounds = tuple[ValueType | None, ...] | None


class _Case(NamedTuple):
    node: Node
    inputs: _Known
    values: _Values
    inferred: _Known


_Rule = Callable[[_Case], _Bounds]


def upper_bound(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> Bound | None:
    """Upper bound on the outputs' sizes; None if no rule gives one."""
    rule = _RULES_BY_DOMAIN.get(node.domain, {}).get(node.op_type)
    if rule is None or not inputs or inputs[0] is None or not inputs[0].is_sized:
        return None
    case = _Case(node, inputs, values, inferred)
    types = rule(case)
    if types is None:
        return None
    why = f"the output of {node.op_type} depends on the data: its largest size is taken"
    least = _LEAST.get((node.domain, node.op_type))
    return Bound(types, why, () if least is None else least(case) or ())


def _nonzero(case: _Case) -> _Bounds:
    shape = _shape(case.inputs[0])
    return (tensor_type("int64", (max(len(shape), 1), math.prod(shape))),)


def _non_max_suppression(case: _Case) -> _Bounds:
    scores = case.inputs[1] if len(case.inputs) > 1 else None
    if scores is None or not scores.is_sized or len(scores.sized_shape) != 3:
        return None
    batch, classes, boxes = scores.sized_shape
    if len(case.node.inputs) < 3 or not case.node.inputs[2]:
        return (tensor_type("int64", (0, 3)),)
    limit = case.values[2]
    kept = (
        boxes
        if limit is None or limit.size != 1 or limit.dtype.kind not in "iu"
        else min(boxes, max(int(limit.reshape(-1)[0]), 0))
    )
    return (tensor_type("int64", (batch * classes * kept, 3)),)


def _like_input(case: _Case) -> _Bounds:
    """Slice, TopK, Split: no dimension of an output exceeds that of the first input."""
    limit = _shape(case.inputs[0])
    types: list[ValueType | None] = []
    for output in case.inferred:
        if output is None:
            return None
        shape = output.shape if output.shape is not None else (None,) * len(limit)
        if len(shape) != len(limit):
            return None
        bounded = tuple(most if dim is None else dim for dim, most in zip(shape, limit, strict=True))
        types.append(tensor_type(output.dtype, bounded))
    return tuple(types)


def _texts(case: _Case) -> _Bounds:
    """StringNormalizer: all texts but stop words; one empty text if all are stop words."""
    shape = _shape(case.inputs[0])
    return (tensor_type("string", (*shape[:-1], max(shape[-1], 1))),) if shape else None


def _compress(case: _Case) -> _Bounds:
    first = case.inputs[0]
    assert first is not None
    axis = next((a.i for a in case.node.attributes if a.name == "axis"), None)
    if axis is None:
        return (tensor_type(first.dtype, (math.prod(_shape(first)),)),)
    return (first,)


def _unique(case: _Case) -> _Bounds:
    first = case.inputs[0]
    assert first is not None
    shape = _shape(first)
    axis = next((a.i for a in case.node.attributes if a.name == "axis"), None)
    if axis is not None and not -len(shape) <= axis < len(shape):
        return None
    count = math.prod(shape) if axis is None else shape[axis]
    unique = tensor_type(first.dtype, (count,) if axis is None else shape)
    index = tensor_type("int64", (count,))
    return (unique, index, index, index)[: len(case.node.outputs)]


def _contrib_unique(case: _Case) -> _Bounds:
    index = tensor_type("int64", (math.prod(_shape(case.inputs[0])),))
    assert case.inputs[0] is not None
    return (tensor_type(case.inputs[0].dtype, index.shape), index, index)[: len(case.node.outputs)]


def _remove_padding(case: _Case) -> _Bounds:
    assert case.inputs[0] is not None
    if len(_shape(case.inputs[0])) < 2:
        return None
    batch, length, *rest = _shape(case.inputs[0])
    tokens = tensor_type(case.inputs[0].dtype, (batch * length, *rest))
    more = [tensor_type("int32", shape) for shape in ((batch, length), (batch + 1,), (1,))]
    return (tokens, *more)[: len(case.node.outputs)]


def _grown_cache(case: _Case) -> _Bounds:
    """GroupQueryAttention, largest: new keys and values are appended to a full cache."""
    return _cache_lengths(case.inputs, case.inferred, lambda capacity, length: (capacity + length, capacity + length))


def _kept_cache(case: _Case) -> _Bounds:
    """GroupQueryAttention, smallest: new keys and values fit into the cache."""
    return _cache_lengths(case.inputs, case.inferred, lambda capacity, length: (capacity, length))


def _cache_lengths(
    inputs: _Known, inferred: _Known, lengths: Callable[[int, int], tuple[int, int]]
) -> tuple[ValueType | None, ...] | None:
    """The outputs with open dimensions set to ``lengths`` of (capacity, input length): of the caches, of the scores."""
    past = inputs[3] if len(inputs) > 3 else None
    if past is None or not past.is_sized:
        return None
    cache, scores = lengths(_shape(past)[2], _shape(inputs[0])[1])
    types = []
    for i, output in enumerate(inferred):
        if output is None or output.shape is None:
            return None
        filled = tuple((scores if i == 3 else cache) if dim is None else dim for dim in output.shape)
        types.append(tensor_type(output.dtype, filled))
    return tuple(types)


def _shape(known: ValueType | None) -> tuple[int, ...]:
    assert known is not None
    return known.sized_shape


_RULES: Mapping[str, _Rule] = {
    "Compress": _compress,
    "NonMaxSuppression": _non_max_suppression,
    "NonZero": _nonzero,
    "Slice": _like_input,
    "Split": _like_input,
    "StringNormalizer": _texts,
    "TopK": _like_input,
    "Unique": _unique,
}

_CONTRIB_RULES: Mapping[str, _Rule] = {
    "GroupQueryAttention": _grown_cache,
    "RemovePadding": _remove_padding,
    "Unique": _contrib_unique,
}

_LEAST: Mapping[tuple[str, str], _Rule] = {("com.microsoft", "GroupQueryAttention"): _kept_cache}

_RULES_BY_DOMAIN: Mapping[str, Mapping[str, _Rule]] = {"": _RULES, "com.microsoft": _CONTRIB_RULES}

BOUNDED = frozenset((domain, op_type) for domain, rules in _RULES_BY_DOMAIN.items() for op_type in rules)
"""Operators whose output has an upper bound: ``(domain, type)``."""
