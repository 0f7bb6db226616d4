"""Convolutions, matrix products, recurrent layers, mixtures of experts and transforms."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from math import prod

from spillprof.lowering.operators.facts import Channels, KindRule, LoopKind, OperandShapes, OperatorFacts
from spillprof.lowering.operators.vector_ops import of_products, of_recurrence


def _conv(o: OperandShapes) -> int:
    return prod(o.output()) * prod(o.input(1)[1:])  # each output element: C/groups x kernel


def _qlinear_conv(o: OperandShapes) -> int:
    return prod(o.output()) * prod(o.input(3)[1:])


def _conv_transpose(o: OperandShapes) -> int:
    return prod(o.input(0)) * prod(o.input(1)[1:])  # each input element: M/groups x kernel


def _deformable_conv(o: OperandShapes) -> int:
    """The convolution, and 4 for each element that is sampled between four others."""
    batch, channels = o.input(0)[:2]
    positions, kernel = prod(o.output()[2:]), prod(o.input(1)[2:])
    return _conv(o) + 4 * batch * channels * positions * kernel


def _gemm(o: OperandShapes) -> int:
    return prod(o.output()) * o.input(0)[0 if o.integer("transA") else 1]


def _matmul(o: OperandShapes) -> int:
    return prod(o.output()) * o.input(0)[-1]


def _fused_matmul(o: OperandShapes) -> int:
    first = o.input(0)
    if o.integer("transBatchA"):  # the matrix lies on the first and the last axis
        first = (*first[1:-1], first[0], first[-1])
    return prod(o.output()) * first[-2 if o.integer("transA") else -1]


def _matmul_nbits(o: OperandShapes) -> int:
    return prod(o.output()) * o.integer("K", o.input(0)[-1])


def _recurrent(o: OperandShapes) -> int:
    """Every step multiplies the input by W and the state by R, in each direction; ``layout`` does not matter."""
    sequence, batch = o.input(0)[:2]
    return sequence * batch * (prod(o.input(1)) + prod(o.input(2)))


def _distances(o: OperandShapes) -> int:
    """CDist: all pairs of rows."""
    return o.input(0)[0] * prod(o.input(1))


def _determinant(o: OperandShapes) -> int:
    """Elimination: a third of the cube of the matrix's size."""
    size = o.input(0)[-1]
    return prod(o.input(0)[:-2]) * size**3 // 3


def _inverse(o: OperandShapes) -> int:
    return prod(o.input(0)) * o.input(0)[-1]


def _fast_fourier(length: int) -> int:
    """Length/2 x log2 butterflies, each one complex product: four real ones."""
    return 2 * length * max(length - 1, 0).bit_length()


def _dft(o: OperandShapes) -> int:
    """A fast transform along one axis, in the longer of its two lengths.

    Where the axis is an input and no length changes, it is taken to be the longest.
    """
    before, after = o.input(0)[:-1], o.output()[:-1]
    axis = next((i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b), None)
    if axis is None and o.has_input(2):
        axis = max(range(1, len(before)), key=before.__getitem__)
    if axis is None:
        is_old = o.graph.opset is not None and o.graph.opset < 20
        axis = o.integer("axis", 1 if is_old else -1) % len(before)
    length = max(before[axis], after[axis])
    return prod(after) // max(after[axis], 1) * _fast_fourier(length)


def _stft(o: OperandShapes) -> int:
    """Each frame times the window, then a fast transform."""
    batch, frames, bins = o.output()[:3]
    length = o.input(2)[0] if o.has_input(2) else (2 * (bins - 1) if o.integer("onesided", 1) else bins)
    return batch * frames * (length + _fast_fourier(length))


def _expert_mixture(o: OperandShapes, scales: int, bits: int) -> int:
    """Each row passes through ``k`` of the experts. ``scales``: inputs between one weight and the next, less bias."""
    rows = prod(o.input(0)[:-1])
    layers = [i for i in range(2, 2 + 3 * (scales + 2), scales + 2) if o.has_input(i)]
    per_expert = sum(prod(o.input(i)[1:]) for i in layers) * (8 // bits if bits else 1)
    return rows * o.integer("k", 1) * per_expert


def _moe(o: OperandShapes) -> int:
    return _expert_mixture(o, scales=0, bits=0)


def _quantised_moe(o: OperandShapes) -> int:
    return _expert_mixture(o, scales=1, bits=o.integer("expert_weight_bits", 4))


def _expert_weights(o: OperandShapes) -> Mapping[int, int]:
    """Of the weights, biases and scales: those of the experts that rows may be sent to."""
    rows, k = prod(o.input(0)[:-1]), o.op.attributes.get("k", 1)
    experts = o.input(2)[0]
    used = min(rows * k, experts) if isinstance(k, int) else experts
    held = {i: o.input(i) for i in range(2, len(o.op.inputs)) if o.has_input(i)}
    return {i: used * prod(shape[1:]) for i, shape in held.items() if shape and shape[0] == experts}


def _einsum(o: OperandShapes) -> int:
    """Operands contracted in pairs from the left; one operand alone is moved or summed, not multiplied.

    A pair costs the product of the sizes of all its letters. Afterwards those letters are summed away that neither
    the result nor a later operand has. Dimensions under an ellipsis are letters of their own.
    """
    terms, result = _letters(o)
    sizes: dict[str, int] = {}
    for index, term in enumerate(terms):
        for letter, size in zip(term, o.input(index), strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    last = {letter: index for index, term in enumerate(terms) for letter in term}
    last |= dict.fromkeys(result, len(terms))
    macs, left = 0, set(terms[0])
    for index, term in enumerate(terms[1:], start=1):
        left |= set(term)
        macs += prod(sizes[letter] for letter in left)
        left = {letter for letter in left if last[letter] > index}
    return macs


def _letters(o: OperandShapes) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand, one an axis, and of the result."""
    left, arrow, right = o.text("equation").replace(" ", "").partition("->")
    written = left.split(",")
    if len(written) != len(o.op.inputs):
        raise ValueError(left)
    terms = [_spelled_out(term, len(o.input(i))) for i, term in enumerate(written)]
    count = Counter(letter for term in terms for letter in term)
    hidden = [letter for letter in count if letter.startswith(_HIDDEN)]
    if arrow:
        shown = right.replace(_HIDDEN, "")
        return terms, [*shown, *(hidden if shown != right else ())]
    return terms, [*hidden, *(letter for letter, times in count.items() if times == 1)]


_HIDDEN = "..."


def _spelled_out(term: str, rank: int) -> list[str]:
    """Letters of a term, an ellipsis replaced by a name for each of its axes, counted from its end."""
    before, dots, after = term.partition(_HIDDEN)
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden > 0 and not dots):
        raise ValueError(term)
    return [*before, *(f"{_HIDDEN}{i}" for i in reversed(range(hidden))), *after]


FEW_CHANNELS = 4
"""Input channels of an image, which leave most rows of an array of multipliers idle."""


def _conv_kind(kernel: int = 1, *, channels_last: bool = False) -> KindRule:
    """The kind of a convolution; ``kernel``: position of the kernel, its input channels on axis 1 or last."""

    def rule(o: OperandShapes) -> str:
        _, *window = o.input(kernel)
        channels = window.pop(-1 if channels_last else 0)
        if o.integer("group", 1) > 1:
            return "depthwise" if channels == 1 else "grouped"
        if channels <= FEW_CHANNELS:
            return "few_channels"
        return "pointwise" if prod(window) == 1 else "conv"

    return rule


def _transposed_kind(o: OperandShapes) -> str:
    """The kernel of a transposed convolution has all input channels on axis 0."""
    channels, groups = o.input(1)[0], o.integer("group", 1)
    if groups > 1:
        return "depthwise" if channels == groups else "grouped"
    return "few_channels" if channels <= FEW_CHANNELS else "conv"


def _product_kind(right: int = 1) -> KindRule:
    """The kind of a product: fully connected if its left matrix has one row, so that it uses each weight once.

    ``right``: position of the right operand; where that is one matrix, the left ones are rows of one product.
    """

    def rule(o: OperandShapes) -> str:
        *batch, rows, inner = (1, *o.input(0))
        if o.integer("transA"):
            rows = inner
        if len(o.input(right)) <= 2:
            rows *= prod(batch)
        return "fully_connected" if rows == 1 else "matmul"

    return rule


def _matmul_only(o: OperandShapes) -> str:
    return "matmul"


def _recurrent_kind(o: OperandShapes) -> str:
    """The state of each sequence of the batch is one row."""
    return "fully_connected" if o.input(0)[1] == 1 else "matmul"


_FOURIER = "a Fourier transform of length n costs 2 n log2 n multiply-accumulates"
_EXPERTS = "each row of a mixture of experts goes to an expert that no other row needs"

_convolution = partial(
    OperatorFacts, loop=LoopKind.CONVOLUTION, channels=Channels.MAP, product_kind=_conv_kind(), vector_ops=of_products
)
_product = partial(OperatorFacts, loop=LoopKind.PRODUCT, product_kind=_product_kind(), vector_ops=of_products)

CONVOLUTIONS = (
    _convolution(types="Conv FusedConv", macs=_conv, leads=True, kernel_input=1),
    _convolution(types="ConvInteger", macs=_conv, leads=True, kernel_input=1, sums_integers=True),
    _convolution(
        types="QLinearConv", macs=_qlinear_conv, leads=True, kernel_input=3, quantised=True, product_kind=_conv_kind(3),
    ),
    _convolution(
        types="NhwcConv", macs=_conv, leads=True, kernel_input=1, channels_last=True, kernel_channels_last=True,
        product_kind=_conv_kind(channels_last=True),
    ),
    _convolution(types="NhwcFusedConv", macs=_conv, leads=True, kernel_input=1, channels_last=True),
    _convolution(types="ConvTranspose", macs=_conv_transpose, leads=True, product_kind=_transposed_kind),
    _convolution(types="ConvTransposeWithDynamicPads", macs=_conv_transpose, product_kind=_transposed_kind),
    _convolution(types="CausalConvWithState", macs=_conv),
    OperatorFacts(
        types="DeformConv", macs=_deformable_conv, channels=Channels.MAP, product_kind=_conv_kind(),
        vector_ops=of_products,
    ),
)  # fmt: skip

PRODUCTS = (
    _product(types="Gemm FusedGemm", macs=_gemm, leads=True),
    _product(types="QGemm", macs=_gemm, leads=True, quantised=True),
    _product(types="GemmFloat8", macs=_gemm),
    _product(types="MatMul", macs=_matmul, leads=True),
    _product(types="MatMulInteger", macs=_matmul, leads=True, sums_integers=True),
    _product(
        types="QLinearMatMul", macs=_matmul, leads=True, quantised=True, product_kind=_product_kind(3),
    ),
    _product(types="MatMulIntegerToFloat DynamicQuantizeMatMul", macs=_matmul, leads=True, quantised=True),
    _product(types="FusedMatMul TransposeMatMul FusedMatMulActivation", macs=_fused_matmul, leads=True),
    _product(
        types="MatMulNBits MatMulBnb4", macs=_matmul_nbits, leads=True, quantised=True, product_kind=_product_kind(),
    ),
    _product(types="MatMulInteger16 MatMulFpQ4 QOrderedMatMul GemmFastGelu", macs=_matmul),
    _product(types="CDist", macs=_distances),
    OperatorFacts(
        types="Einsum",
        macs=_einsum,
        product_kind=_matmul_only,
        vector_ops=of_products,
        assumption="an Einsum of three or more operands is contracted in pairs, from the left",
        assumed_of=lambda op: len(op.inputs) > 2,
    ),
    OperatorFacts(types="LSTM GRU RNN", macs=_recurrent, product_kind=_recurrent_kind, vector_ops=of_recurrence),
    OperatorFacts(
        types="DynamicQuantizeLSTM", macs=_recurrent, quantised=True, product_kind=_recurrent_kind,
        vector_ops=of_recurrence,
    ),
    OperatorFacts(types="MoE", macs=_moe, reads=_expert_weights, assumption=_EXPERTS),
    OperatorFacts(types="QMoE", macs=_quantised_moe, reads=_expert_weights, assumption=_EXPERTS),
    OperatorFacts(types="Det", macs=_determinant),
    OperatorFacts(types="Inverse", macs=_inverse),
    OperatorFacts(types="DFT", macs=_dft, assumption=_FOURIER),
    OperatorFacts(types="STFT", macs=_stft, assumption=_FOURIER),
)  # fmt: skip
