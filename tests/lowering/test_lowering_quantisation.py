"""Q/DQ around an operator: the step reads and writes the quantised tensors."""

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
