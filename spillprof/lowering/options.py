"""Options of lowering: how a Graph becomes a Program.

To add one, add a field with ``option_field``: flag, help, configuration key and name in results derive from it.
"""

from dataclasses import dataclass
from enum import StrEnum

from spillprof.ir.dtypes import dtype_names, parse_dtype
from spillprof.ir.op_times import OpTimes
from spillprof.ir.option_rows import option_field


class Fuse(StrEnum):
    """Which operators are fused into one step."""

    NONE = "none"
    STANDARD = "standard"  # Conv/Gemm/MatMul + bias, BatchNormalization, activation; Q/DQ around an operator


class Views(StrEnum):
    """Whether views (Reshape, Squeeze, Identity, ...) copy."""

    SHARE = "share"  # share their input's buffer
    COPY = "copy"  # write a new buffer


class Control(StrEnum):
    """How If, Loop and Scan are lowered."""

    UNFOLD = "unfold"  # the operators of the branch taken, and of each trip of a loop, become steps
    STEP = "step"  # one step; its bodies are its workspace


class ConvAlgorithm(StrEnum):
    """The algorithm of convolutions, which decides their workspace."""

    DIRECT = "direct"
    IM2COL = "im2col"
    WINOGRAD = "winograd"
    AUTO = "auto"


class WeightsPolicy(StrEnum):
    """Where weights live."""

    STREAM = "stream"
    CACHED = "cached"
    RESIDENT = "resident"


class Oversized(StrEnum):
    """What to do with an operator that cannot fit."""

    STREAM = "stream"
    ERROR = "error"


class TilingModel(StrEnum):
    """What an operator that does not fit moves."""

    AUTO = "auto"  # what the tiles of the mode that the planner chooses for it move
    ONCE = "once"  # each operand that passes in tiles once, whatever the tiles: optimistic


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringOptions:
    """All options of lowering, in the order in which the help lists them."""

    weights: WeightsPolicy = option_field(
        WeightsPolicy.STREAM,
        "--weights",
        "stream: pass through a staging area; cached: evictable, wanted again by the next inference; resident: on-chip "
        "all the time.",
    )
    fuse: Fuse = option_field(
        Fuse.STANDARD, "--fuse", "standard: fuse bias, batch norm, activation and Q/DQ into their operator."
    )
    fuse_tensor: tuple[str, ...] = option_field(
        (),
        "--fuse-tensor",
        "Fuse the operator that writes a tensor into the elementwise operator that reads it. Repeatable.",
        metavar="TENSOR",
        json_if_changed=True,
    )
    conv: ConvAlgorithm = option_field(
        ConvAlgorithm.DIRECT, "--conv", "Convolution algorithm: decides workspace and time."
    )
    inplace: bool = option_field(True, "--inplace", "Elementwise operators overwrite an input at its last use.")
    views: Views = option_field(
        Views.SHARE, "--views", "share: Reshape and other views share their input's memory; copy: they write a copy."
    )
    fold: bool = option_field(
        True, "--fold", "Fold constants: what is computed from constants alone counts as a weight."
    )
    control: Control = option_field(
        Control.UNFOLD,
        "--control-flow",
        "unfold: replace If, Loop and Scan by the operators that they run; step: keep each as one step.",
    )
    pin: tuple[str, ...] = option_field(
        (), "--pin", "Keep a tensor in a dedicated slot, never evicted. Repeatable.", metavar="TENSOR"
    )
    oversized: Oversized = option_field(
        Oversized.STREAM, "--oversized", "stream: tile an operator that cannot fit, through DRAM; error: stop."
    )
    tiling: TilingModel = option_field(
        TilingModel.AUTO,
        "--tiling",
        "auto: choose tiles and loop order of an operator that cannot fit, and count every pass of its operands; once: "
        "assume that each operand passes once, whatever the tiles (optimistic).",
    )
    act_dtype: str | None = option_field(
        None,
        "--act-dtype",
        "Element type of float activations, e.g. int8; file: as in the model, the default.",
        metavar="TYPE",
        parse=parse_dtype,
        names=dtype_names,
    )
    weight_dtype: str | None = option_field(
        None,
        "--weight-dtype",
        "Element type of float weights, e.g. int4. Biases and norms keep theirs below 16 bits.",
        metavar="TYPE",
        parse=parse_dtype,
        names=dtype_names,
    )
    op_times: OpTimes | None = option_field(
        None,
        "--op-times",
        "Measured operator times by name, in place of estimates: CSV, a profile of ONNX Runtime, Vela's per-layer CSV.",
        metavar="FILE",
        is_file=True,
        as_json=lambda times: times.digest,
        json_if_changed=True,
    )
