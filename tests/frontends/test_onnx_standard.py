"""Standard operators sized by our own rules: pools rounded up, automatic padding, gaps of onnx's inference."""

import pytest
from onnx_builders import floats, ints, model, node, read, shape_of, value

from spillprof.ir.errors import ShapeError

INT64 = 7


def pooled(op_type: str, opset: int, space: list[int], **settings: object) -> tuple[int, ...]:
    data = model([node(op_type, "x", "y", **settings)], [value("x", [1, 3, *space])], "y", opset=opset)
    return shape_of(data, "y")[2:]


@pytest.mark.parametrize(
    ("op_type", "opset"),
    [("MaxPool", 10), ("MaxPool", 12), ("MaxPool", 22), ("AveragePool", 10), ("AveragePool", 19), ("LpPool", 18)],
)
def test_a_last_window_in_padding_alone_does_not_exist(op_type: str, opset: int) -> None:
    assert pooled(op_type, opset, [9, 9], kernel_shape=[1, 1], strides=[3, 3], ceil_mode=1) == (3, 3)
    # (5 + 1 + 1 - 2) / 3 rounds up to 2: windows begin at -1, 2 and 5, which is the padding behind
    assert pooled(op_type, opset, [5], kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1) == (2,)
    # one that begins on the image counts, however little of the image is in it
    assert pooled(op_type, opset, [6], kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1) == (3,)
    assert pooled(op_type, opset, [6], kernel_shape=[2], strides=[3], pads=[1, 1]) == (3,)
    assert pooled(op_type, opset, [2, 5], kernel_shape=[1, 2], strides=[2, 2], ceil_mode=1, auto_pad="SAME_UPPER") == (
        1,
        3,
    )


def test_both_outputs_of_a_pool_have_its_size() -> None:
    nodes = [node("MaxPool", "x", "y i", kernel_shape=[1], strides=[3], ceil_mode=1)]
    data = model(nodes, [value("x", [2, 3, 9])], "y i", opset=12)
    assert (shape_of(data, "y"), shape_of(data, "i")) == ((2, 3, 3), (2, 3, 3))


def test_a_window_larger_than_the_image_is_refused() -> None:
    with pytest.raises(ShapeError, match="negative size"):
        pooled("MaxPool", 12, [2], kernel_shape=[5], ceil_mode=1)


def test_a_window_larger_than_the_image_has_places_by_division_towards_zero() -> None:
    """As onnxruntime: (1 - 3) / 2 is -1, (1 - 2) / 3 is 0."""
    assert pooled("MaxPool", 22, [1], kernel_shape=[3], strides=[2], ceil_mode=1) == (0,)
    assert pooled("MaxPool", 22, [1], kernel_shape=[2], strides=[3]) == (1,)
    nhwc = node("NhwcMaxPool", "x", "y", domain="com.microsoft", kernel_shape=[2], strides=[3])
    assert shape_of(model([nhwc], [value("x", [1, 1, 2], 2)], "y", domains={"com.microsoft": 1}), "y") == (1, 1, 2)


def test_pools_of_vendors_are_rounded_alike() -> None:
    settings = {"kernel_shape": [1, 1], "strides": [3, 3], "ceil_mode": 1}
    nhwc = node("NhwcMaxPool", "x", "y", domain="com.microsoft", **settings)
    image = value("x", [1, 9, 9, 3], 2)
    assert shape_of(model([nhwc], [image], "y", domains={"com.microsoft": 1}), "y") == (1, 3, 3, 3)
    blocked = node("MaxPool", "x", "y", domain="com.microsoft.nchwc", **settings)
    data = model([blocked], [value("x", [1, 16, 9, 9])], "y", domains={"com.microsoft.nchwc": 1})
    assert shape_of(data, "y") == (1, 16, 3, 3)


def transposed(space: list[int], kernel: list[int], **settings: object) -> tuple[int, ...]:
    nodes = [node("ConvTranspose", "x w", "y", **settings)]
    data = model(nodes, [value("x", [1, 4, *space])], "y", initializers=[floats("w", 4, 3, *kernel)])
    return shape_of(data, "y")


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
def test_automatic_padding_fixes_the_size_of_a_transposed_convolution(padding: str) -> None:
    """As onnxruntime runs it: padding takes from what the kernel covers, and never adds."""
    assert transposed([7], [3], strides=[3], auto_pad=padding, output_padding=[2]) == (1, 3, 21)
    assert transposed([5], [1], strides=[3], auto_pad=padding) == (1, 3, 13)
    assert transposed([5], [1], strides=[3], auto_pad=padding, output_padding=[1]) == (1, 3, 14)
    assert transposed([7], [3], strides=[3], auto_pad=padding, group=2) == (1, 6, 21)


def test_output_padding_adds_to_stated_padding() -> None:
    assert transposed([7], [3], strides=[2], pads=[1, 1], output_padding=[1]) == (1, 3, 14)
    assert transposed([7], [3], strides=[3], auto_pad="VALID", output_padding=[2]) == (1, 3, 23)


def test_a_stated_output_may_be_smaller_than_the_input() -> None:
    assert transposed([7], [3], strides=[2], output_shape=[4]) == (1, 3, 4)
    assert transposed([7, 5], [3, 3], output_shape=[4, 9]) == (1, 3, 4, 9)


@pytest.mark.parametrize("opset", [9, 13, 18])
def test_mean_variance_normalization_keeps_the_shape(opset: int) -> None:
    nodes = [node("MeanVarianceNormalization", "x", "y", axes=[0, 2, 3])]
    assert shape_of(model(nodes, [value("x", [1, 8, 16, 16])], "y", opset=opset), "y") == (1, 8, 16, 16)


@pytest.mark.parametrize("opset", [11, 13])
def test_indices_of_all_axes_gather_a_scalar(opset: int) -> None:
    inputs = [value("x", [3, 4]), value("i", [2], INT64)]
    assert shape_of(model([node("GatherND", "x i", "y")], inputs, "y", opset=opset), "y") == ()


def test_a_stored_shape_sizes_an_unpooling() -> None:
    inputs = [value("x", [1, 1, 2, 2]), value("i", [1, 1, 2, 2], INT64)]
    nodes = [node("MaxUnpool", "x i s", "y", kernel_shape=[2, 2], strides=[2, 2])]
    data = model(nodes, inputs, "y", initializers=[ints("s", [1, 1, 5, 5])])
    assert shape_of(data, "y") == (1, 1, 5, 5)


@pytest.mark.parametrize("opset", [1, 7, 10])
def test_axes_counted_from_behind_and_in_any_order(opset: int) -> None:
    def sized(op_type: str, shape: list[int], axes: list[int]) -> tuple[int, ...]:
        return shape_of(model([node(op_type, "x", "y", axes=axes)], [value("x", shape)], "y", opset=opset), "y")

    assert sized("Squeeze", [1, 5, 1], [-1, 0]) == (5,)
    assert sized("Squeeze", [1, 5, 1], [2]) == (1, 5)
    assert sized("Squeeze", [1, 1, 2, 1], [1, 0]) == (2, 1)
    assert sized("Unsqueeze", [5, 4], [3, 0]) == (1, 5, 4, 1)
    assert sized("Unsqueeze", [5, 4], [-2]) == (5, 1, 4)
    assert sized("Unsqueeze", [5, 4], [0, -1]) == (1, 5, 4, 1)


def test_what_onnx_leaves_open_of_the_simplest_nodes() -> None:
    inputs = [value("x", []), value("a", [2, 3])]
    nodes = [
        node("Transpose", "x", "t"),
        node("Einsum", "x", "e", equation=""),
        node("Concat", "a a", "c", axis=-2),
        node("GroupNormalization", "m s s", "g", num_groups=2),
    ]
    assert shape_of(model(nodes[:1], inputs, "t"), "t") == ()
    assert shape_of(model(nodes[1:2], inputs, "e"), "e") == ()
    assert shape_of(model(nodes[2:3], inputs, "c", opset=4), "c") == (4, 3)
    groups = [value("m", [3, 6, 5]), value("s", [2])]
    assert shape_of(model(nodes[3:], groups, "g", opset=18), "g") == (3, 6, 5)  # withdrawn, and run all the same


def test_texts_that_may_be_left_out() -> None:
    strings = [value("x", [1, 3], 8)]
    kept = model([node("StringNormalizer", "x", "y", case_change_action="UPPER")], strings, "y", opset=10)
    assert shape_of(kept, "y") == (1, 3)
    fewer = model([node("StringNormalizer", "x", "y", stopwords=["a"])], strings, "y", opset=10)
    assert shape_of(fewer, "y") == (1, 3)
    assert any("its largest size is taken" in a.what for a in read(fewer).assumptions)
