"""Chains that run as one step."""

import pytest
from graphs import graph, lowered, op, picture

from spillprof.lowering.options import Fuse, Views

X, W, C = (1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)


def conv_then(ops, outputs="y", weights=None, **tensors):
    """Conv x w -> c and what follows; every tensor has the shape of c unless given."""
    names = {o for spec in ops for o in (spec.split("->")[1].split() if isinstance(spec, str) else spec.outputs)}
    return graph(
        {"x": X}, ["Conv x w -> c", *ops], outputs, weights={"w": W, "k": (4, 1, 1), **(weights or {})},
        tensors={"c": C, **dict.fromkeys(sorted(names), C), **tensors},
    )  # fmt: skip


def test_conv_bias_norm_and_activation_are_one_step():
    program = lowered(conv_then(["BatchNormalization c k k k k -> n", "Add n k -> a", "Mul a k -> m", "Relu m -> y"]))
    assert picture(program) == ["Conv x -> y"]
    (step,) = program.steps
    assert (step.name, step.operators) == ("c", ("c", "n", "a", "m", "y"))
    assert step.macs == 4 * 36 * 27
    assert program.weight_bytes == 4 * (4 * 27 + 4)
    assert [b.name for b in program.buffers] == ["x", "y"]


def test_nothing_fuses_when_switched_off():
    assert picture(lowered(conv_then(["Relu c -> y"]), fuse=Fuse.NONE)) == ["Conv x -> c", "Relu c -> c=>y"]


@pytest.mark.parametrize("activation", ["Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Elu", "Mish"])
def test_activation_fuses(activation):
    assert picture(lowered(conv_then([f"{activation} c -> y"]))) == ["Conv x -> y"]


def test_prelu_fuses_with_a_weight_slope_only():
    assert picture(lowered(conv_then(["PRelu c k -> y"]))) == ["Conv x -> y"]
    assert picture(lowered(conv_then(["Softmax x -> s", "PRelu c s -> y"], s=X)))[-1] == "PRelu c s -> c=>y"


def test_residual_add_is_a_step_of_its_own():
    ops = ["Relu c -> r", "Conv r w2 -> d", "Add d r -> y"]
    program = lowered(conv_then(ops, weights={"w2": (4, 4, 1, 1)}))
    assert picture(program) == ["Conv x -> r", "Conv r -> d", "Add d r -> d=>y"]


def test_intermediate_with_two_readers_is_kept():
    program = lowered(conv_then(["Relu c -> r", "Softmax c -> s"], outputs="r s"))
    assert picture(program) == ["Conv x -> c", "Relu c -> r", "Softmax c -> s"]


def test_intermediate_that_is_an_output_is_kept():
    assert picture(lowered(conv_then(["Relu c -> y"], outputs="c y"))) == ["Conv x -> c", "Relu c -> y"]


def test_swish_fuses_as_sigmoid_and_mul():
    program = lowered(conv_then(["Sigmoid c -> s", "Mul c s -> y"]))
    assert picture(program) == ["Conv x -> y"]
    assert program.steps[0].operators == ("c", "s", "y")


def test_gate_on_another_value_does_not_fuse():
    ops = ["Sigmoid c -> s", "Softmax x -> z", "Mul z s -> y"]
    assert picture(lowered(conv_then(ops)))[0] == "Conv x -> s"


def test_norm_and_activation_fuse_without_a_convolution():
    ops = ["BatchNormalization x k k k k -> n", "Relu n -> y"]
    g = graph({"x": C}, ops, "y", weights={"k": (4,)}, tensors={"n": C, "y": C})
    assert picture(lowered(g)) == ["BatchNormalization x -> y"]


def test_norm_does_not_take_a_bias():
    ops = ["BatchNormalization x k k k k -> n", "Add n k -> y"]
    g = graph({"x": C}, ops, "y", weights={"k": (4,)}, tensors={"n": C, "y": C})
    assert picture(lowered(g)) == ["BatchNormalization x -> n", "Add n -> n=>y"]


def test_training_norm_does_not_fuse():
    ops = [op("BatchNormalization c k k k k -> n", training_mode=1), "Relu n -> y"]
    assert picture(lowered(conv_then(ops))) == ["Conv x -> c", "BatchNormalization c -> y"]


def test_bias_that_grows_the_value_does_not_fuse():
    g = graph({"x": (1, 4)}, ["MatMul x w -> m", "Add m b -> y"], "y",
              weights={"w": (4, 4), "b": (3, 4)}, tensors={"m": (1, 4), "y": (3, 4)})  # fmt: skip
    assert picture(lowered(g)) == ["MatMul x -> m", "Add m -> y"]


def test_reshape_inside_of_a_chain_does_not_break_it():
    ops = ["Reshape c n -> r", "Relu r -> y"]
    g = conv_then(ops, weights={"n": ("int64", (2,))}, r=(4, 36), y=(4, 36))
    assert picture(lowered(g)) == ["Conv x -> y"]
    assert picture(lowered(g, views=Views.COPY)) == ["Conv x -> c", "Reshape c -> r", "Relu r -> r=>y"]


def test_step_stands_where_its_first_operator_stood():
    ops = ["Softmax x -> s", "Relu c -> y"]
    assert picture(lowered(conv_then(ops, outputs="s y", s=X))) == ["Conv x -> y", "Softmax x -> s"]


def test_matmul_and_gemm_lead_a_chain():
    g = graph({"x": (2, 4)}, ["Gemm x w b -> g", "Gelu g -> a", "MatMul a w -> m", "Add b m -> y"], "y",
              weights={"w": (4, 4), "b": (4,)}, tensors=dict.fromkeys("gamy", (2, 4)))  # fmt: skip
    assert picture(lowered(g)) == ["Gemm x -> a", "MatMul a -> y"]
