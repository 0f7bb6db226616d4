"""Operators that read a part of an operand touch and stream only that part."""

import pytest
from graphs import graph, lowered, op, picture

from spillprof.lowering.options import WeightsPolicy

IDS = {"i": ("int64", (3,))}


def table_lookup(operator, table, looked_up, *, inputs=None, weights=None):
    """A program of one operator that looks into the weight ``t``."""
    return graph(inputs or IDS, [operator], "y", weights={"t": table, **(weights or {})}, tensors={"y": looked_up})


@pytest.mark.parametrize(
    ("spec", "table", "looked_up"),
    [
        ("Gather t i -> y", (100, 4), (3, 4)),
        ("GatherElements t i -> y", (12, 5), (3, 4)),
        ("GatherND t i -> y", (100, 12), (12,)),
        ("Slice t i i -> y", (100, 4), (3, 4)),
        ("ArrayFeatureExtractor t i -> y", (4, 100), (4, 3)),
    ],
)
def test_three_rows_of_a_table_are_48_bytes(spec, table, looked_up):
    domain = "ai.onnx.ml" if spec.startswith("Array") else ""
    (step,) = lowered(table_lookup(op(spec, domain=domain), table, looked_up)).steps
    assert step.weight_stream_bytes == 48
    assert step.touched_bytes == 48 + 24 + 48  # rows, three int64 indices, result


def test_more_rows_than_the_table_has_are_the_table():
    """12 rows of 16 B out of a table of 2: its 32 B go on-chip once."""
    g = table_lookup("Gather t i -> y", (2, 4), (12, 4), inputs={"i": ("int64", (12,))})
    assert lowered(g).steps[0].weight_stream_bytes == 32
    assert lowered(g).steps[0].touched_bytes == 32 + 96 + 192
    cached = lowered(g, weights=WeightsPolicy.CACHED)
    assert picture(cached) == ["Gather t i -> y"]


def test_rows_of_a_cached_table_pass_through_and_take_no_buffer():
    cached = lowered(table_lookup("Gather t i -> y", (100, 4), (3, 4)), weights=WeightsPolicy.CACHED)
    assert picture(cached) == ["Gather i -> y"]
    assert cached.steps[0].weight_stream_bytes == 48
    assert cached.weight_bytes == 1600


def test_rows_of_a_resident_table_are_there_already():
    resident = lowered(table_lookup("Gather t i -> y", (100, 4), (3, 4)), weights=WeightsPolicy.RESIDENT)
    assert (resident.steps[0].weight_stream_bytes, resident.weight_bytes) == (0, 1600)


def test_gather_from_an_activation_touches_the_rows():
    g = graph({"x": (100, 4), **IDS}, ["Gather x i -> y"], "y", tensors={"y": (3, 4)})
    assert lowered(g).steps[0].touched_bytes == 48 + 24 + 48


def test_rows_of_a_quantised_table_are_its_bytes():
    """int8 table of 100 x 4 with one scale: 12 B of rows and the scale."""
    g = graph(
        IDS, ["DequantizeLinear t s -> f", "Gather f i -> y"], "y",
        weights={"t": ("int8", (100, 4)), "s": ()}, tensors={"f": (100, 4), "y": (3, 4)},
    )  # fmt: skip
    assert lowered(g).steps[0].weight_stream_bytes == 12 + 4
    assert lowered(g).weight_bytes == 404


def test_table_that_is_gathered_and_indexed_by_itself_is_read_whole():
    g = graph({"x": (1,)}, ["Gather t t -> y"], "y", weights={"t": ("int64", (4,))}, tensors={"y": ("int64", (4,))})
    assert lowered(g, fold=False).steps[0].weight_stream_bytes == 32


def test_shape_of_a_tensor_touches_only_its_own_result():
    g = graph({"x": (100, 4)}, ["Shape x -> y"], "y", tensors={"y": ("int64", (2,))})
    assert lowered(g, fold=False).steps[0].touched_bytes == 16


def test_embedding_with_normalisation_reads_a_row_of_each_table():
    """3 tokens of 4 floats from each of three tables, scale and bias of 4 floats."""
    spec = op("EmbedLayerNormalization i - w p - g b -> y", domain="com.microsoft")
    g = graph(
        {"i": ("int32", (1, 3))}, [spec], "y",
        weights={"w": (100, 4), "p": (50, 4), "g": (4,), "b": (4,)}, tensors={"y": (1, 3, 4)},
    )  # fmt: skip
    assert lowered(g).steps[0].weight_stream_bytes == 48 + 48 + 16 + 16


def test_rows_of_a_table_in_blocks_of_four_bits():
    """3 of 10 rows: of 10 x 8 bytes (16 elements a row) and of 10 x 1 scales."""
    spec = op("GatherBlockQuantized t i s -> y", domain="com.microsoft", bits=4)
    g = table_lookup(spec, ("uint8", (10, 8)), (3, 16), weights={"s": (10, 1)})
    assert lowered(g).steps[0].weight_stream_bytes == 24 + 12


def test_one_row_streams_the_weights_of_the_experts_it_goes_to():
    """2 of 4 experts, each 8 x 16 floats twice; the router's part is an activation."""
    spec = op("MoE x r w - v -> y", domain="com.microsoft", k=2)
    g = graph(
        {"x": (1, 8), "r": (1, 4)}, [spec], "y", weights={"w": (4, 16, 8), "v": (4, 8, 16)}, tensors={"y": (1, 8)}
    )
    assert lowered(g).steps[0].weight_stream_bytes == 2 * 2 * 512
    assert lowered(g).weight_bytes == 4 * 2 * 512
