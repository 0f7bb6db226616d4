"""Attention: projections where the operator holds them, Q·K, and the weighted sum of V.

Every product is counted, those under a causal mask too. Heads of keys and of values may differ in size; keys and
values of the past count with those of this run; heads that share keys (grouped queries) are multiplied all the same.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import NamedTuple

from spillprof.lowering.operators.facts import STANDARD_DOMAINS, OperandShapes, OperatorFacts
from spillprof.lowering.operators.vector_ops import softmax_ops


class _Products(NamedTuple):
    """What one operator multiplies."""

    macs: int
    scores: int  # elements of Q·K over all heads, of which a softmax is taken


_Rule = Callable[[OperandShapes], _Products]


def _standard(o: OperandShapes) -> _Products:
    """``Attention`` of the standard: heads packed in the last axis, or on axis 1."""
    query, key, value = o.input(0), o.input(1), o.input(2)
    total = key[-2] + (o.input(4)[2] if o.has_input(4) else 0)
    if len(query) == 4:
        return _of_heads(prod(query[:3]) * total, query[3] + value[3])
    batch, length, packed = query
    heads = o.integer("q_num_heads")
    return _of_heads(batch * heads * length * total, packed // heads + value[2] // o.integer("kv_num_heads"))


def _of_heads(scores: int, width: int) -> _Products:
    """``width``: of a head's query and value together."""
    return _Products(macs=scores * width, scores=scores)


def _of_pairs(o: OperandShapes, pairs: int, hidden: int, projected: int = 0) -> _Products:
    """``pairs``: of queries and keys; ``hidden``: width of all queries and values; ``projected``: MACs before."""
    return _Products(macs=projected + pairs * hidden, scores=pairs * o.integer("num_heads"))


def _flex(o: OperandShapes) -> _Products:
    """``FlexAttention``: as the standard one; what its bodies do to the scores is elementwise."""
    query, key, value = o.input(0), o.input(1), o.input(2)
    return _of_heads(prod(query[:3]) * key[2], query[3] + value[3])


def _projected(past: int) -> _Rule:
    """The input is projected to Q, K and V first; ``past``: position of keys and values of the past."""

    def rule(o: OperandShapes) -> _Products:
        (batch, length, _), (inputs, projected) = o.input(0), o.input(1)
        sizes = o.op.attributes.get("qkv_hidden_sizes")
        query, value = (int(sizes[0]), int(sizes[2])) if isinstance(sizes, tuple) and sizes else (projected // 3,) * 2
        total = length + (o.input(past)[3] if o.has_input(past) else 0)
        return _of_pairs(o, batch * length * total, query + value, batch * length * inputs * projected)

    return rule


def _packed(o: OperandShapes) -> _Products:
    """``PackedAttention``: rows without padding; each sequence counts as the longest that fits its place."""
    (tokens, inputs), projected = o.input(0), o.input(1)[1]
    sizes = o.op.attributes.get("qkv_hidden_sizes")
    query, value = (int(sizes[0]), int(sizes[2])) if isinstance(sizes, tuple) and sizes else (projected // 3,) * 2
    longest = o.input(3)[1]  # token offsets: batch, sequence
    return _of_pairs(o, tokens * longest, query + value, tokens * inputs * projected)


def _packed_heads(o: OperandShapes) -> _Products:
    """``PackedMultiHeadAttention``: as above without the projection."""
    query, longest = o.input(0), o.input(4)[1]
    width = 2 * query[1] * query[3] if len(query) == 4 else query[1] + o.input(2)[1]
    return _of_pairs(o, query[0] * longest, width)


def _heads(past: int) -> _Rule:
    """``MultiHeadAttention`` and its one-token form; ``past``: position of the keys of the past.

    With the length of the past as an input, the past lies in a buffer for the longest sequence: all of it counts.
    """

    def rule(o: OperandShapes) -> _Products:
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
        return _of_pairs(o, batch * length * total, hidden + value_hidden)

    return rule


def _keys(o: OperandShapes, hidden: int) -> tuple[int, int]:
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


def _grouped(o: OperandShapes) -> _Products:
    """``GroupQueryAttention``: over the present keys, at most the local window."""
    batch, length, hidden = o.output()
    past = o.input(3)[2] if o.has_input(3) else 0
    total = o.output(1)[2] if o.has_output(1) else length + past  # present key: batch, heads, total, width
    window = o.integer("local_window_size", -1)
    return _of_pairs(o, batch * length * (min(total, window) if window > 0 else total), 2 * hidden)


def _sparse(o: OperandShapes) -> _Products:
    """``SparseAttention``: only the blocks that the layout names."""
    batch, length, hidden = o.output()
    total = o.output(1)[2] if o.has_output(1) else length
    block = o.integer("sparse_block_size")
    layouts, blocks = o.input(6)
    products = min(blocks * block * block, length * total)
    return _of_pairs(o, batch * products if layouts else 0, 2 * hidden)


def _paged(o: OperandShapes) -> _Products:
    """``PagedAttention``: each token against all blocks that its sequence may have."""
    tokens, hidden = o.output()
    longest = o.input(7)[1] * o.input(3)[1]  # blocks of a sequence x block size
    return _of_pairs(o, tokens * longest, 2 * hidden)


def _linear(o: OperandShapes) -> _Products:
    """``LinearAttention``: each token updates the state (keys x values of each head), each query head reads it once."""
    batch, tokens, packed = o.input(0)
    queries, heads = o.integer("q_num_heads"), o.integer("kv_num_heads")
    state = (packed // queries) * (o.input(2)[-1] // heads)
    passes = {"linear": 1, "gated": 2, "delta": 2, "gated_delta": 3}[o.text("update_rule") or "gated_delta"]
    return _Products(macs=batch * tokens * state * (queries + heads * passes), scores=0)


def _either(o: OperandShapes) -> _Products:
    """Two operators have the name ``Attention``."""
    return _standard(o) if o.op.domain in STANDARD_DOMAINS else _projected(4)(o)


def _macs(rule: _Rule, o: OperandShapes) -> int:
    return rule(o).macs


def _softmax(rule: _Rule, o: OperandShapes, is_quantised: bool) -> int:
    """The softmax of the scores."""
    return rule(o).scores * softmax_ops(is_quantised)


def _attention(
    rule: _Rule, types: str, *, past: int | None = None, stated: str = "", quantised: bool = False
) -> OperatorFacts:
    return OperatorFacts(
        types=types, macs=partial(_macs, rule), vector_ops=partial(_softmax, rule), past_input=past, assumption=stated,
        quantised=quantised,
    )  # fmt: skip


_PADDED = "sequences of unknown length in one batch are costed as the longest that fits"

ATTENTION = (
    _attention(_either, "Attention", past=4),
    _attention(_flex, "FlexAttention"),
    _attention(_projected(8), "QAttention", past=8, quantised=True),
    _attention(_projected(4), "DecoderMaskedSelfAttention", past=4),
    _attention(_packed, "PackedAttention", stated=_PADDED),
    _attention(_packed_heads, "PackedMultiHeadAttention", stated=_PADDED),
    _attention(_heads(6), "MultiHeadAttention", past=6),
    _attention(_heads(5), "DecoderMaskedMultiHeadAttention", past=5),
    _attention(_grouped, "GroupQueryAttention", past=3),
    _attention(_sparse, "SparseAttention", past=3),
    _attention(_paged, "PagedAttention", past=3, stated=_PADDED),
    _attention(_linear, "LinearAttention"),
)
