"""Contradictory attributes are errors, not sizes; valid neighbouring values are read."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx_builders import body, floats, ints, model, node, read, shape_of, value

from spillprof.frontends.onnx.folding import fold
from spillprof.frontends.onnx.folding_call import Call, Impossible
from spillprof.frontends.onnx.setting_checks import equation_fault
from spillprof.ir.errors import ModelError, ShapeError

IMAGE, MATRIX, TOKENS = value("image", [1, 4, 8, 8]), value("m", [4, 8]), value("tokens", [2, 5, 8])
WEIGHTS = [
    floats("filters", 6, 4, 3, 3),
    floats("halves", 6, 2, 3, 3),
    floats("up", 4, 3, 3, 3),
    floats("w", 1, 16, 8),
    floats("r", 1, 16, 4),
    floats("scale", 8),
    floats("s", 4),
    floats("window", 4),
    floats("packed", 8, 24),
    floats("none", 0),
]


def made(built: onnx.NodeProto, *stored: onnx.TensorProto, opset: int = 17, domain: str = "") -> bytes:
    kept = [w for w in (*WEIGHTS, *stored) if w.name in built.input]
    fed = [v for v in (IMAGE, MATRIX, TOKENS) if v.name in built.input] or [MATRIX]
    domains = {domain: 1} if domain else {}
    return model([built], fed, " ".join(built.output), initializers=kept, opset=opset, domains=domains)


def scales(*numbers: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.float32), "scales")


MICROSOFT = "com.microsoft"
CONV = "image filters"


@pytest.mark.parametrize(
    ("built", "fault"),
    [
        (node("Conv", CONV, "y", group=0), "group is 0, but must be at least 1"),
        (node("Conv", CONV, "y", group=-1), "group is -1, but must be at least 1"),
        (node("Conv", CONV, "y", group=2), "group is 2, with 4 channels of the input and 4 of each filter"),
        (node("Conv", "image halves", "y"), "group is 1, with 4 channels of the input and 2 of each filter"),
        (node("Conv", CONV, "y", auto_pad="bogus"), "auto_pad is 'bogus', but must be one of NOTSET, SAME_LOWER, "
         "SAME_UPPER, VALID"),
        (node("Conv", CONV, "y", kernel_shape=[5, 5]), "kernel_shape is [5, 5], but the filters are [3, 3]"),
        (node("Conv", CONV, "y", strides=[0, 1]), "strides is [0, 1], but must be at least 1"),
        (node("Conv", CONV, "y", dilations=[1, -1]), "dilations is [1, -1], but must be at least 1"),
        (node("Conv", CONV, "y", pads=[-1, 0, 0, 0]), "pads is [-1, 0, 0, 0], but must be at least 0"),
        (node("ConvTranspose", "image up", "y", output_shape=[0, 9]), "output_shape is [0, 9], but must be at least 1"),
        (node("ConvTranspose", "image up", "y", group=3),
         "group is 3, which does not divide the number of channels, 4"),
        (node("MaxPool", "image", "y", kernel_shape=[0, 2]), "kernel_shape is [0, 2], but must be at least 1"),
        (node("Concat", "m m", "y", axis=-(1 << 63)), f"axis is {-(1 << 63)}, of a tensor with 2 dimensions"),
        (node("Concat", "m m", "y", axis=1 << 40), f"axis is {1 << 40}, of a tensor with 2 dimensions"),
        (node("Softmax", "m", "y", axis=1 << 32), f"axis is {1 << 32}, of a tensor with 2 dimensions"),
        (node("LpNormalization", "m", "y", axis=7), "axis is 7, of a tensor with 2 dimensions"),
        (node("QuantizeLinear", "m scale", "y", axis=7), "axis is 7, of a tensor with 2 dimensions"),
        (node("Transpose", "m", "y", perm=[0]), "perm is [0], which is no permutation of 2 dimensions"),
        (node("Transpose", "m", "y", perm=[0, 0]), "perm is [0, 0], which is no permutation of 2 dimensions"),
        (node("DepthToSpace", "image", "y", blocksize=0), "blocksize is 0, but must be at least 1"),
        (node("DepthToSpace", "image", "y", blocksize=3),
         "blocksize squared is 9, which does not divide the number of channels, 4"),
        (node("SpaceToDepth", "image", "y", blocksize=3),
         "blocksize is 3, which does not divide dimension 2 of the input, 8"),
        (node("LSTM", "tokens w r", "y", hidden_size=9), "hidden_size is 9, but the recurrent weights are for 4"),
        (node("LSTM", "tokens w r", "y", hidden_size=4, direction="bidirectional"),
         "direction is 'bidirectional', but the weights are for 1 of them"),
        (node("LSTM", "tokens w r", "y", hidden_size=4, direction="up"),
         "direction is 'up', but must be one of bidirectional, forward, reverse"),
        (node("Cast", "m", "y", to=(1 << 32) + 1), "to is 4294967297, but must be from 0 to 1000"),
    ],
)  # fmt: skip
def test_attributes(built: onnx.NodeProto, fault: str) -> None:
    with pytest.raises(ShapeError) as refused:
        read(made(built))
    assert refused.value.message == fault
    assert refused.value.where[1] == f"{built.op_type}_0 ({built.op_type})"
    assert refused.value.hint


@pytest.mark.parametrize(
    ("built", "stored", "opset", "fault"),
    [
        (node("CumSum", "m a", "y"), [ints("a", 9)], 17, "the input axis is 9, of a tensor with 2 dimensions"),
        (node("Squeeze", "m", "y", axes=[1 << 32]), [], 11, f"axes is [{1 << 32}], of a tensor with 2 dimensions"),
        (node("Range", "a b c", "y"), [ints("a", 0), ints("b", 5), ints("c", 0)], 17,
         "delta is 0, which makes no range"),
        (node("Range", "a b c", "y"), [ints("a", 0), ints("b", -(1 << 63)), ints("c", -1)], 17,
         f"limit is {-(1 << 63)}, with a delta of -1: more elements than any memory holds"),
        (node("Resize", "image - scales", "y"), [scales(0, 1, 1, 1)], 17,
         "scales is [0.0, 1.0, 1.0, 1.0], but each must be finite and above 0"),
        (node("Upsample", "image scales", "y"), [scales(1, 1, float("nan"), 1)], 9,
         "scales is [1.0, 1.0, nan, 1.0], but each must be finite and above 0"),
        (node("Resize", "image - - sizes", "y"), [ints("sizes", [1, 4, -1, 8])], 17,
         "sizes is [1, 4, -1, 8], but each must be at least 1"),
        (node("STFT", "tokens step window", "y"), [ints("step", 0)], 17, "frame_step is 0, but must be at least 1"),
        (node("Attention", "tokens tokens tokens", "y", q_num_heads=3, kv_num_heads=3), [], 23,
         "q_num_heads is 3, which does not divide the width of the queries, 8"),
        (node("Attention", "tokens tokens tokens", "y", q_num_heads=2, kv_num_heads=4), [], 23,
         "kv_num_heads is 4, which does not divide q_num_heads, 2"),
    ],
)  # fmt: skip
def test_inputs_that_are_settings(
    built: onnx.NodeProto, stored: list[onnx.TensorProto], opset: int, fault: str
) -> None:
    with pytest.raises(ShapeError) as refused:
        read(made(built, *stored, opset=opset))
    assert refused.value.message == fault


@pytest.mark.parametrize(
    ("built", "fault"),
    [
        (node("MultiHeadAttention", "tokens tokens tokens", "y", domain=MICROSOFT, num_heads=3),
         "num_heads is 3, which does not divide the width of the queries, 8"),
        (node("MultiHeadAttention", "tokens tokens tokens", "y", domain=MICROSOFT, num_heads=0),
         "num_heads is 0, but must be at least 1"),
        (node("Attention", "tokens packed", "y", domain=MICROSOFT, num_heads=3),
         "num_heads is 3, which does not divide the width of all heads, 8"),
        (node("MatMulNBits", "tokens s s", "y", domain=MICROSOFT, K=-8, N=6, bits=4, block_size=16),
         "K is -8, but must be at least 1"),
        (node("MatMulNBits", "tokens s s", "y", domain=MICROSOFT, K=9, N=6, bits=4, block_size=16),
         "K is 9, but the input has 8 columns"),
        (node("NhwcConv", "image filters", "y", domain=MICROSOFT, strides=[-1, 1]),
         "strides is [-1, 1], but must be at least 1"),
    ],
)  # fmt: skip
def test_attributes_of_onnxruntimes_operators(built: onnx.NodeProto, fault: str) -> None:
    with pytest.raises(ShapeError) as refused:
        read(made(built, domain=MICROSOFT))
    assert refused.value.message == fault


def test_their_neighbours_are_read() -> None:
    assert shape_of(made(node("Conv", "image halves", "y", group=2, auto_pad="SAME_UPPER")), "y") == (1, 6, 8, 8)
    assert shape_of(made(node("Concat", "m m", "y", axis=-2)), "y") == (8, 8)
    assert shape_of(made(node("Flatten", "m", "y", axis=2)), "y") == (32, 1)
    assert shape_of(made(node("Softmax", "m", "y", axis=2), opset=1), "y") == (4, 8)
    assert shape_of(made(node("QuantizeLinear", "m one", "y", axis=7), floats("one")), "y") == (4, 8)
    assert shape_of(made(node("Pad", "m p", "y"), ints("p", [-1, 0, 0, 2])), "y") == (3, 10)
    assert shape_of(made(node("LSTM", "tokens w r", "y", hidden_size=4)), "y") == (2, 1, 5, 4)
    assert shape_of(made(node("DepthToSpace", "image", "y", blocksize=2)), "y") == (1, 1, 16, 16)
    assert shape_of(made(node("Resize", "image none scales", "y"), scales(1, 1, 2, 0.5)), "y") == (1, 4, 16, 4)


def test_an_operator_of_another_domain_means_what_it_likes() -> None:
    data = made(node("Conv", CONV, "y", domain="com.example", group=0), domain="com.example")
    with pytest.raises(ShapeError, match="stays unknown"):
        read(data)


@pytest.mark.parametrize(
    ("domain", "version"), [("", -1), ("", 0), ("", 1 << 62), ("com.microsoft", -1), ("com.microsoft", 1 << 62)]
)
def test_operator_sets_that_cannot_be(domain: str, version: int) -> None:
    sets = {"opset": version} if not domain else {"domains": {domain: version}}
    data = model([node("Relu", "m", "y")], [MATRIX], "y", **sets)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=f"version {version} of the operator set '{domain or 'ai.onnx'}'") as refused:
        read(data)
    assert refused.value.hint


SIX, NONE, HALF = ints("six", [6]), ints("none", [0]), ints("half", [1 << 62])
LEAST, LESS_ONE, MANY = ints("least", [-(1 << 63)]), ints("less_one", [-1]), ints("many", [64])


@pytest.mark.parametrize(
    ("op_type", "inputs", "fault"),
    [
        ("Div", "six none", "a size follows from a division by zero"),
        ("Mod", "six none", "a size follows from a division by zero"),
        ("Div", "least less_one", "a size follows from a result that passes int64"),
        ("Pow", "six many", "a size follows from a result that passes int64"),
        ("Mul", "half six", "a size follows from a result that passes int64"),
        ("Add", "half half", "a size follows from a result that passes int64"),
        ("Sub", "least six", "a size follows from a result that passes int64"),
        ("Neg", "least", "a size follows from a result that passes int64"),
        ("Abs", "least", "a size follows from a result that passes int64"),
    ],
)
def test_sizes_from_impossible_arithmetic(op_type: str, inputs: str, fault: str) -> None:
    nodes = [
        node(op_type, inputs, "c", name="Fault"),
        node("Identity", "c", "d"),
        node("ConstantOfShape", "d", "y", name="Filled"),
    ]
    data = model(nodes, [MATRIX], "y", initializers=[SIX, NONE, HALF, LEAST, LESS_ONE, MANY])
    with pytest.raises(ShapeError) as refused:
        read(data)
    assert refused.value.message == fault
    decides = "it decides the size of y, the output of Filled (ConstantOfShape)"
    assert refused.value.where[1:] == (f"Fault ({op_type})", decides)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e30, -1e19])
def test_sizes_from_impossible_casts(number: float) -> None:
    nodes = [node("Cast", "scales", "c", to=TensorProto.INT64), node("ConstantOfShape", "c", "y")]
    data = model(nodes, [MATRIX], "y", initializers=[scales(number)])
    with pytest.raises(ShapeError, match=r"a size follows from \S+ as int64"):
        read(data)


def test_a_bound_is_no_way_out() -> None:
    nodes = [node("Div", "six none", "end"), node("Slice", "m none end", "y")]
    with pytest.raises(ShapeError, match="a division by zero"):
        read(model(nodes, [MATRIX], "y", initializers=[SIX, NONE]))
    assert shape_of(model(nodes, [MATRIX], "y", initializers=[SIX, NONE]), "y", assume={"y": (2, 8)}) == (2, 8)


def test_impossible_arithmetic_that_decides_no_size_is_read() -> None:
    data = model([node("Mod", "six none", "c"), node("Add", "c six", "y")], [MATRIX], "y", initializers=[SIX, NONE])
    assert shape_of(data, "y") == (1,)


def evaluated(op_type: str, *inputs: object, **attributes: int) -> list[object]:
    call = Call(op_type=op_type, version=17, attributes=attributes, protos=(), n_outputs=1)
    found = fold(call, [np.asarray(i) for i in inputs])
    assert found is not None
    return [out.tolist() for out in found]


def test_arithmetic_at_the_limits_of_a_type() -> None:
    most, least = (1 << 63) - 1, -(1 << 63)
    assert evaluated("Add", [most - 1], [1]) == [[most]]
    assert evaluated("Sub", [least + 1], [1]) == [[least]]
    assert evaluated("Mul", [1 << 61], [-4]) == [[least]]
    assert evaluated("Pow", [2], [62]) == [[1 << 62]]
    assert evaluated("Mod", [-7], [3]) == [[2]]
    assert evaluated("Div", [-7], [2]) == [[-3]]
    assert evaluated("ReduceProd", [3, 1 << 61, 0], keepdims=0) == [0]
    assert evaluated("Range", most - 3, most, 1) == [[most - 3, most - 2, most - 1]]
    assert evaluated("Cast", np.float32(-(2.0**63)), to=TensorProto.INT64) == [least]
    assert evaluated("Cast", [-1.9, 2.9], to=TensorProto.INT32) == [[-1, 2]]
    assert evaluated("Cast", [255.5, -0.5], to=TensorProto.UINT8) == [[255, 0]]
    for beyond in (("Add", [most], [1]), ("Sub", [least], [1]), ("Mul", [1 << 61], [4]), ("CumSum", [most, 1], 0)):
        with pytest.raises(Impossible):
            evaluated(*beyond)
    for number in (256.0, -1.0):
        with pytest.raises(Impossible):
            evaluated("Cast", number, to=TensorProto.UINT8)
    with pytest.raises(Impossible):
        evaluated("Add", np.int32(1 << 30), np.int32(1 << 30))


@pytest.mark.parametrize(
    ("equation", "ranks"),
    [
        ("ij,jk->ik", [2, 2]),
        ("ij,jk", [2, 2]),
        ("ii->i", [2]),
        ("->", [0]),
        (",", [0, 0]),
        ("...ij,...jk->...ik", [4, 2]),
        ("i...j->j...i", [5]),
        (" i j , j k -> i k ", [2, 2]),
        ("Ii->iI", [2]),
        ("...", [3]),
        ("ij->", [None]),
    ],
)
def test_equations_of_einsum(equation: str, ranks: list[int | None]) -> None:
    assert equation_fault(equation, ranks) == ""


@pytest.mark.parametrize(
    ("equation", "ranks", "fault"),
    [
        ("....", [1], "'....' is no term: letters, and at most one ellipsis '...'"),
        ("...i...", [3], "'...i...' is no term: letters, and at most one ellipsis '...'"),
        ("i.j", [2], "'i.j' is no term: letters, and at most one ellipsis '...'"),
        ("i->j->i", [1], "'j->i' is no term: letters, and at most one ellipsis '...'"),
        ("ij", [2, 2], "1 terms for 2 operands"),
        ("i,", [1], "2 terms for 1 operands"),
        ("ij", [3], "the term 'ij' does not fit an operand with 3 dimensions"),
        ("...ijk", [2], "the term '...ijk' does not fit an operand with 2 dimensions"),
        ("ij->iij", [2], "a letter repeats in the result 'iij'"),
        ("ij->k", [2], "the result has 'k', and no operand has it"),
        ("ij->...", [2], "the result has '.', and no operand has it"),
    ],
)
def test_equations_that_are_none(equation: str, ranks: list[int | None], fault: str) -> None:
    assert equation_fault(equation, ranks) == fault


def test_an_equation_on_which_onnx_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model([node("Einsum", "m", "y", equation="....")], [MATRIX], "y"))
    command = [sys.executable, "-m", "spillprof", "inspect", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "error: equation is '....'" in done.stderr
    assert "hint:" in done.stderr


def test_a_tensor_of_very_many_dimensions_is_refused() -> None:
    data = model([node("Relu", "x", "y")], [value("x", [1 << 62] * 2000)], "y")
    with pytest.raises(ModelError, match="2,000 dimensions"):
        read(data)
    weight = TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[1] * 2000, raw_data=bytes(4))
    with pytest.raises(ModelError, match="2,000 dimensions"):
        read(model([node("Relu", "x", "y")], [], "y", initializers=[weight]))


@pytest.mark.parametrize("trips", [float("nan"), float("inf"), 3.0])
def test_trips_that_are_no_integer(trips: float) -> None:
    step = body(
        [node("Relu", "a", "b")],
        "go b",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("a", [4, 8])],
    )
    looped = node("Loop", "scales - m", "y", body=step)
    with pytest.raises(ShapeError, match="number of trips is of type float32") as refused:
        read(made(looped, numpy_helper.from_array(np.float32(trips), "scales")))
    assert "Loop_0 (Loop)" in refused.value.where


def test_an_error_shows_no_endless_list_of_empty_lists() -> None:
    """An empty tensor of 2^40 rows, stored in a few bytes."""
    empty = TensorProto(name="a", data_type=TensorProto.INT64, dims=[1 << 40, 0])
    with pytest.raises(ShapeError) as refused:
        read(model([node("Concat", "m a", "y", axis=9)], [MATRIX], "y", initializers=[empty]))
    assert f"a: [{1 << 40}, 0]" in refused.value.where
