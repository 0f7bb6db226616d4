"""Elementwise operators, normalisations, reductions, random numbers."""

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from random_nodes.drawing import BOOL, FLOAT, INT32, INT64, UINT8, Case, Draw, node, recipe

UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
    "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg",
    "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign",
    "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
)  # fmt: skip


@recipe(*UNARY)
def unary(draw: Draw, op_type: str) -> Case:
    dtype = draw.number() if op_type in ("Abs", "Identity", "Neg", "Relu", "Sign", "Shrink") else draw.real()
    return node(draw, op_type, draw.fed(draw.shape(), dtype))


@recipe("Not", "BitwiseNot")
def negated(draw: Draw, op_type: str) -> Case:
    return node(draw, op_type, draw.fed(draw.shape(), BOOL if op_type == "Not" else draw.choice([INT32, UINT8])))


@recipe("Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def binary(draw: Draw, op_type: str) -> Case:
    a, b = draw.pair()
    dtype = draw.number()
    settings = {"fmod": 1} if op_type == "Mod" and np.dtype(dtype).kind == "f" else {}
    if op_type == "PRelu":
        a, b = (a, draw.spread(a)) if len(a) >= len(b) else (b, draw.spread(b))
    return node(draw, op_type, draw.fed(a, dtype, 1), draw.fed(b, dtype, 1), **settings)


@recipe("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift")
def logical(draw: Draw, op_type: str) -> Case:
    a, b = draw.pair()
    dtype = draw.choice([UINT8, np.uint32]) if op_type.startswith("Bit") else BOOL
    settings = {"direction": draw.choice(["LEFT", "RIGHT"])} if op_type == "BitShift" else {}
    return node(draw, op_type, draw.fed(a, dtype), draw.fed(b, dtype), **settings)


@recipe("Sum", "Max", "Min", "Mean")
def variadic(draw: Draw, op_type: str) -> Case:
    shape = draw.shape()
    dtype = draw.real() if op_type in ("Sum", "Mean") else draw.number()
    return node(draw, op_type, *[draw.fed(draw.spread(shape), dtype) for _ in range(draw.randint(1, 4))])


@recipe("Where")
def where(draw: Draw, op_type: str) -> Case:
    shape, dtype = draw.shape(), draw.number()
    return node(
        draw, op_type, draw.fed(draw.spread(shape), BOOL), *[draw.fed(draw.spread(shape), dtype) for _ in range(2)]
    )


@recipe("Clip")
def clip(draw: Draw, op_type: str) -> Case:
    version, dtype = draw.version(op_type), draw.number()
    ends = [draw.fed((), dtype) if draw.maybe() else None for _ in range(2)] if version >= 11 else []
    settings = {} if version >= 11 else {"min": 0.0, "max": 1.0}
    return node(draw, op_type, draw.fed(draw.shape(), dtype), *ends, version=version, **settings)


@recipe("Cast")
def cast(draw: Draw, op_type: str) -> Case:
    to = draw.choice([1, 2, 3, 6, 7, 9, 10, 11, 16, 12, 13])
    return node(draw, op_type, draw.fed(draw.shape(), draw.number()), to=to)


@recipe("CastLike")
def cast_like(draw: Draw, op_type: str) -> Case:
    return node(draw, op_type, draw.fed(draw.shape(), draw.number()), draw.fed(draw.shape(), draw.number()))


@recipe("Hardmax", "LogSoftmax", "Softmax")
def softmax(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    return node(draw, op_type, draw.fed(shape, draw.real()), axis=draw.axis(len(shape)) if draw.maybe(0.7) else None)


@recipe("Dropout")
def dropout(draw: Draw, op_type: str) -> Case:
    version, more = draw.version(op_type), []
    if version >= 12:
        more = [draw.stored(0.5, FLOAT) if draw.maybe() else None]
        more += [draw.deciding(False, BOOL)] if draw.maybe(0.3) else []
    return node(draw, op_type, draw.fed(draw.shape()), *more, n_outputs=draw.randint(1, 2), version=version)


@recipe("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def layer_normalization(draw: Draw, op_type: str) -> Case:
    shape, dtype = draw.shape(1), draw.choice([FLOAT, np.float16, np.float64])
    axis = draw.axis(len(shape))
    normalized = shape[axis:] if draw.maybe(0.8) else (1,)
    more = [draw.fed(normalized, dtype)] if op_type == "LayerNormalization" and draw.maybe() else []
    outputs = 1 if op_type == "RMSNormalization" else draw.randint(1, 3 if op_type == "LayerNormalization" else 2)
    version = 17 if op_type == "SimplifiedLayerNormalization" else None
    return node(
        draw, op_type, draw.fed(shape, dtype), draw.fed(normalized, dtype), *more, axis=axis, n_outputs=outputs,
        version=version,
    )  # fmt: skip


@recipe("BatchNormalization")
def batch_normalization(draw: Draw, op_type: str) -> Case:
    shape, dtype = draw.shape(2, 5), draw.choice([FLOAT, np.float64])
    version = draw.version(op_type)
    settings: dict[str, Any] = {"training_mode": 1} if version >= 14 and draw.maybe(0.3) else {}
    outputs = 3 if settings else 1
    parts = [draw.fed(shape[1:2], dtype, 1) for _ in range(4)]
    return node(draw, op_type, draw.fed(shape, dtype), *parts, version=version, n_outputs=outputs, **settings)


@recipe("InstanceNormalization", "GroupNormalization")
def instance_normalization(draw: Draw, op_type: str) -> Case:
    batch, groups, per_group = draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 3)
    shape = (batch, groups * per_group, *draw.shape(1, 3))
    version = draw.version(op_type)
    of = groups if op_type == "GroupNormalization" and version < 21 else shape[1]
    settings = {"num_groups": groups} if op_type == "GroupNormalization" else {}
    return node(draw, op_type, draw.fed(shape), draw.fed((of,)), draw.fed((of,)), version=version, **settings)


@recipe("MeanVarianceNormalization", "LpNormalization", "LRN")
def normalization(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(4, 4)
    settings: dict[str, Any] = {}
    if op_type == "LRN":
        settings = {"size": draw.choice([1, 3])}
    elif op_type == "LpNormalization":
        settings = {"axis": draw.axis(4), "p": draw.choice([1, 2])}
    elif draw.maybe():
        settings = {"axes": draw.choice([[0, 2, 3], [0, 1, 2, 3]])}
    return node(draw, op_type, draw.fed(shape), **settings)


REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


@recipe(*REDUCTIONS)
def reduction(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), draw.shape()
    axes = draw.axes(len(shape)) if draw.maybe(0.85) else None
    as_input = version >= (13 if op_type == "ReduceSum" else 18)
    settings: dict[str, Any] = {"keepdims": draw.randint(0, 1)} if draw.maybe(0.8) else {}
    if as_input and draw.maybe(0.3):
        settings["noop_with_empty_axes"] = draw.randint(0, 1)
    if not as_input and axes:
        settings["axes"] = axes
    more = [draw.deciding(axes)] if as_input and axes is not None else []
    return node(
        draw, op_type, draw.fed(shape, draw.choice([FLOAT, FLOAT, INT32]), 1), *more, version=version, **settings
    )


@recipe("ArgMax", "ArgMin")
def index_of_extreme(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    settings: dict[str, Any] = {"keepdims": draw.randint(0, 1)} if draw.maybe(0.8) else {}
    return node(draw, op_type, draw.fed(shape), axis=draw.axis(len(shape)) if draw.maybe(0.8) else None, **settings)


@recipe("CumSum")
def running(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    return node(draw, op_type, draw.fed(shape), draw.stored(draw.axis(len(shape))), exclusive=draw.randint(0, 1))


@recipe("RandomNormal", "RandomUniform")
def random_of_shape(draw: Draw, op_type: str) -> Case:
    return node(draw, op_type, shape=list(draw.shape(1)), dtype=draw.choice([1, 11, None]))


@recipe("RandomNormalLike", "RandomUniformLike", "Bernoulli", "EyeLike")
def random_like(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(2, 2) if op_type == "EyeLike" else draw.shape()
    dtype = FLOAT if op_type == "Bernoulli" else draw.number()
    return node(draw, op_type, draw.fed(shape, dtype, 0, 1), dtype=draw.choice([1, 11, None]))


@recipe("Multinomial")
def multinomial(draw: Draw, op_type: str) -> Case:
    return node(
        draw,
        op_type,
        draw.fed(draw.shape(2, 2)),
        sample_size=draw.choice([None, 1, 4]),
        dtype=draw.choice([6, 7, None]),
    )


@recipe("Det")
def det(draw: Draw, op_type: str) -> Case:
    side = draw.randint(1, 4)
    return node(draw, op_type, draw.fed((*draw.shape(0, 2), side, side)))


@recipe("Trilu")
def trilu(draw: Draw, op_type: str) -> Case:
    more = [draw.stored(draw.randint(-2, 2))] if draw.maybe() else []
    return node(draw, op_type, draw.fed(draw.shape(2), draw.number()), *more, upper=draw.randint(0, 1))


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(2, 4, empty=0)
    labels = draw.fed((shape[0], *shape[2:]), INT64, 0, shape[1] - 1)
    weights = [draw.fed(shape[1:2])] if draw.maybe(0.3) else []
    outputs = draw.randint(1, 2) if op_type.startswith("Soft") else 1
    reduction = draw.choice([None, "none", "sum", "mean"])
    return node(draw, op_type, draw.fed(shape, low=1), labels, *weights, reduction=reduction, n_outputs=outputs)


@recipe("ConstantOfShape")
def constant_of_shape(draw: Draw, op_type: str) -> Case:
    value = helper.make_tensor("v", draw.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL]), [1], [1])
    return node(draw, op_type, draw.deciding(draw.shape()), value=value if draw.maybe() else None)


@recipe("Shape", "Size")
def measured(draw: Draw, op_type: str) -> Case:
    version = draw.version(op_type)
    ends = {"start": draw.randint(-5, 5), "end": draw.randint(-5, 5)} if op_type == "Shape" and version >= 15 else {}
    return node(draw, op_type, draw.fed(draw.shape(), draw.number()), version=version, **ends)
