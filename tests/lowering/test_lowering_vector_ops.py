"""Kinds of products, and operations of the vector unit: counted by hand."""

import pytest
from graphs import PLAIN, graph, lowered, op

from spillprof.lowering.operators.table import count_macs, count_vector_ops


def operands(shapes: str) -> dict[str, tuple[int, ...]]:
    named = (each.partition("=") for each in shapes.split())
    return {name: tuple(map(int, filter(None, dims.split("x")))) for name, _, dims in named}


@pytest.mark.parametrize(
    ("spec", "shapes", "attributes", "kind"),
    [
        ("Conv x w -> y", "x=1x8x8x8 w=16x8x3x3 y=1x16x6x6", {}, "conv"),
        ("Conv x w -> y", "x=1x3x8x8 w=16x3x3x3 y=1x16x6x6", {}, "few_channels"),
        ("Conv x w -> y", "x=1x8x8x8 w=16x8x1x1 y=1x16x8x8", {}, "pointwise"),
        ("Conv x w -> y", "x=1x8x8x8 w=8x1x3x3 y=1x8x6x6", {"group": 8}, "depthwise"),
        ("Conv x w -> y", "x=1x8x8x8 w=16x1x3x3 y=1x16x6x6", {"group": 8}, "depthwise"),  # two filters a channel
        ("Conv x w -> y", "x=1x8x8x8 w=16x2x3x3 y=1x16x6x6", {"group": 4}, "grouped"),
        ("QLinearConv x s z w s z s z -> y", "x=1x8x8x8 w=8x1x3x3 y=1x8x6x6 s= z=", {"group": 8}, "depthwise"),
        ("NhwcConv x w -> y", "x=1x8x8x8 w=16x1x1x8 y=1x8x8x16", {"domain": "com.microsoft"}, "pointwise"),
        ("ConvTranspose x w -> y", "x=1x8x4x4 w=8x3x2x2 y=1x3x8x8", {}, "conv"),
        ("ConvTranspose x w -> y", "x=1x8x4x4 w=8x1x2x2 y=1x8x8x8", {"group": 8}, "depthwise"),
        ("Gemm a b -> y", "a=2x5 b=5x7 y=2x7", {}, "matmul"),
        ("Gemm a b -> y", "a=1x5 b=5x7 y=1x7", {}, "fully_connected"),
        ("Gemm a b -> y", "a=5x2 b=5x7 y=2x7", {"transA": 1}, "matmul"),
        ("Gemm a b -> y", "a=5x1 b=5x7 y=1x7", {"transA": 1}, "fully_connected"),
        ("MatMul a b -> y", "a=4x1x5 b=5x7 y=4x1x7", {}, "matmul"),  # four rows times one matrix
        ("MatMul a b -> y", "a=4x1x5 b=4x5x7 y=4x1x7", {}, "fully_connected"),  # one row times each of four
        ("MatMul a b -> y", "a=5 b=5x7 y=7", {}, "fully_connected"),
        ("QLinearMatMul a s z b s z s z -> y", "a=4x1x5 b=4x5x7 y=4x1x7 s= z=", {}, "fully_connected"),
        ("LSTM x w r -> y", "x=5x1x4 w=1x12x4 r=1x12x3 y=5x1x1x3", {}, "fully_connected"),
        ("LSTM x w r -> y", "x=5x2x4 w=1x12x4 r=1x12x3 y=5x1x2x3", {}, "matmul"),
        ("Det x -> y", "x=4x4 y=", {}, "default"),
    ],
)
def test_products_are_told_apart_by_their_shapes(spec: str, shapes: str, attributes, kind: str) -> None:
    operator = op(spec, **attributes)
    count = count_macs(operator, graph({}, [operator], "", tensors=operands(shapes)))
    assert (count.kind, count.uncosted) == (kind, 0)


@pytest.mark.parametrize(
    ("spec", "shapes", "attributes", "expected", "quantised"),
    [
        ("Relu x -> y", "x=2x5 y=2x5", {}, 10, 10),
        ("Clip x -> y", "x=2x5 y=2x5", {}, 20, 20),
        ("Add a b -> y", "a=2x5 b=5 y=2x5", {}, 10, 60),
        ("Mul a b -> y", "a=2x5 b=5 y=2x5", {}, 10, 30),
        ("Div a b -> y", "a=2x5 b=5 y=2x5", {}, 40, 40),
        ("Sum a b c -> y", "a=5 b=5 c=5 y=5", {}, 2 * 5, 2 * 6 * 5),
        ("Mean a b c -> y", "a=5 b=5 c=5 y=5", {}, 3 * 5, 13 * 5),
        ("Exp x -> y", "x=5 y=5", {}, 5 * 32, 5 * 8),
        ("Sigmoid x -> y", "x=5 y=5", {}, 5 * 38, 5 * 8),  # negate, exponential 32, sum, division 4
        ("Tanh x -> y", "x=5 y=5", {}, 5 * 38, 5 * 8),
        ("Erf x -> y", "x=5 y=5", {}, 5 * 48, 5 * 8),
        ("Gelu x -> y", "x=5 y=5", {}, 5 * 52, 5 * 8),
        ("Sqrt x -> y", "x=5 y=5", {}, 5 * 24, 5 * 8),
        ("Softmax x -> y", "x=3x4 y=3x4", {}, 12 * 36, 12 * 12),
        ("LayerNormalization x s -> y", "x=3x4 s=4 y=3x4", {}, 12 * 7, 12 * 7),
        ("GlobalAveragePool x -> y", "x=1x4x6x6 y=1x4x1x1", {}, 144, 144),
        ("ReduceMean x -> y", "x=3x4 y=3x1", {}, 12, 12),
        ("MaxPool x -> y", "x=1x4x6x6 y=1x4x3x3", {"kernel_shape": (2, 2)}, 36 * 4, 36 * 4),
        ("Resize x - s -> y", "x=1x4x3x3 s=4 y=1x4x6x6", {"mode": "linear"}, 144 * 4, 144 * 4),
        ("Resize x - s -> y", "x=1x4x3x3 s=4 y=1x4x6x6", {}, 144, 144),
        ("Transpose x -> y", "x=3x4 y=4x3", {}, 0, 0),
        ("Concat a b -> y", "a=3 b=3 y=6", {}, 0, 0),
        ("Gemm a b -> y", "a=2x5 b=5x7 y=2x7", {}, 0, 14 * 2),  # quantised results are rescaled
        # 5 sigmoids or tangents and 4 more, for each of 5 x 2 x 3 elements of the state
        ("LSTM x w r -> y", "x=5x2x4 w=1x12x4 r=1x12x3 y=5x1x2x3", {}, 30 * 194, 30 * 194),
        # scores of 2 x 4 heads, 5 queries, 7 keys; a softmax of each
        ("Attention q k v -> y", "q=2x4x5x8 k=2x4x7x8 v=2x4x7x8 y=2x4x5x8", {}, 280 * 36, 280 * 12),
        (
            "MultiHeadAttention q k v -> y",
            "q=2x5x32 k=2x7x32 v=2x7x32 y=2x5x32",
            {"num_heads": 4, "domain": "com.microsoft"},
            280 * 36,
            280 * 12,
        ),
        ("Mystery x -> y", "x=5 y=5", {"domain": "mine"}, 0, 0),
    ],
)
def test_operations_by_element(spec: str, shapes: str, attributes, expected: int, quantised: int) -> None:
    operator = op(spec, **attributes)
    whole = graph({}, [operator], "", tensors=operands(shapes))
    assert count_vector_ops(operator, whole, "float32") == expected
    assert count_vector_ops(operator, whole, "int8") == quantised


def test_a_power_with_a_known_exponent_is_a_multiplication_or_two() -> None:
    operator = op("Pow x e -> y")
    known = graph({"x": (5,)}, [operator], "y", weights={"e": ()}, tensors={"y": (5,)})
    open_ = graph({"x": (5,), "e": ()}, [operator], "y", tensors={"y": (5,)})
    assert count_vector_ops(operator, known, "float32") == 5 * 2
    assert count_vector_ops(operator, open_, "float32") == 5 * (43 + 1 + 32)


def test_a_fused_step_counts_the_operations_of_all_its_operators() -> None:
    g = graph(
        {"x": (1, 8, 4, 4)}, ["Conv x w -> c", "Sigmoid c -> y"], "y",
        weights={"w": (8, 8, 1, 1)}, tensors={"c": (1, 8, 4, 4), "y": (1, 8, 4, 4)},
    )  # fmt: skip
    (step,) = lowered(g).steps
    assert (step.product_kind, step.macs, step.vector_ops) == ("pointwise", 128 * 8, 128 * 38)


def test_conversions_that_a_quantised_operator_absorbs_take_no_time() -> None:
    """Its sums are rescaled: 2 an element, which clamps them too."""
    shape = ("int8", (1, 8, 4, 4))
    g = graph(
        {"x": shape},
        [
            "DequantizeLinear x s z -> xf", "DequantizeLinear w s z -> wf", "Conv xf wf -> c", "Relu c -> r",
            "QuantizeLinear r s z -> y",
        ],
        "y",
        weights={"w": ("int8", (8, 8, 1, 1)), "s": (), "z": ("int8", ())},
        tensors={"xf": (1, 8, 4, 4), "wf": (8, 8, 1, 1), "c": (1, 8, 4, 4), "r": (1, 8, 4, 4), "y": shape},
    )  # fmt: skip
    (step,) = lowered(g).steps
    assert (step.mac_dtype, step.macs, step.vector_ops) == ("int8", 128 * 8, 128 * 2)


def test_a_loop_in_one_step_runs_the_operations_of_all_its_trips() -> None:
    body = graph(
        {"i": ("int64", ()), "c": ("bool", ()), "a": (5,)}, ["Identity c -> d", "Exp a -> b"], "d b",
        tensors={"d": ("bool", ()), "b": (5,)},
    )  # fmt: skip
    g = graph(
        {"x": (5,)}, [op("Loop n t x -> y", subgraphs=[body], trips=3)], "y",
        weights={"n": ("int64", ()), "t": ("bool", ())}, tensors={"y": (5,)},
    )  # fmt: skip
    (step,) = lowered(g, control=PLAIN.control).steps
    assert step.vector_ops == 3 * 5 * 32
