"""Switches of lowering: how a Graph becomes a Program."""

from dataclasses import dataclass
from enum import StrEnum

from spillprof.ir.op_times import OpTimes


class Fuse(StrEnum):
    """Which operators are joined into one step."""

    NONE = "none"
    STANDARD = "standard"  # Conv/Gemm/MatMul + bias, BatchNormalization, activation; Q/DQ around an operator


class Views(StrEnum):
    """What Reshape, Squeeze, Identity, ... do."""

    SHARE = "share"  # share their input's buffer
    COPY = "copy"  # write a new buffer


class Control(StrEnum):
    """What becomes of If, Loop and Scan."""

    UNFOLD = "unfold"  # the operators of a branch, and of each trip of a loop, one by one
    STEP = "step"  # one step, the bodies a workspace of it


class ConvAlgorithm(StrEnum):
    """Workspace of a convolution."""

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
    """What happens to an operator that cannot fit."""

    STREAM = "stream"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringOptions:
    """All switches of lowering, with their defaults."""

    fuse: Fuse = Fuse.STANDARD
    inplace: bool = True
    views: Views = Views.SHARE
    fold: bool = True
    control: Control = Control.UNFOLD
    conv: ConvAlgorithm = ConvAlgorithm.DIRECT
    weights: WeightsPolicy = WeightsPolicy.STREAM
    oversized: Oversized = Oversized.STREAM
    fuse_tensor: tuple[str, ...] = ()  # tensors whose operator joins the one that reads them
    pin: tuple[str, ...] = ()  # tensors that get a dedicated slot
    act_dtype: str | None = None  # of float activations, inputs and outputs; None: as in the file
    weight_dtype: str | None = None  # of float weights; None: as in the file
    op_times: OpTimes | None = None  # measured, in place of the estimates; None: all are estimated
