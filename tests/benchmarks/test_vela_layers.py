"""Vela's per-layer listings, in the columns of both compilers, from literal text; Vela itself is not needed."""

import importlib
from pathlib import Path

import pytest

REGOR = """\
Original Operator,NNG Operator,Target,Staging Usage,Peak% (Staging),Op Cycles,Network% (cycles),NPU,SRAM AC,DRAM AC,\
OnFlash AC,OffFlash AC,MAC Count,Network% (MAC),Util% (MAC),Name
Conv2D,Conv2D,NPU,4096,50.0,900,60.0,700,80,900,0,0,51200,100.0,28.5,first;second
Conv2D,Relu6,NPU,0,0.0,0,0.0,0,0,0,0,0,0,0.0,100,first;second
Softmax,Sub,NPU,64,1.0,30,2.0,30,4,0,0,0,0,0.0,0.0,out_0
Softmax,LUT,NPU,128,2.0,20,1.0,10,4,20,0,0,0,0.0,0.0,out_1
"""
LEGACY = """\
TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,\
Network%,Util%,Name
CONV_2D,Conv2DBias,2048,25.0,812.6,90.0,700.0,80.0,812.6,0.0,0.0,51200,100.0,28.5,one,two
"""


@pytest.fixture
def vela_layers(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    return importlib.import_module("vela_layers")


def test_an_activation_and_the_rows_of_a_softmax_join_their_layer(vela_layers):
    conv, softmax = vela_layers.parse_layers(REGOR.splitlines())
    assert (conv.name, conv.operator, conv.fused, conv.macs) == ("first", "conv2d", "Relu6", 51200)
    assert (conv.npu_cycles, conv.sram_cycles, conv.dram_cycles, conv.op_cycles) == (700, 80, 900, 900)
    assert conv.sram_usage_bytes == 4096
    assert (softmax.fused, softmax.npu_cycles, softmax.op_cycles, softmax.sram_usage_bytes) == ("LUT", 40, 50, 128)


def test_the_legacy_compiler_s_columns_and_a_name_with_a_comma(vela_layers):
    (layer,) = vela_layers.parse_layers(LEGACY.splitlines())
    assert (layer.name, layer.operator, layer.op_cycles, layer.sram_usage_bytes) == ("one,two", "conv2d", 813, 2048)


def test_a_flash_behind_the_sram_stands_in_the_columns_of_the_dram(vela_layers):
    flash = REGOR.replace("700,80,900,0,0,", "700,80,0,0,900,")
    assert [layer.dram_cycles for layer in vela_layers.parse_layers(flash.splitlines())] == [900, 20]


def test_another_table_is_refused(vela_layers):
    with pytest.raises(ValueError, match="no column Original Operator"):
        vela_layers.parse_layers(["a,b", "1,2"])


def test_macs_follow_from_shapes(vela_layers):
    depthwise = vela_layers.LayerShape(kind="depthwise", ifm=(1, 4, 4, 8), weights=(1, 3, 3, 8), ofm=(1, 2, 2, 8))
    conv = vela_layers.LayerShape(kind="conv", ifm=(1, 4, 4, 8), weights=(16, 3, 3, 8), ofm=(1, 2, 2, 16))
    assert (depthwise.macs, conv.macs) == (2 * 2 * 8 * 9, 2 * 2 * 16 * 9 * 8)


def test_kinds_of_layers_are_summed_up_by_run(monkeypatch):
    """An image of 3 channels is a kind of its own. 300 of our cycles for 400 of theirs, off by 200 + 100 of them."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    run = {"network": "n", "core": "c", "sram_bytes": "1024", "compiler": "regor"}
    layers = [("conv", "8x3x3x3", 100, 50), ("conv", "8x3x3x8", 100, 300), ("conv", "8x3x3x8", 200, 100)]
    rows = [
        {**run, "kind": kind, "weights": weights, "our_npu_cycles": ours, "vela_npu_cycles": theirs}
        for kind, weights, ours, theirs in layers
    ]
    conv, image, total = importlib.import_module("vela_compare").by_kind(rows)
    assert (conv["kind"], conv["layers"], conv["ratio"], conv["mean_error"]) == ("conv", 2, "0.750", "0.750")
    assert (conv["least_ratio"], conv["most_ratio"]) == ("0.333", "2.000")
    assert (image["kind"], image["our_npu_cycles"], image["median_ratio"]) == ("few channels", 100, "2.000")
    assert (total["kind"], total["our_npu_cycles"], total["vela_npu_cycles"]) == ("total", 400, 450)
