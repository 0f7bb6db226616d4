"""Upper bounds where an output's size depends on the data itself."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from spillprof.frontends.onnx.elements import ValueType, tensor_type
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.proto import Array


class Bound(NamedTuple):
    """The largest types the outputs can have, and what was assumed for it."""

    types: tuple[ValueType | None, ...]
    assumption: str
    least: tuple[ValueType | None, ...] = ()  # where known, the smallest: what a file states in between can be true


_Known = Sequence[ValueType | None]
_Values = Sequence[Array | None]
_Rule = Callable[[Node, _Known, _Values, _Known], tuple[ValueType | None, ...] | None]


def upper_bound(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> Bound | None:
    """Sizes that the outputs cannot pass; None where no bound follows cleanly."""
    rule = _RULES_BY_DOMAIN.get(node.domain, {}).get(node.op_type)
    if rule is None or not inputs or inputs[0] is None or not inputs[0].is_sized:
        return None
    types = rule(node, inputs, values, inferred)
    if types is None:
        return None
    why = f"the output of {node.op_type} depends on the data: its largest size is taken"
    least = _LEAST.get((node.domain, node.op_type))
    return Bound(types, why, () if least is None else least(node, inputs, values, inferred) or ())


def _nonzero(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> tuple[ValueType | None, ...] | None:
    shape = _shape(inputs[0])
    return (tensor_type("int64", (max(len(shape), 1), math.prod(shape))),)


def _non_max_suppression(
    node: Node, inputs: _Known, values: _Values, inferred: _Known
) -> tuple[ValueType | None, ...] | None:
    scores = inputs[1] if len(inputs) > 1 else None
    if scores is None or not scores.is_sized or len(scores.sized_shape) != 3:
        return None
    batch, classes, boxes = scores.sized_shape
    if len(node.inputs) < 3 or not node.inputs[2]:
        return (tensor_type("int64", (0, 3)),)
    limit = values[2]
    kept = (
        boxes
        if limit is None or limit.size != 1 or limit.dtype.kind not in "iu"
        else min(boxes, max(int(limit.reshape(-1)[0]), 0))
    )
    return (tensor_type("int64", (batch * classes * kept, 3)),)


def _like_input(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> tuple[ValueType | None, ...] | None:
    """Slice, TopK, Split, Compress: no dimension of an output passes that of the first input."""
    limit = _shape(inputs[0])
    types: list[ValueType | None] = []
    for output in inferred:
        if output is None:
            return None
        shape = output.shape if output.shape is not None else (None,) * len(limit)
        if len(shape) != len(limit):
            return None
        bounded = tuple(most if dim is None else dim for dim, most in zip(shape, limit, strict=True))
        types.append(tensor_type(output.dtype, bounded))
    return tuple(types)


def _texts(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> tuple[ValueType | None, ...] | None:
    """What is no stop word; one empty text where all of them are."""
    shape = _shape(inputs[0])
    return (tensor_type("string", (*shape[:-1], max(shape[-1], 1))),) if shape else None


def _compress(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> tuple[ValueType | None, ...] | None:
    first = inputs[0]
    assert first is not None
    axis = next((a.i for a in node.attributes if a.name == "axis"), None)
    if axis is None:
        return (tensor_type(first.dtype, (math.prod(_shape(first)),)),)
    return (first,)


def _unique(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> tuple[ValueType | None, ...] | None:
    first = inputs[0]
    assert first is not None
    shape = _shape(first)
    axis = next((a.i for a in node.attributes if a.name == "axis"), None)
    if axis is not None and not -len(shape) <= axis < len(shape):
        return None
    count = math.prod(shape) if axis is None else shape[axis]
    unique = tensor_type(first.dtype, (count,) if axis is None else shape)
    index = tensor_type("int64", (count,))
    return (unique, index, index, index)[: len(node.outputs)]


def _contrib_unique(
    node: Node, inputs: _Known, values: _Values, inferred: _Known
) -> tuple[ValueType | None, ...] | None:
    index = tensor_type("int64", (math.prod(_shape(inputs[0])),))
    assert inputs[0] is not None
    return (tensor_type(inputs[0].dtype, index.shape), index, index)[: len(node.outputs)]


def _remove_padding(
    node: Node, inputs: _Known, values: _Values, inferred: _Known
) -> tuple[ValueType | None, ...] | None:
    assert inputs[0] is not None
    if len(_shape(inputs[0])) < 2:
        return None
    batch, length, *rest = _shape(inputs[0])
    tokens = tensor_type(inputs[0].dtype, (batch * length, *rest))
    more = [tensor_type("int32", shape) for shape in ((batch, length), (batch + 1,), (1,))]
    return (tokens, *more)[: len(node.outputs)]


def _grown_cache(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> tuple[ValueType | None, ...] | None:
    """GroupQueryAttention: keys and values of this run all come behind those that the cache has room for."""
    return _cache_lengths(inputs, inferred, lambda capacity, length: (capacity + length, capacity + length))


def _kept_cache(node: Node, inputs: _Known, values: _Values, inferred: _Known) -> tuple[ValueType | None, ...] | None:
    """They find room in the cache: past and present are of one capacity."""
    return _cache_lengths(inputs, inferred, lambda capacity, length: (capacity, length))


def _cache_lengths(
    inputs: _Known, inferred: _Known, lengths: Callable[[int, int], tuple[int, int]]
) -> tuple[ValueType | None, ...] | None:
    """The outputs with their open length filled in: that of the caches, and of the scores."""
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
