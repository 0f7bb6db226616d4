"""Q/DQ around an operator: the step reads and writes the quantised tensors."""

import pytest
from graphs import buffer_named, graph, lowered, picture

from spillprof.lowering.options import Fuse

X, W, C = (1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)


def qdq(ops, outputs, *, inputs=None, floats=None, ints=None):
    """A graph over an int8 input ``qx`` whose dequantised value is x; every scale is ``s``, zero point ``z``."""
    return graph(
        inputs or {"qx": ("int8", X)}, ops, outputs,
        weights={"s": (), "z": ("int8", ()), "qw": ("int8", W), "sw": (4,)},
        tensors={"x": X, "w": W, **(floats or {}), **{n: ("int8", s) for n, s in (ints or {}).items()}},
    )  # fmt: skip


CONV = ["DequantizeLinear qx s z -> x", "DequantizeLinear qw sw z -> w", "Conv x w -> c"]


def test_conv_between_dq_and_q_runs_in_int8():
    g = qdq([*CONV, "QuantizeLinear c s z -> y"], "y", floats={"c": C}, ints={"y": C})
    program = lowered(g)
    assert picture(program) == ["Conv qx -> y"]
    (step,) = program.steps
    assert step.operators == ("x", "w", "c", "y")
    assert step.mac_dtype == "int8"
    assert buffer_named(program, "y").payload_bytes == 4 * 36
    # qw 108 B, its scales 16 B, the activations' scale 4 B and the zero point 1 B
    assert program.weight_bytes == 108 + 16 + 4 + 1


def test_relu_between_conv_and_q_joins_the_same_step():
    g = qdq([*CONV, "Relu c -> r", "QuantizeLinear r s z -> y"], "y", floats={"c": C, "r": C}, ints={"y": C})
    assert picture(lowered(g)) == ["Conv qx -> y"]


def test_dq_read_by_two_operators_joins_both():
    ops = ["DequantizeLinear qx s z -> x", "Softmax x -> a", "Neg x -> b"]
    program = lowered(qdq(ops, "a b", floats={"a": X, "b": X}))
    assert picture(program) == ["Softmax qx -> a", "Neg qx -> b"]
    assert [s.operators for s in program.steps] == [("x", "a"), ("x", "b")]


def test_dq_that_is_an_output_stays_for_that():
    ops = ["DequantizeLinear qx s z -> x", "Softmax x -> a"]
    program = lowered(qdq(ops, "x a", floats={"a": X}))
    assert picture(program) == ["DequantizeLinear qx -> x", "Softmax qx -> a"]


def test_float_value_with_another_reader_is_kept():
    ops = [*CONV, "QuantizeLinear c s z -> q", "Softmax c -> a"]
    program = lowered(qdq(ops, "q a", floats={"c": C, "a": C}, ints={"q": C}))
    assert picture(program) == ["Conv qx -> c", "QuantizeLinear c -> q", "Softmax c -> a"]


def test_q_whose_scale_is_computed_is_kept():
    """The scale is not there yet when the convolution runs."""
    ops = [*CONV, "ReduceMax qx -> t", "QuantizeLinear c t z -> q"]
    program = lowered(qdq(ops, "q", floats={"c": C, "t": ()}, ints={"q": C}))
    assert picture(program) == ["Conv qx -> c", "ReduceMax qx -> t", "QuantizeLinear c t -> q"]


def test_reshape_between_dq_and_q_is_a_view_of_the_int8_tensor():
    ops = ["DequantizeLinear qx s z -> x", "Flatten x -> f", "QuantizeLinear f s z -> q", "Softmax q -> y"]
    program = lowered(qdq(ops, "y", floats={"f": (1, 192), "y": (1, 192)}, ints={"q": (1, 192)}))
    assert picture(program) == ["Softmax qx -> y"]
    assert buffer_named(program, "q").name == "qx"


def test_reshape_after_dq_alone_stays_a_view_of_the_float_tensor():
    ops = ["DequantizeLinear qx s z -> x", "Flatten x -> f", "Softmax f -> y"]
    program = lowered(qdq(ops, "y", floats={"f": (1, 192), "y": (1, 192)}))
    assert picture(program) == ["DequantizeLinear qx -> x", "Softmax x -> y"]


def test_fake_quantised_weight_is_stored_in_int8():
    """Weight -> Q -> DQ -> Conv, as quantisation-aware training exports it."""
    ops = ["QuantizeLinear w s z -> q", "DequantizeLinear q s z -> v", "Conv x v -> y"]
    g = graph({"x": X}, ops, "y", weights={"w": W, "s": (), "z": ("int8", ())},
              tensors={"q": ("int8", W), "v": W, "y": C})  # fmt: skip
    assert lowered(g).weight_bytes == 108 + 4 + 1


def test_unfused_program_has_the_float_tensors():
    g = qdq([*CONV, "QuantizeLinear c s z -> y"], "y", floats={"c": C}, ints={"y": C})
    program = lowered(g, fuse=Fuse.NONE)
    assert picture(program) == ["DequantizeLinear qx -> x", "Conv x -> c", "QuantizeLinear c -> y"]


@pytest.mark.parametrize(
    ("between", "result"),
    [
        ("MaxPool x -> f", (1, 3, 4, 4)),
        ("AveragePool x -> f", (1, 3, 4, 4)),
        ("GlobalAveragePool x -> f", (1, 3, 1, 1)),
        ("Resize x - k -> f", (1, 3, 16, 16)),
        ("Softmax x -> f", X),
        ("Sigmoid x -> f", X),
        ("Concat x x -> f", (1, 6, 8, 8)),
        ("Add x x -> f", X),
        ("Mul x x -> f", X),
        ("Clip x -> f", X),
        ("Pad x k -> f", (1, 3, 10, 10)),
        ("Transpose x -> f", (8, 8, 3, 1)),
        ("LayerNormalization x k -> f", X),
        ("MatMul x x -> f", X),
    ],
)
def test_operator_between_dq_and_q_reads_and_writes_int8(between, result):
    ops = ["DequantizeLinear qx s z -> x", between, "QuantizeLinear f s z -> q", "Conv q q -> y"]
    g = graph(
        {"qx": ("int8", X)}, ops, "y", weights={"s": (), "z": ("int8", ()), "k": (4,)},
        tensors={"x": X, "f": result, "q": ("int8", result), "y": C},
    )  # fmt: skip
    program = lowered(g)
    assert len(program.steps) == 2
    assert all(g.tensors[b.name].dtype == "int8" for b in program.buffers if b.name != "y")
    assert "x" not in {name for b in program.buffers for name in b.tensors}
    assert program.steps[0].mac_dtype == "int8"


def test_concat_of_two_quantised_branches_and_a_pool_stay_in_int8():
    """Each convolution writes int8; the concatenation reads two of them, the pool reads the result: 4 steps."""
    ops = [
        "DequantizeLinear qx s z -> x", "DequantizeLinear qw sw z -> w",
        "Conv x w -> a", "QuantizeLinear a s z -> qa", "DequantizeLinear qa s z -> da",
        "Conv x w -> b", "Relu b -> r", "QuantizeLinear r s z -> qb", "DequantizeLinear qb s z -> db",
        "Concat da db -> c", "QuantizeLinear c s z -> qc", "DequantizeLinear qc s z -> dc",
        "MaxPool dc -> p", "QuantizeLinear p s z -> q",
    ]  # fmt: skip
    joined, pooled = (1, 8, 6, 6), (1, 8, 3, 3)
    floats = {"a": C, "da": C, "b": C, "r": C, "db": C, "c": joined, "dc": joined, "p": pooled}
    g = qdq(ops, "q", floats=floats, ints={"qa": C, "qb": C, "qc": joined, "q": pooled})
    program = lowered(g)
    assert picture(program) == ["Conv qx -> qa", "Conv qx -> qb", "Concat qa qb -> qc", "MaxPool qc -> q"]
    assert [buffer_named(program, n).payload_bytes for n in ("qa", "qb", "qc", "q")] == [144, 144, 288, 72]


DYNAMIC = ["DynamicQuantizeLinear x -> q qs qz", "Mul qs s -> k"]
PRODUCT = ["MatMulInteger q w qz z -> a", "Cast a -> f", "Mul f k -> r", "Add r b -> y"]


def dynamic(ops):
    """A product of two rows of 8 in int8: sums ``a`` in int32, scale ``k`` computed from that of the input."""
    return graph(
        {"x": (2, 8)}, ops, "y", weights={"s": (), "w": ("int8", (8, 4)), "z": ("int8", ()), "b": (4,)},
        tensors={
            "q": ("uint8", (2, 8)), "qs": (), "qz": ("uint8", ()), "k": (), "a": ("int32", (2, 4)),
            **dict.fromkeys("fry", (2, 4)),
        },
    )  # fmt: skip


def test_integer_product_takes_in_its_conversion_scale_and_bias():
    program = lowered(dynamic([*DYNAMIC, *PRODUCT]))
    assert picture(program) == [
        "DynamicQuantizeLinear x -> q qs qz", "Mul qs -> qs=>k", "MatMulInteger q qz k -> y"
    ]  # fmt: skip
    assert program.steps[2].mac_dtype == "uint8"
    assert (program.steps[2].macs, program.steps[2].weight_stream_bytes) == (64, 32 + 1 + 16)


def test_scale_that_is_computed_after_the_product_is_no_part_of_it():
    ops = [DYNAMIC[0], *PRODUCT[:2], DYNAMIC[1], *PRODUCT[2:]]
    program = lowered(dynamic(ops))
    assert [(s.op_type, s.operators) for s in program.steps] == [
        ("DynamicQuantizeLinear", ("q",)), ("MatMulInteger", ("a", "f")), ("Mul", ("k",)), ("Mul", ("r",)),
        ("Add", ("y",)),
    ]  # fmt: skip
