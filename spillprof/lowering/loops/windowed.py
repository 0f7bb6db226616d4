"""Loops of operators that slide a window over a map: convolutions, pooling, interpolation."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from spillprof.ir.loop_nest import Window
from spillprof.lowering.channels import holds_channels_last
from spillprof.lowering.loops.loop_map import LoopMap, Unmapped, Windows, aligned, uncut
from spillprof.lowering.operators.facts import OperandShapes, TensorShape
from spillprof.lowering.operators.table import facts_of

_SPACE = {1: ("positions",), 2: ("rows", "columns"), 3: ("planes", "rows", "columns")}
_TRANSPOSED = ("ConvTranspose",)
_KERNEL_AT = {"QLinearConv": 3}
_BIAS_AT = {"QLinearConv": 8, "ConvInteger": -1}


def _space_names(rank: int) -> Sequence[str]:
    return _SPACE.get(rank) or [f"space {i}" for i in range(rank)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slide:
    """How a kernel moves along one dimension of a map."""

    size: int  # of the map
    out: int
    kernel: int
    stride: int
    dilation: int
    pad: int  # positions before the map

    @property
    def extent(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    def window(self, axis: int | None) -> Window:
        """Positions of the map that the axis of the output reads."""
        return Window(size=self.size, axis=axis, stride=self.stride, offset=-self.pad, extent=self.extent)

    def transposed_window(self, axis: int | None) -> Window:
        """The same of a transposed convolution: output position o is fed by map position i where, for a kernel
        position k, o = i * stride + k * dilation - pad. At most one position more than there are.
        """
        back = (self.extent - 1) // self.stride
        return Window(size=self.size, axis=axis, per=self.stride, shift=self.pad, offset=-back, extent=back + 1)


def _integers(o: OperandShapes, attribute: str, count: int, default: int) -> tuple[int, ...]:
    value = o.op.attributes.get(attribute)
    if not isinstance(value, tuple) or not value:
        return (default,) * count
    found = tuple(int(v) for v in value)
    if len(found) != count:
        raise Unmapped(attribute)
    return found


def _slides(
    o: OperandShapes, maps: TensorShape, outs: TensorShape, kernel: TensorShape, *, transposed: bool = False
) -> list[_Slide]:
    """The slide along each dimension; padding as in the ONNX definition of ``auto_pad``."""
    rank = len(kernel)
    if not len(maps) == len(outs) == rank:
        raise Unmapped(o.op.op_type)
    strides, dilations = _integers(o, "strides", rank, 1), _integers(o, "dilations", rank, 1)
    pads = _integers(o, "pads", 2 * rank, 0)[:rank]
    mode = o.text("auto_pad") or "NOTSET"
    is_sized = transposed and isinstance(o.op.attributes.get("output_shape"), tuple)
    extra = _integers(o, "output_padding", rank, 0) if transposed else (0,) * rank
    found = []
    for i in range(rank):
        extent = (kernel[i] - 1) * dilations[i] + 1
        pad = pads[i]
        if mode.startswith("SAME") or is_sized:
            covered = (maps[i] - 1) * strides[i] + extent + extra[i] - outs[i]
            total = max(covered if transposed else (outs[i] - 1) * strides[i] + extent - maps[i], 0)
            pad = total // 2 if mode == "SAME_UPPER" else total - total // 2
        elif mode == "VALID":
            pad = 0
        slide = _Slide(size=maps[i], out=outs[i], kernel=kernel[i], stride=strides[i], dilation=dilations[i], pad=pad)
        if slide.stride < 1 or slide.dilation < 1 or slide.kernel < 1:
            raise Unmapped(o.op.op_type)
        found.append(slide)
    return found


def _channels_first(shape: TensorShape, *, last: bool) -> TensorShape:
    return (shape[0], shape[-1], *shape[1:-1]) if last else shape


def _stored(batch: Window, channels: Windows, space: Sequence[Window], *, last: bool) -> Windows:
    """Windows of a map as its layout has them."""
    return (batch, *space, *channels) if last else (batch, *channels, *space)


def convolution_loops(o: OperandShapes) -> LoopMap:
    """Batch, groups, output channels of a group, rows and columns of the output; reduced: input channels of a group.

    Kernel positions are no axis: every tile has all of them.
    """
    op, facts = o.op, facts_of(o.op)
    transposed = op.op_type in _TRANSPOSED
    if not transposed and facts.kernel_input is None:
        raise Unmapped(op.op_type)
    kernel_at = facts.kernel_input or 1
    last = holds_channels_last(op)
    image, result = (_channels_first(shape, last=last) for shape in (o.input(0), o.output()))
    kernel = _channels_first(o.input(kernel_at), last=facts.kernel_channels_last)
    groups = o.integer("group", 1)
    features = result[1] // groups
    ins = image[1] // groups
    own = (image[1], features) if transposed else (result[1], ins)
    if (features * groups, ins * groups, *own) != (result[1], image[1], *kernel[:2]):
        raise Unmapped(op.op_type)
    slides = _slides(o, image[2:], result[2:], kernel[2:], transposed=transposed)

    loops = LoopMap()
    batch = loops.dimension("batch", result[0])
    group = loops.dimension("channels" if ins == features == 1 else "groups", groups)
    feature = loops.dimension("out channels", features)
    space = [loops.dimension(name, slide.out) for name, slide in zip(_space_names(len(slides)), slides, strict=True)]
    channel = loops.dimension("in channels", ins)
    read = [
        slide.transposed_window(out.axis) if transposed else slide.window(out.axis)
        for slide, out in zip(slides, space, strict=True)
    ]
    positions = uncut(kernel[2:])
    loops.read(0, *_stored(batch, (group, channel), read, last=last), role="image")
    if transposed:
        loops.read(kernel_at, group, channel, feature, *positions, role="kernel")
    elif facts.kernel_channels_last:
        loops.read(kernel_at, group, feature, *positions, channel, role="kernel")
    else:
        loops.read(kernel_at, group, feature, channel, *positions, role="kernel")
    loops.write(0, *_stored(batch, (group, feature), space, last=last))
    for index in range(len(op.inputs)):
        if index not in loops.inputs and o.has_input(index):
            shape = o.input(index)
            per_channel = prod(shape) == result[1] > 1
            windows = (group, feature) if per_channel else aligned(shape, o.output(), loops.outputs[0])
            loops.read(index, *windows, role="bias" if index == _BIAS_AT.get(op.op_type, 2) else "")
    return loops


def pooling_loops(o: OperandShapes) -> LoopMap:
    """Batch, channels, rows and columns of the output; interpolation: each axis of the output."""
    if o.op.op_type in ("Resize", "Upsample"):
        return _interpolation_loops(o)
    last = holds_channels_last(o.op)
    image, result = (_channels_first(shape, last=last) for shape in (o.input(0), o.output()))
    kernel = o.op.attributes.get("kernel_shape")
    if not isinstance(kernel, tuple):
        raise Unmapped(o.op.op_type)
    slides = _slides(o, image[2:], result[2:], tuple(int(k) for k in kernel))
    loops = LoopMap()
    batch, channels = loops.dimension("batch", result[0]), loops.dimension("channels", result[1])
    space = [loops.dimension(name, s.out) for name, s in zip(_space_names(len(slides)), slides, strict=True)]
    read = [slide.window(out.axis) for slide, out in zip(slides, space, strict=True)]
    loops.read(0, *_stored(batch, (channels,), read, last=last), role="image")
    for index in range(len(o.op.outputs)):
        loops.write(index, *_stored(batch, (channels,), space, last=last))
    return loops


def _interpolation_loops(o: OperandShapes) -> LoopMap:
    before, after = o.input(0), o.output()
    if len(before) != len(after):
        raise Unmapped(o.op.op_type)
    loops = LoopMap()
    names = ("batch", "channels", *_space_names(len(after) - 2)) if len(after) > 2 else ("rows", "columns")
    result = [loops.dimension(name, size) for name, size in zip(names, after, strict=False)]
    loops.write(0, *result)
    image = (_interpolated(o, size, out) for size, out in zip(before, result, strict=True))
    loops.read(0, *image, role="image")
    return loops


def _interpolated(o: OperandShapes, size: int, out: Window) -> Window:
    """Positions of a dimension that an interpolation reads.

    Scales are not in a Graph, so the scale is taken to be the ratio of sizes. Where that is no whole number and the
    sizes are not given, the window allows for any scale that gives these sizes.
    """
    text = o.text
    mode, place = text("mode") or "nearest", text("coordinate_transformation_mode") or "half_pixel"
    if o.op.op_type == "Upsample" or len(o.op.inputs) == 2:  # Resize of opset 10
        place, rounding = "asymmetric", "floor"
    else:
        rounding = text("nearest_mode") or "round_prefer_floor"
    if out.axis is None or size == 1 or place == "tf_crop_and_resize":
        return Window(size=size)
    if size == out.size:
        return Window(size=size, axis=out.axis)
    # the coordinate of iteration i: (i * step + start) / per
    if place == "align_corners":
        step, start, per = 2 * (size - 1), 0, 2 * (out.size - 1)
    elif place == "asymmetric":
        step, start, per = 2 * size, 0, 2 * out.size
    elif place == "tf_half_pixel_for_nn":
        step, start, per = 2 * size, size, 2 * out.size
    else:
        step, start, per = 2 * size, size - out.size, 2 * out.size
    before = after = 0  # positions beside the one below the coordinate
    if mode == "nearest":
        shift = {"floor": 0, "ceil": per - 1, "round_prefer_ceil": per // 2}.get(rounding, per // 2 - 1)
        start += shift
        inside = place == "align_corners" or (place, rounding) == ("asymmetric", "floor")
        if not inside and not (place.endswith("half_pixel") and rounding.startswith("round")):
            before = after = 1  # a coordinate outside of the map is moved to its edge
    else:
        before, after = (1, 2) if mode == "cubic" else (0, 1)
        if o.integer("antialias", 0) and size > out.size:
            wider = -(-size // out.size)
            before, after = (before + 1) * wider, (after + 1) * wider
    by_sizes = o.has_input(3) and text("keep_aspect_ratio_policy") in ("", "stretch")
    exact = by_sizes or out.size % size == 0 or (size % out.size == 0 and place != "align_corners")
    slack = 0 if exact else -(-size // out.size)
    return Window(
        size=size,
        axis=out.axis,
        stride=step,
        per=per,
        shift=start,
        offset=-before - slack,
        extent=before + after + 1 + slack,
    )
