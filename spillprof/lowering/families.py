"""Families of operators that lowering treats alike, by ``(domain, type)``."""

from spillprof.ir.graph import Operator

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
CONTRIB_DOMAINS = frozenset({"com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"})
ML_DOMAIN = "ai.onnx.ml"
CONTROL_DOMAIN = "spillprof.control"
"""Operators of our own that stand where control flow was unfolded: decisions, slices and stacks of loops."""

PREVIEW_DOMAINS = frozenset({"ai.onnx.preview", "ai.onnx.preview.training"})
KNOWN_DOMAINS = STANDARD_DOMAINS | CONTRIB_DOMAINS | PREVIEW_DOMAINS | {ML_DOMAIN, CONTROL_DOMAIN}
"""Domains whose operators are pure functions of their inputs; any other may have side effects."""

CONVOLUTIONS = frozenset({"Conv", "FusedConv", "ConvInteger", "QLinearConv", "NhwcConv", "NhwcFusedConv"})
MATRIX_PRODUCTS = frozenset({
    "MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul", "TransposeMatMul", "MatMulNBits", "MatMulBnb4",
    "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "Gemm", "FusedGemm", "QGemm", "FusedMatMulActivation",
})  # fmt: skip
LEADERS = CONVOLUTIONS | MATRIX_PRODUCTS | {"ConvTranspose"}
"""Operators that a bias, a normalisation and an activation are fused into."""

ACTIVATIONS = frozenset({
    "Relu", "Clip", "LeakyRelu", "PRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Elu", "Selu", "Celu",
    "Gelu", "FastGelu", "QuickGelu", "BiasGelu", "ThresholdedRelu", "Softplus", "Softsign", "Swish", "Mish",
})  # fmt: skip
"""Elementwise functions of the first input; whatever else they read must be a weight to be fused."""

SCALINGS = frozenset({"Add", "Sub", "Mul", "Div"})
"""Fused when one operand is a weight: bias and scale."""

ELEMENTWISE = ACTIVATIONS | SCALINGS | frozenset({
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Log",
    "Neg", "Not", "Reciprocal", "Round", "Shrink", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "BitwiseNot", "IsInf",
    "IsNaN", "Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "Binarizer", "Scaler",
    "Max", "Mean", "Min", "Mod", "Pow", "Sum", "And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "SwiGLU", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where",
    "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu",
})  # fmt: skip
"""Output element i depends on element i of each operand (broadcast operands apart): they can run in place.

BatchNormalization is left out: unless it is fused, runtimes give it a new output.
"""

VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout", "Cast", "CastLike"})
"""Same elements in the same order. Dropout at inference, Cast to the same type: see ``aliasing``."""

STRIDED_VIEWS = frozenset({"Slice", "Split", "Transpose", "ScanSlice"})
"""Some of the elements, or another order: views only for a target that reads them with strides."""

PARTS = frozenset({"ScanView"})
"""Some of the elements in one piece: views for every target."""

STACKS = frozenset({"ScanAppend"})
"""One slice more in the buffer that collects them: always in place."""

RANDOM = frozenset({
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial",
})  # fmt: skip

DROPPING = frozenset({"Dropout", "BiasDropout", "BitmaskDropout", "BitmaskBiasDropout", "Sampling"})
"""Random where the model trains, or samples."""


def is_one_of(op: Operator, family: frozenset[str]) -> bool:
    """Whether the operator is of one of these types, in a domain where the types mean what they say."""
    return op.op_type in family and op.domain in KNOWN_DOMAINS
