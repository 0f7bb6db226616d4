"""Convolutions, pools, and what else looks at an image."""

from typing import Any

import numpy as np

from random_nodes.drawing import FLOAT, INT8, INT32, INT64, UINT8, Case, Draw, node, recipe, vendor


def padding(draw: Draw, kernel: list[int], *, automatic: bool = True) -> dict[str, Any]:
    """Stated, automatic, or none."""
    axes = len(kernel)
    how = draw.choice(
        ["stated", "stated", "none", "VALID", "SAME_UPPER", "SAME_LOWER"] if automatic else ["stated", "none"]
    )
    if how == "stated":
        return {"pads": [draw.randint(0, max(kernel[i % axes] - 1, 0)) for i in range(2 * axes)]}
    return {} if how == "none" else {"auto_pad": how}


def window(draw: Draw, axes: int, *, dilated: bool = True) -> tuple[list[int], dict[str, Any]]:
    """A kernel with its strides, dilations and padding."""
    kernel = draw.some(axes, 1, 4)
    settings = padding(draw, kernel)
    if draw.maybe(0.7):
        settings["strides"] = draw.some(axes, 1, 3)
    if dilated and draw.maybe(0.4):
        settings["dilations"] = draw.some(axes, 1, 3)
    return kernel, settings


POOLS_THAT_ROUND_UP = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}
POOLS_THAT_DILATE = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}


@recipe("AveragePool", "LpPool", "MaxPool")
def pool(draw: Draw, op_type: str) -> Case:
    version, axes = draw.version(op_type), draw.randint(1, 3)
    kernel, settings = window(draw, axes, dilated=version >= POOLS_THAT_DILATE[op_type])
    if version >= POOLS_THAT_ROUND_UP[op_type] and draw.maybe(0.6):
        settings["ceil_mode"] = draw.randint(0, 1)
    image = draw.fed((draw.randint(1, 2), draw.randint(1, 3), *draw.some(axes, 1, 12)))
    outputs = draw.randint(1, 2) if op_type == "MaxPool" and version >= 8 else 1
    return node(draw, op_type, image, version=version, n_outputs=outputs, kernel_shape=kernel, **settings)


@recipe("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def global_pool(draw: Draw, op_type: str) -> Case:
    return node(draw, op_type, draw.fed(draw.shape(3, 5)))


@recipe("Conv", "ConvInteger", "QLinearConv")
def convolution(draw: Draw, op_type: str) -> Case:
    axes, groups = draw.randint(1, 3), draw.choice([1, 1, 2])
    kernel, settings = window(draw, axes)
    filters = groups * draw.randint(1, 2)
    image = (draw.randint(1, 2), groups * draw.randint(1, 2), *draw.some(axes, 1, 10))
    weight = (filters, image[1] // groups, *kernel)
    settings |= {"group": groups} if groups > 1 or draw.maybe(0.2) else {}
    settings |= {"kernel_shape": kernel} if draw.maybe(0.7) else {}
    if op_type == "Conv":
        more = [draw.fed((filters,))] if draw.maybe() else []
        return node(draw, op_type, draw.fed(image), draw.fed(weight), *more, **settings)
    dtype = draw.choice([UINT8, INT8]) if op_type == "QLinearConv" else UINT8
    if op_type == "ConvInteger":
        points = [draw.fed((), dtype) for _ in range(draw.randint(0, 2))]
        return node(draw, op_type, draw.fed(image, dtype), draw.fed(weight, dtype), *points, **settings)
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, dtype)
    inputs = [draw.fed(image, dtype), scale, point, draw.fed(weight, dtype), scale, point, scale, point]
    more = [draw.fed((filters,), INT32)] if draw.maybe() else []
    return node(draw, op_type, *inputs, *more, **settings)


@recipe("ConvTranspose")
def transposed(draw: Draw, op_type: str) -> Case:
    axes, groups = draw.randint(1, 2), draw.choice([1, 1, 2])
    kernel, settings = window(draw, axes)
    image = (1, groups * draw.randint(1, 2), *draw.some(axes, 1, 6))
    weight = (image[1], draw.randint(1, 2), *kernel)
    settings |= {"group": groups} if groups > 1 else {}
    settings |= {"kernel_shape": kernel} if draw.maybe(0.7) else {}
    settings |= {"output_padding": draw.some(axes, 0, 2)} if draw.maybe(0.3) else {}
    if draw.maybe(0.2):
        strides = settings.get("strides", [1] * axes)
        settings["output_shape"] = [
            max((s - 1) * t + k - draw.randint(0, 3), 1) for s, t, k in zip(image[2:], strides, kernel, strict=True)
        ]
    return node(draw, op_type, draw.fed(image), draw.fed(weight), **settings)


@recipe("DeformConv")
def deformable(draw: Draw, op_type: str) -> Case:
    kernel, (height, width) = draw.some(2, 1, 3), draw.some(2, 4, 8)
    strides, pads = draw.some(2, 1, 2), draw.some(4, 0, 1)
    image, channels = draw.randint(1, 2), draw.randint(1, 2)
    out = [
        (size + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i, size in enumerate((height, width))
    ]  # fmt: skip
    offsets = (image, 2 * kernel[0] * kernel[1], *out)
    return node(
        draw, op_type, draw.fed((image, channels, height, width)), draw.fed((2, channels, *kernel)), draw.fed(offsets),
        kernel_shape=kernel, strides=strides, pads=pads,
    )  # fmt: skip


@recipe("MaxUnpool")
def unpool(draw: Draw, op_type: str) -> Case:
    kernel, strides, (height, width) = draw.some(2, 1, 3), draw.some(2, 1, 3), draw.some(2, 1, 4)
    image = (1, draw.randint(1, 2), height, width)
    fits = [(size - 1) * s + k for size, s, k in zip(image[2:], strides, kernel, strict=True)]
    stated = [draw.deciding([*image[:2], *(size + draw.randint(0, 2) for size in fits)])] if draw.maybe() else []
    settings = {"strides": strides} if draw.maybe(0.8) or stated else {}
    return node(draw, op_type, draw.fed(image), draw.fed(image, INT64, 0, 0), *stated, kernel_shape=kernel, **settings)


@recipe("MaxRoiPool", "RoiAlign")
def regions(draw: Draw, op_type: str) -> Case:
    count, image = draw.randint(0 if draw.maybe(0.1) else 1, 3), (1, draw.randint(1, 3), 8, 8)
    if op_type == "MaxRoiPool":
        return node(draw, op_type, draw.fed(image), draw.fed((count, 5), FLOAT, 0, 0), pooled_shape=draw.some(2, 1, 3))
    settings = {"output_height": draw.randint(1, 3), "output_width": draw.randint(1, 3)} if draw.maybe(0.8) else {}
    return node(draw, op_type, draw.fed(image), draw.fed((count, 4)), draw.fed((count,), INT64, 0, 0), **settings)


@recipe("Resize")
def resize(draw: Draw, op_type: str) -> Case:
    version = draw.version(op_type)
    shape = (1, draw.randint(1, 2), *draw.some(draw.randint(1, 2), 1, 7))
    factors = [1.0, 1.0, *(draw.choice([0.5, 1.0, 1.5, 2.0, 0.6, 2.3]) for _ in shape[2:])]
    sizes = [*shape[:2], *(draw.randint(1, 9) for _ in shape[2:])]
    settings: dict[str, Any] = {"mode": draw.choice(["nearest", "linear", None])}
    if version < 11:
        return node(draw, op_type, draw.fed(shape), draw.deciding(factors, FLOAT), version=version, **settings)
    if version >= 18 and draw.maybe(0.4):
        axes = draw.axes(len(shape[2:]), 1)
        axes = [a + 2 if a >= 0 else a for a in axes]
        settings["axes"] = axes
        factors, sizes = [factors[a] for a in axes], [sizes[a] for a in axes]
        if draw.maybe():
            settings["keep_aspect_ratio_policy"] = draw.choice(["not_larger", "not_smaller", "stretch"])
    settings["coordinate_transformation_mode"] = draw.choice(["half_pixel", "asymmetric", "align_corners"])
    no_region = None if version >= 13 else draw.stored([], FLOAT)
    if draw.maybe():
        settings.pop("keep_aspect_ratio_policy", None)
        return node(
            draw, op_type, draw.fed(shape), no_region, draw.deciding(factors, FLOAT), version=version, **settings
        )
    no_scale = None if version >= 13 else draw.stored([], FLOAT)
    return node(draw, op_type, draw.fed(shape), no_region, no_scale, draw.deciding(sizes), version=version, **settings)


@recipe("Upsample")
def upsample(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), (1, draw.randint(1, 2), *draw.some(2, 1, 5))
    scales = [1.0, 1.0, *(draw.choice([1.0, 1.5, 2.0, 2.3]) for _ in range(2))]
    if version == 1:
        return node(draw, op_type, draw.fed(shape), version=1, height_scale=scales[2], width_scale=scales[3])
    if version == 7:
        return node(draw, op_type, draw.fed(shape), version=7, scales=scales)
    return node(draw, op_type, draw.fed(shape), draw.deciding(scales, FLOAT), version=version)


@recipe("GridSample")
def grid_sample(draw: Draw, op_type: str) -> Case:
    axes = draw.randint(2, 3)
    image, grid = (2, draw.randint(1, 3), *draw.some(axes, 1, 5)), (2, *draw.some(axes, 1, 5), axes)
    return node(draw, op_type, draw.fed(image), draw.fed(grid, low=0, high=1))


@recipe("AffineGrid")
def affine_grid(draw: Draw, op_type: str) -> Case:
    axes, batch = draw.randint(2, 3), draw.randint(1, 2)
    size = [batch, draw.randint(1, 3), *draw.some(axes, 1, 4)]
    return node(draw, op_type, draw.fed((batch, axes, axes + 1)), draw.deciding(size))


@recipe("Col2Im")
def col2im(draw: Draw, op_type: str) -> Case:
    image, block = draw.some(2, 3, 6), draw.some(2, 1, 3)
    places = int(np.prod([size - b + 1 for size, b in zip(image, block, strict=True)]))
    columns = (draw.randint(1, 2), draw.randint(1, 3) * block[0] * block[1], places)
    return node(draw, op_type, draw.fed(columns), draw.deciding(image), draw.deciding(block))


@recipe("com.microsoft.NhwcMaxPool", "com.microsoft.QLinearAveragePool")
def vendor_pool(draw: Draw, op_type: str) -> Case:
    axes, dtype = draw.randint(1, 2), draw.choice([UINT8, INT8])
    kernel, settings = window(draw, axes, dilated=op_type.endswith("MaxPool"))
    settings |= {"ceil_mode": draw.randint(0, 1)} if draw.maybe() else {}
    space = draw.some(axes, 1, 10)
    if op_type.endswith("MaxPool"):
        return vendor(op_type, draw.fed((1, *space, 2), dtype), kernel_shape=kernel, **settings)
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, dtype)
    last = draw.randint(0, 1)
    shape = (1, *space, 2) if last else (1, 2, *space)
    return vendor(
        op_type, draw.fed(shape, dtype), scale, point, scale, point, kernel_shape=kernel, channels_last=last, **settings
    )


@recipe("com.microsoft.QLinearGlobalAveragePool")
def vendor_global_pool(draw: Draw, op_type: str) -> Case:
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, UINT8)
    return vendor(
        op_type, draw.fed(draw.shape(4, 4), UINT8), scale, point, scale, point, channels_last=draw.randint(0, 1)
    )


@recipe("com.microsoft.FusedConv")
def fused_convolution(draw: Draw, op_type: str) -> Case:
    kernel, settings = window(draw, 2)
    image, weight = (1, 2, *draw.some(2, 1, 8)), (3, 2, *kernel)
    settings |= {"activation": draw.choice(["Relu", "Tanh"])}
    return vendor(op_type, draw.fed(image), draw.fed(weight), **settings)


@recipe("com.microsoft.CropAndResize")
def crop(draw: Draw, op_type: str) -> Case:
    count = draw.randint(1, 3)
    inputs = [draw.fed((1, 2, 6, 6)), draw.fed((count, 4), high=1), draw.fed((count,), INT32, 0, 0)]
    return vendor(op_type, *inputs, draw.deciding(draw.some(2, 1, 4), INT32))
