"""Multiply-accumulates of convolutions, matrix products, recurrent layers and transforms."""

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod

from spillprof.lowering.operands import Operands


def _conv(o: Operands) -> int:
    return prod(o.output()) * prod(o.input(1)[1:])  # each output element: C/groups x kernel


def _qlinear_conv(o: Operands) -> int:
    return prod(o.output()) * prod(o.input(3)[1:])


def _conv_transpose(o: Operands) -> int:
    return prod(o.input(0)) * prod(o.input(1)[1:])  # each input element: M/groups x kernel


def _deformable_conv(o: Operands) -> int:
    """The convolution, and 4 for each element that is sampled between four others."""
    batch, channels = o.input(0)[:2]
    positions, kernel = prod(o.output()[2:]), prod(o.input(1)[2:])
    return _conv(o) + 4 * batch * channels * positions * kernel


def _gemm(o: Operands) -> int:
    return prod(o.output()) * o.input(0)[0 if o.integer("transA") else 1]


def _matmul(o: Operands) -> int:
    return prod(o.output()) * o.input(0)[-1]


def _fused_matmul(o: Operands) -> int:
    first = o.input(0)
    if o.integer("transBatchA"):  # the matrix lies on the first and the last axis
        first = (*first[1:-1], first[0], first[-1])
    return prod(o.output()) * first[-2 if o.integer("transA") else -1]


def _matmul_nbits(o: Operands) -> int:
    return prod(o.output()) * o.integer("K", o.input(0)[-1])


def _recurrent(o: Operands) -> int:
    """Every step multiplies the input by W and the state by R, in each direction; ``layout`` does not matter."""
    sequence, batch = o.input(0)[:2]
    return sequence * batch * (prod(o.input(1)) + prod(o.input(2)))


def _expert_mixture(o: Operands, scales: int, bits: int) -> int:
    """Each row passes through ``k`` of the experts. ``scales``: inputs between one weight and the next, less bias."""
    rows = prod(o.input(0)[:-1])
    layers = [i for i in range(2, 2 + 3 * (scales + 2), scales + 2) if o.has_input(i)]
    per_expert = sum(prod(o.input(i)[1:]) for i in layers) * (8 // bits if bits else 1)
    return rows * o.integer("k", 1) * per_expert


def _moe(o: Operands) -> int:
    return _expert_mixture(o, scales=0, bits=0)


def _quantised_moe(o: Operands) -> int:
    return _expert_mixture(o, scales=1, bits=o.integer("expert_weight_bits", 4))


def _distances(o: Operands) -> int:
    """CDist: all pairs of rows."""
    return o.input(0)[0] * prod(o.input(1))


def _determinant(o: Operands) -> int:
    """Elimination: a third of the cube of the matrix's size."""
    size = o.input(0)[-1]
    return prod(o.input(0)[:-2]) * size**3 // 3


def _inverse(o: Operands) -> int:
    return prod(o.input(0)) * o.input(0)[-1]


def _fast_fourier(length: int) -> int:
    """Length/2 x log2 butterflies, each one complex product: four real ones."""
    return 2 * length * max(length - 1, 0).bit_length()


def _dft(o: Operands) -> int:
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


def _stft(o: Operands) -> int:
    """Each frame times the window, then a fast transform."""
    batch, frames, bins = o.output()[:3]
    length = o.input(2)[0] if o.has_input(2) else (2 * (bins - 1) if o.integer("onesided", 1) else bins)
    return batch * frames * (length + _fast_fourier(length))


def _linear_attention(o: Operands) -> int:
    """Each token updates the state (keys x values of each head) and reads it once for each query head."""
    batch, tokens, packed = o.input(0)
    queries, heads = o.integer("q_num_heads"), o.integer("kv_num_heads")
    state = (packed // queries) * (o.input(2)[-1] // heads)
    passes = {"linear": 1, "gated": 2, "delta": 2, "gated_delta": 3}[o.text("update_rule") or "gated_delta"]
    return batch * tokens * state * (queries + heads * passes)


def _linear_model(o: Operands) -> int:
    return _rows(o) * o.length("coefficients")


def _support_vectors(o: Operands) -> int:
    """The kernel against each support vector, then the coefficients."""
    return _rows(o) * (o.length("support_vectors") + o.length("coefficients"))


def _rows(o: Operands) -> int:
    shape = o.input(0)
    return shape[0] if len(shape) > 1 else 1


def _einsum(o: Operands) -> int:
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


def _letters(o: Operands) -> tuple[list[list[str]], list[str]]:
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


PRODUCT_RULES: Mapping[str, Callable[[Operands], int]] = {
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger", "NhwcConv", "NhwcFusedConv"), _conv),
    "CausalConvWithState": _conv,
    "DeformConv": _deformable_conv,
    "QLinearConv": _qlinear_conv,
    **dict.fromkeys(("ConvTranspose", "ConvTransposeWithDynamicPads"), _conv_transpose),
    **dict.fromkeys(("Gemm", "FusedGemm", "QGemm", "GemmFloat8"), _gemm),
    **dict.fromkeys(
        ("MatMul", "MatMulInteger", "MatMulInteger16", "QLinearMatMul", "DynamicQuantizeMatMul"), _matmul
    ),
    **dict.fromkeys(("MatMulIntegerToFloat", "MatMulFpQ4", "QOrderedMatMul", "GemmFastGelu"), _matmul),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation"), _fused_matmul),
    **dict.fromkeys(("MatMulNBits", "MatMulBnb4"), _matmul_nbits),
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), _recurrent),
    "MoE": _moe,
    "QMoE": _quantised_moe,
    "CDist": _distances,
    "Det": _determinant,
    "Inverse": _inverse,
    "DFT": _dft,
    "STFT": _stft,
    "Einsum": _einsum,
    "LinearAttention": _linear_attention,
}  # fmt: skip
"""By operator type; the domains agree on what a type means."""

ML_RULES: Mapping[str, Callable[[Operands], int]] = {
    "LinearClassifier": _linear_model,
    "LinearRegressor": _linear_model,
    "SVMClassifier": _support_vectors,
    "SVMRegressor": _support_vectors,
}
"""Domain ``ai.onnx.ml``."""
