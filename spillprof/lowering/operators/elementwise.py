"""Operators that bytes cost, of few operations an element: elementwise ones, normalisations, reductions, pooling."""

from functools import partial

from spillprof.lowering.operators.facts import (
    CONTRIB_DOMAINS,
    Channels,
    Follower,
    LoopKind,
    OperatorFacts,
    Randomness,
    ViewKind,
)
from spillprof.lowering.operators.vector_ops import (
    of_elements,
    of_interpolation,
    of_reductions,
    of_samples,
    of_windows,
)

_elementwise = partial(OperatorFacts, loop=LoopKind.ELEMENTWISE, vector_ops=of_elements)
_reduction = partial(OperatorFacts, loop=LoopKind.REDUCTION, vector_ops=of_reductions)
_pooling = partial(OperatorFacts, loop=LoopKind.POOLING, vector_ops=of_windows)
_interpolation = partial(OperatorFacts, loop=LoopKind.POOLING, vector_ops=of_interpolation)

ELEMENTWISE = (
    _elementwise(
        types="Relu Clip LeakyRelu PRelu Sigmoid Tanh HardSigmoid HardSwish Elu Selu Celu ThresholdedRelu Softplus "
        "Softsign Swish Mish",
        in_place=True, joins=Follower.ACTIVATION,
    ),
    _elementwise(
        types="Gelu FastGelu QuickGelu BiasGelu", domains=CONTRIB_DOMAINS, in_place=True, joins=Follower.ACTIVATION,
    ),
    _elementwise(types="Add Sub Mul Div", in_place=True, joins=Follower.SCALING),
    _elementwise(
        types="Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Not Reciprocal Round Shrink "
        "Sign Sin Sinh Sqrt Tan BitwiseNot IsInf IsNaN Max Mean Min Mod Pow Sum And Or Xor BitShift BitwiseAnd "
        "BitwiseOr BitwiseXor SwiGLU Equal Greater GreaterOrEqual Less LessOrEqual Where",
        in_place=True,
    ),
    _elementwise(
        types="QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu",
        domains=CONTRIB_DOMAINS, in_place=True, quantised=True,
    ),
    _elementwise(types="QLinearWhere", domains=CONTRIB_DOMAINS, channels=Channels.KEPT, quantised=True),
    _elementwise(
        types="QuantizeLinear DequantizeLinear",
        domains=CONTRIB_DOMAINS, in_place=True, quantised=True, keeps_float=True,
    ),
    _reduction(types="DynamicQuantizeLinear", domains=CONTRIB_DOMAINS, channels=Channels.KEPT, keeps_float=True),
    _elementwise(types="Cast CastLike", in_place=True, view=ViewKind.WHOLE),
    _elementwise(types="Dropout", view=ViewKind.WHOLE, channels=Channels.KEPT, random=Randomness.IN_TRAINING),
    _elementwise(types="BiasDropout", domains=CONTRIB_DOMAINS, channels=Channels.KEPT, random=Randomness.IN_TRAINING),
    _elementwise(types="BitmaskDropout BitmaskBiasDropout", domains=CONTRIB_DOMAINS, random=Randomness.IN_TRAINING),
    _elementwise(types="BiasAdd", domains=CONTRIB_DOMAINS, channels=Channels.KEPT),
    _elementwise(
        types="BiasSplitGelu ComplexMul ComplexMulConj DequantizeBFP DequantizeWithOrder MulInteger QOrderedGelu "
        "QuantizeBFP QuantizeWithOrder RotaryEmbedding",
        domains=CONTRIB_DOMAINS,
    ),
    _elementwise(types="BitCast StringConcat StringNormalizer RegexFullMatch"),
    # Left out of those that run in place: unless it is fused, runtimes give it a new output.
    _elementwise(types="BatchNormalization", joins=Follower.NORMALISATION, channels=Channels.KEPT),
)  # fmt: skip

REDUCTIONS = (
    _reduction(
        types="GroupNormalization Hardmax InstanceNormalization LRN LogSoftmax LpNormalization "
        "MeanVarianceNormalization RMSNormalization Softmax",
        channels=Channels.KEPT,
    ),
    _reduction(types="GroupNorm LayerNormalization SkipGroupNorm", domains=CONTRIB_DOMAINS, channels=Channels.KEPT),
    _reduction(types="QLinearSoftmax", domains=CONTRIB_DOMAINS, channels=Channels.KEPT, quantised=True),
    _reduction(
        types="BiasSoftmax QOrderedLayerNormalization QuickSoftmax SimplifiedLayerNormalization SkipLayerNormalization "
        "SkipSimplifiedLayerNormalization",
        domains=CONTRIB_DOMAINS,
    ),
    _reduction(
        types="ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare",
        channels=Channels.RESIZED,
    ),
    _reduction(types="QLinearReduceMean", domains=CONTRIB_DOMAINS, channels=Channels.RESIZED, quantised=True),
    _reduction(types="IsAllFinite ReduceSumInteger", domains=CONTRIB_DOMAINS),
    _reduction(types="ArgMax ArgMin CumProd CumSum NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss TopK"),
    _reduction(types="GlobalAveragePool GlobalMaxPool", domains=CONTRIB_DOMAINS, channels=Channels.MAP),
    _reduction(types="GlobalLpPool", channels=Channels.MAP),
    _reduction(types="QLinearGlobalAveragePool", domains=CONTRIB_DOMAINS, channels=Channels.MAP, quantised=True),
)  # fmt: skip

POOLING = (
    _pooling(types="AveragePool MaxPool MaxpoolWithMask", domains=CONTRIB_DOMAINS, channels=Channels.MAP),
    _pooling(types="LpPool", channels=Channels.MAP),
    _pooling(types="NhwcMaxPool", domains=CONTRIB_DOMAINS, channels=Channels.MAP, channels_last=True),
    _pooling(types="QLinearAveragePool", domains=CONTRIB_DOMAINS, channels=Channels.MAP, quantised=True),
    _interpolation(types="Resize", channels=Channels.KEPT),
    _interpolation(types="Upsample", domains=CONTRIB_DOMAINS, channels=Channels.KEPT),
    OperatorFacts(types="MaxUnpool MaxRoiPool RoiAlign", channels=Channels.MAP, vector_ops=of_samples),
    OperatorFacts(types="CropAndResize", domains=CONTRIB_DOMAINS, channels=Channels.MAP, vector_ops=of_samples),
    OperatorFacts(types="GridSample", domains=CONTRIB_DOMAINS, channels=Channels.MAP, vector_ops=of_interpolation),
)  # fmt: skip
