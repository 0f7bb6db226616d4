"""Sizes that exporters compute inside the graph, by partial evaluation of small integer tensors."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_builders import floats, ints, model, node, read, value

INT64 = onnx.TensorProto.INT64
FLOAT = onnx.TensorProto.FLOAT
X = value("x", ["N", 3, "H", "W"])
BOUND = {"N": 2, "H": 8, "W": 6}


def dim(axis: int, name: str) -> list[onnx.NodeProto]:
    """The size of one axis of x, as a list of one: Shape, Gather, Unsqueeze."""
    return [
        node("Constant", "", f"{name}_axis", value_int=axis),
        node("Constant", "", f"{name}_zero", value_ints=[0]),
        node("Shape", "x", f"{name}_shape"),
        node("Gather", f"{name}_shape {name}_axis", f"{name}_scalar", axis=0),
        node("Unsqueeze", f"{name}_scalar {name}_zero", name),
    ]


def shape(nodes: Sequence[onnx.NodeProto], *weights: onnx.TensorProto, name: str = "y", opset: int = 17,
          **dims: int) -> tuple[int, ...]:  # fmt: skip
    """Shape of a tensor of a model over x, all of its assumptions refused."""
    graph = read(model(nodes, [X], name, initializers=weights, opset=opset), dims={**BOUND, **dims})
    assert graph.assumptions == ()
    return graph.tensors[name].shape


def test_reshape_to_gathered_and_concatenated_sizes() -> None:
    nodes = [*dim(0, "n"), *dim(3, "w"), node("Concat", "n k w", "s", axis=0), node("Reshape", "x s", "y")]
    assert shape(nodes, ints("k", [-1])) == (2, 24, 6)
    assert shape(nodes, ints("k", [-1]), N=5, W=4) == (5, 24, 4)


def test_reshape_to_half_of_a_size() -> None:
    nodes = [*dim(2, "h"), node("Div", "h two", "half"), node("Cast", "half", "cast", to=INT64),
             node("Concat", "a cast b", "s", axis=0), node("Reshape", "x s", "y")]  # fmt: skip
    weights = [ints("two", [2]), ints("a", [0]), ints("b", [-1])]
    assert shape(nodes, *weights) == (2, 4, 36)


def test_range_over_a_size() -> None:
    nodes = [*dim(3, "w"), node("Squeeze", "w", "stop"), node("Range", "zero stop one", "y")]
    assert shape(nodes, ints("zero", 0), ints("one", 1)) == (6,)
    zero, half = (numpy_helper.from_array(np.array(v, np.float32), n) for v, n in ((0, "zero"), (0.5, "half")))
    nodes = [*dim(3, "w"), node("Squeeze", "w", "i"), node("Cast", "i", "stop", to=FLOAT)]
    assert shape([*nodes, node("Range", "zero stop half", "y")], zero, half) == (12,)


def test_slice_up_to_a_size() -> None:
    nodes = [*dim(3, "w"), node("Slice", "x zero w axis", "y")]
    assert shape(nodes, ints("zero", [1]), ints("axis", [2])) == (2, 3, 5, 6)
    backwards = [*dim(3, "w"), node("Neg", "w", "m"), node("Slice", "x start m axis step", "y")]
    assert shape(backwards, ints("start", [-1]), ints("axis", [2]), ints("step", [-2])) == (2, 3, 3, 6)


def test_where_chooses_a_size() -> None:
    """As PyTorch writes expand(-1, ...): where(size == -1, 1, size)."""
    nodes = [*dim(0, "n"), node("Concat", "n k", "s", axis=0), node("Equal", "s minus", "open"),
             node("Shape", "s", "rank"), node("ConstantOfShape", "rank", "ones", value=ints("", [1])),
             node("Where", "open ones s", "t"), node("Expand", "e t", "y")]  # fmt: skip
    assert shape(nodes, ints("k", [-1, 4]), ints("minus", [-1]), floats("e", 1, 7, 1)) == (2, 7, 4)


def test_constant_of_a_computed_shape() -> None:
    nodes = [*dim(0, "n"), *dim(2, "h"), node("Concat", "n h", "s", axis=0), node("ConstantOfShape", "s", "y")]
    assert shape(nodes) == (2, 8)


def test_resize_to_sizes_and_by_scales() -> None:
    nodes = [
        node("Shape", "x", "s"), node("Slice", "s zero two", "lead"), node("Slice", "s two four", "tail"),
        node("Mul", "tail two", "doubled"), node("Concat", "lead doubled", "sizes", axis=0),
        node("Resize", "x - - sizes", "y"),
    ]  # fmt: skip
    weights = [ints("zero", [0]), ints("two", [2]), ints("four", [4])]
    assert shape(nodes, *weights) == (2, 3, 16, 12)
    scales = [
        node("Shape", "x", "s"), node("Cast", "s", "f", to=FLOAT), node("Slice", "f two four", "tail"),
        node("Div", "want tail", "factors"), node("Concat", "ones factors", "scales", axis=0),
        node("Resize", "x - scales", "y"),
    ]  # fmt: skip
    want, ones = (numpy_helper.from_array(np.array(v, np.float32), n) for v, n in (([24, 3], "want"), ([1, 1], "ones")))
    assert shape(scales, want, ones, *weights[1:]) == (2, 3, 24, 3)


def test_pad_to_a_multiple() -> None:
    """Rows up to the next multiple of five, and as many columns as rows are missing to ten."""
    nodes = [*dim(2, "h"), node("Mod", "h five", "r"), node("Sub", "five r", "p"),
             node("Concat", "z z z z z z p z", "pads", axis=0), node("Pad", "x pads", "y")]  # fmt: skip
    assert shape(nodes, ints("five", [5]), ints("z", [0])) == (2, 3, 10, 6)


def test_top_of_a_computed_count() -> None:
    nodes = [*dim(3, "w"), node("Min", "w k", "m"), node("TopK", "x m", "y i", axis=3)]
    assert shape(nodes, ints("k", [4])) == (2, 3, 8, 4)
    assert shape(nodes, ints("k", [4]), W=3) == (2, 3, 8, 3)
    assert shape(nodes, ints("k", [400]), name="i") == (2, 3, 8, 6)


def test_split_in_computed_parts() -> None:
    nodes = [*dim(2, "h"), node("Sub", "h three", "rest"), node("Concat", "three rest", "parts", axis=0),
             node("Split", "x parts", "a b", axis=2)]  # fmt: skip
    assert shape(nodes, ints("three", [3]), name="a") == (2, 3, 3, 6)
    assert shape(nodes, ints("three", [3]), name="b") == (2, 3, 5, 6)


def test_tile_and_one_hot_of_computed_counts() -> None:
    nodes = [*dim(0, "n"), node("Concat", "one one n one", "r", axis=0), node("Tile", "x r", "y")]
    assert shape(nodes, ints("one", [1])) == (2, 3, 16, 6)
    nodes = [*dim(3, "w"), node("Squeeze", "w", "depth"), node("OneHot", "at depth two", "y")]
    two = numpy_helper.from_array(np.array([0, 1], np.float32), "two")
    assert shape(nodes, ints("at", [0, 1, 2]), two) == (3, 6)


def test_gather_and_scatter_into_a_shape() -> None:
    nodes = [node("Shape", "x", "s"), node("ScatterND", "s at new", "t"), node("Expand", "e t", "y")]
    assert shape(nodes, ints("at", [[1]]), ints("new", [9]), floats("e", 2, 1, 8, 6)) == (2, 9, 8, 6)
    nodes = [node("Shape", "x", "s"), node("Gather", "s at", "t"), node("ConstantOfShape", "t", "y")]
    assert shape(nodes, ints("at", [3, -4])) == (6, 2)


def test_slice_of_shape_by_attributes() -> None:
    nodes = [node("Shape", "x", "s", start=-2), node("ConstantOfShape", "s", "y")]
    assert shape(nodes) == (8, 6)


def test_size_and_reductions() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("ReduceProd", "s", "p", keepdims=1, axes=[0]),
        node("ConstantOfShape", "p", "y"),
    ]
    assert shape(nodes) == (2 * 3 * 8 * 6,)
    nodes = [node("Size", "x", "p"), node("Reshape", "p one", "q"), node("ConstantOfShape", "q", "y")]
    assert shape(nodes, ints("one", [1])) == (2 * 3 * 8 * 6,)


def test_arithmetic_inside_a_function() -> None:
    inner = helper.make_function(
        "local", "Flat", ["a"], ["b"],
        [node("Shape", "a", "s"), node("Gather", "s zero", "n"), node("Concat", "n minus", "t", axis=0),
         node("Reshape", "a t", "b")],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    inner.node.insert(0, node("Constant", "", "zero", value_ints=[0]))
    inner.node.insert(0, node("Constant", "", "minus", value_ints=[-1]))
    data = model([node("Flat", "x", "y", domain="local")], [X], "y", functions=[inner], domains={"local": 1})
    assert read(data, dims=BOUND).tensors["y"].shape == (2, 144)


@pytest.mark.parametrize("opset", [9, 11, 13, 17, 21])
def test_old_and_new_forms_of_unsqueeze_and_slice(opset: int) -> None:
    if opset < 13:
        one = [node("Unsqueeze", "g", "u", axes=[0])]
        cut = (
            [node("Slice", "s", "c", starts=[2], ends=[4], axes=[0])]
            if opset < 10
            else [node("Slice", "s two four", "c")]
        )
    else:
        one, cut = [node("Unsqueeze", "g zero", "u")], [node("Slice", "s two four", "c")]
    nodes = [node("Shape", "x", "s"), node("Gather", "s scalar", "g"), *one, *cut,
             node("Concat", "u minus c", "t", axis=0), node("Reshape", "x t", "y")]  # fmt: skip
    weights = [ints("scalar", 0), ints("zero", [0]), ints("two", [2]), ints("four", [4]), ints("minus", [-1])]
    assert shape(nodes, *weights, opset=opset) == (2, 3, 8, 6)
