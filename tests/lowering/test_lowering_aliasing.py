"""Views that share storage, and results written in place."""

import pytest
from graphs import MACHINE, buffer_named, graph, lowered, op, picture

from spillprof.ir.program import BufferKind
from spillprof.lowering.options import Views, WeightsPolicy

T = (2, 3, 4, 4)
STRIDED = MACHINE.with_overrides(strided_views=True)


@pytest.mark.parametrize("view", ["Reshape a n -> v", "Squeeze a -> v", "Unsqueeze a n -> v", "Flatten a -> v",
                                  "Identity a -> v", "Dropout a -> v", "Cast a -> v"])  # fmt: skip
def test_view_shares_the_buffer_and_takes_no_step(view):
    g = graph({"x": T}, ["Softmax x -> a", view, "Softmax v -> y"], "y", weights={"n": ("int64", (1,))},
              tensors={"a": T, "v": (96,), "y": (96,)})  # fmt: skip
    program = lowered(g)
    assert picture(program) == ["Softmax x -> a", "Softmax a -> y"]
    assert buffer_named(program, "v").tensors == ("a", "v")
    assert picture(lowered(g, views=Views.COPY))[1] == f"{view.split()[0]} a -> " + ("a=>v" if "Cast" in view else "v")


def test_chain_of_views_resolves_to_its_first_tensor():
    g = graph({"x": T}, ["Identity x -> a", "Flatten a -> b", "Identity b -> c", "Softmax c -> y"], "y",
              tensors={"a": T, "b": (2, 48), "c": (2, 48), "y": (2, 48)})  # fmt: skip
    program = lowered(g)
    assert picture(program) == ["Softmax x -> y"]
    assert program.buffers[0].tensors == ("x", "a", "b", "c")


def test_cast_to_another_type_is_a_step():
    g = graph({"x": T}, ["Cast x -> y"], "y", tensors={"y": ("float16", T)})
    assert picture(lowered(g)) == ["Cast x -> y"]


def test_dropout_with_a_mask_that_is_read_writes_the_mask_alone():
    tensors = {"a": T, "d": T, "m": ("bool", T), "y": T}
    ops = ["Softmax x -> a", "Dropout a -> d m", "Softmax d -> y"]
    assert picture(lowered(graph({"x": T}, ops, "y", tensors=tensors))) == ["Softmax x -> a", "Softmax a -> y"]
    program = lowered(graph({"x": T}, ops, "y m", tensors=tensors))
    assert picture(program) == ["Softmax x -> a", "Dropout -> m", "Softmax a -> y"]
    assert buffer_named(program, "a").tensors == ("a", "d")
    assert (buffer_named(program, "m").kind, buffer_named(program, "m").payload_bytes) == (BufferKind.OUTPUT, 96)
    assert program.steps[1].touched_bytes == 96
    copied = lowered(graph({"x": T}, ops, "y m", tensors=tensors), views=Views.COPY)
    assert picture(copied)[1] == "Dropout a -> d m"


def test_mask_of_a_dropout_alone_is_no_view():
    """Of the oldest versions: the mask has the type of the input."""
    g = graph({"x": T}, [op("Dropout x -> - m"), "Softmax m -> y"], "y", tensors={"m": T, "y": T})
    assert picture(lowered(g)) == ["Dropout x -> m", "Softmax m -> y"]


def test_dropout_that_is_told_whether_it_trains_is_a_step():
    g = graph({"x": T}, ["Dropout x r t -> y"], "y", weights={"r": (), "t": ("bool", ())}, tensors={"y": T})
    assert picture(lowered(g)) == ["Dropout x -> y"]


def test_view_that_is_an_output_makes_the_buffer_an_output():
    g = graph({"x": T}, ["Softmax x -> a", "Flatten a -> y"], "y", tensors={"a": T, "y": (2, 48)})
    program = lowered(g)
    assert picture(program) == ["Softmax x -> a"]
    assert buffer_named(program, "a").kind is BufferKind.OUTPUT


def test_view_of_an_input_or_a_weight_that_is_an_output_needs_nothing():
    g = graph(
        {"x": T}, ["Flatten x -> y", "Flatten w -> z"], "y z", weights={"w": T}, tensors={"y": (2, 48), "z": (2, 48)}
    )
    assert lowered(g).steps == ()
    assert lowered(g, fold=False).steps == ()


def test_unfolded_view_of_a_weight_is_that_weight():
    g = graph({"x": T}, ["Identity w -> v", "Add x v -> y"], "y", weights={"w": T}, tensors={"v": T, "y": T})
    program = lowered(g, fold=False)
    assert picture(program) == ["Add x -> x=>y"]
    assert program.steps[0].weight_stream_bytes == 384


def test_strided_views_share_only_on_a_target_that_reads_them():
    ops = ["Softmax x -> a", "Split a -> l r", "Transpose r -> t", "Concat l t -> y"]
    half = (2, 3, 2, 4)
    g = graph({"x": T}, ops, "y", tensors={"a": T, "l": half, "r": half, "t": half, "y": T})
    assert picture(lowered(g)) == ["Softmax x -> a", "Split a -> l r", "Transpose r -> t", "Concat l t -> y"]
    program = lowered(g, STRIDED)
    assert picture(program) == ["Softmax x -> a", "Concat a -> y"]
    assert program.buffers[1].tensors == ("a", "l", "r", "t")
    assert program.steps[1].touched_bytes == 384 + 384


def test_slice_view_touches_only_its_own_bytes():
    g = graph(
        {"x": (8,)},
        ["Softmax x -> a", "Slice a -> s", "Softmax s -> y"],
        "y",
        tensors={"a": (8,), "s": (2,), "y": (2,)},
    )
    assert lowered(g, STRIDED).steps[1].touched_bytes == 8 + 8


def test_elementwise_result_takes_over_the_operand_that_dies():
    g = graph({"x": T}, ["Softmax x -> a", "Relu a -> y"], "y", tensors={"a": T, "y": T})
    assert picture(lowered(g)) == ["Softmax x -> a", "Relu a -> a=>y"]
    assert picture(lowered(g, inplace=False)) == ["Softmax x -> a", "Relu a -> y"]


def test_operand_that_lives_on_is_not_overwritten_and_the_next_is():
    ops = ["Softmax x -> a", "Softmax x -> b", "Add a b -> c", "Concat a c -> y"]
    g = graph({"x": T}, ops, "y", tensors={"a": T, "b": T, "c": T, "y": (4, 3, 4, 4)})
    assert picture(lowered(g))[2] == "Add a b -> b=>c"


def test_view_still_to_be_read_protects_its_buffer():
    ops = ["Softmax x -> a", "Flatten a -> v", "Relu a -> b", "Concat v b -> y"]
    g = graph({"x": T}, ops, "y", tensors={"a": T, "v": (2, 48), "b": T, "y": (4, 48)})
    assert picture(lowered(g)) == ["Softmax x -> a", "Relu a -> b", "Concat a b -> y"]


def test_output_is_not_overwritten():
    g = graph({"x": T}, ["Softmax x -> a", "Relu a -> y"], "a y", tensors={"a": T, "y": T})
    assert picture(lowered(g))[1] == "Relu a -> y"


def test_cached_weight_is_not_overwritten():
    g = graph({"x": (1,)}, ["Add w x -> y"], "y", weights={"w": (4,)}, tensors={"y": (4,)})
    assert picture(lowered(g, weights=WeightsPolicy.CACHED)) == ["Add w x -> y"]


def test_pinned_buffer_is_not_overwritten():
    g = graph({"x": T}, ["Softmax x -> a", "Relu a -> y"], "y", tensors={"a": T, "y": T})
    assert picture(lowered(g, pin=("a",)))[1] == "Relu a -> y"
    assert picture(lowered(g, pin=("y",)))[1] == "Relu a -> y"


def test_broadcast_operand_is_not_overwritten_though_it_is_stored_as_large():
    """Aligned to 64 B both take 64 B, but s has one element and the result four."""
    g = graph({"x": (4,)}, ["ReduceSum x -> s", "Add s x -> y"], "y", tensors={"s": (1,), "y": (4,)})
    target = MACHINE.with_overrides(alignment_bytes=64)
    assert picture(lowered(g, target))[1] == "Add s x -> x=>y"


def test_cast_of_equal_width_is_in_place_and_of_another_is_not():
    g = graph({"x": T}, ["Softmax x -> a", "Cast a -> i", "Cast i -> y"], "y",
              tensors={"a": T, "i": ("int32", T), "y": ("int8", T)})  # fmt: skip
    assert picture(lowered(g)) == ["Softmax x -> a", "Cast a -> a=>i", "Cast i -> y"]


def test_square_may_overwrite_the_buffer_it_reads_twice():
    g = graph({"x": T}, ["Softmax x -> a", "Mul a a -> y"], "y", tensors={"a": T, "y": T})
    assert picture(lowered(g))[1] == "Mul a -> a=>y"


def test_operand_read_through_strides_is_not_overwritten():
    """Element i of the result would destroy element i of a before its transpose is read."""
    g = graph({"x": (4, 4)}, ["Softmax x -> a", "Transpose a -> t", "Add a t -> y"], "y",
              tensors={"a": (4, 4), "t": (4, 4), "y": (4, 4)})  # fmt: skip
    assert picture(lowered(g, STRIDED))[1] == "Add a -> y"


def test_convolution_is_not_in_place():
    g = graph({"x": T}, [op("Conv x w -> y", group=3)], "y", weights={"w": (3, 1, 1, 1)}, tensors={"y": T})
    assert picture(lowered(g)) == ["Conv x -> y"]


def test_empty_tensor_has_a_buffer_of_no_bytes_and_no_update():
    g = graph({"x": (0, 4)}, ["Relu x -> y"], "y", tensors={"y": (0, 4)})
    program = lowered(g)
    assert picture(program) == ["Relu x -> y"]
    assert {b.size_bytes for b in program.buffers} == {0}
