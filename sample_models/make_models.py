"""Deterministic builders of the sample models.

``python sample_models/make_models.py [--out DIR]`` writes every model; the same code writes the same bytes. The
files hold no weight values: a weight is a ConstantOfShape node of the right shape, so that a file takes tens of
kilobytes. README.md beside this file says what each model shows.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

OPSET = 17
IR_VERSION = 8

# residual_cnn: sizes are float16, 2 bytes an element.
STAGES = 72
MAP_PIXELS = 600  # height and width of the image and of the short-lived map
MAP_CHANNELS = 32  # 32 x 600 x 600: 23.0 MB
LARGE_STRIDE, LARGE_CHANNELS = 4, 106  # the large shared feature f0, 106 x 150 x 150: 4.77 MB
SMALL_STRIDE = 8
SMALL_CHANNELS = (116, 110, 110, 110)  # f1 to f4, 116 x 75 x 75: 1.31 MB, 110 x 75 x 75: 1.24 MB
CONTEXT_PIXELS = 8
CONTEXT_CHANNELS = 164  # running tensor; its 3x3 kernel takes 0.48 MB, and there is one a stage: 35 MB
SQUEEZE_CHANNELS = 16
JOIN_AFTER = 2  # the running tensor is joined with the first answers after this feature
FINE_PERIOD = 3  # every third stage makes a full-size template of f1, the others a quarter of it
RESIDUAL_CLASSES = 10

# three_branch: 8 x 64 x 456 x 456 in float32 is 426 MB, and five of them are live at the peak.
BRANCHES = 3
BRANCH_BATCH = 8
BRANCH_CHANNELS = 64
BRANCH_PIXELS = 456

# transformer_blocks
BLOCKS = 4
TOKENS = 128
MODEL_WIDTH = 256
HEADS = 4
MLP_WIDTH = 1024

# unet
UNET_PIXELS = 256
UNET_WIDTHS = (16, 32, 64, 128)
UNET_CLASSES = 4


def build_all() -> dict[str, onnx.ModelProto]:
    """Every sample model by file name."""
    builders: tuple[Callable[[], onnx.ModelProto], ...] = (residual_cnn, three_branch, transformer_blocks, unet)
    return {f"{build.__name__}.onnx": build() for build in builders}


def residual_cnn() -> onnx.ModelProto:
    """Stages that read five shared features in turn, with a large short-lived map live between the reads."""
    net = _Net("residual_cnn", TensorProto.FLOAT16)
    net.input("image", (1, 3, MAP_PIXELS, MAP_PIXELS))
    net.conv("image", 3, LARGE_CHANNELS, kernel=LARGE_STRIDE, stride=LARGE_STRIDE, out="f0")
    widths = (LARGE_CHANNELS, *SMALL_CHANNELS)
    for j in range(1, len(widths)):
        halving = SMALL_STRIDE // LARGE_STRIDE if j == 1 else 1
        net.conv(f"f{j - 1}", widths[j - 1], widths[j], kernel=halving, stride=halving, out=f"f{j}")
    stride = -(-MAP_PIXELS // SMALL_STRIDE // CONTEXT_PIXELS)
    context = net.conv(f"f{len(widths) - 1}", widths[-1], CONTEXT_CHANNELS, stride=stride, out="c0")

    # The stages share their small kernels; each owns one large kernel.
    channels = CONTEXT_CHANNELS
    expand = net.weight("expand", (MAP_CHANNELS, channels, 1, 1))
    template_kernels = [net.weight(f"template{j}", (MAP_CHANNELS, width, 1, 1)) for j, width in enumerate(widths)]
    enter = net.weight("enter", (channels, channels + len(widths), 1, 1))
    leave = net.weight("leave", (channels, channels, 1, 1))
    squeeze = net.weight("squeeze", (SQUEEZE_CHANNELS, channels, 1, 1))
    excite = net.weight("excite", (channels, SQUEEZE_CHANNELS, 1, 1))
    norm = (net.weight("norm_scale", (channels,)), net.weight("norm_bias", (channels,)))
    map_sizes = net.integers("map_sizes", (1, MAP_CHANNELS, MAP_PIXELS, MAP_PIXELS))
    for stage in range(STAGES):
        at = f"{stage}/"
        seed = net.node("Conv", [context, expand], at + "seed")
        wide = net.node("Resize", [seed, "", "", map_sizes], at + "map")
        joined, answers = context, []
        for j in (*range(1, len(widths)), 0):
            # A feature becomes a template that is correlated with the map (a convolution whose kernel is computed,
            # as in Siamese trackers). The map is live all through, the template for two operators.
            halve = j == 0 or (j == 1 and stage % FINE_PERIOD != 0)
            strides = {"strides": [2, 2]} if halve else {}
            template = net.node("Conv", [f"f{j}", template_kernels[j]], f"{at}t{j}", **strides)
            answer_strides = [MAP_PIXELS // CONTEXT_PIXELS] * 2
            answers.append(net.node("Conv", [wide, template], f"{at}a{j}", strides=answer_strides))
            if j in (JOIN_AFTER, 0):
                joined = net.node("Concat", [joined, *answers], f"{at}join{j}", axis=1)
                answers = []
        change = net.node("Conv", [joined, enter], at + "enter")
        change = net.node("InstanceNormalization", [change, *norm], at + "norm")
        change = net.conv(change, channels, channels, kernel=3, pad=1, out=at + "conv", weight=at + "w")
        change = net.node("Conv", [change, leave], at + "leave")
        gate = net.node("GlobalAveragePool", [change], at + "pool")
        gate = net.node("Conv", [gate, squeeze], at + "squeeze")
        gate = net.node("Sigmoid", [net.node("Conv", [gate, excite], at + "excite")], at + "gate")
        context = net.node("Add", [context, net.node("Mul", [change, gate], at + "mul")], f"c{stage + 1}")
    pooled = net.node("Flatten", [net.node("GlobalAveragePool", [context], "pooled")], "flat")
    net.node("Gemm", [pooled, net.weight("classes", (channels, RESIDUAL_CLASSES))], "logits")
    net.output("logits", (1, RESIDUAL_CLASSES))
    return net.model()


def three_branch() -> onnx.ModelProto:
    """Three branches of two large convolutions each, joined with a skip around them."""
    net = _Net("three_branch", TensorProto.FLOAT)
    shape = (BRANCH_BATCH, BRANCH_CHANNELS, BRANCH_PIXELS, BRANCH_PIXELS)
    net.input("images", (BRANCH_BATCH, 3, BRANCH_PIXELS, BRANCH_PIXELS))
    skip = net.node("Relu", [net.conv("images", 3, BRANCH_CHANNELS, kernel=3, pad=1, out="stem")], "skip")
    ends = []
    for branch in "abcdefgh"[:BRANCHES]:
        tensor = skip
        for layer in (1, 2):
            name = f"{branch}{layer}"
            tensor = net.conv(tensor, BRANCH_CHANNELS, BRANCH_CHANNELS, kernel=3, pad=1, out=f"{name}_conv")
            tensor = net.node("Relu", [tensor], name)
        ends.append(tensor)
    joined = ends[0]
    for branch_end in ends[1:]:
        joined = net.node("Add", [joined, branch_end], f"join_{branch_end}")
    joined = net.node("Add", [joined, skip], "join_skip")
    pooled = net.node("Flatten", [net.node("GlobalAveragePool", [joined], "pooled")], "features")
    net.output(pooled, (shape[0], shape[1]))
    return net.model()


def transformer_blocks() -> onnx.ModelProto:
    """A stack of pre-norm transformer blocks: attention and an MLP, each with its residual."""
    net = _Net("transformer_blocks", TensorProto.FLOAT)
    net.input("tokens", (1, TOKENS, MODEL_WIDTH))
    split_shape = net.integers("split_heads", (1, TOKENS, HEADS, MODEL_WIDTH // HEADS))
    merge_shape = net.integers("merge_heads", (1, TOKENS, MODEL_WIDTH))
    scale = net.scalar("scale", (MODEL_WIDTH / HEADS) ** -0.5)
    root_half, one, half = net.scalar("root_half", 0.5**0.5), net.scalar("one", 1.0), net.scalar("half", 0.5)
    stream = "tokens"
    for block in range(BLOCKS):
        at = f"block{block}/"
        normed = net.layer_norm(stream, MODEL_WIDTH, at + "attention_norm")
        heads = {}
        for role, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3))):
            rows = net.linear(normed, MODEL_WIDTH, MODEL_WIDTH, at + role)
            rows = net.node("Reshape", [rows, split_shape], f"{at}{role}_heads")
            heads[role] = net.node("Transpose", [rows], f"{at}{role}_by_head", perm=order)
        scores = net.node("MatMul", [heads["query"], heads["key"]], at + "scores")
        scores = net.node("Mul", [scores, scale], at + "scaled")
        shares = net.node("Softmax", [scores], at + "shares", axis=-1)
        mixed = net.node("MatMul", [shares, heads["value"]], at + "mixed")
        mixed = net.node("Transpose", [mixed], at + "mixed_rows", perm=(0, 2, 1, 3))
        mixed = net.node("Reshape", [mixed, merge_shape], at + "merged")
        attention = net.linear(mixed, MODEL_WIDTH, MODEL_WIDTH, at + "attention")
        stream = net.node("Add", [stream, attention], at + "after_attention")
        normed = net.layer_norm(stream, MODEL_WIDTH, at + "mlp_norm")
        wide = net.linear(normed, MODEL_WIDTH, MLP_WIDTH, at + "mlp_up")
        # GELU as exporters write it: x * (erf(x / sqrt 2) + 1) / 2
        bent = net.node("Erf", [net.node("Mul", [wide, root_half], at + "gelu_scaled")], at + "gelu_erf")
        bent = net.node("Mul", [wide, net.node("Add", [bent, one], at + "gelu_shifted")], at + "gelu_product")
        bent = net.node("Mul", [bent, half], at + "gelu")
        stream = net.node("Add", [stream, net.linear(bent, MLP_WIDTH, MODEL_WIDTH, at + "mlp_down")], at + "after_mlp")
    out = net.layer_norm(stream, MODEL_WIDTH, "final_norm")
    net.output(out, (1, TOKENS, MODEL_WIDTH))
    return net.model()


def unet() -> onnx.ModelProto:
    """A small U-Net: every level's skip lives until the way up."""
    net = _Net("unet", TensorProto.FLOAT)
    net.input("image", (1, 3, UNET_PIXELS, UNET_PIXELS))
    tensor, channels, skips = "image", 3, []
    for level, width in enumerate(UNET_WIDTHS):
        if level:
            tensor = net.node("MaxPool", [tensor], f"down{level}/pool", kernel_shape=[2, 2], strides=[2, 2])
        tensor = net.double_conv(tensor, channels, width, f"down{level}/")
        channels = width
        skips.append((tensor, width))
    for level, (skip, width) in reversed(list(enumerate(skips[:-1]))):
        kernel = net.weight(f"up{level}/expand_weight", (channels, width, 2, 2))
        tensor = net.node("ConvTranspose", [tensor, kernel], f"up{level}/expand", strides=[2, 2])
        tensor = net.node("Concat", [skip, tensor], f"up{level}/join", axis=1)
        tensor = net.double_conv(tensor, 2 * width, width, f"up{level}/")
        channels = width
    net.conv(tensor, channels, UNET_CLASSES, out="classes")
    net.output("classes", (1, UNET_CLASSES, UNET_PIXELS, UNET_PIXELS))
    return net.model()


class _Net:
    """Collects the nodes of one graph. Every node is named after the tensor it writes."""

    def __init__(self, name: str, dtype: int) -> None:
        self._name = name
        self._dtype = dtype
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: Sequence[int]) -> None:
        self._inputs.append(helper.make_tensor_value_info(name, self._dtype, shape))

    def output(self, name: str, shape: Sequence[int]) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, self._dtype, shape))

    def node(self, op_type: str, inputs: Sequence[str], out: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(op_type, inputs, [out], name=out, **attributes))
        return out

    def weight(self, name: str, shape: Sequence[int]) -> str:
        """A weight without values: ConstantOfShape over a shape that weights of one shape share."""
        wanted = self.integers("shape_" + "x".join(map(str, shape)), shape)
        zero = helper.make_tensor("", self._dtype, [1], [0.0])
        return self.node("ConstantOfShape", [wanted], name, value=zero)

    def integers(self, name: str, values: Sequence[int]) -> str:
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def scalar(self, name: str, value: float) -> str:
        self._initializers[name] = helper.make_tensor(name, self._dtype, [], [value])
        return name

    def conv(
        self, tensor: str, channels_in: int, channels_out: int, *, out: str,
        kernel: int = 1, stride: int = 1, pad: int = 0, weight: str | None = None,
    ) -> str:  # fmt: skip
        """A square convolution without bias; attributes only where they differ from the defaults."""
        name = self.weight(weight or f"{out}_weight", (channels_out, channels_in, kernel, kernel))
        attributes: dict[str, Any] = {}
        if stride != 1:
            attributes["strides"] = [stride] * 2
        if pad:
            attributes["pads"] = [pad] * 4
        return self.node("Conv", [tensor, name], out, **attributes)

    def double_conv(self, tensor: str, channels_in: int, channels_out: int, at: str) -> str:
        for layer, channels in ((1, channels_in), (2, channels_out)):
            tensor = self.conv(tensor, channels, channels_out, kernel=3, pad=1, out=f"{at}conv{layer}")
            tensor = self.node("Relu", [tensor], f"{at}relu{layer}")
        return tensor

    def linear(self, tensor: str, width_in: int, width_out: int, out: str) -> str:
        product = self.node("MatMul", [tensor, self.weight(f"{out}_weight", (width_in, width_out))], f"{out}_product")
        return self.node("Add", [product, self.weight(f"{out}_bias", (width_out,))], out)

    def layer_norm(self, tensor: str, width: int, out: str) -> str:
        scale, bias = self.weight(f"{out}_scale", (width,)), self.weight(f"{out}_bias", (width,))
        return self.node("LayerNormalization", [tensor, scale, bias], out, axis=-1)

    def model(self) -> onnx.ModelProto:
        """The checked model, with a fixed opset and IR version, so that newer onnx packages write the same bytes."""
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, initializer=list(self._initializers.values())
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="spillprof sample models"
        )
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return model


def main() -> None:
    """Write every model into the folder that ``--out`` names."""
    parser = argparse.ArgumentParser(description="Write the sample models.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder for the .onnx files")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in build_all().items():
        data = model.SerializeToString(deterministic=True)
        (folder / name).write_bytes(data)
        print(f"{name}: {len(data):,} bytes, {len(model.graph.node)} nodes")


if __name__ == "__main__":
    main()
