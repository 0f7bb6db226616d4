"""Operators of the default domain as the oldest operator sets had them, before onnx inferred their shapes."""

import math
from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.rule import Case, Rule, Sized, same


def _compare(case: Case) -> Sequence[Sized]:
    return [("bool", case.shape(0))]


def _reshape(case: Case) -> Sequence[Sized]:
    shape = [case.shape(0)[i] if size == 0 else size for i, size in enumerate(case.numbers("shape"))]
    if -1 in shape:
        known = -math.prod(shape)
        shape[shape.index(-1)] = math.prod(case.shape(0)) // max(known, 1)
    if math.prod(shape) != math.prod(case.shape(0)):
        raise ValueError("sizes differ")
    return [(case.dtype(0), tuple(shape))]


def _normalization(case: Case) -> Sequence[Sized]:
    statistics = (case.dtype(0), case.shape(1))
    return [(case.dtype(0), case.shape(0)), *[statistics] * 4]


def _dropout(case: Case) -> Sequence[Sized]:
    return [(case.dtype(0), case.shape(0)), (case.dtype(0), case.shape(0))]


def layer_normalization(case: Case) -> Sequence[Sized]:
    """The input's shape, then mean and inverse deviation over the normalized axes."""
    shape, axis = case.shape(0), case.number("axis", -1)
    axis += len(shape) if axis < 0 else 0
    statistics = ("float32", (*shape[:axis], *(1,) * (len(shape) - axis)))
    return [(case.dtype(0), shape), statistics, statistics]


LEGACY_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "Sum", "Max", "Min", "PRelu"), same),  # B broadcasts to A
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Neg", "Floor", "Ceil"), same),
    **dict.fromkeys(("Reciprocal", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "Clip"), same),
    **dict.fromkeys(("Softmax", "Identity", "InstanceNormalization", "LRN"), same),
    **dict.fromkeys(("And", "Or", "Xor", "Greater", "Less", "Equal"), _compare),
    "BatchNormalization": _normalization,
    "Dropout": _dropout,
    "LayerNormalization": layer_normalization,
    "Reshape": _reshape,
    "SimplifiedLayerNormalization": layer_normalization,
}
"""By operator type. ``LayerNormalization`` was written by tools before the standard had it."""
