"""Loop nests of operators and of fused steps, and their bytes in real models."""

from collections import Counter
from typing import Any

import pytest
from corpus_models import MODELS, graph_of, needs_models
from graphs import MACHINE, PLAIN, graph, op

from spillprof.frontends.targets import load_target
from spillprof.ir.graph import Graph
from spillprof.ir.loop_nest import LoopNest, Window
from spillprof.lowering.assembly import assemble
from spillprof.lowering.lower import make_draft
from spillprof.lowering.nests import loop_nests, task_nests
from spillprof.lowering.options import Fuse, LoweringOptions, Views

Shapes = dict[str, Any]


def nest_of(spec: str, inputs: Shapes, results: Shapes, *, opset: int = 17, **attributes: Any) -> LoopNest | None:
    """The nest of one operator; ``w``, ``b`` and ``k`` are weights."""
    weights = {name: shape for name, shape in inputs.items() if name in "wbk"}
    given = {name: shape for name, shape in inputs.items() if name not in weights}
    g = graph(given, [op(spec, **attributes)], " ".join(results), weights=weights, tensors=results, opset=opset)
    (nest,) = loop_nests(make_draft(g, MACHINE, PLAIN))
    return nest


def picture(nest: LoopNest | None) -> dict[str, str]:
    """Axes with their sizes, those that no tiling cuts with a ``!``, reduced ones in brackets; windows by operand.

    A window is ``size@axis`` and what is not as in a plain one: ``*stride/per+offset~extent``, ``^shift``.
    """
    assert nest is not None
    names = [axis.name for axis in nest.axes]
    axes = []
    for i, axis in enumerate(nest.axes):
        text = f"{axis.name} {axis.size}" + "!" * (i in nest.whole)
        axes.append(f"({text})" if i in nest.reduced else text)
    return {"axes": ", ".join(axes)} | {o.name: ", ".join(_window(w, names) for w in o.windows) for o in nest.operands}


def _window(w: Window, names: list[str]) -> str:
    text = f"{w.size}" if w.axis is None else f"{w.size}@{names[w.axis]}"
    text += f"*{w.stride}" * (w.stride != 1) + f"/{w.per}" * (w.per != 1) + f"^{w.shift}" * (w.shift != 0)
    return text + f"{w.offset:+d}" * (w.offset != 0) + f"~{w.extent}" * (w.extent != 1)


def test_convolution() -> None:
    nest = nest_of(
        "Conv x w b -> y",
        {"x": (2, 4, 9, 11), "w": (6, 4, 3, 2), "b": (6,)},
        {"y": (2, 6, 5, 11)},
        pads=(1, 0, 2, 1),
        strides=(2, 1),
        dilations=(1, 1),
    )
    assert picture(nest) == {
        "axes": "batch 2, out channels 6, rows 5, columns 11, (in channels 4)",
        "image": "2@batch, 1, 4@in channels, 9@rows*2-1~3, 11@columns~2",
        "kernel": "1, 6@out channels, 4@in channels, 3, 2",
        "bias": "1, 6@out channels",
        "output": "2@batch, 1, 6@out channels, 5@rows, 11@columns",
    }
    assert nest is not None
    assert nest.macs == 2 * 6 * 5 * 11 * 4 * 3 * 2
    assert [(o.is_weight, o.is_output, o.nbytes) for o in nest.operands] == [
        (False, False, 4 * 2 * 4 * 99), (True, False, 4 * 144), (True, False, 24), (False, True, 4 * 2 * 6 * 55),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "inputs", "results", "attributes", "expected"),
    [
        pytest.param(
            "Conv x w -> y", {"x": (1, 6, 8, 8), "w": (6, 1, 3, 3)}, {"y": (1, 6, 8, 8)},
            {"group": 6, "auto_pad": "SAME_UPPER"},
            {
                "axes": "channels 6, rows 8, columns 8",
                "image": "1, 6@channels, 1, 8@rows-1~3, 8@columns-1~3",
                "kernel": "6@channels, 1, 1, 3, 3",
            },
            id="depthwise",
        ),
        pytest.param(
            "Conv x w -> y", {"x": (1, 4, 8, 8), "w": (6, 2, 1, 1)}, {"y": (1, 6, 8, 8)}, {"group": 2},
            {
                "axes": "groups 2, out channels 3, rows 8, columns 8, (in channels 2)",
                "image": "1, 2@groups, 2@in channels, 8@rows, 8@columns",
                "kernel": "2@groups, 3@out channels, 2@in channels, 1, 1",
                "output": "1, 2@groups, 3@out channels, 8@rows, 8@columns",
            },
            id="groups",
        ),
        pytest.param(  # 7 positions, 2 before and 1 after: lower has the odd one in front
            "Conv x w -> y", {"x": (1, 1, 7), "w": (1, 1, 4)}, {"y": (1, 1, 7)}, {"auto_pad": "SAME_LOWER"},
            {"axes": "positions 7", "image": "1, 1, 1, 7@positions-2~4"},
            id="same lower",
        ),
        pytest.param(
            "Conv x w -> y", {"x": (1, 1, 9), "w": (1, 1, 3)}, {"y": (1, 1, 5)}, {"dilations": (2,)},
            {"image": "1, 1, 1, 9@positions~5"},
            id="dilated",
        ),
        pytest.param(
            "NhwcConv x w b -> y", {"x": (1, 8, 8, 4), "w": (6, 3, 3, 4), "b": (6,)}, {"y": (1, 6, 6, 6)},
            {"domain": "com.microsoft"},
            {
                "axes": "out channels 6, rows 6, columns 6, (in channels 4)",
                "image": "1, 8@rows~3, 8@columns~3, 1, 4@in channels",
                "kernel": "1, 6@out channels, 3, 3, 4@in channels",
                "output": "1, 6@rows, 6@columns, 1, 6@out channels",
            },
            id="channels last",
        ),
        pytest.param(
            "QLinearConv x s z w k z s z b -> y",
            {"x": ("int8", (1, 4, 4, 4)), "w": ("int8", (6, 4, 1, 1)), "k": (6,), "s": (), "z": ("int8", ()),
             "b": ("int32", (6,))},
            {"y": ("int8", (1, 6, 4, 4))}, {},
            {"kernel": "1, 6@out channels, 4@in channels, 1, 1", "input 4": "1, 6@out channels", "input 1": "",
             "bias": "1, 6@out channels"},
            id="quantised",
        ),
        pytest.param(  # rows: output 2 and 3 read inputs 1 and 2; 4 kernel rows at stride 2 are 2 input rows
            "ConvTranspose x w -> y", {"x": (1, 4, 5, 5), "w": (4, 3, 4, 2)}, {"y": (1, 6, 10, 10)},
            {"group": 2, "strides": (2, 2), "pads": (1, 0, 1, 0)},
            {
                "axes": "groups 2, out channels 3, rows 10, columns 10, (in channels 2)",
                "image": "1, 2@groups, 2@in channels, 5@rows/2^1-1~2, 5@columns/2",
                "kernel": "2@groups, 2@in channels, 3@out channels, 4, 2",
            },
            id="transposed",
        ),
        pytest.param(
            "MaxPool x -> y", {"x": (1, 3, 9, 9)}, {"y": (1, 3, 5, 5)},
            {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
            {"axes": "channels 3, rows 5, columns 5", "image": "1, 3@channels, 9@rows*2-1~3, 9@columns*2-1~3"},
            id="pooling",
        ),
        pytest.param(
            "MatMul a w -> y", {"a": (8, 16, 32), "w": (32, 64)}, {"y": (8, 16, 64)}, {},
            {"axes": "m 128, n 64, (k 32)", "left": "128@m, 32@k", "right": "32@k, 64@n", "output": "128@m, 64@n"},
            id="batch that shares the right matrix",
        ),
        pytest.param(
            "MatMul a c -> y", {"a": (2, 4, 16, 8), "c": (2, 4, 8, 32)}, {"y": (2, 4, 16, 32)}, {},
            {"axes": "batch 8, m 16, n 32, (k 8)", "left": "8@batch, 16@m, 8@k", "right": "8@batch, 8@k, 32@n"},
            id="heads",
        ),
        pytest.param(
            "MatMul a c -> y", {"a": (2, 4, 16, 8), "c": (2, 1, 8, 32)}, {"y": (2, 4, 16, 32)}, {},
            {
                "axes": "batch 0 2, batch 1 4, m 16, n 32, (k 8)",
                "left": "2@batch 0, 4@batch 1, 16@m, 8@k",
                "right": "2@batch 0, 8@k, 32@n",
            },
            id="heads that share keys",
        ),
        pytest.param(
            "Gemm a w b -> y", {"a": (3, 5), "w": (7, 5), "b": (7,)}, {"y": (3, 7)}, {"transB": 1},
            {"axes": "m 3, n 7, (k 5)", "left": "3@m, 5@k", "right": "7@n, 5@k", "input 2": "7@n"},
            id="gemm",
        ),
        pytest.param(
            "QGemm a s z w s z b s z -> y",
            {"a": ("int8", (3, 5)), "w": ("int8", (5, 7)), "s": (), "z": ("int8", ()), "b": ("int32", (7,))},
            {"y": ("int8", (3, 7))}, {"domain": "com.microsoft"},
            {"left": "3@m, 5@k", "right": "5@k, 7@n", "input 6": "7@n", "output": "3@m, 7@n"},
            id="quantised gemm",
        ),
        pytest.param(
            "MatMulNBits a w k -> y",
            {"a": (4, 64), "w": ("uint8", (16, 2, 16)), "k": (32,)}, {"y": (4, 16)},
            {"K": 64, "N": 16, "bits": 4, "block_size": 32, "domain": "com.microsoft"},
            {
                "axes": "m 4, n 16, (k 64)",
                "right": "16@n, 2@k/32, 16",  # a block of 32 elements is 16 bytes
                "input 2": "16@n, 2@k/32, 1",
            },
            id="packed weights",
        ),
        pytest.param(
            "Mul x x -> y", {"x": (4, 8)}, {"y": (4, 8)}, {},
            {"axes": "axis 0 4, axis 1 8", "input 0": "4@axis 0, 8@axis 1", "output": "4@axis 0, 8@axis 1"},
            id="a tensor with itself",
        ),
        pytest.param(
            "MatMul x x -> y", {"x": (8, 8)}, {"y": (8, 8)}, {},
            {"left": "8@m, 8@k", "right": "8@k, 8@n"},
            id="a matrix with itself",
        ),
        pytest.param(
            "DequantizeLinear x k -> y", {"x": ("int8", (4, 64)), "k": (4, 2)}, {"y": (4, 64)},
            {"axis": 1, "block_size": 32},
            {"input 1": "4@axis 0, 2@axis 1/32"},
            id="scales of blocks",
        ),
        pytest.param(
            "Concat a c -> y", {"a": (2, 3), "c": (2, 5)}, {"y": (2, 8)}, {"axis": 1},
            {"axes": "axis 0 2, axis 1 8", "input 0": "2@axis 0, 3@axis 1", "input 1": "2@axis 0, 5@axis 1-3"},
            id="concat",
        ),
        pytest.param(
            "Split x -> y z", {"x": (2, 8)}, {"y": (2, 3), "z": (2, 5)}, {"axis": 1},
            {"axes": "axis 0 2, axis 1 8", "output": "2@axis 0, 3@axis 1", "output 1": "2@axis 0, 5@axis 1-3"},
            id="split",
        ),
        pytest.param(
            "Gather w i -> y", {"w": (1000, 16), "i": ("int64", (2, 7))}, {"y": (2, 7, 16)}, {},
            {"axes": "axis 0 2, axis 1 7, axis 2 16", "table": "2@axis 0, 7@axis 1, 16@axis 2",
             "indices": "2@axis 0, 7@axis 1"},
            id="few rows",
        ),
        pytest.param(
            "Gather w i -> y", {"w": (10, 16), "i": ("int64", (20,))}, {"y": (20, 16)}, {},
            {"table": "10, 16@axis 1", "indices": "20@axis 0"},
            id="many rows",
        ),
        pytest.param(
            "Softmax x -> y", {"x": (4, 6, 8)}, {"y": (4, 6, 8)}, {"axis": 1},
            {"axes": "axis 0 4, axis 1 6!, axis 2 8"},
            id="softmax",
        ),
        pytest.param(
            "ReduceSum x -> y", {"x": (4, 6, 6)}, {"y": (4, 6)}, {"keepdims": 0},  # the axes are an input, unknown
            {"axes": "axis 0 4, axis 1 6, (axis 2 6)", "input 0": "4@axis 0, 6@axis 1, 6@axis 2"},
            id="reduction",
        ),
        pytest.param(
            "BatchNormalization x k k k k -> y m v", {"x": (2, 3, 5, 5), "k": (3,)},
            {"y": (2, 3, 5, 5), "m": (3,), "v": (3,)}, {"training_mode": 1},
            {"axes": "axis 0 2!, axis 1 3, axis 2 5!, axis 3 5!", "output 1": "3@axis 1"},
            id="training",
        ),
        pytest.param(
            "Upsample x s -> y", {"x": (1, 2, 4, 4), "s": (4,)}, {"y": (1, 2, 8, 4)}, {"mode": "nearest"},
            {"image": "1, 2@channels, 4@rows*8/16, 4@columns"},
            id="nearest",
        ),
        pytest.param(  # row o lies at (o + 1/2) / 2 - 1/2 = (16 o - 8) / 32 (of 4 and 8 rows: doubled)
            "Resize x - s -> y", {"x": (1, 2, 4, 4), "s": (4,)}, {"y": (1, 2, 8, 4)}, {"mode": "linear"},
            {"image": "1, 2@channels, 4@rows*8/16^-4~2, 4@columns"},
            id="linear",
        ),
    ],
)  # fmt: skip
def test_axes_and_windows(
    spec: str, inputs: Shapes, results: Shapes, attributes: Shapes, expected: dict[str, str]
) -> None:
    found = picture(nest_of(spec, inputs, results, **attributes))
    assert {name: found[name] for name in expected} == expected


def test_softmax_of_old_opsets_is_over_all_axes_from_one_on() -> None:
    shapes = {"x": (4, 6, 8)}, {"y": (4, 6, 8)}
    assert picture(nest_of("Softmax x -> y", *shapes, opset=12))["axes"] == "axis 0 4, axis 1 6!, axis 2 8!"
    assert picture(nest_of("Softmax x -> y", *shapes, opset=13))["axes"] == "axis 0 4, axis 1 6, axis 2 8!"


def test_normalisations_may_read_their_input_twice() -> None:
    shape = (1, 4, 8, 8)
    ops = ["InstanceNormalization x s b -> n", "CumSum n a -> c", "Relu c -> y"]
    weights = {"s": (4,), "b": (4,), "a": ("int64", ())}
    g = graph({"x": shape}, ops, "y", weights=weights, tensors=dict.fromkeys("ncy", shape))
    norm, scan, relu = task_nests(make_draft(g, MACHINE, PLAIN))
    assert norm is not None
    assert norm.in_two_passes is not None
    assert picture(norm.nest)["axes"] == "axis 1 4, axis 2 8!, axis 3 8!"
    twice = norm.in_two_passes
    assert picture(twice.nest)["axes"] == "axis 1 4, axis 2 8, axis 3 8"
    assert [o.name for o in twice.nest.operands] == [
        "input 0", "input 0, second pass", "input 1", "input 2", "output",
    ]  # fmt: skip
    assert twice.storages == ("x", "x", "s", "b", "n")
    assert scan is not None
    assert relu is not None
    assert (scan.in_two_passes, relu.in_two_passes) == (None, None)


@pytest.mark.parametrize(
    ("spec", "inputs", "results", "attributes"),
    [
        ("Attention q q q -> y", {"q": (1, 2, 3, 4)}, {"y": (1, 2, 3, 4)}, {}),  # no loops known
        ("Frobnicate x -> y", {"x": (4,)}, {"y": (4,)}, {"domain": "acme"}),
        ("Conv x w -> y", {"x": (1, 4, 8, 8), "w": (6, 3, 1, 1)}, {"y": (1, 6, 8, 8)}, {}),  # channels do not agree
        ("MatMul a c -> y", {"a": (2, 3), "c": (4, 5)}, {"y": (2, 5)}, {}),
        ("Transpose x -> y", {"x": (2, 3)}, {"y": (3, 2)}, {"perm": (0, 0)}),
        ("Concat a -> y", {"a": (2, 3)}, {"y": (2, 4)}, {"axis": 1}),
        ("Relu x -> y", {"x": (2, 3)}, {"y": (2, 4)}, {}),
        ("MaxPool x -> y", {"x": (1, 1, 4)}, {"y": (1, 1, 2)}, {"kernel_shape": (2, 2)}),
    ],
)
def test_operators_of_unknown_loops_have_no_nest(
    spec: str, inputs: Shapes, results: Shapes, attributes: Shapes
) -> None:
    assert nest_of(spec, inputs, results, **attributes) is None


def test_an_empty_tensor_has_nothing_to_cut() -> None:
    found = picture(nest_of("Concat a c -> y", {"a": (0, 3), "c": (0, 5)}, {"y": (0, 8)}, axis=1))
    assert found == {"axes": "", "input 0": "0, 3", "input 1": "0, 5", "output": "0, 8"}


def test_equal_layers_have_equal_nests() -> None:
    shape = (1, 4, 8, 8)
    g = graph(
        {"t0": shape},
        ["Conv t0 w0 -> t1", "Conv t1 w1 -> t2"],
        "t2",
        weights={"w0": (4, 4, 1, 1), "w1": (4, 4, 1, 1)},
        tensors={"t1": shape, "t2": shape},
    )
    first, second = task_nests(make_draft(g, MACHINE, PLAIN))
    assert first is not None
    assert second is not None
    assert first.nest == second.nest
    assert (first.storages, second.storages) == (("t0", "w0", "t1"), ("t1", "w1", "t2"))


def fused(g: Graph) -> LoopNest:
    (nest,) = loop_nests(make_draft(g, MACHINE, LoweringOptions()))
    assert nest is not None
    return nest


def test_a_fused_step_has_the_loops_of_its_leader() -> None:
    g = graph(
        {"x": (2, 5, 7)},
        ["MatMul x w -> m", "Add m b -> n", "Relu n -> y"],
        "y",
        weights={"w": (7, 6), "b": (6,)},
        tensors=dict.fromkeys("mny", (2, 5, 6)),
    )
    assert picture(fused(g)) == {
        "axes": "m 10, n 6, (k 7)",
        "left": "10@m, 7@k",
        "right": "7@k, 6@n",
        "Add input 1": "6@n",
        "output": "10@m, 6@n",
    }


def test_parameters_of_channels_are_split_as_the_channels_are() -> None:
    g = graph(
        {"x": (1, 4, 6, 6)},
        [op("Conv x w -> c", group=2), "BatchNormalization c s b m v -> y"],
        "y",
        weights={"w": (6, 2, 3, 3), **dict.fromkeys("sbmv", (6,))},
        tensors=dict.fromkeys("cy", (1, 6, 4, 4)),
    )
    found = picture(fused(g))
    assert {found[f"BatchNormalization input {i}"] for i in range(1, 5)} == {"2@groups, 3@out channels"}


def test_scales_of_quantised_operands_follow_them() -> None:
    """Weights have a scale for each output channel; the step reads and writes bytes."""
    g = graph(
        {"x": ("int8", (1, 4, 8, 8))},
        [
            "DequantizeLinear x s -> xf",
            op("DequantizeLinear w k -> wf", axis=0),
            "Conv xf wf -> c",
            "QuantizeLinear c s z -> y",
        ],
        "y",
        weights={"w": ("int8", (6, 4, 1, 1)), "k": (6,), "s": (), "z": ("int8", ())},
        tensors={"xf": (1, 4, 8, 8), "wf": (6, 4, 1, 1), "c": (1, 6, 8, 8), "y": ("int8", (1, 6, 8, 8))},
    )
    nest = fused(g)
    assert picture(nest)["kernel scale"] == "6@out channels"
    assert {o.name: o.element_bits for o in nest.operands} == {
        "image": 8,
        "kernel": 8,
        "scale": 32,  # of the image and of the result: read once
        "kernel scale": 32,
        "zero point": 8,
        "output": 8,
    }


def test_a_weight_that_stays_quantised_has_its_stored_bits_and_scales() -> None:
    """The weight is widened and scaled before the run, and stays as it was stored: bytes, and a scale a column."""
    g = graph(
        {"x": (4, 8)},
        ["Cast w -> c", "Mul c k -> f", "MatMul x f -> y"],
        "y",
        weights={"w": ("int8", (8, 6)), "k": (6,)},
        tensors={"c": (8, 6), "f": (8, 6), "y": (4, 6)},
    )
    nest = fused(g)
    assert [(o.name, o.element_bits, o.nbytes) for o in nest.operands] == [
        ("left", 32, 128), ("right", 8, 48), ("right scales", 8, 24), ("output", 32, 96),
    ]  # fmt: skip
    assert picture(nest)["right scales"] == "24@k*3~3"  # evenly: how they lie is not known


def test_a_part_of_a_stored_table_comes_with_its_share_of_scales() -> None:
    g = graph(
        {"i": ("int64", (5,))},
        ["Cast w -> c", "Mul c k -> f", "Gather f i -> y"],
        "y",
        weights={"w": ("int8", (100, 8)), "k": (100, 1)},
        tensors={"c": (100, 8), "f": (100, 8), "y": (5, 8)},
    )
    table, scales, indices, result = fused(g).operands
    assert [(o.nbytes, o.is_weight) for o in (table, scales, indices, result)] == [
        (40, True), (20, True), (40, False), (160, False),
    ]  # fmt: skip


@needs_models
@pytest.mark.parametrize("options", [LoweringOptions(), LoweringOptions(fuse=Fuse.NONE, views=Views.COPY, fold=False)])
def test_nests_of_the_corpus_count_the_bytes_and_multiplications_of_their_steps(options: LoweringOptions) -> None:
    target = load_target("generic-npu")
    without: Counter[str] = Counter()
    steps = 0
    for file in MODELS:
        draft = make_draft(graph_of(file), target, options)
        program = assemble(draft, target, options)
        sizes = {buffer.name: buffer.payload_bytes for buffer in program.buffers}
        for task, found, step in zip(draft.tasks, task_nests(draft), program.steps, strict=True):
            steps += 1
            nests = [] if found is None else [found.nest, *([found.in_two_passes.nest] if found.in_two_passes else [])]
            assert all(len({o.name for o in nest.operands}) == len(nest.operands) for nest in nests)
            if found is None:
                without[task.lead.op_type] += 1
                continue
            read: Counter[tuple[str, bool]] = Counter()
            for operand, storage in zip(found.nest.operands, found.storages, strict=True):
                read[storage, operand.is_output] += operand.nbytes
            # a tensor that is read in two ways, a matrix with itself, is touched once
            touched = sum(min(nbytes, sizes.get(storage, nbytes)) for (storage, _), nbytes in read.items())
            assert (touched, found.nest.macs) == (step.touched_bytes, step.macs), f"{file} {step.name}"
    assert sum(without.values()) < 0.08 * steps
    known = {"Conv", "MatMul", "Gemm", "Add", "Concat", "Softmax", "Transpose", "Gather", "MaxPool", "Resize"}
    assert not known & without.keys()
