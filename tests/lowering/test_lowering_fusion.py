"""Chains that run as one step."""

import pytest
from graphs import MACHINE, graph, lowered, op, picture

from spillprof.ir.errors import UsageError
from spillprof.lowering.fusion import Pair, legal_pairs
from spillprof.lowering.lower import make_draft
from spillprof.lowering.options import Fuse, LoweringOptions, Views

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


X, W, C = (1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)


def residual(outputs="y"):
    """x -> r; r -> d; d + r -> y, with a projection of x between d and the sum."""
    return graph(
        {"x": X},
        ["Conv x w -> r", "Conv r w2 -> d", "Conv x w -> p", "Sum d r p -> y"],
        outputs,
        weights={"w": W, "w2": (4, 4, 1, 1)},
        tensors=dict.fromkeys(("r", "d", "p", "y"), C),
    )


def tensors_of(g, **options):
    return [pair.tensor for pair in legal_pairs(make_draft(g, MACHINE, LoweringOptions(**options)))]


def test_residual_sum_joins_its_convolution_where_the_sum_stood():
    apart, together = lowered(residual()), lowered(residual(), fuse_tensor=("d",))
    assert picture(apart) == ["Conv x -> r", "Conv r -> d", "Conv x -> p", "Sum d r p -> d=>y"]
    assert picture(together) == ["Conv x -> r", "Conv x -> p", "Conv r p -> y"]
    (*_, joint), (_, second, _, third) = together.steps, apart.steps
    assert (joint.name, joint.operators, joint.macs) == ("d", ("d", "y"), second.macs + third.macs)
    d_bytes = 4 * 4 * 36
    # one tensor is neither written nor read, and r, which both read, is read once
    assert joint.touched_bytes == second.touched_bytes + third.touched_bytes - 3 * d_bytes
    assert "d" not in {b.name for b in together.buffers}


def test_every_tensor_between_two_operators_one_of_them_elementwise_is_legal():
    assert tensors_of(residual()) == ["d", "p"]
    first = legal_pairs(make_draft(residual(), MACHINE, LoweringOptions()))[0]
    assert first == Pair(tensor="d", producer=residual().operators[1], consumer=residual().operators[3])


def test_two_pairs_in_a_row_become_one_step_whatever_their_order():
    g = graph(
        {"x": X},
        ["Conv x w -> r", "Conv r w2 -> d", "Sum d r -> s", "Erf s -> y"],
        "y",
        weights={"w": W, "w2": (4, 4, 1, 1)},
        tensors=dict.fromkeys(("r", "d", "s", "y"), C),
    )
    for tensors in (("d", "s"), ("s", "d")):
        program = lowered(g, fuse_tensor=tensors)
        assert picture(program) == ["Conv x -> r", "Conv r -> y"]
        assert program.steps[1].operators == ("d", "s", "y")


def test_two_products_are_never_one_step():
    with pytest.raises(UsageError, match=r"Conv \+ Sum, which reads it, does not work on it element by element"):
        lowered(residual(), fuse_tensor=("d", "p"))


def test_a_tensor_named_twice_or_inside_of_a_step_is_fused_over_once():
    once = lowered(residual(), fuse_tensor=("d",))
    assert lowered(residual(), fuse_tensor=("d", "d")).steps == once.steps
    g = graph({"x": X}, ["Conv x w -> c", "Relu c -> y"], "y", weights={"w": W}, tensors={"c": C, "y": C})
    assert picture(lowered(g, fuse_tensor=("c",))) == picture(lowered(g)) == ["Conv x -> y"]
    assert picture(lowered(g, fuse=Fuse.NONE, fuse_tensor=("c",))) == ["Conv x -> y"]


def test_elementwise_pair_writes_over_what_dies():
    g = graph({"x": (8,)}, ["Softmax x -> a", "Exp a -> b", "Log b -> y"], "y", tensors=dict.fromkeys("aby", (8,)))
    assert picture(lowered(g, fuse_tensor=("b",))) == ["Softmax x -> a", "Exp a -> a=>y"]


def test_a_view_stands_for_what_it_is_stored_in():
    g = graph(
        {"x": (8,)},
        ["Softmax x -> a", "Reshape a shape -> v", "Exp v -> y"],
        "y",
        weights={"shape": ("int64", (2,))},
        tensors={"a": (8,), "v": (2, 4), "y": (2, 4)},
    )
    assert picture(lowered(g, fuse_tensor=("v",))) == ["Softmax x -> y"]


def test_normalisation_takes_in_the_concatenation_before_it_unless_it_trains():
    def dense(**attributes):
        return graph(
            {"x": (1, 2, 4), "z": (1, 2, 4)},
            [op("Concat x z -> c", axis=1), op("BatchNormalization c k k k k -> y", **attributes)],
            "y",
            weights={"k": (4,)},
            tensors={"c": (1, 4, 4), "y": (1, 4, 4)},
        )

    assert picture(lowered(dense(), fuse_tensor=("c",))) == ["Concat x z -> y"]
    assert tensors_of(dense(training_mode=1)) == []


REFUSED = {
    "an output": (residual("d y"), "d", "output of the graph"),
    "two readers": (residual(), "r", "2 operators read it"),
    "an input": (residual(), "x", "no operator of the run makes it"),
    "a weight": (residual(), "w", "no operator of the run makes it"),
    "a consumer that mixes elements": (
        graph({"x": (8,)}, ["Exp x -> a", "Softmax a -> y"], "y", tensors={"a": (8,), "y": (8,)}),
        "a",
        "Softmax, which reads it, does not work on it element by element",
    ),
    "an intermediate that is broadcast": (
        graph({"x": (4, 4)}, [op("ReduceMean x -> a"), "Sub x a -> y"], "y", tensors={"a": (1, 4), "y": (4, 4)}),
        "a",
        "Sub, which reads it, does not work on it element by element",
    ),
    "several results": (
        graph(
            {"x": (8,)},
            ["TopK x k -> a i", "Exp a -> y", "Softmax i -> z"],
            "y z",
            weights={"k": ("int64", (1,))},
            tensors={"a": (8,), "i": (8,), "y": (8,), "z": (8,)},
        ),
        "a",
        "has other results too",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_pair_is_legal(case):
    g, tensor, why = REFUSED[case]
    assert tensor not in tensors_of(g)
    with pytest.raises(UsageError, match=why):
        lowered(g, fuse_tensor=(tensor,))


def test_a_transposed_view_is_read_in_another_order():
    g = graph(
        {"x": (2, 4)},
        ["Softmax x -> a", op("Transpose a -> v", perm=(1, 0)), "Exp v -> y"],
        "y",
        tensors={"a": (2, 4), "v": (4, 2), "y": (4, 2)},
    )
    strided = MACHINE.with_overrides(strided_views=True)
    with pytest.raises(UsageError, match="Exp reads it in another order"):
        lowered(g, strided, fuse_tensor=("a",))


def test_mistyped_names_are_met_with_near_ones():
    with pytest.raises(UsageError, match="the model has no such tensor") as caught:
        lowered(residual(), fuse_tensor=("dd",), views=Views.SHARE)
    assert caught.value.hint == "did you mean d?"
