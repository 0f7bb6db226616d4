"""Output sizes of the attention operators of ``com.microsoft``.

Returned keys and values have the length of the past plus the length of the input. Where past and present share a
buffer, they have its length, that of the longest sequence. GroupQueryAttention returns the longer of the past and the
total sequence length, which is an input.
"""

from collections.abc import Mapping, Sequence

from spillprof.frontends.onnx.rule import OperatorCase, Sized, SizeRule, undecided


def _projected(past: int, dtype: int, default: int = 0) -> SizeRule:
    """Attention with the projection inside; indices of the past and of the input that sets the output's type.

    ``default``: ``past_present_share_buffer`` where the attribute is absent.
    """

    def rule(case: OperatorCase) -> Sequence[Sized]:
        batch, length, _ = case.shape(0)
        heads = _heads(case)
        hidden, present_width = _projection(case), case.shape(1)[1] // 3
        sizes = case.settings.get("qkv_hidden_sizes")
        if isinstance(sizes, tuple) and sizes:
            present_width = int(sizes[1])
        total = length
        if case.has(past):
            before = case.shape(past)[3]
            total = before if _shares(case, default) else before + length
        present = (2, batch, heads, total, present_width // heads)
        kind = case.dtype(dtype)
        return [(kind, (batch, length, hidden)), (kind, present)]

    return rule


def _packed_heads(case: OperatorCase) -> Sequence[Sized]:
    query = case.shape(0)
    width = query[1] * query[3] if len(query) == 4 else case.shape(2)[1]
    return [(case.dtype(0), (query[0], width))]


def _multi_head(past: int) -> SizeRule:
    """Queries by head, concatenated or on an axis, or packed with keys and values; ``past``: index of the past keys."""

    def rule(case: OperatorCase) -> Sequence[Sized]:
        query, heads = case.shape(0), _heads(case)
        batch, length = query[:2]
        if len(query) == 5:  # batch, length, heads, 3, width
            total, widths = length, (query[4], query[4])
        elif not case.has(1):  # queries, keys and values side by side
            total, widths = length, (query[2] // 3 // heads,) * 2
        else:
            total, widths = _keys(case, heads)
        if case.has(past):
            before = case.shape(past)[2]
            total = before if case.has(past + 2) or _shares(case) else before + total
        kind = case.dtype(0)
        present = [(kind, (batch, heads, total, width)) for width in widths]
        scores = (kind, (batch, heads, length, total))
        return [(kind, (batch, length, heads * widths[1])), *present, scores]

    return rule


def _grouped(case: OperatorCase) -> Sequence[Sized]:
    """GroupQueryAttention: the length of the caches and scores is open where the total length is unknown."""
    (batch, length, _), heads = case.shape(0), _heads(case)
    groups, width = _grouped_heads(case)
    kind = case.dtype(0)
    total: int | None = length
    caches: list[Sized] = [(kind, (batch, groups, length, width))] * 2
    if case.has(3):
        total = case.contents(6)[0] if len(case.values) > 6 and case.values[6] is not None else None
        if total is not None and total > case.shape(3)[2] + length:
            raise ValueError("the total length passes past and present")
        caches = [(case.dtype(i), _grown(case.shape(i), total)) for i in (3, 4)]
    return [(kind, (batch, length, heads * width)), *caches, (kind, (batch, heads, length, total))]


def _grown(past: tuple[int, ...], total: int | None) -> tuple[int | None, ...]:
    """Shape of a cache after the operator."""
    batch, groups, capacity, width = past
    return (batch, groups, None if total is None else max(capacity, total), width)


def _sparse(case: OperatorCase) -> Sequence[Sized]:
    """SparseAttention, whose past and present always share a buffer."""
    (batch, length, _), heads = case.shape(0), _heads(case)
    caches = [(case.dtype(i), case.shape(i)) for i in (3, 4)]
    return [(case.dtype(0), (batch, length, heads * _grouped_heads(case)[1])), *caches]


def _grouped_heads(case: OperatorCase) -> tuple[int, int]:
    """Number of key heads, and width of a head; the first input may hold queries, keys and values concatenated."""
    hidden, heads = case.shape(0)[2], _heads(case)
    groups = case.number("kv_num_heads", 0) or undecided()
    return groups, hidden // heads if case.has(1) else hidden // (heads + 2 * groups)


def _paged(case: OperatorCase) -> Sequence[Sized]:
    (tokens, hidden), heads = case.shape(0), _heads(case)
    groups = case.number("kv_num_heads", 0) or undecided()
    packed = 0 if case.has(1) else 2 * groups
    caches = [(case.dtype(i), case.shape(i)) for i in (3, 4)]
    return [(case.dtype(0), (tokens, hidden // (heads + packed) * heads)), *caches]


def _keys(case: OperatorCase, heads: int) -> tuple[int, tuple[int, int]]:
    """Length of the keys, and widths of one head of keys and of values."""
    key = case.shape(1)
    if len(key) == 5:  # batch, length, heads, 2, width
        return key[1], (key[4], key[4])
    value = case.shape(2)
    if len(key) == 4:  # batch, heads, length, width
        return key[2], (key[3], value[3])
    return key[1], (key[2] // heads, value[2] // heads)


def _projection(case: OperatorCase) -> int:
    """Width of the values of all heads."""
    sizes = case.settings.get("qkv_hidden_sizes")
    return int(sizes[2]) if isinstance(sizes, tuple) and sizes else case.shape(1)[1] // 3


def _shares(case: OperatorCase, default: int = 0) -> bool:
    """Whether past and present share a buffer."""
    return case.number("past_present_share_buffer", default) != 0


def _heads(case: OperatorCase) -> int:
    return case.number("num_heads", 0) or undecided()


ATTENTION_SIZES: Mapping[str, SizeRule] = {
    "Attention": _projected(past=4, dtype=0),
    "DecoderMaskedMultiHeadAttention": _multi_head(5),
    "DecoderMaskedSelfAttention": _projected(past=4, dtype=0, default=1),
    "GatedRelativePositionBias": lambda c: [(c.dtype(0), (c.shape(0)[0], _heads(c), c.shape(0)[1], c.shape(0)[1]))],
    "GroupQueryAttention": _grouped,
    "MultiHeadAttention": _multi_head(6),
    "PackedAttention": lambda c: [(c.dtype(0), (c.shape(0)[0], _projection(c)))],
    "PackedMultiHeadAttention": _packed_heads,
    "PagedAttention": _paged,
    "QAttention": _projected(past=8, dtype=3),
    "RelativePositionBias": lambda c: [(c.dtype(0), (1, c.shape(0)[1], *c.contents(1), *c.contents(2)))],
    "SparseAttention": _sparse,
}
"""Domain ``com.microsoft``, by operator type."""
