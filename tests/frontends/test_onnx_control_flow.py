"""If, Loop and Scan: bodies, captures, sizes."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_builders import body, floats, ints, model, node, read, value

from spillprof.ir.errors import ModelError, ShapeError, UsageError
from spillprof.ir.graph import TensorKind, TripBasis, Trips

BOOL, INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.INT64
YES = numpy_helper.from_array(np.array(True), "yes")
X, C = value("x", [2, 3]), value("c", [], BOOL)


def branch(op_type: str, inputs: str) -> onnx.GraphProto:
    return body([node(op_type, inputs, "o")], "o")


def test_if_captures_what_its_branches_read() -> None:
    nodes = [node("If", "c", "y", then_branch=branch("Relu", "x"), else_branch=branch("Neg", "z"))]
    graph = read(model(nodes, [C, X, value("z", [2, 3])], "y"))
    op = graph.operators[0]
    assert op.captures == ("z", "x")  # the file lists else_branch first
    assert [sub.operators[0].op_type for sub in op.subgraphs] == ["Neg", "Relu"]
    assert op.subgraphs[1].tensors["x"].kind is TensorKind.INPUT
    assert graph.tensors["y"].shape == (2, 3)
    assert graph.assumptions == ()


def test_capture_passes_through_every_level() -> None:
    inner = node("If", "c", "i", then_branch=branch("Add", "x t"), else_branch=branch("Relu", "x"))
    outer = body([node("Neg", "x", "t"), inner], "i")
    nodes = [node("If", "c", "y", then_branch=outer, else_branch=branch("Relu", "x"))]
    op = read(model(nodes, [C, X], "y")).operators[0]
    assert op.captures == ("x", "c")
    assert op.subgraphs[1].operators[1].captures == ("x", "t")


def test_larger_branch_decides() -> None:
    nodes = [node("If", "c", "y", then_branch=branch("Relu", "x"), else_branch=branch("Relu", "z"))]
    graph = read(model(nodes, [C, X, value("z", [9, 9])], "y"))
    assert graph.tensors["y"].shape == (9, 9)
    assert [a.count for a in graph.assumptions] == [1]


def test_constant_condition_takes_its_branch() -> None:
    bad = branch("MatMul", "x x")  # could not run
    nodes = [node("If", "yes", "y", then_branch=branch("Relu", "x"), else_branch=bad)]
    graph = read(model(nodes, [X], "y", initializers=[YES]))
    assert graph.tensors["y"].shape == (2, 3)
    assert len(graph.operators[0].subgraphs) == 1
    assert any("constant condition" in note for note in graph.notes)


def test_branch_that_cannot_run_leaves_the_other() -> None:
    nodes = [node("If", "c", "y", then_branch=branch("MatMul", "x x"), else_branch=branch("Relu", "x"))]
    graph = read(model(nodes, [C, X], "y"))
    assert graph.tensors["y"].shape == (2, 3)
    assert "does not fit" in graph.assumptions[0].what
    hopeless = [node("If", "c", "y", then_branch=branch("MatMul", "x x"), else_branch=branch("MatMul", "x x"))]
    with pytest.raises(ShapeError, match="matrix multiplication"):
        read(model(hopeless, [C, X], "y"))


def test_size_known_inside_a_branch_is_known_outside() -> None:
    then = body([node("Shape", "x", "s")], "s")
    nodes = [node("If", "yes", "t", then_branch=then, else_branch=then), node("ConstantOfShape", "t", "y")]
    assert read(model(nodes, [X], "y", initializers=[YES])).tensors["y"].shape == (2, 3)


def loop(nodes: list[onnx.NodeProto], outputs: str, carried: list[onnx.ValueInfoProto]) -> onnx.GraphProto:
    return body(nodes, outputs, [value("i", [], INT64), value("go", [], BOOL), *carried])


def test_loop_carries_and_stacks() -> None:
    inner = loop([node("Relu", "a", "b"), node("Abs", "b", "s")], "go b s", [value("a", None)])
    graph = read(model([node("Loop", "n - x", "last all", body=inner)], [X], "last", initializers=[ints("n", 5)]))
    assert graph.tensors["last"].shape == (2, 3)
    assert graph.tensors["all"].shape == (5, 2, 3)
    assert graph.assumptions == ()
    sub = graph.operators[0].subgraphs[0]
    assert sub.inputs == ("i", "go", "a")
    assert sub.tensors["a"].shape == (2, 3)


def test_loop_that_may_stop_is_sized_for_all_trips() -> None:
    inner = loop([node("Not", "c", "stop"), node("Relu", "x", "s")], "stop s", [])
    graph = read(model([node("Loop", "n yes", "all", body=inner)], [X, C], "all", initializers=[ints("n", 5), YES]))
    assert graph.tensors["all"].shape == (5, 2, 3)
    assert "may stop early" in graph.assumptions[0].what


def test_loop_with_unknown_trips_cannot_size_what_it_stacks() -> None:
    inner = loop([node("Relu", "x", "s")], "go s", [])
    inputs = [X, value("n", [], INT64)]
    with pytest.raises(ShapeError) as caught:
        read(model([node("Loop", "n", "all", body=inner)], inputs, "all"))
    assert caught.value.where[1] == "all, the output of Loop_0 (Loop)"
    carries = loop([node("Relu", "a", "b")], "go b", [value("a", None)])
    assert read(model([node("Loop", "n - x", "y", body=carries)], inputs, "y")).tensors["y"].shape == (2, 3)


def test_growing_value_is_walked_trip_by_trip() -> None:
    inner = loop([node("Concat", "a a", "b", axis=0)], "go b", [value("a", None)])
    nodes = [node("Loop", "n - x", "y", body=inner)]
    graph = read(model(nodes, [X], "y", initializers=[ints("n", 3)]))
    assert graph.tensors["y"].shape == (16, 3)
    with pytest.raises(ShapeError, match="unknown number of times"):
        read(model(nodes, [X, value("n", [], INT64)], "y"))
    with pytest.raises(ShapeError, match="10,000 times"):
        read(model(nodes, [X], "y", initializers=[ints("n", 10_000)]))


def test_loop_that_never_runs_gives_what_it_got() -> None:
    inner = loop([node("Concat", "a a", "b", axis=0), node("Relu", "b", "s")], "go b s", [value("a", None)])
    graph = read(model([node("Loop", "n - x", "y z", body=inner)], [X], "y z", initializers=[ints("n", 0)]))
    assert graph.tensors["y"].shape == (2, 3)
    assert graph.tensors["z"].shape[0] == 0


def test_scan_slices_and_stacks_along_its_axes() -> None:
    inner = body(
        [node("Add", "state row", "next"), node("Relu", "row", "out")],
        "next out",
        [value("state", None), value("row", None)],
    )
    nodes = [node("Scan", "h x", "last all", body=inner, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1])]
    graph = read(model(nodes, [value("h", [4]), value("x", [4, 7])], "last all"))
    assert graph.tensors["last"].shape == (4,)
    assert graph.tensors["all"].shape == (4, 7)
    assert graph.operators[0].subgraphs[0].tensors["row"].shape == (4,)


def test_first_scan_has_a_batch() -> None:
    inner = body(
        [node("Add", "state row", "next"), node("Relu", "row", "out")],
        "next out",
        [value("state", None), value("row", None)],
    )
    nodes = [node("Scan", "- h x", "last all", body=inner, num_scan_inputs=1)]
    graph = read(model(nodes, [value("h", [2, 4]), value("x", [2, 7, 4])], "last all", opset=8))
    assert graph.tensors["last"].shape == (2, 4)
    assert graph.tensors["all"].shape == (2, 7, 4)


@pytest.mark.parametrize(
    "made",
    [
        node("If", "c", "y", then_branch=branch("Relu", "x")),
        node("If", "c", "y z", then_branch=branch("Relu", "x"), else_branch=branch("Relu", "x")),
        node("Loop", "- - x", "y", body=body([node("Relu", "x", "o")], "o")),
        node("Scan", "x", "y", body=branch("Relu", "x"), num_scan_inputs=1),
        node("Scan", "x", "y", body=branch("Relu", "x"), num_scan_inputs=9),
        node("Relu", "x", "y", body=branch("Relu", "x")),
    ],
)
def test_malformed_control_flow_is_refused(made: onnx.NodeProto) -> None:
    with pytest.raises(ModelError):
        read(model([made], [C, X], "y"))


# What the user says


def open_loop(outputs: str = "last all") -> bytes:
    """A Loop that runs as often as an input says."""
    nodes = [node("Loop", "n - x", outputs, name="again", body=loop([node("Relu", "s", "o")], "go o o", STATE))]
    return model(nodes, [X, value("n", [], INT64)], outputs.replace("-", ""))


STATE = [value("s", [2, 3])]


def test_trips_that_the_user_gives_size_what_a_loop_stacks() -> None:
    for given in ({"again": 4}, {"": 4}):
        graph = read(open_loop(), trips=given)
        assert graph.tensors["all"].shape == (4, 2, 3)
        assert graph.operators[0].trips == Trips(count=4, basis=TripBasis.GIVEN)
        assert graph.notes == ("Loop 'again': 4 trips, as told",)
    with pytest.raises(ShapeError) as error:
        read(open_loop())
    assert error.value.hint is not None
    assert error.value.hint.startswith("--trips again=N")


def test_length_that_nobody_gives_is_assumed_where_no_size_depends_on_it() -> None:
    (op,) = read(open_loop("last")).operators
    assert op.trips is not None
    assert op.trips.basis is TripBasis.ASSUMED


def test_known_length_is_not_overruled() -> None:
    nodes = [node("Loop", "n - x", "last", name="again", body=loop([node("Relu", "s", "o")], "go o", STATE))]
    data = model(nodes, [X], "last", initializers=[ints("n", 5)])
    (op,) = read(data, trips={"": 3}).operators
    assert op.trips == Trips(count=5, basis=TripBasis.KNOWN)
    with pytest.raises(UsageError, match="exactly 5 times"):
        read(data, trips={"again": 3})


def test_growing_state_has_a_body_for_each_trip_that_the_user_gives() -> None:
    body_ = loop([node("Concat", "s s", "o", axis=0)], "go o", STATE)
    data = model([node("Loop", "n - x", "y", name="again", body=body_)], [X, value("n", [], INT64)], "y")
    graph = read(data, trips={"": 3})
    assert graph.tensors["y"].shape == (16, 3)
    assert [sub.tensors["o"].shape for sub in graph.operators[0].subgraphs] == [(4, 3), (8, 3), (16, 3)]
    with pytest.raises(ModelError, match="more elements than any memory holds"):
        read(data, trips={"": 65})


def test_trips_are_followed_one_by_one_up_to_a_limit() -> None:
    inner = loop([node("Concat", "s x", "o", axis=0)], "go o", STATE)
    nodes = [node("Loop", "n - x", "y", name="again", body=inner)]
    assert read(model(nodes, [X], "y", initializers=[ints("n", 100)])).tensors["y"].shape == (202, 3)
    with pytest.raises(ShapeError) as caught:
        read(model(nodes, [X], "y", initializers=[ints("n", 5000)]))
    assert "up to 4096 trips are followed" in (caught.value.hint or "")
    with pytest.raises(ShapeError) as caught:
        read(model(nodes, [X, value("n", [], INT64)], "y"))
    assert "--trips again=N says how often, up to 4096" in (caught.value.hint or "")


def test_growing_loops_inside_each_other_are_refused_when_they_run_too_often() -> None:
    inner = loop([node("Concat", "s x", "o", axis=0)], "go o", [value("s", ["n", 3])])
    for _ in range(2):
        inner = loop([node("Loop", "n - s", "o", body=inner)], "go o", [value("s", ["n", 3])])
    with pytest.raises(ModelError, match="more than 8,192 operators"):
        read(model([node("Loop", "n - x", "y", body=inner)], [X], "y", initializers=[ints("n", 40)]))


def test_shape_that_a_loop_computes_is_known_after_it() -> None:
    inner = loop([node("Add", "s one", "o")], "go o", [value("s", [2], INT64)])
    nodes = [node("Shape", "x", "t"), node("Loop", "n - t", "u", body=inner), node("ConstantOfShape", "u", "y")]
    graph = read(model(nodes, [X], "y", initializers=[ints("n", 3), ints("one", 1)]))
    assert graph.tensors["y"].shape == (5, 6)
    assert len(graph.operators[1].subgraphs) == 1
    may_stop = loop([node("Add", "s one", "o"), node("Not", "c", "stop")], "stop o", [value("s", [2], INT64)])
    nodes[1] = node("Loop", "n yes t", "u", body=may_stop)
    with pytest.raises(ShapeError, match="stays unknown"):
        read(model(nodes, [X, C], "y", initializers=[ints("n", 3), ints("one", 1), YES]))


def test_number_of_the_trip_decides_a_size() -> None:
    nodes = [node("Unsqueeze", "i at", "i1"), node("Slice", "x zero i1", "part"), node("ReduceSum", "part", "o")]
    made = [node("Loop", "n -", "y", body=loop(nodes, "go o", []))]
    graph = read(model(made, [X], "y", initializers=[ints("n", 2), ints("at", [0]), ints("zero", [0])]))
    assert [sub.tensors["part"].shape for sub in graph.operators[0].subgraphs] == [(0, 3), (1, 3)]
    assert graph.assumptions == ()


def test_loop_whose_condition_can_be_computed_runs_exactly_so_often() -> None:
    counting = [node("Add", "s two", "o"), node("Less", "o end", "again"), node("Relu", "x", "row")]
    inner = loop(counting, "again o row", [value("s", [], INT64)])
    weights = [YES, ints("zero", 0), ints("two", 2), ints("end", 7)]
    made = node("Loop", "- yes zero", "last all", name="while", body=inner)
    graph = read(model([made], [X], "last all", initializers=weights))
    assert graph.operators[0].trips == Trips(count=4, basis=TripBasis.KNOWN)
    assert graph.tensors["all"].shape == (4, 2, 3)
    assert len(graph.operators[0].subgraphs) == 1
    assert graph.assumptions == ()
    limited = node("Loop", "n yes zero", "last all", name="while", body=inner)
    graph = read(model([limited], [X], "last all", initializers=[*weights, ints("n", 3)]))
    assert graph.operators[0].trips == Trips(count=3, basis=TripBasis.KNOWN)
    for_ever = [YES, ints("zero", 0), ints("two", -2), ints("end", 7)]
    graph = read(model([node("Loop", "- yes zero", "last", body=inner)], [X], "last", initializers=for_ever))
    assert graph.operators[0].trips == Trips(count=2, basis=TripBasis.ASSUMED)


def test_counting_loops_inside_each_other_are_counted_as_far_as_that_is_quick() -> None:
    def counting(*nodes: onnx.NodeProto) -> onnx.GraphProto:
        return loop(
            [*nodes, node("Add", "s one", "o"), node("Less", "o end", "again")], "again o", [value("s", [], INT64)]
        )

    inner = node("Loop", "- yes zero", "inner", body=counting())
    made = model([node("Loop", "- yes zero", "y", body=counting(inner))], [X], "y",
                 initializers=[YES, ints("zero", 0), ints("one", 1), ints("end", 5)])  # fmt: skip
    (outer,) = read(made).operators
    assert outer.trips == outer.subgraphs[0].operators[0].trips == Trips(count=5, basis=TripBasis.KNOWN)
    for _ in range(5):
        inner = node("Loop", "- yes zero", "inner", body=counting(inner))
    made = model([inner], [X], "inner", initializers=[YES, ints("zero", 0), ints("one", 1), ints("end", 50)])
    assert read(made).operators[0].trips == Trips(count=2, basis=TripBasis.ASSUMED)


def test_condition_that_depends_on_the_data_leaves_the_number_open() -> None:
    inner = loop([node("Add", "s s", "o"), node("Less", "o end", "again")], "again o", [value("s", [])])
    nodes = [node("Loop", "- yes x", "last", body=inner)]
    graph = read(model(nodes, [value("x", [])], "last", initializers=[YES, floats("end")]))
    assert graph.operators[0].trips == Trips(count=2, basis=TripBasis.ASSUMED)


def conditional() -> bytes:
    made = node("If", "c", "y", name="choose", then_branch=branch("Relu", "x"), else_branch=branch("Neg", "x"))
    return model([made], [value("c", [], BOOL), X], "y")


def test_branch_that_the_user_chooses_is_the_only_one() -> None:
    for chosen, op_type in (("then", "Relu"), ("else", "Neg")):
        (op,) = read(conditional(), branches={"choose": chosen}).operators
        assert [sub.operators[0].op_type for sub in op.subgraphs] == [op_type]
        assert op.subgraph_names == (f"{chosen}_branch",)


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ({"branches": {"chose": "then"}}, "no If is called 'chose'", "did you mean 'choose'? There are 'choose'"),
        ({"trips": {"choose": 3}}, "no Loop is called 'choose'", "the model runs no Loop"),
    ],
)
def test_name_that_no_operator_has_is_refused(said: dict[str, dict[str, object]], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        read(conditional(), **said)
    assert (error.value.message, error.value.hint) == (message, hint)


def test_constant_condition_is_not_overruled() -> None:
    made = node("If", "yes", "y", name="choose", then_branch=branch("Relu", "x"), else_branch=branch("Neg", "x"))
    data = model([made], [X], "y", initializers=[YES])
    assert len(read(data, branches={"choose": "then"}).operators[0].subgraphs) == 1
    with pytest.raises(UsageError, match="only its then branch runs"):
        read(data, branches={"choose": "else"})
