"""Shapes given by ``--assume``."""

import onnx
import pytest
from onnx_builders import body, floats, ints, model, node, read, shape_of, value

from spillprof.ir.errors import ShapeError, UsageError

INT64 = onnx.TensorProto.INT64
BOOL = onnx.TensorProto.BOOL

BOXES = model([node("NonZero", "x", "at"), node("Transpose", "at", "y")], [value("x", [3, 4])], "y")
VENDOR = model(
    [node("Frob", "x", "t", domain="vendor"), node("Relu", "t", "y")], [value("x", [2, 2])], "y", domains={"vendor": 1}
)


def assumed(data: bytes, **shapes: tuple[int, ...]) -> list[tuple[str, int]]:
    return [(a.what, a.count) for a in read(data, assume=shapes).assumptions]


def test_bound_of_a_data_dependent_tensor_is_replaced() -> None:
    assert shape_of(BOXES, "y") == (12, 2)
    assert shape_of(BOXES, "y", assume={"at": (2, 5)}) == (5, 2)
    assert assumed(BOXES, at=(2, 5)) == [("the shape of 'at' is 2x5, as given by --assume", 1)]


def test_tensor_that_nobody_can_size_is_sized() -> None:
    data = model([node("Reshape", "x s", "y")], [value("x", [4, 6]), value("s", [2], INT64)], "y")
    with pytest.raises(ShapeError) as caught:
        read(data)
    assert "--assume y=1x1" in (caught.value.hint or "")
    assert shape_of(data, "y", assume={"y": (8, 3)}) == (8, 3)


def test_operator_that_nobody_defines_takes_the_type_of_its_input() -> None:
    with pytest.raises(ShapeError) as caught:
        read(VENDOR)
    assert "give it: --assume t=1x3x224x224" in (caught.value.hint or "")
    assert shape_of(VENDOR, "y", assume={"t": (7,)}) == (7,)
    assert assumed(VENDOR, t=(7,)) == [
        ("the shape of 't' is 7, as given by --assume", 1),
        ("the elements of 't' have the type of its operator's first input, float32", 1),
    ]


def test_type_in_the_file_comes_before_that_of_an_input() -> None:
    info = [value("t", None, INT64)]
    nodes = [node("Frob", "x", "t", domain="vendor"), node("Cast", "t", "y", to=1)]
    data = model(nodes, [value("x", [2, 2])], "y", value_info=info, domains={"vendor": 1})
    assert read(data, assume={"t": (7,)}).tensors["t"].dtype == "int64"


def test_what_the_user_gives_comes_before_what_the_file_claims() -> None:
    nodes = [node("Frob", "x", "t", domain="vendor"), node("Relu", "t", "y")]
    data = model(nodes, [value("x", [2, 2])], "y", value_info=[value("t", [9, 9])], domains={"vendor": 1})
    assert shape_of(data, "y") == (9, 9)
    assert shape_of(data, "y", assume={"t": (3, 3)}) == (3, 3)
    assert "'t' is float32[3, 3], not float32[9, 9]" in read(data, assume={"t": (3, 3)}).notes[0]


@pytest.mark.parametrize(
    ("data", "shapes", "says"),
    [
        (BOXES, {"at": (3, 5)}, "its shape is [2, ?]"),  # one row a dimension of the input
        (BOXES, {"at": (5,)}, "it has 2 dimensions"),
        (BOXES, {"at": (2, 13)}, "it is at most [2, 12]"),
        (model([node("Relu", "x", "y")], [value("x", [4])], "y"), {"y": (5,)}, "its shape is [4]"),
        (model([node("SequenceConstruct", "x", "y")], [value("x", [4])], "y"), {"y": ()}, "it is a sequence"),
    ],
)
def test_contradiction_of_what_is_proven_is_refused(data: bytes, shapes: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match="contradicts the model") as caught:
        read(data, assume=shapes)
    assert says in caught.value.where[0]


def test_shape_that_was_not_needed_is_noted() -> None:
    data = model([node("Relu", "x", "y")], [value("x", [4])], "y")
    assert read(data, assume={"y": (4,)}).notes == ("--assume is not needed: the shape follows from the model: 'y'",)
    assert assumed(data, y=(4,)) == []


@pytest.mark.parametrize(
    ("name", "says", "hint"),
    [
        ("aat", "the model has no tensor 'aat'", "there is 'at'"),
        ("x", "'x' is an input of the model", "--shape x=7"),
        ("w", "'w' is a weight", "drop it"),
    ],
)
def test_name_that_no_operator_writes_is_refused(name: str, says: str, hint: str) -> None:
    data = model([node("NonZero", "x", "at"), node("Add", "x w", "y")], [value("x", [3])], "at y",
                 initializers=[floats("w", 3)])  # fmt: skip
    with pytest.raises(UsageError) as caught:
        read(data, assume={name: (7,)})
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")


def test_tensor_in_a_branch_is_sized() -> None:
    branch = body([node("NonZero", "x", "t"), node("Transpose", "t", "r")], "r")
    data = model([node("If", "c", "y", then_branch=branch, else_branch=branch)],
                 [value("c", [], BOOL), value("x", [6])], "y")  # fmt: skip
    assert shape_of(data, "y") == (6, 1)
    assert shape_of(data, "y", assume={"t": (1, 4)}) == (4, 1)
    assert assumed(data, t=(1, 4)) == [("the shape of 't' is 1x4, as given by --assume", 2)]
    with pytest.raises(UsageError, match="contradicts"):  # not taken for a branch that does not fit
        read(data, assume={"t": (3, 4)})


def test_tensor_in_a_branch_that_does_not_run_is_noted() -> None:
    taken, other = (
        body([node("Relu", "x", "t")], "t"),
        body([node("NonZero", "x", "n"), node("Cast", "n", "e", to=1)], "e"),
    )
    data = model([node("If", "c", "y", then_branch=taken, else_branch=other)], [value("x", [6])], "y",
                 initializers=[onnx.helper.make_tensor("c", BOOL, [], [True])])  # fmt: skip
    assert read(data, assume={"n": (1, 4)}).notes[-1] == (
        "--assume is not needed: the tensor is in a branch that does not run: 'n'"
    )


def test_tensor_in_a_function_is_named_after_its_call() -> None:
    inner = onnx.helper.make_function(
        "local", "F", ["a"], ["b"], [node("NonZero", "a", "t"), node("Transpose", "t", "b")],
        [onnx.helper.make_opsetid("", 17)],
    )  # fmt: skip
    call = onnx.helper.make_node("F", ["x"], ["y"], name="call", domain="local")
    data = model([call], [value("x", [6])], "y", functions=[inner], domains={"local": 1})
    assert shape_of(data, "y", assume={"call/t": (1, 2)}) == (2, 1)


def test_stacked_output_of_a_loop_gets_its_trips() -> None:
    loop = body(
        [node("Identity", "cond", "go"), node("Relu", "x", "s")], "go s",
        [value("i", [], INT64), value("cond", [], BOOL)],
    )  # fmt: skip
    data = model([node("Loop", "n -", "y", body=loop)], [value("n", [], INT64), value("x", [4])], "y")
    with pytest.raises(ShapeError) as caught:
        read(data)
    assert "--assume y=1x4" in (caught.value.hint or "")
    assert shape_of(data, "y", assume={"y": (10, 4)}) == (10, 4)
    with pytest.raises(UsageError, match="contradicts"):
        read(data, assume={"y": (10, 5)})


def test_shape_computed_from_an_assumed_one_is_exact() -> None:
    nodes = [node("NonZero", "x", "at"), node("Shape", "at", "s"), node("ConstantOfShape", "s", "y")]
    data = model(nodes, [value("x", [3, 4])], "y")
    assert shape_of(data, "y", assume={"at": (2, 5)}) == (2, 5)
    reshaped = model(
        [nodes[0], node("Reshape", "at k", "y")], [value("x", [3, 4])], "y", initializers=[ints("k", [3, 4])]
    )
    with pytest.raises(ShapeError, match="cannot become"):  # 10 elements are a fact now
        read(reshaped, assume={"at": (2, 5)})
