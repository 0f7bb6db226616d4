"""Multiply-accumulates from shapes."""

import pytest
from graphs import graph, lowered, op

from spillprof.lowering.macs import operator_macs


def macs(spec, shapes, **attributes):
    """MACs of one operator; ``shapes`` of its operands by name."""
    operator = op(spec, **attributes)
    return operator_macs(operator, graph({}, [operator], "", tensors=shapes))


@pytest.mark.parametrize(
    ("spec", "shapes", "attributes", "expected"),
    [
        # each of 16 x 6 x 6 outputs: 4 x 3 x 3
        ("Conv x w -> y", {"x": (1, 4, 8, 8), "w": (16, 4, 3, 3), "y": (1, 16, 6, 6)}, {}, 16 * 36 * 36),
        # depthwise: 3 x 3
        ("Conv x w -> y", {"x": (1, 4, 8, 8), "w": (4, 1, 3, 3), "y": (1, 4, 6, 6)}, {"group": 4}, 4 * 36 * 9),
        ("Conv x w -> y", {"x": (2, 3, 9), "w": (5, 3, 2), "y": (2, 5, 8)}, {}, 2 * 5 * 8 * 6),
        ("Conv x w -> y", {"x": (1, 2, 4, 4, 4), "w": (3, 2, 2, 2, 2), "y": (1, 3, 3, 3, 3)}, {}, 81 * 16),
        # each of 2 x 4 x 4 inputs goes to 3 x 2 x 2 outputs
        ("ConvTranspose x w -> y", {"x": (1, 2, 4, 4), "w": (2, 3, 2, 2), "y": (1, 3, 8, 8)}, {}, 32 * 12),
        ("ConvInteger x w -> y", {"x": (1, 2, 4, 4), "w": (3, 2, 1, 1), "y": (1, 3, 4, 4)}, {}, 48 * 2),
        (
            "QLinearConv x s z w s z s z -> y",
            {"x": (1, 2, 4, 4), "w": (3, 2, 1, 1), "y": (1, 3, 4, 4), "s": (), "z": ()},
            {},
            96,
        ),
        (
            "FusedConv x w -> y",
            {"x": (1, 2, 4, 4), "w": (3, 2, 1, 1), "y": (1, 3, 4, 4)},
            {"domain": "com.microsoft"},
            96,
        ),
        ("Gemm a b -> y", {"a": (2, 5), "b": (5, 7), "y": (2, 7)}, {}, 70),
        ("Gemm a b -> y", {"a": (5, 2), "b": (5, 7), "y": (2, 7)}, {"transA": 1}, 70),
        ("MatMul a b -> y", {"a": (3, 2, 5), "b": (5, 7), "y": (3, 2, 7)}, {}, 210),
        ("MatMul a b -> y", {"a": (5,), "b": (5,), "y": ()}, {}, 5),
        ("MatMulInteger a b -> y", {"a": (2, 5), "b": (5, 7), "y": (2, 7)}, {}, 70),
        ("QLinearMatMul a s z b s z s z -> y", {"a": (2, 5), "b": (5, 7), "y": (2, 7), "s": (), "z": ()}, {}, 70),
        ("FusedMatMul a b -> y", {"a": (5, 2), "b": (5, 7), "y": (2, 7)}, {"transA": 1, "domain": "com.microsoft"}, 70),
        (
            "MatMulNBits a b -> y",
            {"a": (2, 32), "b": (7, 1, 16), "y": (2, 7)},
            {"K": 32, "N": 7, "domain": "com.microsoft"},
            448,
        ),
        ("Einsum a b -> y", {"a": (2, 3, 4), "b": (2, 4, 5), "y": (2, 3, 5)}, {"equation": "bij, bjk -> bik"}, 120),
        ("Einsum a b -> y", {"a": (6, 3, 4), "b": (4, 5), "y": (6, 3, 5)}, {"equation": "...ij,jk"}, 360),
        ("Einsum a -> y", {"a": (3, 4), "y": (4, 3)}, {"equation": "ij->ji"}, 0),
        # 2 directions x 7 steps x batch 3 x 4 gates x 6 x (5 + 6)
        (
            "LSTM x w r -> y",
            {"x": (7, 3, 5), "w": (2, 24, 5), "r": (2, 24, 6), "y": (7, 2, 3, 6)},
            {},
            2 * 21 * 24 * 11,
        ),
        ("GRU x w r -> y", {"x": (7, 3, 5), "w": (1, 18, 5), "r": (1, 18, 6), "y": (7, 1, 3, 6)}, {}, 21 * 18 * 11),
        ("RNN x w r -> y", {"x": (7, 3, 5), "w": (1, 6, 5), "r": (1, 6, 6), "y": (7, 1, 3, 6)}, {}, 21 * 6 * 11),
        # 2 heads x 3 queries x 5 keys x (4 + 4)
        ("Attention q k v -> y", {"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4), "y": (1, 2, 3, 4)}, {}, 240),
        (
            "Attention q k v -> y",
            {"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8), "y": (1, 3, 8)},
            {"q_num_heads": 2, "kv_num_heads": 2},
            240,
        ),
        (
            "MultiHeadAttention q k v -> y",
            {"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8), "y": (1, 3, 8)},
            {"num_heads": 2, "domain": "com.microsoft"},
            240,
        ),
        (
            "GroupQueryAttention q k v pk pv -> y k2 v2",
            {
                "q": (1, 3, 8),
                "k": (1, 3, 4),
                "v": (1, 3, 4),
                "pk": (1, 1, 2, 4),
                "pv": (1, 1, 2, 4),
                "y": (1, 3, 8),
                "k2": (1, 1, 5, 4),
                "v2": (1, 1, 5, 4),
            },
            {"num_heads": 2, "kv_num_heads": 1, "domain": "com.microsoft"},
            240,
        ),
        # projection 3 x 8 x 24, then 3 x 3 x 8 twice
        (
            "Attention x w b -> y",
            {"x": (1, 3, 8), "w": (8, 24), "b": (24,), "y": (1, 3, 8)},
            {"num_heads": 2, "domain": "com.microsoft"},
            576 + 144,
        ),
        (
            "LinearRegressor x -> y",
            {"x": (5, 3), "y": (5, 2)},
            {"coefficients": (0.0,) * 6, "domain": "ai.onnx.ml"},
            30,
        ),
        ("Relu x -> y", {"x": (4,), "y": (4,)}, {}, 0),
        ("MaxPool x -> y", {"x": (1, 1, 4, 4), "y": (1, 1, 2, 2)}, {}, 0),
        ("FastGelu x -> y", {"x": (4,), "y": (4,)}, {"domain": "com.microsoft"}, 0),
        ("ZipMap x -> y", {"x": (4,), "y": (4,)}, {"domain": "ai.onnx.ml"}, 0),
        ("Conv x w -> y", {"x": (1, 4, 0, 8), "w": (16, 4, 3, 3), "y": (1, 16, 0, 6)}, {}, 0),
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
        ("DFT x -> y", {}),
        ("Conv x -> y", {}),  # malformed: no kernel
        ("Einsum x x -> y", {"equation": "ab"}),
        ("Gemm x x -> y", {}),  # vectors
    ],
)
def test_unknown_cost_is_none_and_a_counted_assumption(spec, attributes):
    operator = op(spec, **attributes)
    assert operator_macs(operator, graph({}, [], "", tensors={"x": (4,), "y": (4,)})) is None
    program = lowered(graph({"x": (4,)}, [operator], "y", tensors={"y": (4,)}))
    assert program.steps[0].macs == 0
    assert [(a.what, a.count) for a in program.assumptions] == [
        ("operators of unknown cost are timed by bytes alone", 1)
    ]


def test_assumptions_of_the_graph_are_kept_and_merged():
    ops = [op("Mystery x -> a", domain="acme"), op("Mystery a -> y", domain="acme")]
    g = graph({"x": (4,)}, ops, "y", tensors={"a": (4,), "y": (4,)},
              assumptions=[("b", 1), ("a", 2), ("b", 3)])  # fmt: skip
    found = {a.what: a.count for a in lowered(g).assumptions}
    assert found == {"b": 4, "a": 2, "operators of unknown cost are timed by bytes alone": 2}
