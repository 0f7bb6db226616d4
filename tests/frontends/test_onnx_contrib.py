"""Output sizes of operators that onnx has no rule for, by their published definitions."""

import numpy as np
import onnx
import pytest
from graphs import MACHINE
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnx_builders import model, node, read, value

from spillprof.frontends.onnx.contrib import CONTRIB_SIZES
from spillprof.ir.errors import ShapeError, SpillprofError
from spillprof.lowering.lower import lower
from spillprof.lowering.operators.table import CostClass, cost_class, known_rows
from spillprof.lowering.options import LoweringOptions

ELEMENTS = {
    "f": onnx.TensorProto.FLOAT, "h": onnx.TensorProto.FLOAT16, "i": onnx.TensorProto.INT32,
    "l": onnx.TensorProto.INT64, "b": onnx.TensorProto.INT8, "u": onnx.TensorProto.UINT8,
    "s": onnx.TensorProto.STRING, "o": onnx.TensorProto.BOOL,
}  # fmt: skip
DTYPES = {
    "f": "float32", "h": "float16", "i": "int32", "l": "int64", "b": "int8", "u": "uint8", "s": "string",
    "o": "bool", "w": "uint32", "8": "float8e4m3fn",
}  # fmt: skip
MS = "com.microsoft"


def sizes(op_type, inputs, n_outputs, domain=MS, contents=None, **settings):
    """Outputs of one operator as ``type:shape`` texts; inputs alike, ``-`` for an absent one."""
    names, fed = [], []
    for index, text in enumerate(inputs.split()):
        name = f"x{index}" if text != "-" else ""
        names.append(name or "-")
        kind, _, dims = text.partition(":")
        if name and name not in (contents or {}):
            fed.append(value(name, [int(d) for d in dims.split("x") if d], ELEMENTS[kind]))
    outputs = [f"y{index}" for index in range(n_outputs)]
    built = node(op_type, " ".join(names), " ".join(outputs), domain=domain, **settings)
    stored = [numpy_helper.from_array(np.array(v), name) for name, v in (contents or {}).items()]
    data = model([built], fed, " ".join(outputs), domains={domain: 1}, initializers=stored)
    tensors = read(data).tensors
    letter = {dtype: key for key, dtype in DTYPES.items()}
    return " ".join(f"{letter[tensors[n].dtype]}:{'x'.join(map(str, tensors[n].shape))}" for n in outputs)


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "settings"),
    [
        # attention, 2 heads of 4; two earlier tokens where there is a past
        ("Attention", "f:1x3x8 f:8x24 f:24", "f:1x3x8 f:2x1x2x3x4", {"num_heads": 2}),
        ("Attention", "f:1x3x8 f:8x24 f:24 - f:2x1x2x2x4", "f:1x3x8 f:2x1x2x5x4", {"num_heads": 2}),
        ("Attention", "f:1x3x8 f:8x20 f:20", "f:1x3x4", {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}),
        (
            "Attention",
            "f:1x1x8 f:8x24 f:24 - f:2x1x2x9x4",
            "f:1x1x8 f:2x1x2x9x4",
            {"num_heads": 2, "past_present_share_buffer": 1},
        ),
        ("QAttention", "b:1x3x8 b:8x24 i:24 f: f:", "f:1x3x8", {"num_heads": 2}),
        ("MultiHeadAttention", "f:1x3x8 f:1x5x8 f:1x5x4", "f:1x3x4 f:1x2x5x4 f:1x2x5x2", {"num_heads": 2}),
        ("MultiHeadAttention", "f:1x3x2x3x4", "f:1x3x8 f:1x2x3x4", {"num_heads": 2}),
        ("MultiHeadAttention", "f:1x3x8 f:1x5x2x2x4", "f:1x3x8 f:1x2x5x4", {"num_heads": 2}),
        ("MultiHeadAttention", "f:1x3x8 f:1x2x5x4 f:1x2x5x2", "f:1x3x4 f:1x2x5x4 f:1x2x5x2", {"num_heads": 2}),
        (
            "MultiHeadAttention",
            "h:1x3x8 h:1x3x8 h:1x3x8 - - - h:1x2x2x4 h:1x2x2x4",
            "h:1x3x8 h:1x2x5x4 h:1x2x5x4 h:1x2x3x5",
            {"num_heads": 2},
        ),
        (
            "DecoderMaskedMultiHeadAttention",
            "f:1x1x8 f:1x1x8 f:1x1x8 - - f:1x2x9x4 f:1x2x9x4 i:1",
            "f:1x1x8 f:1x2x9x4 f:1x2x9x4",
            {"num_heads": 2, "past_present_share_buffer": 1},
        ),
        (
            "GroupQueryAttention",
            "h:1x3x8 h:1x3x4 h:1x3x4 h:1x1x2x4 h:1x1x2x4 i:1 i:",
            "h:1x3x8 h:1x1x5x4 h:1x1x5x4",
            {"num_heads": 2, "kv_num_heads": 1},
        ),
        (
            "GroupQueryAttention",
            "h:1x3x16 - - h:1x1x2x4 h:1x1x2x4 i:1 i:",
            "h:1x3x8 h:1x1x5x4",
            {"num_heads": 2, "kv_num_heads": 1},
        ),
        (
            "SparseAttention",
            "h:1x4x8 h:1x4x4 h:1x4x4 h:1x1x9x4 h:1x1x9x4 i:1x3 i:1x3 i: i:1",
            "h:1x4x8 h:1x1x9x4",
            {"num_heads": 2, "kv_num_heads": 1, "sparse_block_size": 2},
        ),
        (
            "PagedAttention",
            "h:2x8 h:2x4 h:2x4 h:9x4x1x4 h:9x4x1x4 i:2 i:1 i:1x3",
            "h:2x8 h:9x4x1x4 h:9x4x1x4",
            {"num_heads": 2, "kv_num_heads": 1},
        ),
        ("PackedAttention", "f:5x8 f:8x24 f:24 i:2x4 i:3", "f:5x8", {"num_heads": 2}),
        ("PackedMultiHeadAttention", "f:5x8 f:5x8 f:5x4 - i:2x4 i:3", "f:5x4", {"num_heads": 2}),
        ("PackedMultiHeadAttention", "f:5x2x3x4 - - - i:2x4 i:3", "f:5x8", {"num_heads": 2}),
        ("GatedRelativePositionBias", "f:2x3x8 f:8 f:2 f:8x8 f:8 f:2", "f:2x2x3x3", {"num_heads": 2}),
        # normalisation
        ("SkipLayerNormalization", "f:1x3x8 f:1x3x8 f:8", "f:1x3x8 f:1x3x1 f:1x3x1 f:1x3x8", {}),
        ("SkipSimplifiedLayerNormalization", "h:1x3x8 h:1x3x8 h:8", "h:1x3x8", {}),
        ("SimplifiedLayerNormalization", "f:1x3x8 f:8", "f:1x3x8", {}),
        ("EmbedLayerNormalization", "i:1x3 - f:9x8 f:5x8 - f:8 f:8", "f:1x3x8 i:1", {}),
        ("GroupNorm", "h:1x4x4x8 f:8 f:8", "h:1x4x4x8", {"groups": 2}),
        ("SkipGroupNorm", "h:1x4x4x8 f:8 f:8 h:1x4x4x8", "h:1x4x4x8 h:1x4x4x8", {"groups": 2}),
        # elementwise
        ("BiasGelu", "f:2x8 f:8", "f:2x8", {}),
        ("FastGelu", "f:2x8 f:8", "f:2x8", {}),
        ("QuickGelu", "f:2x8", "f:2x8", {}),
        ("Gelu", "f:2x8", "f:2x8", {}),
        ("BiasSplitGelu", "h:1x3x8 h:8", "h:1x3x4", {}),
        ("BiasDropout", "f:2x8 f:8", "f:2x8 o:2x8", {}),
        ("BitmaskDropout", "f:3x11", "f:3x11 w:2", {}),
        ("RotaryEmbedding", "f:1x3x8 l:1x3 f:9x2 f:9x2", "f:1x3x8", {}),
        ("ComplexMul", "f:1x3x2 f:4x1x2", "f:4x3x2", {}),
        ("IsAllFinite", "f:3", "o:", {}),
        ("Trilu", "f:3x3", "f:3x3", {}),
        # products
        ("FusedConv", "f:1x3x8x8 f:4x3x3x3", "f:1x4x6x6", {"activation": "Relu"}),
        ("FusedGemm", "f:2x5 f:5x7", "f:2x7", {"activation": "Relu"}),
        ("FusedMatMul", "f:3x5x2 f:3x5x7", "f:3x2x7", {"transA": 1}),
        ("FusedMatMul", "f:2x6x5 f:5x6x7", "f:6x2x7", {"transBatchA": 1, "transBatchB": 1}),
        ("GemmFastGelu", "h:2x5 h:5x7", "h:2x7", {}),
        ("GemmFloat8", "f:2x5 f:7x5", "8:2x7", {"transB": 1, "dtype": 17}),
        ("MatMulNBits", "h:1x3x32 u:7x1x16 h:7", "h:1x3x7", {"K": 32, "N": 7, "bits": 4, "block_size": 32}),
        ("MatMulBnb4", "f:3x32 u:112 f:7", "f:3x7", {"K": 32, "N": 7, "block_size": 32}),
        ("MatMulIntegerToFloat", "u:2x5 b:5x7 f: f:", "f:2x7", {}),
        ("DynamicQuantizeMatMul", "f:2x5 b:5x7 f:", "f:2x7", {}),
        ("MatMulInteger16", "i:2x5 i:5x7", "i:2x7", {}),
        ("MoE", "h:3x8 h:3x4 h:4x16x8 - h:4x8x16", "h:3x8", {"k": 2}),
        ("CDist", "f:2x5 f:7x5", "f:2x7", {}),
        ("DynamicQuantizeLSTM", "f:7x3x5 b:2x5x24 b:2x6x24", "f:7x2x3x6 f:2x3x6",
         {"hidden_size": 6, "direction": "bidirectional"}),
        # channels last
        ("NhwcConv", "h:1x8x8x3 h:4x3x3x3 h:4", "h:1x4x4x4", {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("NhwcFusedConv", "h:1x8x9x3 h:4x3x1x2", "h:1x8x8x4", {}),
        ("NhwcMaxPool", "u:1x8x8x3", "u:1x4x4x3",
         {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ("NhwcMaxPool", "u:1x8x8x3", "u:1x4x4x3", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        # quantised
        ("QLinearConv", "u:1x3x8x8 f: u: u:4x3x3x3 f: u: f: u:", "u:1x4x6x6", {}),
        ("QLinearConv", "u:1x8x8x3 f: u: u:4x3x3x3 f: u: f: b:", "b:1x6x6x4", {"channels_last": 1}),
        ("QLinearAdd", "u:2x8 f: u: u:8 f: u: f: u:", "u:2x8", {}),
        ("QLinearConcat", "f: u: u:1x2x4 f: u: u:1x3x4 f: u:", "u:1x5x4", {"axis": 1}),
        ("QLinearAveragePool", "u:1x3x8x8 f: u: f: u:", "u:1x3x4x4", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("QLinearAveragePool", "u:1x8x8x3 f: u: f: u:", "u:1x4x4x3",
         {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": 1}),
        ("QLinearGlobalAveragePool", "u:1x3x8x8 f: u: f: u:", "u:1x3x1x1", {}),
        ("QLinearReduceMean", "u:1x3x8x8 f: u: f: u:", "u:1x3", {"axes": [2, 3], "keepdims": 0}),
        ("QLinearSigmoid", "u:2x8 f: u: f: u:", "u:2x8", {}),
        ("QLinearSoftmax", "u:2x8 f: u: f: u:", "u:2x8", {"opset": 13}),
        ("QLinearWhere", "o:2x1 u:2x8 f: u: u:8 f: u: f: u:", "u:2x8", {}),
        ("QGemm", "u:2x5 f: u: u:5x7 f: u: i:7 f: u:", "u:2x7", {}),
        ("QGemm", "u:2x5 f: u: u:5x7 f: u:", "f:2x7", {}),
        ("DequantizeLinear", "u:2x8 h: u:", "h:2x8", {}),
        ("QuantizeLinear", "f:2x8 f: b:", "b:2x8", {}),
        ("DynamicQuantizeLinear", "f:2x8", "u:2x8 f: u:", {}),
        # look-up and movement
        ("GatherBlockQuantized", "u:10x8 l:1x3 f:10x1", "f:1x3x16", {"bits": 4, "block_size": 16}),
        ("GatherBlockQuantized", "u:10x8 l:3 f:10x1", "f:3x8", {"bits": 8, "block_size": 16}),
        ("TorchEmbedding", "f:10x8 l:1x3", "f:1x3x8", {}),
        ("GatherND", "f:4x5 l:3x1", "f:3x5", {}),
        ("GridSample", "f:1x3x8x8 f:1x4x5x2", "f:1x3x4x5", {}),
        ("RestorePadding", "f:5x8 i:2x4", "f:2x4x8", {}),
        ("UnfoldTensor", "f:2x8", "f:2x3x4", {"size": 4, "step": 2}),
        ("MurmurHash3", "i:4", "w:4", {}),
        ("NGramRepeatBlock", "l:1x4 f:1x9", "f:1x9", {"ngram_size": 2}),
        ("ReduceSumInteger", "b:2x8", "i:2", {"axes": [1], "keepdims": 0}),
    ],
)  # fmt: skip
def test_microsoft_operators_have_the_size_of_their_definition(op_type, inputs, outputs, settings):
    assert sizes(op_type, inputs, len(outputs.split()), **settings) == outputs


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "contents"),
    [
        ("RelativePositionBias", "f:32x2 l: l:", "f:1x2x3x5", {"x1": np.int64(3), "x2": np.int64(5)}),
        ("ExpandDims", "f:2x8 i:", "f:2x1x8", {"x1": np.int32(1)}),
        ("CropAndResize", "f:1x3x8x8 f:5x4 i:5 i:2", "f:5x3x4x6", {"x3": np.array([4, 6], np.int32)}),
        ("MatMulFpQ4", "f:2x32 u:448 l:2", "f:2x7", {"x2": np.array([32, 7])}),
        ("Pad", "f:2x3 l:4", "f:2x6", {"x1": np.array([0, 1, 0, 2])}),
        ("Range", "l: l: l:", "l:5", {"x0": np.int64(0), "x1": np.int64(10), "x2": np.int64(2)}),
    ],
)
def test_sizes_that_follow_from_contents(op_type, inputs, outputs, contents):
    assert sizes(op_type, inputs, 1, contents=contents) == outputs


def test_sizes_that_depend_on_the_data_are_bounded_and_counted():
    fed = [value("x", [2, 4, 8]), value("n", [2], onnx.TensorProto.INT32)]
    padded = node("RemovePadding", "x n", "y o c m", domain=MS)
    g = read(model([padded], fed, "y o c m", domains={MS: 1}))
    assert [g.tensors[name].shape for name in "yocm"] == [(8, 8), (2, 4), (3,), (1,)]
    assert [(a.what, a.count) for a in g.assumptions] == [
        ("the output of RemovePadding depends on the data: its largest size is taken", 1)
    ]
    unique = node("Unique", "x", "y i c", domain=MS)
    g = read(model([unique], [value("x", [7])], "y i c", domains={MS: 1}))
    assert [g.tensors[name].shape for name in "yic"] == [(7,)] * 3


def test_column_blocks_of_the_nchwc_layout():
    blocked = node("ReorderInput", "x", "y", domain="com.microsoft.nchwc")
    g = read(model([blocked], [value("x", [1, 20, 4, 4])], "y", domains={"com.microsoft.nchwc": 1}))
    assert g.tensors["y"].shape == (1, 32, 4, 4)


def test_maps_become_a_row_of_columns():
    words = helper.make_tensor_type_proto(onnx.TensorProto.INT64, None)
    fed = helper.make_value_info("x", helper.make_map_type_proto(onnx.TensorProto.STRING, words))
    built = node("DictVectorizer", "x", "y", domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"])
    g = read(model([built], [fed], "y", domains={"ai.onnx.ml": 1}))
    assert (g.tensors["y"].dtype, g.tensors["y"].shape) == ("int64", (1, 3))
    cast = node("CastMap", "x", "y", domain="ai.onnx.ml", map_form="SPARSE", max_map=4)
    numbers = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    fed = helper.make_value_info("x", helper.make_map_type_proto(onnx.TensorProto.INT64, numbers))
    g = read(model([cast], [fed], "y", domains={"ai.onnx.ml": 1}))
    assert (g.tensors["y"].dtype, g.tensors["y"].shape) == ("float32", (1, 4))


def test_operator_nobody_knows_is_sized_from_the_file_and_its_cost_is_an_assumption():
    built = node("Mystery", "x", "y", domain="acme")
    fed, domains = [value("x", [4])], {"acme": 1}
    with pytest.raises(ShapeError) as caught:
        read(model([built], fed, "y", domains=domains))
    assert "Mystery" in str(caught.value.where)
    assert "--assume y=" in str(caught.value.hint)
    g = read(model([built], fed, "y", domains=domains, value_info=[value("y", [9])]))
    assert g.tensors["y"].shape == (9,)
    assert [a.what for a in g.assumptions] == ["a size that cannot be inferred is taken from the file's value_info"]
    assert cost_class("acme", "Mystery") is CostClass.UNKNOWN


NUMBERS = st.integers(-2, 9)
COUNTED = {name for name, row in known_rows().items() if row.macs is not None}
SETTINGS = (
    "num_heads", "kv_num_heads", "transA", "transBatchA", "axis", "size", "step", "dim", "bits", "K", "N", "k",
    "block_size", "sparse_block_size", "hidden_size", "channels_last", "gather_axis", "channels", "keepdims", "dtype",
    "expert_weight_bits", "local_window_size", "past_present_share_buffer",
)  # fmt: skip
LISTS = ("qkv_hidden_sizes", "kernel_shape", "strides", "pads", "dilations", "axes", "scales", "inputdimensions")


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_no_operands_break_a_rule(data: st.DataObject) -> None:
    """Whatever is fed to an operator, it is sized, or refused with an error of ours; and so is its cost."""
    domain = data.draw(st.sampled_from(["com.microsoft", "com.microsoft.nchwc", "ai.onnx.ml"]))
    op_type = data.draw(st.sampled_from(sorted({*CONTRIB_SIZES[domain], *COUNTED})))
    shapes = data.draw(st.lists(st.none() | st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=9))
    element = data.draw(st.sampled_from(list(ELEMENTS.values())))
    chosen = data.draw(st.dictionaries(st.sampled_from(SETTINGS), NUMBERS, max_size=6))
    chosen |= data.draw(st.dictionaries(st.sampled_from(LISTS), st.lists(NUMBERS, min_size=1, max_size=4), max_size=3))
    names = ["-" if shape is None else f"x{i}" for i, shape in enumerate(shapes)]
    outputs = data.draw(st.sampled_from(["y", "y y1", "- y", "y y1 y2 y3"]))
    built = node(op_type, " ".join(names), outputs, domain=domain, **chosen)
    fed = [value(f"x{i}", shape, element) for i, shape in enumerate(shapes) if shape is not None]
    is_stored = data.draw(st.booleans())
    said = [value(name, [2, 3]) for name in outputs.split() if name != "-"] if is_stored else []
    refused = None
    try:
        g = read(model([built], fed, "y", domains={domain: 1}, value_info=said))
        (step,) = lower(g, MACHINE, LoweringOptions(fold=False)).steps
    except SpillprofError as error:
        refused = error
    else:
        assert step.macs >= 0
        assert step.touched_bytes >= 0
        assert all(size >= 0 for t in g.tensors.values() for size in t.shape)
    assert refused is None or refused.message
