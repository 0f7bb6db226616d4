"""Operations of the vector unit: what an operator computes beside multiply-accumulates.

An operation is one addition, multiplication, comparison, rounding or choice of one element. Longer functions count
in instructions of a vector unit without special ones (AVX): division 4, square root 24, exponential 32, logarithm 43,
sine 39 (onnx-tool by ThanatosShinji, after avx_mathfun); what is made of them adds up.

With elements of 8 bits or fewer: a function of one element is a look-up, and sums and products of quantised operands
are rescaled. Their counts are the cycles an element that Arm Vela 5.2.0 states for Ethos-U (``output_cycles_per_elem``
and ``activation_cycles_per_elem`` of architecture_features.py, Ethos_U65_256), in units of its fastest, the maximum:
look-up 8, sum 6, product 3, other results 2.

Data movement has no operations: its bytes are its time. Operators without a rule count none.
"""

from collections.abc import Mapping
from math import prod

from spillprof.ir.dtypes import DTYPE_BITS
from spillprof.ir.graph import TensorKind
from spillprof.lowering.operators.facts import OperandShapes

DIVISION, ROOT, EXPONENTIAL, LOGARITHM, SINE = 4, 24, 32, 43, 39
_SIGMOID = EXPONENTIAL + 2 + DIVISION  # 1 / (1 + exp(-x)); of the hyperbolic tangent the same, of 2 x
_SOFTPLUS = EXPONENTIAL + 1 + LOGARITHM
_ERF = EXPONENTIAL + DIVISION + 12  # a polynomial of degree 5 in 1 / (1 + p x), times exp(-x^2)
_GELU, _FAST_GELU, _QUICK_GELU = _ERF + 4, _SIGMOID + 6, _SIGMOID + 2
_ARCTANGENT = ROOT + 4 + DIVISION

LOOKUP, QUANTISED_SUM, QUANTISED_PRODUCT, RESCALING = 8, 6, 3, 2
"""Operations an element of quantised operators."""

CLAMPS = frozenset({"Relu", "Clip"})
"""Activations that a quantised operator gets for nothing: the rescaling of its result clamps in any case."""

_UNARY: Mapping[str, int] = {
    **dict.fromkeys(("Relu", "Abs", "Neg", "Not", "Ceil", "Floor", "Round", "Sign", "BitwiseNot"), 1),
    **dict.fromkeys(("IsInf", "IsNaN", "Cast", "CastLike"), 1),
    **dict.fromkeys(("Clip", "LeakyRelu", "ThresholdedRelu", "Shrink"), 2),
    "HardSigmoid": 4, "HardSwish": 5, "Softsign": 2 + DIVISION,
    "Sigmoid": _SIGMOID, "Tanh": _SIGMOID, "Swish": _SIGMOID + 1, "Softplus": _SOFTPLUS,
    "Mish": _SOFTPLUS + _SIGMOID + 1,
    **dict.fromkeys(("Elu", "Selu", "Celu"), EXPONENTIAL + 3),
    "Gelu": _GELU, "FastGelu": _FAST_GELU, "QuickGelu": _QUICK_GELU,
    "Erf": _ERF, "Exp": EXPONENTIAL, "Log": LOGARITHM, "Sqrt": ROOT, "Reciprocal": DIVISION,
    "Sin": SINE, "Cos": SINE, "Tan": 2 * SINE + DIVISION,
    "Asin": _ARCTANGENT, "Acos": _ARCTANGENT, "Atan": _ARCTANGENT,
    "Sinh": EXPONENTIAL + DIVISION + 2, "Cosh": EXPONENTIAL + DIVISION + 2,
    "Asinh": LOGARITHM + ROOT + 2, "Acosh": LOGARITHM + ROOT + 2, "Atanh": LOGARITHM + 3 + DIVISION,
    "QLinearSigmoid": LOOKUP, "QLinearLeakyRelu": LOOKUP,
}  # fmt: skip
"""Functions of one operand, by type."""

_OTHERS: Mapping[str, int] = {
    **dict.fromkeys(("And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"), 1),
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where", "QLinearWhere"), 1),
    **dict.fromkeys(("Add", "Sub", "Mul", "BiasAdd", "BiasDropout", "BitmaskBiasDropout", "MulInteger"), 1),
    "PRelu": 2, "Div": DIVISION, "Mod": DIVISION + 3, "Pow": LOGARITHM + 1 + EXPONENTIAL,
    "BiasGelu": _GELU + 1, "BiasSplitGelu": _GELU + 2, "SwiGLU": _SIGMOID + 2, "QOrderedGelu": LOOKUP,
    "QLinearAdd": QUANTISED_SUM, "QLinearMul": QUANTISED_PRODUCT,
    **dict.fromkeys(("QuantizeLinear", "QuantizeBFP", "QuantizeWithOrder"), 4),  # scaled, rounded, clamped twice
    **dict.fromkeys(("DequantizeLinear", "DequantizeBFP", "DequantizeWithOrder"), 2),
    "BatchNormalization": 2, "RotaryEmbedding": 3, "ComplexMul": 3, "ComplexMulConj": 3,
    "Binarizer": 1, "Scaler": 2, "Imputer": 2, "Adagrad": 4 + ROOT + DIVISION, "Adam": 9 + ROOT + DIVISION,
    "Momentum": 4,
}  # fmt: skip
"""Elementwise functions of several operands, and of one with parameters, by type."""

_VARIADIC = {"Max": 0, "Min": 0, "Sum": 0, "Mean": 1}
"""Folds of their operands: one operation for each operand but the first, and those that follow."""

_SUMS = frozenset({"Add", "Sub", "Sum", "Mean"})

_BY_INPUT: Mapping[str, int] = {
    **dict.fromkeys(("Softmax", "LogSoftmax", "QuickSoftmax"), EXPONENTIAL + 4),  # maximum, difference, sum, scale
    "BiasSoftmax": EXPONENTIAL + 5, "QLinearSoftmax": LOOKUP + 4, "Hardmax": 2,
    **dict.fromkeys(("LayerNormalization", "GroupNormalization", "GroupNorm", "InstanceNormalization"), 7),
    "QOrderedLayerNormalization": 7, "SkipLayerNormalization": 8, "SkipGroupNorm": 8,
    **dict.fromkeys(("RMSNormalization", "SimplifiedLayerNormalization"), 4), "SkipSimplifiedLayerNormalization": 5,
    "MeanVarianceNormalization": 5, "LpNormalization": 3, "Normalizer": 3, "DynamicQuantizeLinear": 6,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare"), 2), "ReduceLogSumExp": EXPONENTIAL + 3,
    **dict.fromkeys(("ReduceLogSum", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"), 1),
    **dict.fromkeys(("ReduceSumInteger", "IsAllFinite", "ArgMax", "ArgMin", "CumSum", "CumProd", "TopK"), 1),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "QLinearGlobalAveragePool", "QLinearReduceMean"), 1),
    "GlobalLpPool": 2,
    **dict.fromkeys(("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"), EXPONENTIAL + 4),
}  # fmt: skip
"""Reductions and normalisations, by element of the first input. What is done once a row is left out."""

_TABLED = frozenset({"Softmax", "LogSoftmax", "QuickSoftmax", "BiasSoftmax"})

_INTERPOLATED = {"nearest": 1, "linear": 4, "cubic": 8}  # of onnx-tool


def of_elements(o: OperandShapes, is_quantised: bool) -> int:
    """Elementwise operators: by element of the result."""
    return prod(o.output()) * _each(o, is_quantised)


def _each(o: OperandShapes, is_quantised: bool) -> int:
    name = o.op.op_type
    if is_quantised and name == "Mul":
        return QUANTISED_PRODUCT
    if name in _VARIADIC:
        single = QUANTISED_SUM if is_quantised and name in _SUMS else 1
        return max(len(o.op.inputs) - 1, 0) * single + _VARIADIC[name]
    if is_quantised and name in _SUMS:
        return QUANTISED_SUM
    if name == "Pow" and _is_constant(o, 1):
        return 2  # an exponent of one known element: taken as multiplications
    if name in _UNARY:
        return min(_UNARY[name], LOOKUP) if is_quantised else _UNARY[name]
    return _OTHERS.get(name, 0)


def _is_constant(o: OperandShapes, index: int) -> bool:
    tensor = o.graph.tensors[o.op.inputs[index]]
    return tensor.kind is TensorKind.WEIGHT and prod(tensor.shape) == 1


def of_reductions(o: OperandShapes, is_quantised: bool) -> int:
    """Reductions and normalisations: by element of the first input."""
    name, elements = o.op.op_type, prod(o.input(0))
    if name == "LRN":
        return elements * (o.integer("size") + 2 + LOGARITHM + 1 + EXPONENTIAL + DIVISION)
    each = _BY_INPUT.get(name, 0)
    return elements * (each - EXPONENTIAL + LOOKUP if is_quantised and name in _TABLED else each)


def softmax_ops(is_quantised: bool) -> int:
    """Operations of a softmax for each element."""
    return (LOOKUP if is_quantised else EXPONENTIAL) + 4


def of_windows(o: OperandShapes, is_quantised: bool) -> int:
    """Pooling: an operation for each position of the window, by element of the result."""
    window = o.op.attributes.get("kernel_shape", ())
    positions = window if isinstance(window, tuple) else ()
    return prod(o.output()) * prod(each for each in positions if isinstance(each, int))


def of_interpolation(o: OperandShapes, is_quantised: bool) -> int:
    """Interpolation, by element of the result: 1, 4 or 8 neighbours."""
    mode = o.text("mode") or ("linear" if o.op.op_type == "GridSample" else "nearest")
    return prod(o.output()) * next((ops for name, ops in _INTERPOLATED.items() if name in mode), 4)


def of_samples(o: OperandShapes, is_quantised: bool) -> int:
    """Regions of interest: four neighbours, by element of the result."""
    return prod(o.output()) * _INTERPOLATED["linear"]


def of_products(o: OperandShapes, is_quantised: bool) -> int:
    """Products: the rescaling of a quantised result; floating-point sums are results already."""
    return prod(o.output()) * RESCALING if is_quantised else 0


def of_recurrence(o: OperandShapes, is_quantised: bool) -> int:
    """Gates of recurrent layers: by element of the state, time step and direction."""
    gates = {"LSTM": 5 * _SIGMOID + 4, "DynamicQuantizeLSTM": 5 * _SIGMOID + 4, "GRU": 3 * _SIGMOID + 6}
    sequence, batch = o.input(0)[:2]
    return sequence * batch * o.input(2)[0] * o.input(2)[-1] * gates.get(o.op.op_type, _SIGMOID + 1)


def is_quantised(dtype: str) -> bool:
    """Whether elements are integers of 8 bits or fewer."""
    return "int" in dtype and DTYPE_BITS.get(dtype, 64) <= 8
