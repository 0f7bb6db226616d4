"""Operators that bytes cost, of few operations an element: elementwise ones, normalisations, reductions, pooling."""

from spillprof.lowering.operators.facts import (
    CONTRIB_DOMAINS,
    Channels,
    Follower,
    LoopKind,
    OperatorFacts,
    Randomness,
    ViewKind,
)

ELEMENTWISE = (
    OperatorFacts(
        types="Relu Clip LeakyRelu PRelu Sigmoid Tanh HardSigmoid HardSwish Elu Selu Celu ThresholdedRelu Softplus "
        "Softsign Swish Mish",
        loop=LoopKind.ELEMENTWISE, in_place=True, joins=Follower.ACTIVATION,
    ),
    OperatorFacts(
        types="Gelu FastGelu QuickGelu BiasGelu", domains=CONTRIB_DOMAINS,
        loop=LoopKind.ELEMENTWISE, in_place=True, joins=Follower.ACTIVATION,
    ),
    OperatorFacts(types="Add Sub Mul Div", loop=LoopKind.ELEMENTWISE, in_place=True, joins=Follower.SCALING),
    OperatorFacts(
        types="Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Not Reciprocal Round Shrink "
        "Sign Sin Sinh Sqrt Tan BitwiseNot IsInf IsNaN Max Mean Min Mod Pow Sum And Or Xor BitShift BitwiseAnd "
        "BitwiseOr BitwiseXor SwiGLU Equal Greater GreaterOrEqual Less LessOrEqual Where",
        loop=LoopKind.ELEMENTWISE, in_place=True,
    ),
    OperatorFacts(
        types="QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu", domains=CONTRIB_DOMAINS,
        loop=LoopKind.ELEMENTWISE, in_place=True, quantised=True,
    ),
    OperatorFacts(
        types="QLinearWhere", domains=CONTRIB_DOMAINS,
        loop=LoopKind.ELEMENTWISE, channels=Channels.KEPT, quantised=True,
    ),
    OperatorFacts(
        types="QuantizeLinear DequantizeLinear", domains=CONTRIB_DOMAINS,
        loop=LoopKind.ELEMENTWISE, in_place=True, quantised=True, keeps_float=True,
    ),
    OperatorFacts(
        types="DynamicQuantizeLinear", domains=CONTRIB_DOMAINS,
        loop=LoopKind.REDUCTION, channels=Channels.KEPT, keeps_float=True,
    ),
    OperatorFacts(types="Cast CastLike", loop=LoopKind.ELEMENTWISE, in_place=True, view=ViewKind.WHOLE),
    OperatorFacts(
        types="Dropout",
        loop=LoopKind.ELEMENTWISE, view=ViewKind.WHOLE, channels=Channels.KEPT, random=Randomness.IN_TRAINING,
    ),
    OperatorFacts(
        types="BiasDropout", domains=CONTRIB_DOMAINS,
        loop=LoopKind.ELEMENTWISE, channels=Channels.KEPT, random=Randomness.IN_TRAINING,
    ),
    OperatorFacts(
        types="BitmaskDropout BitmaskBiasDropout", domains=CONTRIB_DOMAINS,
        loop=LoopKind.ELEMENTWISE, random=Randomness.IN_TRAINING,
    ),
    OperatorFacts(types="BiasAdd", domains=CONTRIB_DOMAINS, loop=LoopKind.ELEMENTWISE, channels=Channels.KEPT),
    OperatorFacts(
        types="BiasSplitGelu ComplexMul ComplexMulConj DequantizeBFP DequantizeWithOrder MulInteger QOrderedGelu "
        "QuantizeBFP QuantizeWithOrder RotaryEmbedding",
        domains=CONTRIB_DOMAINS, loop=LoopKind.ELEMENTWISE,
    ),
    OperatorFacts(types="BitCast StringConcat StringNormalizer RegexFullMatch", loop=LoopKind.ELEMENTWISE),
    # Left out of those that run in place: unless it is fused, runtimes give it a new output.
    OperatorFacts(
        types="BatchNormalization",
        loop=LoopKind.ELEMENTWISE, joins=Follower.NORMALISATION, channels=Channels.KEPT,
    ),
)  # fmt: skip

REDUCTIONS = (
    OperatorFacts(
        types="GroupNormalization Hardmax InstanceNormalization LRN LogSoftmax LpNormalization "
        "MeanVarianceNormalization RMSNormalization Softmax",
        loop=LoopKind.REDUCTION, channels=Channels.KEPT,
    ),
    OperatorFacts(
        types="GroupNorm LayerNormalization SkipGroupNorm", domains=CONTRIB_DOMAINS,
        loop=LoopKind.REDUCTION, channels=Channels.KEPT,
    ),
    OperatorFacts(
        types="QLinearSoftmax", domains=CONTRIB_DOMAINS,
        loop=LoopKind.REDUCTION, channels=Channels.KEPT, quantised=True,
    ),
    OperatorFacts(
        types="BiasSoftmax QOrderedLayerNormalization QuickSoftmax SimplifiedLayerNormalization SkipLayerNormalization "
        "SkipSimplifiedLayerNormalization",
        domains=CONTRIB_DOMAINS, loop=LoopKind.REDUCTION,
    ),
    OperatorFacts(
        types="ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare",
        loop=LoopKind.REDUCTION, channels=Channels.RESIZED,
    ),
    OperatorFacts(
        types="QLinearReduceMean", domains=CONTRIB_DOMAINS,
        loop=LoopKind.REDUCTION, channels=Channels.RESIZED, quantised=True,
    ),
    OperatorFacts(types="IsAllFinite ReduceSumInteger", domains=CONTRIB_DOMAINS, loop=LoopKind.REDUCTION),
    OperatorFacts(
        types="ArgMax ArgMin CumProd CumSum NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss TopK",
        loop=LoopKind.REDUCTION,
    ),
    OperatorFacts(
        types="GlobalAveragePool GlobalMaxPool", domains=CONTRIB_DOMAINS,
        loop=LoopKind.REDUCTION, channels=Channels.MAP,
    ),
    OperatorFacts(types="GlobalLpPool", loop=LoopKind.REDUCTION, channels=Channels.MAP),
    OperatorFacts(
        types="QLinearGlobalAveragePool", domains=CONTRIB_DOMAINS,
        loop=LoopKind.REDUCTION, channels=Channels.MAP, quantised=True,
    ),
)  # fmt: skip

POOLING = (
    OperatorFacts(
        types="AveragePool MaxPool MaxpoolWithMask", domains=CONTRIB_DOMAINS,
        loop=LoopKind.POOLING, channels=Channels.MAP,
    ),
    OperatorFacts(types="LpPool", loop=LoopKind.POOLING, channels=Channels.MAP),
    OperatorFacts(
        types="NhwcMaxPool", domains=CONTRIB_DOMAINS,
        loop=LoopKind.POOLING, channels=Channels.MAP, channels_last=True,
    ),
    OperatorFacts(
        types="QLinearAveragePool", domains=CONTRIB_DOMAINS,
        loop=LoopKind.POOLING, channels=Channels.MAP, quantised=True,
    ),
    OperatorFacts(types="Resize", loop=LoopKind.POOLING, channels=Channels.KEPT),
    OperatorFacts(types="Upsample", domains=CONTRIB_DOMAINS, loop=LoopKind.POOLING, channels=Channels.KEPT),
    OperatorFacts(types="MaxUnpool MaxRoiPool RoiAlign", channels=Channels.MAP),
    OperatorFacts(types="CropAndResize GridSample", domains=CONTRIB_DOMAINS, channels=Channels.MAP),
)  # fmt: skip
