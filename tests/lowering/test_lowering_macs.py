"""Multiply-accumulates from shapes."""

import pytest
from graphs import graph, lowered, op

from spillprof.lowering.operators.table import count_macs


def macs(spec, shapes, **attributes):
    """MACs of one operator; ``shapes`` of its operands by name, like ``x=1x3x8 scale=``."""
    named = (each.partition("=") for each in shapes.split())
    tensors = {name: tuple(map(int, filter(None, dims.split("x")))) for name, _, dims in named}
    operator = op(spec, **attributes)
    return count_macs(operator, graph({}, [operator], "", tensors=tensors)).macs


@pytest.mark.parametrize(
    ("spec", "shapes", "attributes", "expected"),
    [
        # each of 16 x 6 x 6 outputs: 4 x 3 x 3
        ("Conv x w -> y", "x=1x4x8x8 w=16x4x3x3 y=1x16x6x6", {}, 16 * 36 * 36),
        # depthwise: 3 x 3
        ("Conv x w -> y", "x=1x4x8x8 w=4x1x3x3 y=1x4x6x6", {"group": 4}, 4 * 36 * 9),
        ("Conv x w -> y", "x=2x3x9 w=5x3x2 y=2x5x8", {}, 2 * 5 * 8 * 6),
        ("Conv x w -> y", "x=1x2x4x4x4 w=3x2x2x2x2 y=1x3x3x3x3", {}, 81 * 16),
        # each of 2 x 4 x 4 inputs goes to 3 x 2 x 2 outputs
        ("ConvTranspose x w -> y", "x=1x2x4x4 w=2x3x2x2 y=1x3x8x8", {}, 32 * 12),
        ("ConvInteger x w -> y", "x=1x2x4x4 w=3x2x1x1 y=1x3x4x4", {}, 48 * 2),
        ("QLinearConv x s z w s z s z -> y", "x=1x2x4x4 w=3x2x1x1 y=1x3x4x4 s= z=", {}, 96),
        ("FusedConv x w -> y", "x=1x2x4x4 w=3x2x1x1 y=1x3x4x4", {"domain": "com.microsoft"}, 96),
        ("Gemm a b -> y", "a=2x5 b=5x7 y=2x7", {}, 70),
        ("Gemm a b -> y", "a=5x2 b=5x7 y=2x7", {"transA": 1}, 70),
        ("MatMul a b -> y", "a=3x2x5 b=5x7 y=3x2x7", {}, 210),
        ("MatMul a b -> y", "a=5 b=5 y=", {}, 5),
        ("MatMulInteger a b -> y", "a=2x5 b=5x7 y=2x7", {}, 70),
        ("QLinearMatMul a s z b s z s z -> y", "a=2x5 b=5x7 y=2x7 s= z=", {}, 70),
        ("FusedMatMul a b -> y", "a=5x2 b=5x7 y=2x7", {"transA": 1, "domain": "com.microsoft"}, 70),
        ("MatMulNBits a b -> y", "a=2x32 b=7x1x16 y=2x7", {"K": 32, "N": 7, "domain": "com.microsoft"}, 448),
        ("Einsum a b -> y", "a=2x3x4 b=2x4x5 y=2x3x5", {"equation": "bij, bjk -> bik"}, 120),
        ("Einsum a b -> y", "a=6x3x4 b=4x5 y=6x3x5", {"equation": "...ij,jk"}, 360),
        ("Einsum a -> y", "a=3x4 y=4x3", {"equation": "ij->ji"}, 0),
        # 2 directions x 7 steps x batch 3 x 4 gates x 6 x (5 + 6)
        ("LSTM x w r -> y", "x=7x3x5 w=2x24x5 r=2x24x6 y=7x2x3x6", {}, 2 * 21 * 24 * 11),
        ("GRU x w r -> y", "x=7x3x5 w=1x18x5 r=1x18x6 y=7x1x3x6", {}, 21 * 18 * 11),
        ("RNN x w r -> y", "x=7x3x5 w=1x6x5 r=1x6x6 y=7x1x3x6", {}, 21 * 6 * 11),
        # 2 heads x 3 queries x 5 keys x (4 + 4)
        ("Attention q k v -> y", "q=1x2x3x4 k=1x2x5x4 v=1x2x5x4 y=1x2x3x4", {}, 240),
        ("Attention q k v -> y", "q=1x3x8 k=1x5x8 v=1x5x8 y=1x3x8", {"q_num_heads": 2, "kv_num_heads": 2}, 240),
        (
            "MultiHeadAttention q k v -> y",
            "q=1x3x8 k=1x5x8 v=1x5x8 y=1x3x8",
            {"num_heads": 2, "domain": "com.microsoft"},
            240,
        ),
        (
            "GroupQueryAttention q k v pk pv -> y k2 v2",
            "q=1x3x8 k=1x3x4 v=1x3x4 pk=1x1x2x4 pv=1x1x2x4 y=1x3x8 k2=1x1x5x4 v2=1x1x5x4",
            {"num_heads": 2, "kv_num_heads": 1, "domain": "com.microsoft"},
            240,
        ),
        # projection 3 x 8 x 24, then 3 x 3 x 8 twice
        ("Attention x w b -> y", "x=1x3x8 w=8x24 b=24 y=1x3x8", {"num_heads": 2, "domain": "com.microsoft"}, 576 + 144),
        # heads of queries and keys 4 wide, of values 2 wide; 2 of the past: 2 heads x 3 queries x 7 keys x (4 + 2)
        ("Attention q k v - pk pv -> y", "q=1x2x3x4 k=1x1x5x4 v=1x1x5x2 pk=1x1x2x4 pv=1x1x2x2 y=1x2x3x2", {}, 252),
        # the same, heads packed: 2 query heads of 4, 1 value head of 2
        (
            "Attention q k v - pk pv -> y",
            "q=1x3x8 k=1x5x4 v=1x5x2 pk=1x1x2x4 pv=1x1x2x2 y=1x3x4",
            {"q_num_heads": 2, "kv_num_heads": 1},
            252,
        ),
        # projection to 8 + 8 + 4, two earlier tokens: 3 x 8 x 20, then 3 x 5 x (8 + 4)
        (
            "Attention x w b - p -> y",
            "x=1x3x8 w=8x20 b=20 p=2x1x2x2x4 y=1x3x4",
            {"num_heads": 2, "qkv_hidden_sizes": (8, 8, 4), "domain": "com.microsoft"},
            480 + 180,
        ),
        (
            "QAttention x w b xs ws m xz wz p -> y",
            "x=1x3x8 w=8x24 b=24 xs= ws= m=1 xz= wz= p=2x1x2x2x4 y=1x3x8",
            {"num_heads": 2, "domain": "com.microsoft"},
            576 + 240,
        ),
        # packed queries, keys and values: 3 x 3 x 8 twice
        ("MultiHeadAttention q -> y", "q=1x3x2x3x4 y=1x3x8", {"num_heads": 2, "domain": "com.microsoft"}, 144),
        # keys and values by head, from an encoder: 3 x 5 x (8 + 4)
        (
            "MultiHeadAttention q k v -> y",
            "q=1x3x8 k=1x2x5x4 v=1x2x5x2 y=1x3x4",
            {"num_heads": 2, "domain": "com.microsoft"},
            180,
        ),
        # two earlier tokens: 3 x 7 x 16
        (
            "MultiHeadAttention q k v - - - pk pv -> y",
            "q=1x3x8 k=1x5x8 v=1x5x8 pk=1x2x2x4 pv=1x2x2x4 y=1x3x8",
            {"num_heads": 2, "domain": "com.microsoft"},
            336,
        ),
        # one token against a shared buffer for 9: 1 x 9 x 16
        (
            "DecoderMaskedMultiHeadAttention q k v - - pk pv n -> y",
            "q=1x1x8 k=1x1x8 v=1x1x8 pk=1x2x9x4 pv=1x2x9x4 n=1 y=1x1x8",
            {"num_heads": 2, "past_present_share_buffer": 1, "domain": "com.microsoft"},
            144,
        ),
        # a window of 4 keys: 3 x 4 x 16
        (
            "GroupQueryAttention q k v pk pv -> y k2 v2",
            "q=1x3x8 k=1x3x4 v=1x3x4 pk=1x1x2x4 pv=1x1x2x4 y=1x3x8 k2=1x1x5x4 v2=1x1x5x4",
            {"num_heads": 2, "kv_num_heads": 1, "local_window_size": 4, "domain": "com.microsoft"},
            192,
        ),
        # packed rows: 5 tokens of 2 sequences, the longer at most 4: 5 x (8 x 24 + 4 x 16)
        (
            "PackedAttention x w b o c -> y",
            "x=5x8 w=8x24 b=24 o=2x4 c=3 y=5x8",
            {"num_heads": 2, "domain": "com.microsoft"},
            1280,
        ),
        (
            "PackedMultiHeadAttention q k v - o c -> y",
            "q=5x8 k=5x8 v=5x8 o=2x4 c=3 y=5x8",
            {"num_heads": 2, "domain": "com.microsoft"},
            320,
        ),
        # 2 tokens, at most 3 blocks of 4 keys: 2 x 12 x 16
        (
            "PagedAttention q k v kc vc c p t -> y",
            "q=2x8 k=2x4 v=2x4 kc=9x4x1x4 vc=9x4x1x4 c=2 p=1 t=1x3 y=2x8",
            {"num_heads": 2, "kv_num_heads": 1, "domain": "com.microsoft"},
            384,
        ),
        # 3 blocks of 2 x 2 out of 4 x 4: 12 products of 16
        (
            "SparseAttention q k v pk pv r c -> y k2 v2",
            "q=1x4x8 k=1x4x4 v=1x4x4 pk=1x1x4x4 pv=1x1x4x4 r=1x3 c=1x3 y=1x4x8 k2=1x1x4x4 v2=1x1x4x4",
            {"num_heads": 2, "kv_num_heads": 1, "sparse_block_size": 2, "domain": "com.microsoft"},
            192,
        ),
        ("FlexAttention q k v -> y", "q=1x2x3x4 k=1x2x5x4 v=1x2x5x4 y=1x2x3x4", {"domain": "ai.onnx.preview"}, 240),
        # 2 tokens; a state of 4 x 3 for the one key head: written and decayed, read by 2 query heads
        (
            "LinearAttention q k v - d -> y s",
            "q=1x2x8 k=1x2x4 v=1x2x3 d=1x2x4 y=1x2x6 s=1x1x4x3",
            {"q_num_heads": 2, "kv_num_heads": 1, "update_rule": "gated"},
            2 * 12 * 4,
        ),
        # 3 rows through 2 of 4 experts, each 8 x 16 and 16 x 8
        ("MoE x r w - v -> y", "x=3x8 r=3x4 w=4x16x8 v=4x8x16 y=3x8", {"k": 2, "domain": "com.microsoft"}, 3 * 2 * 256),
        # the same in 4 bits, two in a byte
        (
            "QMoE x r w s - v t -> y",
            "x=3x8 r=3x4 w=4x16x4 s=4x16 v=4x8x8 t=4x8 y=3x8",
            {"k": 2, "domain": "com.microsoft"},
            3 * 2 * 256,
        ),
        # the matrix on the first and last axes: 6 x (2, 5)
        ("FusedMatMul a b -> y", "a=2x6x5 b=6x5x7 y=6x2x7", {"transBatchA": 1, "domain": "com.microsoft"}, 420),
        ("GemmFloat8 a b -> y", "a=2x5 b=7x5 y=2x7", {"transB": 1, "domain": "com.microsoft"}, 70),
        ("CDist a b -> y", "a=2x5 b=7x5 y=2x7", {"domain": "com.microsoft"}, 70),
        # the convolution, 48 x 2, and 4 for each of 2 channels x 16 positions
        ("DeformConv x w o -> y", "x=1x2x4x4 w=3x2x1x1 o=1x2x4x4 y=1x3x4x4", {}, 96 + 128),
        ("CausalConvWithState x w -> y", "x=1x4x6 w=4x1x3 y=1x4x6", {}, 72),
        ("Det x -> y", "x=2x3x3 y=2", {}, 18),
        ("Inverse x -> y", "x=2x3x3 y=2x3x3", {"domain": "com.microsoft"}, 54),
        # 3 signals of length 8: 3 x 2 x 8 x 3
        ("DFT x -> y", "x=3x8x1 y=3x8x2", {}, 144),
        # one-sided: 5 of 8
        ("DFT x -> y", "x=3x8x1 y=3x5x2", {"onesided": 1}, 144),
        # along the other axis, before it was an input
        ("DFT x -> y", "x=3x8x4x1 y=3x8x4x2", {"axis": 2}, 24 * 16),
        # 2 frames of 8: window and transform
        ("STFT x n w -> y", "x=1x12x1 n= w=8 y=1x2x5x2", {}, 2 * (8 + 48)),
        ("STFT x n -> y", "x=1x12x1 n= y=1x2x5x2", {}, 2 * (8 + 48)),
        # ij,jk first (3 x 4 x 5), then ik,kl (3 x 5 x 6)
        ("Einsum a b c -> y", "a=3x4 b=4x5 c=5x6 y=3x6", {"equation": "ij,jk,kl->il"}, 60 + 90),
        # without an arrow: letters that stand once
        ("Einsum a b c -> y", "a=3x4 b=4x5 c=5x6 y=3x6", {"equation": "ij,jk,kl"}, 150),
        # two ellipses that broadcast: 7 x 2 matrices of 3 x 4 x 5
        ("Einsum a b -> y", "a=7x1x3x4 b=2x4x5 y=7x2x3x5", {"equation": "...ij,...jk->...ik"}, 840),
        ("Einsum a b -> y", "a=3x3 b=3 y=3", {"equation": "ii,i->i"}, 3),
        # 5 rows against 2 vectors of 3, then 2 coefficients
        (
            "SVMRegressor x -> y",
            "x=5x3 y=5x1",
            {"support_vectors": (0.0,) * 6, "coefficients": (0.0,) * 2, "domain": "ai.onnx.ml"},
            40,
        ),
        ("LinearRegressor x -> y", "x=5x3 y=5x2", {"coefficients": (0.0,) * 6, "domain": "ai.onnx.ml"}, 30),
        ("Relu x -> y", "x=4 y=4", {}, 0),
        ("MaxPool x -> y", "x=1x1x4x4 y=1x1x2x2", {}, 0),
        ("FastGelu x -> y", "x=4 y=4", {"domain": "com.microsoft"}, 0),
        ("ZipMap x -> y", "x=4 y=4", {"domain": "ai.onnx.ml"}, 0),
        ("Conv x w -> y", "x=1x4x0x8 w=16x4x3x3 y=1x16x0x6", {}, 0),
    ],
)
def test_macs_by_hand(spec, shapes, attributes, expected):
    assert macs(spec, shapes, **attributes) == expected


@pytest.mark.parametrize(
    ("spec", "attributes"),
    [
        ("Mystery x -> y", {"domain": "acme"}),
        ("TreeEnsembleRegressor x -> y", {"domain": "ai.onnx.ml"}),
        ("BeamSearch x -> y", {"domain": "com.microsoft"}),
        ("Rfft x -> y", {"domain": "com.microsoft"}),
        ("Conv x -> y", {}),  # malformed: no kernel
        ("Einsum x x -> y", {"equation": "ab"}),
        ("Gemm x x -> y", {}),  # vectors
    ],
)
def test_unknown_cost_is_a_counted_assumption(spec, attributes):
    operator = op(spec, **attributes)
    assert count_macs(operator, graph({}, [], "", tensors={"x": (4,), "y": (4,)})).uncosted == 1
    program = lowered(graph({"x": (4,)}, [operator], "y", tensors={"y": (4,)}))
    assert program.steps[0].macs == 0
    assert [(a.what, a.count) for a in program.assumptions] == [
        ("operators of unknown cost are timed by bytes alone", 1)
    ]


@pytest.mark.parametrize(
    ("spec", "attributes", "shapes", "text"),
    [
        ("Einsum a a a -> y", {"equation": "i,i,i->i"}, {"a": (4,), "y": (4,)}, "an Einsum of three or more"),
        ("DFT a -> y", {}, {"a": (3, 8, 1), "y": (3, 8, 2)}, "a Fourier transform of length n"),
        (
            "ReorderInput a -> y",
            {"domain": "com.microsoft.nchwc"},
            {"a": (1, 3, 4, 4), "y": (1, 16, 4, 4)},
            "channels of the NCHWc layout come in blocks of 16",
        ),
    ],
)
def test_what_a_cost_rule_takes_as_true_is_counted(spec, attributes, shapes, text):
    y = {"y": shapes.pop("y")}
    (assumption,) = lowered(graph(shapes, [op(spec, **attributes)], "y", tensors=y)).assumptions
    assert assumption.what.startswith(text)
    assert assumption.count == 1


def test_assumptions_of_the_graph_are_kept_and_merged():
    ops = [op("Mystery x -> a", domain="acme"), op("Mystery a -> y", domain="acme")]
    g = graph({"x": (4,)}, ops, "y", tensors={"a": (4,), "y": (4,)},
              assumptions=[("b", 1), ("a", 2), ("b", 3)])  # fmt: skip
    found = {a.what: a.count for a in lowered(g).assumptions}
    assert found == {"b": 4, "a": 2, "operators of unknown cost are timed by bytes alone": 2}
