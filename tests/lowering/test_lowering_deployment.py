"""Float models analysed in their deployment types."""

import pytest
from graphs import MACHINE, PLAIN, buffer_named, graph, lowered, op, picture

from spillprof.ir.dtypes import DTYPE_BITS, NUMBER_DTYPES, parse_dtype
from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Graph
from spillprof.lowering.deployment import as_deployed
from spillprof.lowering.options import Fuse, LoweringOptions

CONV = graph(
    {"x": (1, 3, 8, 8)}, ["Conv x w b -> c", "Softmax c -> y"], outputs="y",
    weights={"w": (4, 3, 3, 3), "b": (4,)}, tensors={"c": (1, 4, 6, 6), "y": (1, 4, 6, 6)},
)  # fmt: skip


def dtypes(g: Graph, **options: object) -> dict[str, str]:
    return {name: t.dtype for name, t in as_deployed(g, LoweringOptions(**options)).tensors.items()}  # type: ignore[arg-type]


def test_without_a_type_the_graph_is_the_same():
    assert as_deployed(CONV, LoweringOptions()) is CONV


def test_int8_activations_leave_weights_alone():
    assert dtypes(CONV, act_dtype="int8") == {"x": "int8", "w": "float32", "b": "float32", "c": "int8", "y": "int8"}


def test_int8_weights_leave_the_bias_its_type():
    assert dtypes(CONV, weight_dtype="int8") == {
        "x": "float32", "w": "int8", "b": "float32", "c": "float32", "y": "float32"
    }  # fmt: skip
    assert as_deployed(CONV, LoweringOptions(act_dtype="int8", weight_dtype="int8")).notes == (
        "3 float tensors are taken as int8 (activation type asked for)",
        "1 float weight is taken as int8 (weight type asked for); 1 bias, norm or scale keeps its own type",
    )


def test_half_precision_takes_the_bias_too():
    assert dtypes(CONV, weight_dtype="float16")["b"] == "float16"


@pytest.mark.parametrize("dtype", NUMBER_DTYPES)
def test_every_width_is_rounded_up_to_whole_bytes(dtype):
    odd = graph({"x": (3, 3)}, ["Softmax x -> y"], outputs="y", tensors={"y": (3, 3)})
    program = lowered(odd, act_dtype=dtype)
    assert buffer_named(program, "y").payload_bytes == -(-9 * DTYPE_BITS[dtype] // 8)


def test_multiplications_are_of_the_activation_type():
    assert [step.mac_dtype for step in lowered(CONV, act_dtype="int8").steps] == ["int8", "int8"]


def test_integers_and_booleans_stay():
    g = graph(
        {"ids": ("int64", (4,)), "m": ("bool", (4,)), "x": (4,)}, ["Where m x x -> y"], outputs="y", tensors={"y": (4,)}
    )
    assert dtypes(g, act_dtype="float16") == {"ids": "int64", "m": "bool", "x": "float16", "y": "float16"}


def test_cast_between_floats_becomes_a_view():
    g = graph(
        {"x": ("float16", (4,))}, ["Cast x -> c", "Softmax c -> s", "Cast s -> y"], outputs="y",
        tensors={"c": (4,), "s": (4,), "y": ("float16", (4,))},
    )  # fmt: skip
    assert len(lowered(g).steps) == 3
    assert picture(lowered(g, act_dtype="int8")) == ["Softmax x -> s"]


def test_what_is_computed_from_weights_is_a_weight_if_it_is_folded():
    g = graph(
        {"x": (1, 8)}, ["MatMul x t -> y", "Transpose w -> t"], outputs="y",
        weights={"w": (4, 8)}, tensors={"t": (8, 4), "y": (1, 4)},
    )  # fmt: skip
    assert dtypes(g, act_dtype="float16", weight_dtype="int4")["t"] == "int4"
    assert dtypes(g, act_dtype="float16", weight_dtype="int4", fold=False)["t"] == "float16"
    assert lowered(g, act_dtype="float16", weight_dtype="int4").weight_bytes == 4 * 8 // 2


def test_shape_of_an_activation_makes_a_weight_and_a_random_tensor_does_not():
    g = graph(
        {"x": (2, 2)},
        ["Shape x -> s", "ConstantOfShape s -> c", "RandomNormal -> r", "Add c r -> d", "MatMul x d -> y"],
        outputs="y",
        tensors={"s": ("int64", (2,)), "c": (2, 2), "r": (2, 2), "d": (2, 2), "y": (2, 2)},
    )
    found = dtypes(g, act_dtype="float16", weight_dtype="int8")
    assert {name: found[name] for name in "scrdy"} == {
        "s": "int64", "c": "int8", "r": "float16", "d": "float16", "y": "float16"
    }  # fmt: skip


def test_body_follows_and_a_capture_is_counted_once():
    inner = graph(
        {}, ["MatMul x w -> m", "Relu m -> r"], outputs="r",
        weights={"w": (4, 4)}, tensors={"x": (2, 4), "m": (2, 4), "r": (2, 4)},
    )  # fmt: skip
    g = graph(
        {"c": ("bool", ()), "x": (2, 4)},
        [op("If c -> y", captures="x w", subgraphs=(inner, inner))],
        outputs="y",
        weights={"w": (4, 4)},
        tensors={"y": (2, 4)},
    )
    deployed = as_deployed(g, LoweringOptions(act_dtype="int8", weight_dtype="int4"))
    for body in deployed.operators[0].subgraphs:
        assert {n: t.dtype for n, t in body.tensors.items()} == {"w": "int4", "x": "int8", "m": "int8", "r": "int8"}
    assert deployed.notes[1].startswith("1 float weight is taken as int4")
    assert deployed.notes[0].startswith("6 float tensors")  # x, y, and two in each branch
    _, step = lowered(g, act_dtype="int8", weight_dtype="int4").steps  # the decision, the product
    assert step.mac_dtype == "int8"
    assert step.weight_stream_bytes == 4 * 4 // 2


def test_quantised_model_keeps_its_integers_and_scales():
    g = graph(
        {"x": (1, 4, 4)},
        ["QuantizeLinear x s z -> q", "DequantizeLinear q s z -> d", "DequantizeLinear wq ws wz -> w",
         "MatMul d w -> m", "QuantizeLinear m s z -> p", "DequantizeLinear p s z -> o", "Softmax o -> y"],
        outputs="y",
        weights={"s": (), "z": ("int8", ()), "wq": ("int8", (4, 4)), "ws": (2, 4), "wz": ("int8", (2, 4))},
        tensors={"q": ("int8", (1, 4, 4)), "d": (1, 4, 4), "w": (4, 4), "m": (1, 4, 4), "p": ("int8", (1, 4, 4)),
                 "o": (1, 4, 4), "y": (1, 4, 4)},
    )  # fmt: skip
    program = lowered(g, act_dtype="float16", weight_dtype="int4")
    sizes = {b.name: b.payload_bytes for b in program.buffers}
    assert sizes == {"x": 32, "q": 16, "p": 16, "y": 32}
    assert program.weight_bytes == lowered(g).weight_bytes
    assert [s.mac_dtype for s in program.steps if s.macs] == ["int8"]


def test_as_deployed_changes_nothing_else():
    deployed = as_deployed(CONV, LoweringOptions(act_dtype="int8", weight_dtype="int8"))
    assert deployed.operators == CONV.operators
    assert {n: (t.shape, t.kind) for n, t in deployed.tensors.items()} == {
        n: (t.shape, t.kind) for n, t in CONV.tensors.items()
    }


def test_quarter_of_the_bytes_is_a_quarter_of_the_peak():
    from spillprof.planning.liveness import live_bytes_by_step

    def peak(**options: object) -> int:
        program = lowered(CONV, MACHINE, **options)
        return int(live_bytes_by_step(program, stored=False).max())

    assert peak() == 4 * peak(act_dtype="int8") == 2 * peak(act_dtype="bfloat16") == 8 * peak(act_dtype="float4e2m1")


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("fp16", "float16"), ("BF16", "bfloat16"), ("int4", "int4"), ("fp4", "float4e2m1"), ("file", None)],
)
def test_short_names(text, dtype):
    assert parse_dtype(text) == dtype


def test_unknown_type_lists_what_there_is():
    with pytest.raises(UsageError, match="unknown element type 'int3'") as caught:
        parse_dtype("int3")
    assert "int2" in (caught.value.hint or "")
    assert "bfloat16" in (caught.value.hint or "")


def test_plain_lowering_takes_the_types_too():
    from dataclasses import replace

    from spillprof.lowering.lower import lower

    program = lower(CONV, MACHINE, replace(PLAIN, act_dtype="uint2"))
    assert buffer_named(program, "x").payload_bytes == 3 * 8 * 8 // 4
    assert PLAIN.fuse is Fuse.NONE
