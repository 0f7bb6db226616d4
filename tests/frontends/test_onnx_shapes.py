"""Sizes: inferred, evaluated, by rule, by bound, from the file."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_builders import body, floats, ints, model, node, read, shape_of, value

from spillprof.frontends.onnx.folding import fold
from spillprof.frontends.onnx.folding_call import Call
from spillprof.frontends.onnx.rule import broadcast
from spillprof.ir.errors import ShapeError, SpillprofError

INT64 = onnx.TensorProto.INT64


def folded(op_type: str, *inputs: object, version: int = 17, n_outputs: int = 1, **attributes: object) -> list[object]:
    """Outputs as nested lists; integers are int64 as shapes are."""
    call = Call(op_type=op_type, version=version, attributes=attributes, protos=(), n_outputs=n_outputs)  # type: ignore[arg-type]
    outputs = fold(call, [None if i is None else np.asarray(i) for i in inputs])
    assert outputs is not None
    return [output.tolist() for output in outputs]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (lambda: folded("Div", [7, -7, 7, -7], [2, 2, -2, -2]), [3, -3, -3, 3]),  # towards zero
        (lambda: folded("Mod", [7, -7], [3, 3]), [1, 2]),
        (lambda: folded("Mod", [7, -7], [3, 3], fmod=1), [1, -1]),
        (lambda: folded("Gather", [10, 20, 30], [-1, 0]), [30, 10]),
        (lambda: folded("Slice", [0, 1, 2, 3], [-1], [-(2**63)], [0], [-1]), [3, 2, 1, 0]),
        (lambda: folded("Slice", [0, 1, 2, 3], [1], [2**62]), [1, 2, 3]),
        (lambda: folded("Slice", [0, 1, 2, 3], version=1, starts=(1,), ends=(3,)), [1, 2]),
        (lambda: folded("Reshape", [[1, 2], [3, 4]], [0, -1]), [[1, 2], [3, 4]]),
        (lambda: folded("Reshape", [1, 2, 3, 4], version=1, shape=(2, 2)), [[1, 2], [3, 4]]),
        (lambda: folded("Squeeze", [[5]], version=11, axes=(0,)), [5]),
        (lambda: folded("Unsqueeze", 5, [0]), [5]),
        (lambda: folded("Range", 0, 7, 3), [0, 3, 6]),
        (lambda: folded("Range", 3, 0, -2), [3, 1]),
        (lambda: folded("ConstantOfShape", [2]), [0.0, 0.0]),
        (lambda: folded("Expand", [1], [2, 2]), [[1, 1], [1, 1]]),
        (lambda: folded("Where", [True, False], [1, 1], [2, 2]), [1, 2]),
        (lambda: folded("Equal", [1, -1], [-1, -1]), [False, True]),
        (lambda: folded("ReduceProd", [2, 3, 4], keepdims=0), 24),
        (lambda: folded("Cast", [1.9, -1.9], to=7), [1, -1]),
        (lambda: folded("Concat", [1], [2, 3], axis=0), [1, 2, 3]),
        (lambda: folded("ScatterND", [1, 2, 3], [[1]], [9]), [1, 9, 3]),
        (lambda: folded("Floor", [1.5]), [1.0]),
    ],
)
def test_evaluation_follows_the_standard(result: object, expected: object) -> None:
    assert result() == [expected]  # type: ignore[operator]


def test_split_gives_all_its_parts() -> None:
    assert folded("Split", [1, 2, 3], [1, 2], n_outputs=2) == [[1], [2, 3]]
    assert folded("Split", [1, 2, 3], n_outputs=2) == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("op_type", "inputs"),
    [
        ("Range", (0, 10**12, 1)),
        ("Expand", ([1], [10**6, 10**6])),
        ("Tile", ([1], [10**9])),
        ("ConstantOfShape", ([10**15],)),
        ("Range", (0, 1, 0)),
        ("Gather", ([1], [7])),
        ("ReduceMean", (np.ones((0,)),)),
        ("Reshape", ([1, 2], [3])),
        ("Add", (None, [1])),
        ("Add", (np.ones((4096, 1)), np.ones(4096))),
        ("Add", (np.ones((1,) * 36), np.ones((1,) * 36))),
        ("Expand", (np.ones((1,) * 36), [1])),
    ],
)
def test_evaluation_gives_up_rather_than_fail(op_type: str, inputs: tuple[object, ...]) -> None:
    call = Call(op_type=op_type, version=17, attributes={}, protos=(), n_outputs=1)
    assert fold(call, [None if i is None else np.asarray(i) for i in inputs]) is None


def test_shapes_of_any_rank_are_broadcast() -> None:
    assert broadcast((3, 1), (4,), ()) == (3, 4)
    assert broadcast((1,) * 70, (0, 1)) == (1,) * 68 + (0, 1)
    with pytest.raises(ValueError, match="2, 3"):
        broadcast((2,), (3,))


def test_shape_arithmetic_resolves_a_reshape() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Mul", "n three", "m"),
        node("Unsqueeze", "m axis", "u"),
        node("Concat", "u minus", "target", axis=0),
        node("Reshape", "x target", "y"),
    ]
    stored = [ints("zero", 0), ints("three", 3), ints("axis", [0]), ints("minus", [-1])]
    data = model(nodes, [value("x", ["N", 6, 4])], "y", initializers=stored)
    assert shape_of(data, "y", dims={"N": 5}) == (15, 8)


def test_range_over_a_dimension() -> None:
    nodes = [node("Shape", "x", "s"), node("Squeeze", "s", "n"), node("Range", "a n b", "y")]
    data = model(nodes, [value("x", ["N"])], "y", initializers=[ints("a", 0), ints("b", 1)])
    assert shape_of(data, "y", dims={"N": 9}) == (9,)


def test_resize_by_computed_floats() -> None:
    nodes = [node("Reciprocal", "half", "two"), node("Concat", "one one two two", "s", axis=0)]
    nodes.append(node("Resize", "x - s", "y"))
    scales = [numpy_helper.from_array(np.array([v], np.float32), n) for n, v in (("half", 0.5), ("one", 1.0))]
    data = model(nodes, [value("x", [1, 3, 8, 8])], "y", initializers=scales)
    assert shape_of(data, "y") == (1, 3, 16, 16)


@pytest.mark.parametrize(
    ("nodes", "shape", "weights"),
    [
        ([node("MatMul", "x w", "y")], [4, 5], [floats("w", 7, 6)]),
        ([node("Conv", "x w", "y")], [1, 2, 3, 3], [floats("w", 2, 2, 6, 6)]),
        ([node("Add", "x w", "y")], [4], [floats("w", 3)]),
        ([node("Concat", "x w", "y", axis=0)], [4, 2], [floats("w", 4, 3)]),
        ([node("Reshape", "x w", "y")], [4], [ints("w", [3])]),
    ],
)
def test_contradiction_names_the_operator(
    nodes: list[onnx.NodeProto], shape: list[int], weights: list[onnx.TensorProto]
) -> None:
    with pytest.raises(ShapeError) as caught:
        read(model(nodes, [value("x", shape)], "y", initializers=weights))
    assert caught.value.where[1] == f"{nodes[0].op_type}_0 ({nodes[0].op_type})"


def test_stale_value_info_is_overruled_and_noted_once() -> None:
    nodes = [node("Relu", "x", "t"), node("Relu", "t", "y")]
    stale = [value("t", [400, 500]), value("y", [1])]
    graph = read(model(nodes, [value("x", [4, 5])], "y", value_info=stale))
    assert graph.tensors["t"].shape == (4, 5)
    assert graph.notes == (
        "a type or shape stored in the file contradicts inference, and is overruled (2 times): "
        "'t' is float32[4, 5], not float32[400, 500], 'y' is float32[4, 5], not float32[1]",
    )


def test_value_info_sizes_what_nobody_defines() -> None:
    nodes = [node("Frob", "x", "t", domain="vendor"), node("Relu", "t", "y")]
    sized = model(nodes, [value("x", ["N"])], "y", value_info=[value("t", ["N", 7])], domains={"vendor": 1})
    graph = read(sized, dims={"N": 2})
    assert graph.tensors["y"].shape == (2, 7)
    assert [(a.what, a.count) for a in graph.assumptions] == [
        ("a size that cannot be inferred is taken from the file's value_info", 1)
    ]
    with pytest.raises(ShapeError) as caught:
        read(model(nodes, [value("x", [2])], "y", domains={"vendor": 1}))
    assert caught.value.where[1] == "t, the output of Frob_0 (Frob)"


def test_only_the_roots_of_the_unknown_are_listed() -> None:
    nodes = [node("Reshape", "x s", "r"), *(node("Relu", n, n + "r") for n in ("r", "rr", "rrr"))]
    with pytest.raises(ShapeError) as caught:
        read(model(nodes, [value("x", [4]), value("s", [2], INT64)], "rrrr"))
    assert caught.value.where[1:] == ("r, the output of Reshape_0 (Reshape)",)


@pytest.mark.parametrize(
    ("nodes", "weights", "expected"),
    [
        ([node("NonZero", "x", "y")], [], (2, 12)),
        ([node("Compress", "x c", "y")], [], (12,)),
        ([node("Compress", "x c", "y", axis=1)], [], (3, 4)),
        ([node("Unique", "x", "y")], [], (12,)),
        ([node("Slice", "x k many", "y")], [ints("many", [9])], (3, 4)),
        ([node("TopK", "x k", "y i", axis=0)], [], (3, 4)),
    ],
)
def test_data_dependent_size_is_bounded_and_says_so(
    nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], expected: tuple[int, ...]
) -> None:
    inputs = [value("x", [3, 4]), value("k", [1], INT64), value("c", [3], onnx.TensorProto.BOOL)]
    graph = read(model(nodes, inputs, "y", initializers=weights))
    assert graph.tensors["y"].shape == expected
    assert [a.count for a in graph.assumptions if "largest size" in a.what] == [1]


def test_non_max_suppression_keeps_at_most_its_limit() -> None:
    nodes = [node("NonMaxSuppression", "b s limit", "y")]
    inputs = [value("b", [2, 100, 4]), value("s", [2, 3, 100])]
    data = model(nodes, inputs, "y", initializers=[ints("limit", [10])])
    assert shape_of(data, "y") == (2 * 3 * 10, 3)


def test_an_empty_limit_limits_nothing() -> None:
    nodes = [node("NonMaxSuppression", "b s limit", "y")]
    inputs = [value("b", [2, 100, 4]), value("s", [2, 3, 100])]
    assert shape_of(model(nodes, inputs, "y", initializers=[ints("limit", [])]), "y") == (2 * 3 * 100, 3)


def test_padding_cannot_be_removed_from_a_vector() -> None:
    nodes = [node("RemovePadding", "x n", "y a b c", domain="com.microsoft")]
    inputs = [value("x", [6]), value("n", [1], onnx.TensorProto.INT32)]
    with pytest.raises(SpillprofError):
        read(model(nodes, inputs, "y", domains={"com.microsoft": 1}))


def test_size_of_the_largest_output_is_not_taken_for_a_fact() -> None:
    """The count of nonzeros is a bound, so a branch on it stays open."""
    nodes = [
        node("NonZero", "x", "nz"),
        node("Shape", "nz", "s"),
        node("Gather", "s one", "count"),
        node("Greater", "count zero", "any"),
        node(
            "If",
            "any",
            "y",
            then_branch=body([node("Relu", "x", "a")], "a"),
            else_branch=body([node("Neg", "x", "b")], "b"),
        ),
    ]
    graph = read(model(nodes, [value("x", [5])], "y", initializers=[ints("one", 1), ints("zero", 0)]))
    assert len(graph.operators[-1].subgraphs) == 2


MS = "com.microsoft"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (node("FusedMatMul", "x w", "y", domain=MS, transA=1, transB=0), ("float32", (2, 4, 5))),
        (node("FusedConv", "image kernel", "y", domain=MS, activation="Relu", pads=[1] * 4), ("float32", (1, 8, 6, 6))),
        (node("MatMulNBits", "x packed", "y", domain=MS, K=4, N=32), ("float32", (2, 3, 32))),
        (node("SkipLayerNormalization", "x x g", "y - - sum", domain=MS), ("float32", (2, 3, 4))),
        (node("EmbedLayerNormalization", "ids - table", "y", domain=MS), ("float32", (2, 3, 16))),
        (node("BiasGelu", "x g", "y", domain=MS), ("float32", (2, 3, 4))),
        (node("MultiHeadAttention", "x x x", "y", domain=MS, num_heads=2), ("float32", (2, 3, 4))),
        (node("Attention", "x qkv", "y", domain=MS, num_heads=2), ("float32", (2, 3, 4))),
        (node("DynamicQuantizeLSTM", "x w w", "y h c", domain=MS, hidden_size=9), ("float32", (2, 1, 3, 9))),
        (node("QLinearConcat", "g z q g z q g z", "y", domain=MS, axis=1), ("uint8", (2, 10))),
        (node("ReorderInput", "image", "y", domain=MS + ".nchwc"), ("float32", (1, 16, 6, 6))),
        (node("Scaler", "x", "y", domain="ai.onnx.ml"), ("float32", (2, 3, 4))),
        (node("TreeEnsembleRegressor", "rows", "y", domain="ai.onnx.ml", n_targets=3), ("float32", (7, 3))),
        (node("LabelEncoder", "rows", "y", domain="ai.onnx.ml", keys_floats=[0.0], values_int64s=[1]),
         ("int64", (7, 5))),
        (node("OneHotEncoder", "rows", "y", domain="ai.onnx.ml", cats_int64s=[1, 2, 3, 4]), ("float32", (7, 5, 4))),
        (node("ArrayFeatureExtractor", "rows ids", "y", domain="ai.onnx.ml"), ("float32", (7, 6))),
    ],
)  # fmt: skip
def test_vendor_operator_is_sized_by_its_definition(
    made: onnx.NodeProto, expected: tuple[str, tuple[int, ...]]
) -> None:
    weights = [
        floats("w", 2, 3, 5), floats("kernel", 8, 2, 3, 3), floats("g"), floats("qkv", 4, 12), floats("table", 100, 16),
        numpy_helper.from_array(np.zeros((32, 1, 2), np.uint8), "packed"),
        numpy_helper.from_array(np.zeros((), np.uint8), "z"), numpy_helper.from_array(np.zeros((2, 5), np.uint8), "q"),
    ]  # fmt: skip
    inputs = [value("x", [2, 3, 4]), value("image", [1, 2, 6, 6]), value("ids", [2, 3], INT64), value("rows", [7, 5])]
    domains = {MS: 1, MS + ".nchwc": 1, "ai.onnx.ml": 3}
    graph = read(model([made], inputs, "y", initializers=weights, domains=domains))
    assert (graph.tensors["y"].dtype, graph.tensors["y"].shape) == expected


def test_oldest_operator_set_is_sized() -> None:
    nodes = [
        node("Add", "x b", "s", broadcast=1, axis=1),
        node("Reshape", "s", "r", shape=[0, -1]),
        node("Dropout", "r", "y", is_test=1),
    ]
    data = model(nodes, [value("x", [2, 3, 4])], "y", initializers=[floats("b", 3)], opset=1)
    assert shape_of(data, "y") == (2, 12)


def test_petabytes_are_a_size_and_more_than_int64_is_none() -> None:
    def grown(n: int) -> bytes:
        return model([node("Expand", "x s", "y")], [value("x", [1])], "y", initializers=[ints("s", [n, 1024])])

    assert shape_of(grown(1 << 40), "y") == (1 << 40, 1024)
    with pytest.raises(ShapeError):
        read(grown(1 << 52))


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        (value("t", [2, 2]), "not float32[2, 2]"),  # a dimension
        (value("t", [4, 1, 5]), "not float32[4, 1, 5]"),  # the rank
        (value("t", [4, 5], INT64), "not int64[4, 5]"),  # the type
        (value("t", ["N", 6]), "not float32[?, 6]"),  # where it is known
    ],
)
def test_claim_that_contradicts_is_overruled(stated: onnx.ValueInfoProto, says: str) -> None:
    nodes = [node("Relu", "x", "t"), node("Relu", "t", "y")]
    graph = read(model(nodes, [value("x", [4, 5])], "y", value_info=[stated]))
    assert (graph.tensors["t"].dtype, graph.tensors["t"].shape) == ("float32", (4, 5))
    (note,) = graph.notes
    assert note.endswith(f": 't' is float32[4, 5], {says}")


def test_claim_of_rank_does_not_size_what_is_half_known() -> None:
    nodes = [node("Reshape", "x s", "t")]  # of rank 2, by the length of s
    data = model(nodes, [value("x", [4, 5]), value("s", [2], INT64)], "t", value_info=[value("t", [20])])
    with pytest.raises(ShapeError, match="stays unknown"):
        read(data)


def test_claim_about_inputs_weights_and_outputs_is_checked() -> None:
    inputs, info = [value("x", [4, 5]), value("w", [9, 9])], [value("x", [1])]
    data = model([node("MatMul", "x w", "y")], inputs, "y", initializers=[floats("w", 5, 6)], value_info=info)
    made = onnx.ModelProto.FromString(data)
    made.graph.output[0].CopyFrom(value("y", [4]))
    notes = read(made.SerializeToString()).notes
    assert notes[0] == (
        "a type or shape stored in the file contradicts inference, and is overruled (3 times): "
        "'w' is float32[5, 6], not float32[9, 9], 'x' is float32[4, 5], not float32[1], "
        "'y' is float32[4, 6], not float32[4]"
    )


def test_claim_below_an_upper_bound_is_no_contradiction() -> None:
    def notes(*shape: int) -> tuple[str, ...]:
        info = [value("y", shape, INT64)]
        return read(model([node("NonZero", "x", "y")], [value("x", [3, 4])], "y", value_info=info)).notes

    assert notes(2, 5) == ()
    assert len(notes(2, 13)) == 1
    assert len(notes(3, 5)) == 1


def test_many_claims_are_one_note_with_three_examples() -> None:
    names = [f"t{i}" for i in range(6)]
    nodes = [node("Relu", a, b) for a, b in zip(["x", *names], names, strict=False)]
    graph = read(model(nodes, [value("x", [4])], "t5", value_info=[value(n, [1]) for n in names]))
    (note,) = graph.notes
    assert "(6 times)" in note
    assert note.count("not float32[1]") == 3
    assert note.endswith(", ...")
