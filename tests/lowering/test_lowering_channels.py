"""Which tensors hold channels, on which axis, and what a target that pads channels stores of them.

All examples have 3 or 5 channels, stored as 16.
"""

import pytest
from graphs import MACHINE, buffer_named, graph, lowered, op

from spillprof.analysis.inspection import inspect_graph
from spillprof.ir.graph import Graph
from spillprof.ir.program import Program
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import live_peak

PADS = MACHINE.with_overrides(channel_align=16, alignment_bytes=1)
MAP = (1, 5, 4, 4)
OWN, PADDED = 5 * 16 * 4, 16 * 16 * 4


def stored(program: Program, *names: str) -> list[int]:
    return [buffer_named(program, name).size_bytes for name in names]


def between_convolutions(*ops, weights=None, **tensors) -> Graph:
    """``c``, made by a convolution, goes through the operators; a convolution makes ``y`` of ``r``."""
    return graph(
        {"x": (1, 3, 4, 4)},
        ["Conv x w -> c", *ops, "Conv r v -> y"],
        "y",
        weights={"w": (5, 3, 1, 1), "v": (2, 5, 1, 1), **(weights or {})},
        tensors={"c": MAP, "y": (1, 2, 4, 4), "r": MAP, **tensors},
    )


def test_maps_between_convolutions_are_padded_but_not_inputs_and_outputs():
    program = lowered(between_convolutions("Softmax c -> r"), PADS)
    assert stored(program, "x", "c", "r", "y") == [3 * 64, PADDED, PADDED, 2 * 64]


def test_what_is_padded_is_moved_with_its_channels_but_not_with_what_the_alignment_adds():
    program = lowered(between_convolutions("Softmax c -> r"), PADS.with_overrides(alignment_bytes=4096))
    c = buffer_named(program, "c")
    assert (c.payload_bytes, c.moved_bytes, c.size_bytes) == (OWN, PADDED, 4096)
    x = buffer_named(program, "x")
    assert (x.payload_bytes, x.moved_bytes, x.size_bytes) == (192, 192, 4096)


def test_the_heads_of_an_attention_are_no_channels():
    g = graph(
        {"q": (1, 5, 8, 4), "k": (1, 5, 4, 8), "v": (1, 5, 8, 4)},
        ["MatMul q k -> s", "Softmax s -> p", "MatMul p v -> o", "Relu o -> y"], "y",
        tensors={"s": (1, 5, 8, 8), "p": (1, 5, 8, 8), "o": (1, 5, 8, 4), "y": (1, 5, 8, 4)},
    )  # fmt: skip
    program = lowered(g, PADS)
    assert all(b.size_bytes == b.payload_bytes for b in program.buffers)


@pytest.mark.parametrize(
    ("ops", "tensors", "padded"),
    [
        (["Concat c s -> d", "Slice d -> r"], {"s": MAP, "d": (1, 10, 4, 4)}, {"d": 16 * 16 * 4}),
        (["Resize c -> d", "MaxPool d -> r"], {"d": (1, 5, 8, 8)}, {"d": 16 * 64 * 4}),
        (["Split c -> d e", "Concat d e -> r"], {"d": (1, 2, 4, 4), "e": (1, 3, 4, 4)}, {"d": PADDED, "e": PADDED}),
        (["ReduceMean c -> d", "Mul c d -> r"], {"d": (1, 1, 4, 4)}, {"d": PADDED}),
        (["Transpose c -> d", "Transpose d -> r"], {"d": (1, 4, 4, 5)}, {"d": OWN, "r": PADDED}),
        (["MatMul c m -> d", "Neg d -> r"], {"d": MAP}, {"d": PADDED}),
        (["MatMul c m -> d", "MatMul d m -> r"], {"d": MAP}, {"d": OWN}),
    ],
    ids=["concat, slice", "resize, pool", "split", "reduction", "transpose", "before a map", "product"],
)
def test_channels_hold_on_through_what_leaves_the_axes_alone(ops, tensors, padded):
    extra = ["Softmax c -> s"] if "s" in tensors else []
    program = lowered(between_convolutions(*extra, *ops, weights={"m": (4, 4)}, **tensors), PADS)
    assert {name: stored(program, name)[0] for name in padded} == padded


def test_an_operand_that_is_broadcast_over_the_channels_is_no_map():
    """The mask has 1 where the map has 5 channels, and comes from a product."""
    g = between_convolutions("MatMul c m -> d", "Slice d -> e", "Transpose e -> f", "Mul c f -> r",
                             weights={"m": (4, 4)}, d=MAP, e=(1, 1, 4, 4), f=(1, 1, 4, 4))  # fmt: skip
    assert stored(lowered(g, PADS), "f", "d", "e") == [64, OWN, 64]


def test_a_view_that_a_convolution_reads_says_how_its_buffer_is_stored():
    """The buffer of the Transpose, (1, 4, 4, 5), is read as (1, 5, 4, 4)."""
    g = between_convolutions("Transpose c -> d", "Reshape d -> r", d=(1, 4, 4, 5))
    program = lowered(g, PADS)
    assert stored(program, "d") == [PADDED]
    assert buffer_named(program, "d").tensors == ("d", "r")


def test_a_map_that_is_read_as_a_vector_stays_a_map():
    g = graph({"x": (1, 3, 4, 4)}, ["Conv x w -> c", "Flatten c -> f", "Gemm f v -> y"], "y",
              weights={"w": (5, 3, 1, 1), "v": (80, 7)}, tensors={"c": MAP, "f": (1, 80), "y": (1, 7)})  # fmt: skip
    assert stored(lowered(g, PADS), "c", "y") == [PADDED, 28]


@pytest.mark.parametrize(
    "convolution",
    [
        op("NhwcConv x w -> c", domain="com.microsoft"),
        op("NhwcFusedConv x w -> c", domain="com.microsoft"),
        op("Conv x w -> c", domain="com.ms.internal.nhwc"),
        op("NhwcMaxPool x -> c", domain="com.microsoft"),
        op("QLinearAveragePool x -> c", domain="com.microsoft", channels_last=1),
    ],
    ids=lambda each: f"{each.domain} {each.op_type}",
)
def test_channels_are_on_the_last_axis_where_the_operator_works_in_nhwc(convolution):
    g = graph({"x": (1, 4, 4, 3)}, [convolution, "Softmax c -> r", "MatMul r m -> y"], "y",
              weights={"w": (5, 1, 1, 3), "m": (5, 2)},
              tensors={"c": (1, 4, 4, 5), "r": (1, 4, 4, 5), "y": (1, 4, 4, 2)})  # fmt: skip
    assert stored(lowered(g, PADS), "x", "c", "r", "y") == [3 * 64, PADDED, PADDED, 2 * 64]


def test_blocks_of_channels_come_first_whatever_is_around_them():
    """NHWC outside, blocks of 16 channels inside."""
    g = graph(
        {"a": (1, 4, 4, 5)},
        ["Neg a -> n", op("ReorderInput n -> b", domain="com.microsoft.nchwc", channels_last=1),
         op("Conv b w -> c", domain="com.microsoft.nchwc"),
         op("ReorderOutput c -> d", domain="com.microsoft.nchwc", channels=5, channels_last=1), "MatMul d m -> y"],
        "y",
        weights={"w": (16, 16, 1, 1), "m": (5, 2)},
        tensors={"n": (1, 4, 4, 5), "b": (1, 16, 4, 4), "c": (1, 16, 4, 4), "d": (1, 4, 4, 5), "y": (1, 4, 4, 2)},
    )  # fmt: skip
    assert stored(lowered(g, PADS), "n", "b", "c", "d") == [PADDED] * 4


def test_the_peak_tells_its_padding():
    """When r is made of c, both are live, padded; x is not."""
    program = lowered(between_convolutions("Softmax c -> r"), PADS)
    peak = live_peak(program)
    assert (peak.step, peak.live_bytes, peak.padding_bytes) == (1, 2 * PADDED, 2 * (PADDED - OWN))
    data = inspect_graph(between_convolutions("Softmax c -> r"), PADS, LoweringOptions()).to_json()
    assert (data["peak_live_bytes"], data["peak_padding_bytes"]) == (2 * PADDED, 2 * (PADDED - OWN))


def test_a_join_of_thousands_of_maps():
    n = 3_000
    parts = " ".join(f"p{i}" for i in range(n))
    g = between_convolutions(*(f"Softmax c -> p{i}" for i in range(n)), f"Concat {parts} -> d", "Slice d -> r",
                             d=(1, 5 * n, 4, 4), **{f"p{i}": MAP for i in range(n)})  # fmt: skip
    program = lowered(g, PADS)
    assert {b.size_bytes for b in program.buffers if b.name.startswith("p")} == {PADDED}
