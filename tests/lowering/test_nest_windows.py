"""Operators are run on operands of which only the windows of a tile are right, and give the tile of the result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from frontends.onnx_builders import model, node, read, value
from graphs import MACHINE, PLAIN
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from spillprof.ir.loop_nest import NestOperand
from spillprof.lowering.lower import make_draft
from spillprof.lowering.nests import task_nests
from spillprof.lowering.options import LoweringOptions

Array = npt.NDArray[Any]
TILES = 12  # tried of each operator


@dataclass
class Case:
    """Nodes that are one step, and shapes of float operands or values of others."""

    nodes: list[onnx.NodeProto]
    operands: Mapping[str, tuple[int, ...] | Array]
    weights: tuple[str, ...] = ()
    result: str = "y"
    opset: int = 17
    options: LoweringOptions = field(default_factory=lambda: PLAIN)


def one(
    op_type: str, inputs: str, operands: Mapping[str, Any], outputs: str = "y", opset: int = 17, **attrs: Any
) -> Case:
    return Case([node(op_type, inputs, outputs, **attrs)], operands, result=outputs, opset=opset)


def tiles_are_right(case: Case, seed: int = 0) -> None:
    """Random ranges of all axes that may be cut and are not reduced; everything outside of windows is other numbers."""
    rng = np.random.default_rng(seed)
    arrays = {
        name: spec if isinstance(spec, np.ndarray) else rng.normal(size=spec).astype(np.float32)
        for name, spec in case.operands.items()
    }
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in arrays.items()}
    constant = {name for name, spec in case.operands.items() if isinstance(spec, np.ndarray)} | {*case.weights}
    settings: dict[str, Any] = {"opset": case.opset}
    data = model(
        case.nodes,
        [value(name, a.shape, kinds[name]) for name, a in arrays.items() if name not in constant],
        case.result,
        initializers=[numpy_helper.from_array(arrays[name], name) for name in sorted(constant)],
        **settings,
    )
    (found,) = task_nests(make_draft(read(data), MACHINE, case.options))
    assert found is not None
    free = model(case.nodes, [value(n, a.shape, kinds[n]) for n, a in arrays.items()], case.result, **settings)
    run = ReferenceEvaluator(onnx.load_from_string(free))
    names = case.result.split()
    right = dict(zip(names, run.run(None, arrays), strict=True))

    nest = found.nest
    for _ in range(TILES):
        ranges = []
        for i, axis in enumerate(nest.axes):
            a, b = sorted(rng.choice(axis.size + 1, 2, replace=False))
            may_cut = i not in nest.whole and i not in nest.reduced
            ranges.append((int(a), int(b)) if may_cut else (0, axis.size))
        seen = dict(arrays)
        for operand, name in zip(nest.operands, found.storages, strict=True):
            array = arrays.get(name)
            if array is None or array.dtype != np.float32 or array.size != np.prod(_sizes(operand), dtype=int):
                continue  # a result, indices, or read in part
            other = rng.uniform(3, 4, _sizes(operand)).astype(np.float32)
            within = _slices(operand, ranges)
            other[within] = array.reshape(_sizes(operand))[within]
            seen[name] = other.reshape(array.shape)
        tile = dict(zip(names, run.run(None, seen), strict=True))
        for operand, name in zip(nest.operands, found.storages, strict=True):
            if operand.is_output:
                whole, part = (a[name].reshape(_sizes(operand)) for a in (right, tile))
                within = _slices(operand, ranges)
                np.testing.assert_allclose(part[within], whole[within], rtol=1e-5, atol=1e-5)


def _sizes(operand: NestOperand) -> tuple[int, ...]:
    return tuple(window.size for window in operand.windows)


def _slices(operand: NestOperand, ranges: list[tuple[int, int]]) -> tuple[slice, ...]:
    spans = [w.span(*ranges[w.axis]) if w.axis is not None else w.span(0, 1) for w in operand.windows]
    return tuple(slice(first, max(end, first)) for first, end in spans)


INDICES = np.array([[3, 0], [5, 5], [1, 4]], np.int64)

CASES = {
    "conv": one("Conv", "x w b", {"x": (2, 4, 9, 11), "w": (6, 4, 3, 2), "b": (6,)}, pads=[1, 0, 2, 1], strides=[2, 1]),
    "conv, groups": one("Conv", "x w b", {"x": (1, 4, 7, 7), "w": (6, 2, 3, 3), "b": (6,)}, group=2, dilations=[2, 1]),
    "depthwise": one("Conv", "x w", {"x": (1, 6, 8, 8), "w": (6, 1, 3, 3)}, group=6, auto_pad="SAME_UPPER"),
    "conv, same lower": one("Conv", "x w", {"x": (1, 2, 8, 7), "w": (2, 2, 4, 2)}, auto_pad="SAME_LOWER"),
    "conv, 1-D": one("Conv", "x w", {"x": (2, 3, 12), "w": (5, 3, 4)}, strides=[3]),
    "conv, 3-D": one("Conv", "x w", {"x": (1, 2, 5, 6, 4), "w": (3, 2, 2, 3, 1)}, pads=[1, 1, 0, 0, 1, 0]),
    "conv transposed": one(
        "ConvTranspose", "x w b", {"x": (2, 4, 5, 4), "w": (4, 3, 4, 3), "b": (3,)}, strides=[2, 3], pads=[1, 1, 1, 0]
    ),
    "max pool": one("MaxPool", "x", {"x": (2, 3, 9, 8)}, kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1),
    "average pool": one("AveragePool", "x", {"x": (1, 3, 9, 8)}, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "matmul": one("MatMul", "a b", {"a": (5, 7), "b": (7, 6)}),
    "matmul, shared right": one("MatMul", "a b", {"a": (2, 3, 5, 7), "b": (7, 6)}),
    "matmul, batches": one("MatMul", "a b", {"a": (2, 1, 3, 5, 7), "b": (4, 3, 7, 6)}),
    "matmul, shared left": one("MatMul", "a b", {"a": (5, 7), "b": (3, 7, 6)}),
    "matmul, vectors": one("MatMul", "a b", {"a": (7,), "b": (3, 7, 6)}),
    "matmul, matrix and vector": one("MatMul", "a b", {"a": (3, 5, 7), "b": (7,)}),
    "gemm": one("Gemm", "a b c", {"a": (7, 5), "b": (6, 7), "c": (5, 1)}, transA=1, transB=1),
    "gemm, row of biases": one("Gemm", "a b c", {"a": (5, 7), "b": (7, 6), "c": (6,)}, alpha=0.5),
    "add": one("Add", "a b", {"a": (2, 3, 4), "b": (3, 1)}),
    "add, both broadcast": one("Add", "a b", {"a": (5, 1, 4), "b": (3, 1)}),
    "where": one("Where", "c a b", {"c": np.array([[True], [False], [True]]), "a": (4,), "b": (2, 3, 4)}),
    "prelu": one("PRelu", "x s", {"x": (2, 3, 5), "s": (3, 1)}),
    "batch norm": one(
        "BatchNormalization", "x s b m v",
        {"x": (2, 3, 5, 5), **dict.fromkeys("sbm", (3,)), "v": np.ones(3, np.float32)},
    ),
    "reshape": one("Reshape", "x s", {"x": (6, 4), "s": np.array([2, 12], np.int64)}),
    "expand": one("Expand", "x s", {"x": (3, 1), "s": np.array([2, 3, 4], np.int64)}),
    "concat": one("Concat", "a b c", {"a": (2, 3, 4), "b": (2, 1, 4), "c": (2, 5, 4)}, axis=1),
    "concat, last": one("Concat", "a b", {"a": (2, 3), "b": (2, 4)}, axis=-1),
    "split": one("Split", "x s", {"x": (3, 9), "s": np.array([2, 3, 4], np.int64)}, "y z w", axis=1),
    "slice": one(
        "Slice", "x s e a", {"x": (6, 9), **{k: np.array([n], np.int64) for k, n in (("s", 1), ("e", 7), ("a", 1))}}
    ),
    "center": one("CenterCropPad", "x s", {"x": (10, 4), "s": np.array([7, 9], np.int64)}, opset=18),
    "pad": one("Pad", "x p", {"x": (4, 6), "p": np.array([1, 2, 1, 2], np.int64)}),
    "pad, edge": one("Pad", "x p", {"x": (4, 6), "p": np.array([0, 2, 2, 1], np.int64)}, mode="edge"),
    "pad, reflect": one("Pad", "x p", {"x": (4, 6), "p": np.array([0, 2, 2, 1], np.int64)}, mode="reflect"),
    "pad, wrap": one("Pad", "x p", {"x": (4, 6), "p": np.array([0, 2, 2, 1], np.int64)}, mode="wrap", opset=19),
    "tile": one("Tile", "x r", {"x": (2, 1, 3), "r": np.array([3, 4, 2], np.int64)}),
    "transpose": one("Transpose", "x", {"x": (2, 3, 4, 5)}, perm=[2, 0, 3, 1]),
    "transpose, reversed": one("Transpose", "x", {"x": (2, 3, 4)}),
    "depth to space": one("DepthToSpace", "x", {"x": (2, 12, 3, 4)}, blocksize=2),
    "depth to space, by column": one("DepthToSpace", "x", {"x": (2, 12, 3, 4)}, blocksize=2, mode="CRD"),
    "space to depth": one("SpaceToDepth", "x", {"x": (2, 3, 4, 6)}, blocksize=2),
    "softmax": one("Softmax", "x", {"x": (3, 4, 5)}, axis=1),
    "layer norm": one("LayerNormalization", "x s b", {"x": (3, 4, 5, 6), "s": (5, 6), "b": (5, 6)}, axis=-2),
    "instance norm": one("InstanceNormalization", "x s b", {"x": (3, 4, 5, 6), "s": (4,), "b": (4,)}),
    "group norm": one("GroupNormalization", "x s b", {"x": (3, 4, 5, 6), "s": (4,), "b": (4,)}, opset=21, num_groups=2),
    "lrn": one("LRN", "x", {"x": (2, 9, 2, 2)}, size=4),
    "mean variance": one("MeanVarianceNormalization", "x", {"x": (2, 3, 4, 4)}),
    "reduce": one("ReduceSum", "x a", {"x": (3, 4, 5), "a": np.array([1], np.int64)}),
    "reduce, without axis": one("ReduceMean", "x", {"x": (3, 4, 5)}, axes=[0, 2], keepdims=0),
    "arg max": one("ArgMax", "x", {"x": (3, 4, 5)}, axis=1, keepdims=0),
    "global pool": one("GlobalAveragePool", "x", {"x": (2, 3, 4, 5)}),
    "top k": one("TopK", "x k", {"x": (4, 9), "k": np.array([3], np.int64)}, "y z"),
    "gather, many rows": one("Gather", "x i", {"x": (2, 6, 5), "i": np.tile(INDICES, (3, 1))}, axis=1),
    "gather elements": one("GatherElements", "x i", {"x": (6, 2), "i": np.tile(INDICES, (4, 1))}),
    "gather slices": one("GatherND", "x i", {"x": (6, 6, 4), "i": np.tile(INDICES, (13, 1))}),
    "nearest": one("Resize", "x - s", {"x": (1, 2, 4, 5), "s": np.array([1, 1, 2, 3], np.float32)}),
    "nearest, smaller": one("Resize", "x - s", {"x": (1, 1, 8, 9), "s": np.array([1, 1, 0.5, 1 / 3], np.float32)}),
    "nearest, floor": one(
        "Resize", "x - s", {"x": (1, 1, 4, 5), "s": np.array([1, 1, 2, 2], np.float32)},
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    ),
    "linear": one("Resize", "x - s", {"x": (1, 2, 4, 5), "s": np.array([1, 1, 2, 3], np.float32)}, mode="linear"),
    "linear, corners": one(
        "Resize", "x - - s", {"x": (1, 2, 4, 5), "s": np.array([1, 2, 7, 12], np.int64)},
        mode="linear", coordinate_transformation_mode="align_corners",
    ),
    "linear, corners by scales": one(
        "Resize", "x - s", {"x": (1, 1, 4, 7), "s": np.array([1, 1, 0.6, 1.5], np.float32)},
        mode="linear", coordinate_transformation_mode="align_corners",
    ),
    "cubic": one("Resize", "x - s", {"x": (1, 1, 6, 6), "s": np.array([1, 1, 2, 2], np.float32)}, mode="cubic"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_tile_of_the_result_needs_only_its_windows(name: str) -> None:
    tiles_are_right(CASES[name])


FUSED = {
    "bias and activation": Case(
        [node("MatMul", "x w", "m"), node("Add", "m b", "n"), node("Relu", "n", "y")],
        {"x": (2, 5, 7), "w": (7, 6), "b": (6,)},
        weights=("w", "b"),
        options=LoweringOptions(),
    ),
    "batch norm of groups": Case(
        [
            node("Conv", "x w", "c", group=2), node("BatchNormalization", "c s b m v", "n"),
            node("LeakyRelu", "n", "y"),
        ],
        {"x": (1, 4, 6, 6), "w": (6, 2, 3, 3), "s": (6,), "b": (6,), "m": (6,), "v": np.ones(6, np.float32)},
        weights=("w", "s", "b", "m"),
        options=LoweringOptions(),
    ),
    "scale of another shape": Case(
        [node("Conv", "x w", "c"), node("Flatten", "c", "f"), node("Mul", "f k", "y")],
        {"x": (2, 4, 6, 6), "w": (6, 4, 3, 3), "k": (1, 96)},
        weights=("w", "k"),
        options=LoweringOptions(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_followers_read_their_windows_of_weights(name: str) -> None:
    tiles_are_right(FUSED[name])


@given(st.data())
def test_windows_of_any_convolution(data: st.DataObject) -> None:
    draw = data.draw
    transposed = draw(st.booleans())
    ins, outs = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    groups = (
        1 if transposed else draw(st.integers(1, 2))
    )  # onnx 1.23's reference does not run transposed ones of groups
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 2)))
    strides, dilations = (draw(st.tuples(st.integers(1, 3), st.integers(1, 2))) for _ in range(2))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, extent - 1)) for extent in (*extents, *extents)]
    sizes = [draw(st.integers(extent, extent + 6)) for extent in extents]
    shape = (groups * ins, outs, *kernel) if transposed else (groups * outs, ins, *kernel)
    tiles_are_right(
        one(
            "ConvTranspose" if transposed else "Conv",
            "x w",
            {"x": (1, groups * ins, *sizes), "w": shape},
            group=groups, strides=strides, dilations=dilations, pads=pads,
        ),
        seed=draw(st.integers(0, 99)),
    )  # fmt: skip


@given(
    st.integers(2, 7),
    st.integers(2, 15),
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
    st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
)
def test_windows_of_any_interpolation(size: int, out: int, mode: str, place: str, rounding: str) -> None:
    tiles_are_right(
        one(
            "Resize",
            "x - - s",
            {"x": (1, 1, size, 2), "s": np.array([1, 1, out, 2], np.int64)},
            mode=mode, coordinate_transformation_mode=place, nearest_mode=rounding,
        )
    )  # fmt: skip
