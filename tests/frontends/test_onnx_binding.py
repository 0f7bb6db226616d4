"""Symbols, unnamed axes, whole shapes and batch: how inputs get their sizes."""

import pytest
from onnx_builders import floats, model, node, read, shape_of, value

from spillprof.frontends.onnx.binding import plausible_size
from spillprof.ir.errors import ShapeError, SpillprofError, UsageError

TWO = model(
    [node("Relu", "a", "p"), node("Relu", "b", "q")], [value("a", ["N", 3]), value("b", ["N", None, "W"])], "p q"
)


def test_symbol_binds_wherever_it_stands() -> None:
    graph = read(TWO, dims={"N": 2, "b[1]": 5, "W": 7})
    assert graph.tensors["a"].shape == (2, 3)
    assert graph.tensors["q"].shape == (2, 5, 7)
    assert graph.dims == {"N": 2, "b[1]": 5, "W": 7}


def test_position_binds_a_named_axis_too() -> None:
    assert shape_of(TWO, "p", dims={"a[0]": 4, "b[1]": 1, "W": 1}) == (4, 3)


def test_whole_shape_binds_its_symbols_for_other_inputs() -> None:
    assert shape_of(TWO, "a", shapes={"b": (6, 1, 1)}) == (6, 3)


def test_batch_binds_the_open_first_axes() -> None:
    data = model([node("Relu", "a", "p")], [value("a", [None, 3]), value("b", ["N"]), value("c", [8])], "p b c")
    graph = read(data, batch=2)
    assert [graph.tensors[n].shape for n in "abc"] == [(2, 3), (2,), (8,)]


def test_bindings_of_one_size_agree() -> None:
    graph = read(TWO, dims={"N": 2, "a[0]": 2, "b[1]": 5}, shapes={"b": (2, 5, 7)}, batch=2)
    assert graph.tensors["q"].shape == (2, 5, 7)


def test_shape_gives_a_rank_where_none_is_declared() -> None:
    data = model([node("Relu", "a", "p")], [value("a", None)], "p")
    assert shape_of(data, "p", shapes={"a": (2, 2)}) == (2, 2)
    with pytest.raises(ShapeError) as caught:
        read(data)
    assert "--shape a=" in str(caught.value.hint)


def test_zero_is_a_size() -> None:
    assert shape_of(TWO, "q", dims={"N": 0, "b[1]": 0, "W": 1}) == (0, 0, 1)


def test_gaps_are_listed_with_the_options_that_close_them() -> None:
    with pytest.raises(ShapeError) as caught:
        read(TWO, dims={"W": 1})
    assert caught.value.where[1:] == ("a: [N, 3]", "b: [N, ?, W]")
    assert caught.value.hint == 'bind it: --dim N=1 --dim "b[1]=128"'


def test_odd_symbols_and_old_style_minus_one() -> None:
    data = model([node("Relu", "a", "p")], [value("a", ["?", "h*2 + 1", -1])], "p")
    assert shape_of(data, "p", dims={"?": 2, "h*2 + 1": 3, "a[2]": 4}) == (2, 3, 4)


def test_weight_listed_as_input_needs_no_binding() -> None:
    inputs = [value("x", [2]), value("w", ["huh"])]
    data = model([node("Add", "x w", "y")], inputs, "y", initializers=[floats("w", 2)])
    graph = read(data)
    assert graph.inputs == ("x",)
    assert graph.tensors["w"].kind == "weight"


@pytest.mark.parametrize(
    ("bindings", "error", "says"),
    [
        ({"dims": {"M": 1}}, UsageError, "no input has a dimension 'M'"),
        ({"dims": {"c[0]": 1}}, UsageError, "no input has a dimension 'c[0]'"),
        ({"dims": {"a[2]": 1}}, UsageError, "has 2 dimensions"),
        ({"dims": {"a[1]": 4}}, ShapeError, "fixed at 3"),
        ({"dims": {"N": -1}}, UsageError, "negative"),
        ({"dims": {"N": 1, "a[0]": 2}}, ShapeError, "bound to both 1 and 2"),
        ({"dims": {"N": 1}, "batch": 2}, ShapeError, "bound to both 1 and 2"),
        ({"dims": {"N": 1}, "shapes": {"a": (2, 3)}}, ShapeError, "bound to both 2 and 1"),
        ({"shapes": {"a": (2, 3)}, "batch": 3}, ShapeError, "bound to both 2 and 3"),
        ({"shapes": {"a": (2, 3), "b": (4, 1, 1)}}, ShapeError, "bound to both 2 and 4"),
        ({"shapes": {"z": (1,)}}, UsageError, "no input 'z'"),
        ({"shapes": {"a": (1, 2, 3)}}, ShapeError, "has 2 dimensions, not 3"),
        ({"shapes": {"a": (1, 4)}}, ShapeError, "fixed at 3"),
        ({"shapes": {"b": (2**40, 2**40, 1)}}, SpillprofError, "more elements than any memory"),
    ],
)
def test_binding_that_does_not_fit(bindings: dict[str, object], error: type[SpillprofError], says: str) -> None:
    with pytest.raises(error) as caught:
        read(TWO, **bindings)
    assert says in caught.value.message


def test_misspelt_symbol_gets_the_nearest() -> None:
    data = model([node("Relu", "a", "p")], [value("a", ["batch_size", "sequence"])], "p")
    with pytest.raises(UsageError) as caught:
        read(data, dims={"batchsize": 1})
    assert caught.value.hint == "there is 'batch_size'"


def test_batch_without_an_open_axis() -> None:
    data = model([node("Relu", "a", "p")], [value("a", [8])], "p")
    assert shape_of(data, "p", batch=8) == (8,)
    with pytest.raises(UsageError, match="binds nothing"):
        read(data, batch=2)


@pytest.mark.parametrize(
    ("symbol", "axis", "rank", "size"),
    [
        ("batch", 0, 2, 1),
        ("batch_size", 1, 3, 1),
        ("N", 0, 4, 1),
        ("seq", 1, 2, 128),
        ("sequence_length", 1, 2, 128),
        ("past_sequence", 2, 4, 128),
        ("maxTokens", 1, 2, 128),
        ("image_height", 2, 4, 224),
        ("W", 3, 4, 224),
        ("channels", 1, 4, 3),
        ("s12", 0, 2, 1),
        ("s12", 1, 2, 128),
        ("", 0, 4, 1),
        ("", 1, 4, 3),
        ("", 3, 4, 224),
        ("", 1, 2, 128),
        ("", 4, 6, 1),
    ],
)
def test_sizes_to_propose(symbol: str, axis: int, rank: int, size: int) -> None:
    assert plausible_size(symbol, axis, rank) == size
