"""Multiply-accumulates of attention: projections where the operator holds them, Q·K, and the weighted sum of V.

Every product is counted, those under a causal mask too. Heads of keys and of values may differ in size; keys and
values of the past count with those of this run; heads that share keys (grouped queries) are multiplied all the same.
"""

from collections.abc import Callable, Mapping
from math import prod

from spillprof.lowering.families import STANDARD_DOMAINS
from spillprof.lowering.operands import Operands

_Rule = Callable[[Operands], int]


def _standard(o: Operands) -> int:
    """``Attention`` of the standard: heads packed in the last axis, or on axis 1."""
    query, key, value = o.input(0), o.input(1), o.input(2)
    total = key[-2] + (o.input(4)[2] if o.has_input(4) else 0)
    if len(query) == 4:
        return prod(query[:3]) * total * (query[3] + value[3])
    batch, length, packed = query
    heads = o.integer("q_num_heads")
    width = packed // heads + value[2] // o.integer("kv_num_heads")
    return batch * heads * length * total * width


def _flex(o: Operands) -> int:
    """``FlexAttention``: as the standard one; what its bodies do to the scores is elementwise."""
    query, key, value = o.input(0), o.input(1), o.input(2)
    return prod(query[:3]) * key[2] * (query[3] + value[3])


def _projected(past: int) -> _Rule:
    """The input is projected to Q, K and V first; ``past``: position of keys and values of the past."""

    def rule(o: Operands) -> int:
        (batch, length, _), (inputs, projected) = o.input(0), o.input(1)
        sizes = o.op.attributes.get("qkv_hidden_sizes")
        query, value = (int(sizes[0]), int(sizes[2])) if isinstance(sizes, tuple) and sizes else (projected // 3,) * 2
        total = length + (o.input(past)[3] if o.has_input(past) else 0)
        return batch * length * (inputs * projected + total * (query + value))

    return rule


def _packed(o: Operands) -> int:
    """``PackedAttention``: rows without padding; each sequence counts as the longest that fits its place."""
    (tokens, inputs), projected = o.input(0), o.input(1)[1]
    sizes = o.op.attributes.get("qkv_hidden_sizes")
    query, value = (int(sizes[0]), int(sizes[2])) if isinstance(sizes, tuple) and sizes else (projected // 3,) * 2
    longest = o.input(3)[1]  # token offsets: batch, sequence
    return tokens * (inputs * projected + longest * (query + value))


def _packed_heads(o: Operands) -> int:
    """``PackedMultiHeadAttention``: as above without the projection."""
    query, longest = o.input(0), o.input(4)[1]
    width = 2 * query[1] * query[3] if len(query) == 4 else query[1] + o.input(2)[1]
    return query[0] * longest * width


def _heads(past: int) -> _Rule:
    """``MultiHeadAttention`` and its one-token form; ``past``: position of the keys of the past.

    With the length of the past as an input, the past lies in a buffer for the longest sequence: all of it counts.
    """

    def rule(o: Operands) -> int:
        query = o.input(0)
        if len(query) == 5:  # batch, length, heads, 3, width
            batch, length, hidden = query[0], query[1], query[2] * query[4]
            total, value_hidden = length, hidden
        elif o.has_input(1):
            batch, length, hidden = query
            total, value_hidden = _keys(o, hidden)
        else:  # queries, keys and values side by side
            batch, length, hidden = query[0], query[1], query[2] // 3
            total, value_hidden = length, hidden
        if o.has_input(past):
            known = o.input(past)[2]  # batch, heads, past, width
            total = known if o.has_input(past + 2) else total + known
        return batch * length * total * (hidden + value_hidden)

    return rule


def _keys(o: Operands, hidden: int) -> tuple[int, int]:
    """Length of the keys, and width of the values over all heads."""
    key = o.input(1)
    if len(key) == 5:  # batch, length, heads, 2, width: keys and values
        return key[1], hidden
    if not o.has_input(2):
        return key[1], hidden
    value = o.input(2)
    if len(key) == 4:  # batch, heads, length, width
        return key[2], value[1] * value[3]
    return key[1], value[2]


def _grouped(o: Operands) -> int:
    """``GroupQueryAttention``: over the present keys, at most the local window."""
    batch, length, hidden = o.output()
    past = o.input(3)[2] if o.has_input(3) else 0
    total = o.output(1)[2] if o.has_output(1) else length + past  # present key: batch, heads, total, width
    window = o.integer("local_window_size", -1)
    return batch * length * (min(total, window) if window > 0 else total) * 2 * hidden


def _sparse(o: Operands) -> int:
    """``SparseAttention``: only the blocks that the layout names."""
    batch, length, hidden = o.output()
    total = o.output(1)[2] if o.has_output(1) else length
    block = o.integer("sparse_block_size")
    layouts, blocks = o.input(6)
    products = min(blocks * block * block, length * total)
    return batch * products * 2 * hidden if layouts else 0


def _paged(o: Operands) -> int:
    """``PagedAttention``: each token against all blocks that its sequence may have."""
    tokens, hidden = o.output()
    longest = o.input(7)[1] * o.input(3)[1]  # blocks of a sequence x block size
    return tokens * longest * 2 * hidden


def _either(o: Operands) -> int:
    """Two operators have the name ``Attention``."""
    return _standard(o) if o.op.domain in STANDARD_DOMAINS else _projected(4)(o)


ATTENTION_RULES: Mapping[str, _Rule] = {
    "Attention": _either,
    "FlexAttention": _flex,
    "QAttention": _projected(8),
    "DecoderMaskedSelfAttention": _projected(4),
    "PackedAttention": _packed,
    "PackedMultiHeadAttention": _packed_heads,
    "MultiHeadAttention": _heads(6),
    "DecoderMaskedMultiHeadAttention": _heads(5),
    "GroupQueryAttention": _grouped,
    "SparseAttention": _sparse,
    "PagedAttention": _paged,
}
"""By operator type."""
