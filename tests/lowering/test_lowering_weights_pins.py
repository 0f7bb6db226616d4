"""Weight policies, and tensors with a dedicated slot."""

import pytest
from graphs import buffer_named, graph, lowered, op, picture

from spillprof.ir.errors import UsageError
from spillprof.ir.program import BufferKind
from spillprof.lowering.options import WeightsPolicy

G = graph(
    {"x": (2, 4)}, ["MatMul x w -> a", "Softmax a -> b", "MatMul b w -> c", "Flatten c -> f", "Add f v -> y"], "y",
    weights={"w": (4, 4), "v": (4,)}, tensors=dict.fromkeys("abcfy", (2, 4)),
)  # fmt: skip


def test_streamed_weights_are_no_buffers_and_count_once_a_step():
    program = lowered(G)
    assert picture(program) == ["MatMul x -> a", "Softmax a -> b", "MatMul b -> y"]
    assert [s.weight_stream_bytes for s in program.steps] == [64, 0, 64 + 16]
    assert program.weight_bytes == 64 + 16
    assert not program.weights_persist


def test_weight_read_twice_by_a_step_streams_once():
    g = graph({"x": (4,)}, ["Gemm x w w -> y"], "y", weights={"w": (4,)}, tensors={"y": (4,)})
    assert lowered(g).steps[0].weight_stream_bytes == 16


def test_cached_weights_are_buffers_that_persist():
    program = lowered(G, weights=WeightsPolicy.CACHED)
    assert picture(program) == ["MatMul x w -> a", "Softmax a -> b", "MatMul b w v -> y"]
    assert [s.weight_stream_bytes for s in program.steps] == [0, 0, 0]
    assert buffer_named(program, "w").kind is BufferKind.WEIGHT
    assert program.weights_persist


def test_resident_weights_are_neither_streamed_nor_read():
    program = lowered(G, weights=WeightsPolicy.RESIDENT)
    assert picture(program) == ["MatMul x -> a", "Softmax a -> b", "MatMul b -> y"]
    assert [s.weight_stream_bytes for s in program.steps] == [0, 0, 0]
    assert program.weight_bytes == 80


def test_touched_bytes_are_the_payload_of_operands_and_weights_under_every_policy():
    for policy in WeightsPolicy:
        assert [s.touched_bytes for s in lowered(G, weights=policy).steps] == [128, 64, 144]


def test_only_weights_that_steps_read_count():
    g = graph({"x": (4,)}, ["Softmax x -> y"], "y", weights={"unused": (100,)}, tensors={"y": (4,)})
    assert lowered(g).weight_bytes == 0


def test_unread_input_has_no_buffer():
    g = graph({"x": (4,), "unread": (9,)}, ["Softmax x -> y"], "y", tensors={"y": (4,)})
    assert [b.name for b in lowered(g).buffers] == ["x", "y"]


def test_input_and_output_kinds():
    g = graph({"x": (4,)}, ["Softmax x -> a", "Softmax a -> y"], "y y", tensors={"a": (4,), "y": (4,)})
    assert [(b.name, str(b.kind)) for b in lowered(g).buffers] == [("x", "input"), ("a", "activation"), ("y", "output")]


def test_pin_dedicates_the_buffer_of_a_tensor_or_of_its_view():
    assert buffer_named(lowered(G, pin=("b",)), "b").dedicated
    g = graph({"x": (4,)}, ["Softmax x -> a", "Identity a -> v", "Softmax v -> y"], "y",
              tensors=dict.fromkeys("avy", (4,)))  # fmt: skip
    program = lowered(g, pin=("v",))
    assert [b.name for b in program.buffers if b.dedicated] == ["a"]


def test_pin_of_an_unknown_tensor_names_the_nearest():
    g = graph({"feature_3": (4,)}, ["Softmax feature_3 -> y"], "y", tensors={"y": (4,)})
    with pytest.raises(UsageError, match="no such tensor") as error:
        lowered(g, pin=("feature3",))
    assert error.value.hint == "did you mean feature_3?"


def test_pin_of_a_fused_tensor_says_that_it_is_never_stored():
    with pytest.raises(UsageError, match="'c': it is never stored"):
        lowered(graph({"x": (1, 1, 4, 4)}, ["Conv x w -> c", "Relu c -> y"], "y", weights={"w": (1, 1, 1, 1)},
                      tensors={"c": (1, 1, 4, 4), "y": (1, 1, 4, 4)}), pin=("c",))  # fmt: skip


def test_weight_can_be_pinned_only_where_it_is_cached():
    for policy in (WeightsPolicy.STREAM, WeightsPolicy.RESIDENT):
        with pytest.raises(UsageError, match="cannot pin weight 'w'"):
            lowered(G, weights=policy, pin=("w",))
    assert buffer_named(lowered(G, weights=WeightsPolicy.CACHED, pin=("w",)), "w").dedicated


def test_trees_and_coefficients_in_attributes_are_weights():
    """4 whole numbers of 8 B and 3 others of 4 B; the text is none."""
    regressor = op(
        "TreeEnsembleRegressor x -> y", domain="ai.onnx.ml",
        nodes_nodeids=(0, 1, 2, 3), nodes_values=(0.5, 0.25, 1.0), post_transform="NONE", n_targets=1,
    )  # fmt: skip
    g = graph({"x": (2, 3)}, [regressor], "y", tensors={"y": (2, 1)})
    for policy, streamed in ((WeightsPolicy.STREAM, 44), (WeightsPolicy.CACHED, 0)):
        program = lowered(g, weights=policy)
        assert (program.weight_bytes, program.steps[0].weight_stream_bytes) == (44, streamed)
        assert program.steps[0].touched_bytes == 24 + 44 + 8
    assert "parameters in attributes" in program.assumptions[-1].what
