"""Sequences whose elements are known individually, and the operators that build, change and index them."""

import onnx
import pytest
from graphs import MACHINE
from onnx import helper
from onnx_builders import body, ints, model, node, read, value

from spillprof.ir.errors import ModelError, ShapeError
from spillprof.ir.graph import Graph, TripBasis, Trips
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions

T = onnx.TensorProto
X = value("x", [10, 4])
Z = value("z", [3, 4])
HELD = "a value of type sequence is counted as all that it holds, and copied where it changes"


def members(graph: Graph, name: str) -> list[tuple[int, ...]]:
    return [shape for _, shape in graph.tensors[name].elements]


def sequence_input(data: bytes, name: str, shape: list[int | str]) -> bytes:
    made = onnx.ModelProto.FromString(data)
    element = helper.make_tensor_type_proto(T.FLOAT, shape)
    made.graph.input.append(helper.make_value_info(name, helper.make_sequence_type_proto(element)))
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("split", "settings", "expected"),
    [
        ([2, 3, 5], {}, [(2, 4), (3, 4), (5, 4)]),
        (4, {}, [(4, 4), (4, 4), (2, 4)]),
        (None, {"axis": -1, "keepdims": 0}, [(10,)] * 4),
        (None, {"axis": 1}, [(10, 1)] * 4),
        ([1, 3], {"axis": 1}, [(10, 1), (10, 3)]),
    ],
)  # fmt: skip
def test_split_tells_its_parts_apart(
    split: list[int] | int | None, settings: dict[str, int], expected: list[tuple[int, ...]]
) -> None:
    inputs = "x" if split is None else "x s"
    nodes = [node("SplitToSequence", inputs, "q", **settings), node("SequenceAt", "q i", "y")]
    weights = [ints("i", -1)] + ([] if split is None else [ints("s", split)])
    graph = read(model(nodes, [X], "y", initializers=weights))
    assert members(graph, "q") == expected
    assert graph.tensors["q"].nbytes == 160
    assert graph.tensors["y"].shape == expected[-1]
    assert [(a.what, a.count) for a in graph.assumptions] == [(HELD, 1)]


def test_inserted_erased_and_joined() -> None:
    nodes = [
        node("SequenceEmpty", "", "none"), node("SequenceInsert", "none x", "one"),
        node("SequenceInsert", "one z i", "two"), node("Identity", "two", "same"),
        node("ConcatFromSequence", "same", "y", axis=0), node("SequenceErase", "same", "rest"),
        node("ConcatFromSequence", "rest", "w", axis=-3, new_axis=1), node("SequenceLength", "rest", "n"),
    ]  # fmt: skip
    graph = read(model(nodes, [X, Z], "y w n", initializers=[ints("i", 0)]))
    assert [members(graph, name) for name in ("none", "one", "two")] == [[], [(10, 4)], [(3, 4), (10, 4)]]
    assert graph.tensors["y"].shape == (13, 4)
    assert members(graph, "rest") == [(3, 4)]
    assert graph.tensors["w"].shape == (1, 3, 4)


def test_position_that_only_the_run_knows_gives_the_largest() -> None:
    at = value("at", [], T.INT64)
    nodes = [node("SequenceConstruct", "x z", "q"), node("SequenceAt", "q at", "y")]
    graph = read(model(nodes, [X, Z, at], "y"))
    assert graph.tensors["y"].shape == (10, 4)
    assert "an element of a sequence depends on the data: its largest size is taken" in {
        a.what for a in graph.assumptions
    }
    alike = read(model([node("SequenceConstruct", "x x", "q"), node("SequenceAt", "q at", "y")], [X, at], "y"))
    assert [a.what for a in alike.assumptions] == [HELD]


def test_shape_that_passes_through_a_sequence() -> None:
    nodes = [
        node("Shape", "x", "s"), node("SplitToSequence", "s", "q", axis=0, keepdims=0),
        node("SequenceAt", "q one", "w"), node("SequenceConstruct", "w w", "r"),
        node("ConcatFromSequence", "r", "t", axis=0, new_axis=1),
        node("ConstantOfShape", "t", "y"),
    ]  # fmt: skip
    assert read(model(nodes, [X], "y", initializers=[ints("one", 1)])).tensors["y"].shape == (4, 4)


def collecting(trips: str) -> list[onnx.NodeProto]:
    inner = body(
        [node("SequenceInsert", "q x", "more")],
        "go more",
        [value("i", [], T.INT64), value("go", [], T.BOOL), helper.make_tensor_sequence_value_info("q", T.FLOAT, None)],
    )
    return [node("SequenceEmpty", "", "none"), node("Loop", f"{trips} - none", "all", name="again", body=inner)]


def test_loop_that_collects_is_followed_trip_by_trip() -> None:
    joined = node("ConcatFromSequence", "all", "y", axis=0)
    graph = read(model([*collecting("n"), joined], [X], "y", initializers=[ints("n", 3)]))
    assert members(graph, "all") == [(10, 4)] * 3
    assert graph.tensors["y"].shape == (30, 4)


def test_loop_that_collects_for_unknown_time_knows_what_one_member_is() -> None:
    data = model([*collecting("n"), node("SequenceAt", "all zero", "y")], [X, value("n", [], T.INT64)], "y",
                 initializers=[ints("zero", 0)])  # fmt: skip
    graph = read(data)
    assert graph.tensors["y"].shape == (10, 4)
    assert graph.tensors["all"].nbytes == 0
    assert "a value of type sequence is counted as 0 bytes" in {a.what for a in graph.assumptions}
    assert members(read(data, trips={"again": 2}), "all") == [(10, 4)] * 2


def mapped(inputs: str, formal: list[onnx.ValueInfoProto]) -> onnx.NodeProto:
    inner = helper.make_graph([node("Add", "a b", "c")], "m", formal, [value("c", None)])
    return node("SequenceMap", inputs, "out", name="each", body=inner)


def test_map_runs_its_body_for_each_element() -> None:
    nodes = [node("SplitToSequence", "x s", "q"), mapped("q z", [value("a", None), value("b", None)])]
    graph = read(model(nodes, [X, value("z", [1, 4])], "out", initializers=[ints("s", [2, 3, 5])]))
    assert members(graph, "out") == [(2, 4), (3, 4), (5, 4)]
    loop = next(op for op in graph.operators if op.op_type == "Loop")
    assert loop.trips == Trips(count=3, basis=TripBasis.KNOWN)
    adds = [step for step in lower(graph, MACHINE, LoweringOptions()).steps if step.op_type == "Add"]
    assert [step.touched_bytes for step in adds] == [80, 112, 176]


def test_map_over_a_sequence_of_unknown_length_needs_its_elements_alone() -> None:
    data = model([mapped("q z", [value("a", None), value("b", None)])], [Z], "out")
    graph = read(sequence_input(data, "q", [3, 4]))
    assert any(op.op_type == "Loop" and op.trips and op.trips.basis is TripBasis.ASSUMED for op in graph.operators)
    with pytest.raises(ShapeError) as caught:
        read(sequence_input(data, "q", ["N", 4]))
    assert "--assume a=1x4" in (caught.value.hint or "")
    assert read(sequence_input(data, "q", ["N", 4]), assume={"a": (3, 4)}).outputs == ("out",)
    assert members(read(sequence_input(data, "q", [3, 4]), trips={"each": 2}), "out") == [(3, 4)] * 2


def test_map_whose_body_does_not_match_is_refused() -> None:
    twice = mapped("q z", [value("a", None), value("b", None)])
    twice.attribute.append(onnx.AttributeProto(name="more", type=onnx.AttributeProto.GRAPH, g=twice.attribute[0].g))
    with pytest.raises(ModelError, match="does not match"):
        read(sequence_input(model([twice], [Z], "out"), "q", [3, 4]))
    with pytest.raises(ModelError, match="does not match"):
        read(sequence_input(model([mapped("q", [value("a", None), value("b", None)])], [], "out"), "q", [3, 4]))


def test_branches_that_give_different_sequences_count_the_larger() -> None:
    branches = {
        f"{role}_branch": body([node("SequenceConstruct", names, f"q{role}")], f"q{role}")
        for role, names in (("then", "x x"), ("else", "z"))
    }
    graph = read(model([node("If", "c", "y", **branches)], [X, Z, value("c", [], T.BOOL)], "y"))
    assert graph.tensors["y"].nbytes == 320
    assert any("the larger is taken" in a.what for a in graph.assumptions)


@pytest.mark.parametrize("op_type", ["Shape", "Size", "Identity", "SequenceConstruct", "SplitToSequence"])
def test_operator_without_outputs_gives_nothing_and_one_with_too_many_is_refused(op_type: str) -> None:
    rest = node("Relu", "x", "y")
    assert read(model([node(op_type, "x", ""), rest], [X], "y")).tensors["y"].shape == (10, 4)
    with pytest.raises(ShapeError, match="output"):
        read(model([node(op_type, "x", "a b"), rest], [X], "y"))


def test_long_sequence_is_known_by_its_type_alone() -> None:
    nodes = [node("SplitToSequence", "x", "q"), node("SequenceAt", "q i", "y")]
    graph = read(model(nodes, [value("x", [1 << 40, 4])], "y", initializers=[ints("i", 0)]))
    assert graph.tensors["q"].nbytes == 0
    assert graph.tensors["y"].shape == (1, 4)


def test_elements_are_deployed_in_narrower_types() -> None:
    nodes = [node("SequenceConstruct", "x z", "q"), node("ConcatFromSequence", "q", "y", axis=0)]
    graph = read(model(nodes, [X, Z], "y"))
    program = lower(graph, MACHINE, LoweringOptions(act_dtype="float16"))
    assert {b.payload_bytes for b in program.buffers} == {80, 24, 104}
