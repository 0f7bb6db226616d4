"""Operators that depend on weights alone are folded into weights."""

from graphs import buffer_named, graph, lowered, op, picture

from spillprof.ir.program import BufferKind
from spillprof.lowering.options import Control, Fuse, Views, WeightsPolicy

T = (4,)


def test_weight_subgraph_folds_to_its_result():
    """w (16 B) is repeated to w2 (32 B); only what the step reads counts."""
    g = graph(
        {"x": (8,)}, ["Tile w n -> w2", "MatMul x w2 -> y"], "y",
        weights={"w": T, "n": ("int64", (1,))}, tensors={"w2": (8,), "y": ()},
    )  # fmt: skip
    program = lowered(g)
    assert picture(program) == ["MatMul x -> y"]
    assert (program.folded_operators, program.weight_bytes) == (1, 32)
    assert program.steps[0].weight_stream_bytes == 32


def test_widened_weight_stays_narrow():
    g = graph(
        {"x": ("float64", T)}, ["Cast w -> w2", "MatMul x w2 -> y"], "y",
        weights={"w": T}, tensors={"w2": ("float64", T), "y": ("float64", ())},
    )  # fmt: skip
    assert lowered(g).weight_bytes == 16
    assert lowered(g, fuse=Fuse.NONE).weight_bytes == 32


def test_weight_dequantised_by_cast_and_scale_stays_quantised():
    """4 x 8 int8 = 32 B and 4 scales = 16 B; in float it would be 128 B."""
    ops = ["Cast q -> f", "Mul f s -> w", "MatMul x w -> y"]
    g = graph(
        {"x": (2, 4)}, ops, "y", weights={"q": ("int8", (4, 8)), "s": (4, 1)},
        tensors={"f": (4, 8), "w": (4, 8), "y": (2, 8)},
    )  # fmt: skip
    assert lowered(g).weight_bytes == 48
    assert lowered(g, fuse=Fuse.NONE).weight_bytes == 128


def test_outer_product_of_two_weights_is_as_large_as_it_is():
    """Nothing of 4 x 8 elements is stored: the product is not a dequantised weight."""
    g = graph(
        {"x": (2, 4)}, ["Mul a b -> w", "MatMul x w -> y"], "y",
        weights={"a": (4, 1), "b": (1, 8)}, tensors={"w": (4, 8), "y": (2, 8)},
    )  # fmt: skip
    assert lowered(g).weight_bytes == 128


def test_tied_embedding_and_its_transpose_are_one_weight():
    """A table of 10 x 4 floats (160 B): three rows are looked up, and the whole is the last layer's matrix."""
    ops = ["Gather t i -> e", "Transpose t -> w", "MatMul e w -> y"]
    g = graph(
        {"i": ("int64", (3,))}, ops, "y", weights={"t": (10, 4)},
        tensors={"e": (3, 4), "w": (4, 10), "y": (3, 10)},
    )  # fmt: skip
    program = lowered(g)
    assert program.weight_bytes == 160
    assert [step.weight_stream_bytes for step in program.steps] == [48, 160]
    assert lowered(g, views=Views.COPY).weight_bytes == 320
    cached = lowered(g, weights=WeightsPolicy.CACHED)
    assert picture(cached) == ["Gather i -> e", "MatMul e t -> y"]
    assert [step.weight_stream_bytes for step in cached.steps] == [48, 0]


def test_operator_that_reads_nothing_folds():
    """light_* models hold their weights as ConstantOfShape nodes."""
    g = graph(
        {"x": T}, ["ConstantOfShape n -> w", "Add x w -> y"], "y",
        weights={"n": ("int64", (1,))}, tensors={"w": T, "y": T},
    )  # fmt: skip
    program = lowered(g)
    assert picture(program) == ["Add x -> x=>y"]
    assert program.weight_bytes == 16


def test_shape_of_an_activation_folds_and_frees_its_chain():
    ops = ["Softmax x -> a", "Shape a -> s", "Gather s i -> n", "Expand x n -> y"]
    g = graph(
        {"x": T}, ops, "y", weights={"i": ("int64", ())},
        tensors={"a": T, "s": ("int64", (1,)), "n": ("int64", ()), "y": T},
    )  # fmt: skip
    program = lowered(g)
    assert picture(program) == ["Expand x -> y"]
    assert (program.folded_operators, program.removed_operators) == (2, 1)


def test_random_operator_does_not_fold():
    g = graph({"x": T}, ["RandomNormal -> r", "Mul x r -> y"], "y", tensors={"r": T, "y": T})
    assert picture(lowered(g)) == ["RandomNormal -> r", "Mul x r -> x=>y"]


def test_random_operator_in_a_body_does_not_fold():
    body = graph({}, ["RandomNormal -> r"], "r", tensors={"r": T})
    g = graph({}, [op("If c -> y", subgraphs=[body, body])], "y", weights={"c": ("bool", ())}, tensors={"y": T})
    assert picture(lowered(g)) == ["RandomNormal -> y"]
    assert picture(lowered(g, control=Control.STEP)) == ["If -> y"]


def test_body_over_weights_alone_folds_and_one_that_captures_an_activation_does_not():
    def program(source):
        body = graph({}, [f"Neg {source} -> r"], "r", tensors={source: T, "r": T})
        ops = [op("If c -> y", captures=source, subgraphs=[body, body]), "Add x y -> z"]
        g = graph({"x": T}, ops, "z", weights={"c": ("bool", ()), "w": T}, tensors={"y": T, "z": T})
        return [picture(lowered(g, control=control)) for control in (Control.UNFOLD, Control.STEP)]

    assert program("w") == [["Add x -> x=>z"], ["Add x -> x=>z"]]
    assert program("x") == [["Neg x -> y", "Add x y -> x=>z"], ["If x -> y", "Add x y -> x=>z"]]


def test_unknown_domain_does_not_fold():
    g = graph({"x": T}, [op("Sensor -> s", domain="acme"), "Add x s -> y"], "y", tensors={"s": T, "y": T})
    program = lowered(g)
    assert picture(program) == ["Sensor -> s", "Add x s -> x=>y"]
    assert [(a.what.split(" are")[0], a.count) for a in program.assumptions] == [("operators of unknown cost", 1)]


def test_nothing_folds_when_switched_off():
    g = graph({"x": T}, ["Neg w -> v", "Add x v -> y"], "y", weights={"w": T}, tensors={"v": T, "y": T})
    program = lowered(g, fold=False)
    assert picture(program) == ["Neg -> v", "Add x v -> x=>y"]
    assert buffer_named(program, "v").kind is BufferKind.ACTIVATION


def test_constant_node_is_no_step_even_unfolded():
    g = graph({"x": T}, ["Constant -> w", "Add x w -> y"], "y", weights={"w": T}, tensors={"y": T})
    program = lowered(g, fold=False)
    assert picture(program) == ["Add x -> x=>y"]
    assert (program.folded_operators, program.weight_bytes) == (0, 16)


def test_folded_graph_output_needs_no_step():
    program = lowered(graph({"x": T}, ["Neg w -> y"], "y", weights={"w": T}, tensors={"y": T}))
    assert program.steps == ()
    assert program.weight_bytes == 0


def test_identity_copies_of_one_weight_are_one_weight():
    ops = ["Identity w -> v1", "Identity w -> v2", "Add x v1 -> a", "Sub a v2 -> y"]
    g = graph({"x": T}, ops, "y", weights={"w": T}, tensors={"v1": T, "v2": T, "a": T, "y": T})
    assert lowered(g).weight_bytes == 16
    assert lowered(g, views=Views.COPY).weight_bytes == 32
    assert buffer_named(lowered(g, weights=WeightsPolicy.CACHED), "w").tensors == ("w", "v1", "v2")


def test_dequantised_weight_keeps_its_quantised_size_through_a_transpose():
    """4 x 8 int8 = 32 B and a 4 B scale; in float it would be 128 B."""
    ops = ["DequantizeLinear q s -> f", "Transpose f -> t", "MatMul x t -> y"]
    g = graph(
        {"x": (2, 8)}, ops, "y", weights={"q": ("int8", (4, 8)), "s": ()},
        tensors={"f": (4, 8), "t": (8, 4), "y": (2, 4)},
    )  # fmt: skip
    assert lowered(g).weight_bytes == 36
    assert lowered(g, fuse=Fuse.NONE).weight_bytes == 128
