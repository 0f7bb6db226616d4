"""Soundness, names, order, kinds, functions: the graph apart from its sizes."""

import random

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_builders import body, floats, ints, model, node, read, value

from spillprof.ir.errors import ModelError
from spillprof.ir.graph import Assumption, TensorKind

X = [value("x", [2, 3])]


def function(name: str, inputs: str, outputs: str, nodes: list[onnx.NodeProto], **more: object) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, inputs.split(), outputs.split(), nodes, opsets, **more)


def call(function_name: str, inputs: str, outputs: str, **settings: object) -> onnx.NodeProto:
    return node(function_name, inputs, outputs, domain="f", **settings)


@pytest.mark.parametrize(
    ("nodes", "outputs", "says"),
    [
        ([node("Relu", "x", "t"), node("Neg", "x", "t")], "t", "written twice"),
        ([node("Relu", "x", "x")], "x", "an input of the graph"),
        ([node("Relu", "x", "w")], "w", "a stored tensor"),
        ([node("Relu", "nowhere", "y")], "y", "reads 'nowhere'"),
        ([node("Relu", "x", "y")], "z", "output 'z' is produced by nothing"),
        ([node("Add", "x b", "a"), node("Relu", "a", "b")], "b", "in a circle"),
        ([node("Frob", "x", "y")], "y", "no operator 'Frob'"),
        ([node("Frob", "x", "y", domain="vendor")], "y", "does not import"),
        ([], "", "the model is empty"),
    ],
)
def test_unsound_graph_is_refused(nodes: list[onnx.NodeProto], outputs: str, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(model(nodes, X, outputs, initializers=[floats("w", 3)]))
    assert says in caught.value.message
    assert caught.value.where[0] == "m.onnx"


def test_inputs_and_weights_declared_twice_are_refused() -> None:
    with pytest.raises(ModelError, match="'x' is declared twice"):
        read(model([node("Relu", "x", "y")], [*X, *X], "y"))
    with pytest.raises(ModelError, match="two stored tensors"):
        read(model([node("Add", "x w", "y")], X, "y", initializers=[floats("w", 3), floats("w", 1)]))


def test_circle_is_shown_without_what_hangs_on_it() -> None:
    nodes = [node("Relu", "c", "d", name="tail"), node("Add", "x c", "b", name="p"), node("Neg", "b", "c", name="q")]
    with pytest.raises(ModelError) as caught:
        read(model(nodes, X, "d"))
    assert sorted(caught.value.where[1:]) == ["p (Add)", "q (Neg)"]


def test_file_order_is_kept_though_sizes_need_another() -> None:
    chain = [node("Relu", "x", "t0"), *(node("Relu", f"t{i}", f"t{i + 1}") for i in range(200))]
    shuffled = random.Random(1).sample(chain, len(chain))
    graph = read(model(shuffled, X, "t200"))
    assert [op.outputs[0] for op in graph.operators] == [n.output[0] for n in shuffled]
    assert {t.shape for t in graph.tensors.values()} == {(2, 3)}


def test_capture_is_an_edge_of_the_order() -> None:
    branch = body([node("Neg", "late", "o")], "o")
    nodes = [node("If", "c", "y", then_branch=branch, else_branch=branch), node("Relu", "x", "late")]
    graph = read(model(nodes, [*X, value("c", [], onnx.TensorProto.BOOL)], "y"))
    assert graph.operators[0].captures == ("late",)
    assert graph.tensors["y"].shape == (2, 3)


def test_names_are_made_unique_and_good_ones_kept() -> None:
    names = ["a", "a", "", "a_1", "Neg_2"]
    nodes = [node("Neg", "x", f"t{i}", name=name) for i, name in enumerate(names)]
    graph = read(model(nodes, X, "t0"))
    got = [op.name for op in graph.operators]
    assert got[0] == "a"
    assert got[3:] == ["a_1", "Neg_2"]
    assert len(set(got)) == 5
    assert all(got)


def test_constants_are_weights_and_no_operators() -> None:
    nodes = [
        node("Constant", "", "c", value_floats=[1.0, 2.0, 3.0]),
        node("Constant", "", "i", value_int=1),
        node("Add", "x c", "s"),
        node("Gather", "s i", "y"),
    ]
    graph = read(model(nodes, X, "y c"))
    assert [op.op_type for op in graph.operators] == ["Add", "Gather"]
    assert (graph.tensors["c"].kind, graph.tensors["c"].shape) == (TensorKind.WEIGHT, (3,))
    assert (graph.tensors["i"].dtype, graph.tensors["i"].shape) == ("int64", ())
    assert graph.tensors["y"].shape == (3,)
    assert graph.outputs == ("y", "c")


def test_tensors_are_those_that_are_named() -> None:
    graph = read(model([node("Relu", "x", "y")], [*X, value("idle", [9])], "y x y", initializers=[floats("u", 5)]))
    assert set(graph.tensors) == {"x", "y", "idle"}
    assert graph.outputs == ("y", "x", "y")
    assert graph.inputs == ("x", "idle")


def test_attributes_are_plain_python() -> None:
    nodes = [node("Conv", "x w", "y", pads=[1, 1, 1, 1], auto_pad="NOTSET", group=1), node("Elu", "y", "z", alpha=0.5)]
    graph = read(model(nodes, [value("x", [1, 2, 4, 4])], "z", initializers=[floats("w", 3, 2, 3, 3)]))
    assert graph.operators[0].attributes == {"pads": (1, 1, 1, 1), "auto_pad": "NOTSET", "group": 1}
    assert graph.operators[1].attributes == {"alpha": 0.5}


def test_sequence_counts_what_it_holds_and_says_so() -> None:
    nodes = [node("SequenceConstruct", "x x", "s"), node("SequenceLength", "s", "n")]
    graph = read(model(nodes, X, "n"))
    assert (graph.tensors["s"].dtype, graph.tensors["s"].nbytes) == ("sequence", 2 * graph.tensors["x"].nbytes)
    what = "a value of type sequence is counted as all that it holds, and copied where it changes"
    assert graph.assumptions == (Assumption(what=what, count=1),)


def test_function_is_inlined_where_it_is_called() -> None:
    double = function("Double", "a", "r", [node("Add", "a a", "t", name="plus"), node("Relu", "t", "r")])
    twice = function("Twice", "a", "r", [call("Double", "a", "m"), call("Double", "m", "r", name="second")])
    nodes = [node("Neg", "x", "n"), call("Twice", "n", "y", name="top"), node("Abs", "y", "z")]
    graph = read(model(nodes, X, "z", domains={"f": 1}, functions=[double, twice]))
    assert [(op.op_type, op.name) for op in graph.operators] == [
        ("Neg", "Neg_0"),
        ("Add", "top/Double_0/plus"),
        ("Relu", "top/Double_0/Relu_1"),
        ("Add", "top/second/plus"),
        ("Relu", "top/second/Relu_1"),
        ("Abs", "Abs_2"),
    ]
    assert [op.outputs[0] for op in graph.operators] == ["n", "top/Double_0/t", "top/m", "top/second/t", "y", "z"]
    assert graph.operators[3].inputs == ("top/m", "top/m")


def test_function_attributes_come_from_the_call_else_the_default() -> None:
    inner = onnx.NodeProto(op_type="Transpose", input=["a"], output=["r"])
    inner.attribute.add(name="perm", ref_attr_name="order", type=onnx.AttributeProto.INTS)
    default = helper.make_attribute("order", [1, 0])
    turn = function("Turn", "a", "r", [inner], attribute_protos=[default])
    graph = read(
        model(
            [call("Turn", "x", "p"), call("Turn", "x", "q", order=[0, 1])], X, "p q", domains={"f": 1}, functions=[turn]
        )
    )
    assert graph.tensors["p"].shape == (3, 2)
    assert graph.tensors["q"].shape == (2, 3)


def test_function_output_that_is_its_input_becomes_an_identity() -> None:
    same = function("Same", "a", "a", [])
    graph = read(model([call("Same", "x", "y")], X, "y", domains={"f": 1}, functions=[same]))
    assert [(op.op_type, op.inputs, op.outputs) for op in graph.operators] == [("Identity", ("x",), ("y",))]


def test_absent_argument_of_a_function_stays_absent() -> None:
    clip = function("Limit", "a low high", "r", [node("Clip", "a low high", "r")])
    nodes = [call("Limit", "x - h", "y")]
    graph = read(model(nodes, X, "y", initializers=[floats("h")], domains={"f": 1}, functions=[clip]))
    assert graph.operators[0].inputs == ("x", "", "h")


def test_functions_that_call_in_a_circle_are_refused() -> None:
    pair = [function("A", "a", "r", [call("B", "a", "r")]), function("B", "a", "r", [call("A", "a", "r")])]
    with pytest.raises(ModelError, match="calls itself"):
        read(model([call("A", "x", "y")], X, "y", domains={"f": 1}, functions=pair))


def test_functions_that_multiply_are_refused_before_they_do() -> None:
    bodies = [
        function(f"F{i}", "a", "r", [call(f"F{i + 1}", "a", "m"), call(f"F{i + 1}", "m", "r")]) for i in range(40)
    ]
    bodies.append(function("F40", "a", "r", [node("Relu", "a", "r")]))
    with pytest.raises(ModelError, match="expand to more than"):
        read(model([call("F0", "x", "y")], X, "y", domains={"f": 1}, functions=bodies))


def test_long_chain_of_functions_is_refused() -> None:
    bodies = [function(f"F{i}", "a", "r", [call(f"F{i + 1}", "a", "r")]) for i in range(2000)]
    with pytest.raises(ModelError, match="deep"):
        read(model([call("F0", "x", "y")], X, "y", domains={"f": 1}, functions=bodies))


def test_initializer_of_every_width_is_sized() -> None:
    kinds = {"INT4": 11, "UINT4": 11, "FLOAT4E2M1": 11, "FLOAT8E4M3FN": 21, "BFLOAT16": 42, "DOUBLE": 168, "BOOL": 21}
    weights = [
        onnx.TensorProto(name=kind, dims=[21], data_type=onnx.TensorProto.DataType.Value(kind), raw_data=bytes(n))
        for kind, n in kinds.items()
    ]
    nodes = [node("Identity", kind, f"{kind}_copy") for kind in kinds]
    graph = read(model(nodes, X, "x", initializers=weights, opset=23))
    assert {kind: graph.tensors[kind].nbytes for kind in kinds} == kinds
    assert all(graph.tensors[f"{kind}_copy"].nbytes == n for kind, n in kinds.items())


def test_external_data_is_not_looked_for() -> None:
    weight = onnx.TensorProto(name="w", dims=[1 << 30], data_type=1, data_location=onnx.TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="../../../../dev/zero")
    graph = read(model([node("Add", "w w", "y")], X, "y", initializers=[weight]))
    assert graph.tensors["w"].nbytes == 4 << 30


def test_sparse_weight_counts_as_dense() -> None:
    proto = onnx.ModelProto.FromString(model([node("MatMul", "x s", "y")], X, "y"))
    values = floats("s", 2)
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, ints("", [1, 5]), [3, 4]))
    graph = read(proto.SerializeToString())
    assert graph.tensors["s"].shape == (3, 4)
    assert graph.tensors["y"].shape == (2, 4)
    assert graph.assumptions[0].what == "sparse weights are counted as dense"


def test_same_bytes_same_graph() -> None:
    rng = np.random.default_rng(3)
    nodes = [node("Add", f"t{rng.integers(i + 1)} t{i}", f"t{i + 1}") for i in range(60)]
    data = model(nodes, [value("t0", ["N", 3])], "t60")
    assert read(data, batch=2) == read(data, batch=2)


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Relu", "x", "y"), node("Abs", "x", "y")],
        [node("Relu", "y", "z"), node("Abs", "z", "y")],
        [node("Relu", "nothing", "y")],
        [node("Loop", "- - x", "y", body=body([node("Relu", "x", "r")], "r"))],
        [node("If", "x", "y", then_branch=body([node("Relu", "x", "r")], "r"))],
    ],
)
def test_every_refusal_says_what_to_do(nodes: list[onnx.NodeProto]) -> None:
    with pytest.raises(ModelError) as caught:
        read(model(nodes, X, "y"))
    assert caught.value.hint
