"""Operators that move elements: shapes, slices, gathers, pads, sequences."""

from typing import Any

import numpy as np

from random_nodes.drawing import BOOL, FLOAT, INT32, INT64, Case, Draw, node, recipe, vendor


def of(draw: Draw, shape: Any) -> Any:
    """Elements of any type, fed."""
    return draw.fed(shape, draw.number())


@recipe("Reshape")
def reshape(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), draw.shape()
    target = list(shape)
    draw.shuffle(target)
    while len(target) > 1 and draw.maybe(0.4):
        target[-2:] = [target[-2] * target[-1]]
    if draw.maybe(0.3):
        target.insert(draw.randint(0, len(target)), 1)
    keeps_zero = version >= 14 and draw.maybe(0.3)
    if target and draw.maybe(0.4) and 0 not in target:
        target[draw.randrange(len(target))] = -1
    for i, size in enumerate(target):
        if not keeps_zero and i < len(shape) and shape[i] == size and draw.maybe(0.3):
            target[i] = 0
    if version < 5:
        return node(draw, op_type, of(draw, shape), version=version, shape=target or [1])
    settings = {"allowzero": 1} if keeps_zero else {}
    return node(draw, op_type, of(draw, shape), draw.deciding(target), version=version, **settings)


@recipe("Squeeze", "Unsqueeze")
def squeeze(draw: Draw, op_type: str) -> Case:
    version, rank = draw.version(op_type), draw.randint(0, 5)
    shape = tuple(1 if draw.maybe() else draw.randint(0, 4) for _ in range(rank))
    if op_type == "Squeeze":
        axes: list[int] | None = [a for a in draw.axes(rank) if shape[a] == 1]
        axes = None if draw.maybe(0.2) else axes
    else:
        axes = draw.axes(rank + draw.randint(1, 2), 1)
        shape = shape[: max(rank + 1 - len(axes), 0)] if draw.maybe(0.2) else shape
    if version >= 13:
        return node(draw, op_type, of(draw, shape), *([] if axes is None else [draw.deciding(axes)]), version=version)
    return node(draw, op_type, of(draw, shape), version=version, axes=axes or None)


@recipe("Flatten")
def flatten(draw: Draw, op_type: str) -> Case:
    shape = draw.shape()
    return node(draw, op_type, of(draw, shape), axis=draw.randint(-len(shape), len(shape)) if draw.maybe(0.8) else None)


@recipe("Transpose")
def transpose(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(0, 5)
    order = list(range(len(shape)))
    draw.shuffle(order)
    return node(draw, op_type, of(draw, shape), perm=order if draw.maybe(0.8) and order else None)


@recipe("Expand")
def expand(draw: Draw, op_type: str) -> Case:
    shape = draw.shape()
    return node(draw, op_type, of(draw, draw.spread(shape)), draw.deciding(draw.spread(shape)))


@recipe("Tile")
def tile(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), draw.shape(1)
    if version == 1:
        return node(draw, op_type, draw.fed(shape), draw.stored(2), draw.stored(0), version=1)
    return node(draw, op_type, of(draw, shape), draw.deciding(draw.some(len(shape), 0, 3)), version=version)


@recipe("Concat")
def concat(draw: Draw, op_type: str) -> Case:
    shape, dtype = list(draw.shape(1)), draw.number()
    axis, parts = draw.axis(len(shape)), []
    for _ in range(draw.randint(1, 4)):
        shape[axis] = draw.randint(0, 4)
        parts.append(draw.fed(tuple(shape), dtype))
    return node(draw, op_type, *parts, axis=axis)


@recipe("Split", "SplitToSequence")
def split(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), list(draw.shape(1))
    axis, count = draw.axis(len(shape)), draw.randint(1, 4)
    parts = draw.some(count, 0, 3)
    stated = draw.maybe()
    shape[axis] = sum(parts) if stated else draw.randint(1, 9)
    if op_type == "SplitToSequence":
        scalar = draw.maybe(0.4)
        more = [draw.deciding(draw.randint(1, 3) if scalar else parts)] if stated or scalar else []
        keep = draw.randint(0, 1) if not more else None
        return node(draw, op_type, draw.fed(shape), *more, axis=axis, keepdims=keep, version=version)
    settings: dict[str, Any] = {"axis": axis if draw.maybe(0.9) or axis else None}
    if settings["axis"] is None and axis:
        settings["axis"] = axis
    if version >= 18 and not stated:
        settings["num_outputs"] = count
    elif not stated:
        shape[axis] = count * draw.randint(0, 3)
    more = [draw.deciding(parts)] if stated and version >= 13 else []
    if stated and version < 13:
        settings["split"] = parts
    return node(draw, op_type, draw.fed(shape), *more, n_outputs=count, version=version, **settings)


@recipe("Slice")
def slices(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), draw.shape(1, high=8)
    axes = draw.axes(len(shape), 1)
    starts, ends = draw.some(len(axes), -9, 9), [draw.choice([draw.randint(-9, 9), 1 << 62, -(1 << 62)]) for _ in axes]
    if version < 10:
        named = {"axes": axes} if draw.maybe(0.8) else {}
        starts, ends = (starts, ends) if named else (starts[: len(shape)], ends[: len(shape)])
        return node(draw, op_type, of(draw, shape), version=version, starts=starts, ends=ends, **named)
    more = [draw.deciding(axes)] if draw.maybe(0.8) else [None]
    more += [draw.deciding([draw.choice([1, 2, 3, -1, -2]) for _ in axes])] if draw.maybe(0.6) else []
    return node(draw, op_type, of(draw, shape), draw.deciding(starts), draw.deciding(ends), *more, version=version)


@recipe("Pad")
def pad(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), draw.shape(1, empty=0.02)
    mode = draw.choice([None, "constant", "edge", "reflect", "wrap" if version >= 19 else "edge"])
    low, high = (-1, 3) if mode in (None, "constant") else (0, 1)
    axes = draw.axes(len(shape), 1) if version >= 18 and draw.maybe(0.4) else None
    pads = draw.some(2 * len(shape if axes is None else axes), low, high)
    if version < 11:
        return node(draw, op_type, draw.fed(shape), version=version, mode=mode, pads=pads)
    fill = draw.fed((), FLOAT) if draw.maybe() else None
    more = [] if axes is None else [draw.deciding(axes)]
    return node(draw, op_type, draw.fed(shape), draw.deciding(pads), fill, *more, version=version, mode=mode)


@recipe("Gather")
def gather(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1, empty=0)
    axis = draw.axis(len(shape))
    indices = draw.fed(draw.shape(0, 3), draw.choice([INT32, INT64]), -shape[axis], shape[axis] - 1)
    return node(draw, op_type, of(draw, shape), indices, axis=axis if draw.maybe(0.9) else 0)


@recipe("GatherElements", "ScatterElements", "Scatter")
def gather_elements(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1, empty=0)
    axis = draw.axis(len(shape))
    picked = tuple(draw.randint(0, size) for size in shape)
    dtype = draw.number()
    indices = draw.fed(picked, INT64, 0, shape[axis] - 1)
    more = [] if op_type == "GatherElements" else [draw.fed(picked, dtype)]
    version = draw.choice([9, 10]) if op_type == "Scatter" else None
    return node(draw, op_type, draw.fed(shape, dtype), indices, *more, axis=axis, version=version)


@recipe("GatherND", "ScatterND", "com.microsoft.GatherND")
def gather_nd(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1, empty=0)
    batch = draw.randint(0, len(shape) - 1) if op_type == "GatherND" and draw.maybe(0.3) else 0
    named = draw.randint(1, len(shape) - batch)
    picked = (*shape[:batch], *draw.shape(0, 2), named)
    most = min(shape[batch : batch + named]) - 1
    indices = draw.fed(picked, INT64, 0, most)
    if op_type == "ScatterND":
        return node(draw, op_type, draw.fed(shape), indices, draw.fed((*picked[:-1], *shape[named:])))
    if op_type == "GatherND":
        version = draw.choice([12, 13]) if batch else None
        return node(draw, op_type, of(draw, shape), indices, batch_dims=batch or None, version=version)
    return vendor(op_type, draw.fed(shape), indices)


@recipe("OneHot")
def one_hot(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(0, 3)
    depth = draw.deciding(
        draw.randint(1, 5) if draw.maybe() else [draw.randint(1, 5)], draw.choice([INT64, FLOAT, INT32])
    )
    axis = draw.randint(-len(shape) - 1, len(shape))
    return node(draw, op_type, draw.fed(shape, INT64), depth, draw.fed((2,), draw.choice([FLOAT, INT64])), axis=axis)


@recipe("TopK")
def top_k(draw: Draw, op_type: str) -> Case:
    version, shape = draw.version(op_type), draw.shape(1)
    axis = draw.axis(len(shape))
    k = draw.randint(0 if version > 1 else 1, max(shape[axis], 1))
    if version == 1:
        return node(draw, op_type, draw.fed(shape), version=1, n_outputs=2, axis=axis, k=k)
    return node(draw, op_type, draw.fed(shape), draw.deciding([k]), version=version, n_outputs=2, axis=axis)


@recipe("Range", "com.microsoft.Range")
def ranged(draw: Draw, op_type: str) -> Case:
    dtype = draw.choice([INT64, INT32, FLOAT, np.float64])
    start, step = draw.randint(-4, 4), draw.choice([1, 2, -1, 3])
    limit = start + step * draw.randint(-1, 4) + draw.randint(-1, 1)
    inputs = [draw.deciding(v, dtype, 0.95) for v in (start, limit, step)]
    return vendor(op_type, *inputs) if "." in op_type else node(draw, op_type, *inputs)


@recipe("DepthToSpace", "SpaceToDepth")
def blocks(draw: Draw, op_type: str) -> Case:
    block, channels, (height, width) = draw.randint(1, 3), draw.randint(1, 2), draw.some(2, 0, 3)
    deep = (1, channels * block * block, height, width)
    wide = (1, channels, height * block, width * block)
    return node(draw, op_type, draw.fed(deep if op_type == "DepthToSpace" else wide), blocksize=block)


@recipe("Compress")
def compress(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape)) if draw.maybe(0.7) else None
    most = int(np.prod(shape)) if axis is None else shape[axis]
    return node(
        draw, op_type, of(draw, shape), draw.deciding(draw.array((draw.randint(0, most),), BOOL, 0, 1), BOOL), axis=axis
    )


@recipe("NonZero")
def non_zero(draw: Draw, op_type: str) -> Case:
    return node(draw, op_type, draw.fed(draw.shape(), draw.choice([FLOAT, BOOL, INT64]), 0, 1))


@recipe("Unique", "com.microsoft.Unique")
def unique(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    if "." in op_type:
        return vendor(op_type, draw.fed(shape[:1]), n_outputs=3)
    axis = draw.axis(len(shape)) if draw.maybe() else None
    return node(draw, op_type, draw.fed(shape), axis=axis, n_outputs=draw.randint(1, 4), sorted=draw.randint(0, 1))


@recipe("NonMaxSuppression")
def suppression(draw: Draw, op_type: str) -> Case:
    batch, classes, boxes = draw.randint(1, 2), draw.randint(1, 2), draw.randint(1, 5)
    more = [draw.deciding(draw.randint(0, 3))] if draw.maybe(0.8) else []
    return node(draw, op_type, draw.fed((batch, boxes, 4)), draw.fed((batch, classes, boxes)), *more)


@recipe("ReverseSequence")
def reverse(draw: Draw, op_type: str) -> Case:
    shape, batch_axis = draw.shape(2, empty=0), draw.randint(0, 1)
    lengths = draw.fed((shape[batch_axis],), INT64, 0, shape[1 - batch_axis])
    return node(draw, op_type, draw.fed(shape), lengths, batch_axis=batch_axis, time_axis=1 - batch_axis)


@recipe("CenterCropPad")
def center(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    axes = draw.axes(len(shape), 1) if draw.maybe() else None
    return node(draw, op_type, draw.fed(shape), draw.deciding(draw.some(len(axes or shape), 1, 6)), axes=axes)


@recipe("TensorScatter")
def tensor_scatter(draw: Draw, op_type: str) -> Case:
    cache = (draw.randint(1, 2), draw.randint(1, 2), draw.randint(3, 6), 4)
    at = [draw.fed((cache[0],), INT64, 0, 1)] if draw.maybe() else []
    return node(draw, op_type, draw.fed(cache), draw.fed((*cache[:2], draw.randint(1, 2), 4)), *at, axis=2)


@recipe("StringConcat", "StringSplit", "StringNormalizer", "RegexFullMatch")
def texts(draw: Draw, op_type: str) -> Case:
    a, b = draw.pair()

    def words(shape: tuple[int, ...]) -> Any:
        operand = draw.fed(shape)
        return type(operand)(array=np.full(shape, "a b", object))

    if op_type == "StringConcat":
        return node(draw, op_type, words(a), words(b))
    if op_type == "StringNormalizer":
        shape = draw.choice([(2,), (1, 3)])
        return node(
            draw,
            op_type,
            words(shape),
            case_change_action="UPPER",
            locale="C",
            stopwords=["a b"] if draw.maybe(0.3) else None,
        )
    settings = {"pattern": "a.*"} if op_type == "RegexFullMatch" else {}
    return node(draw, op_type, words(a), n_outputs=2 if op_type == "StringSplit" else 1, **settings)


@recipe("SequenceConstruct", "SequenceEmpty", "OptionalHasElement", "Optional")
def sequences(draw: Draw, op_type: str) -> Case:
    inputs = [] if op_type == "SequenceEmpty" else [draw.fed(draw.shape()) for _ in range(draw.randint(1, 3))]
    return node(draw, op_type, *(inputs if op_type == "SequenceConstruct" else inputs[:1]))


@recipe("com.microsoft.ExpandDims", "com.microsoft.Trilu", "com.microsoft.MurmurHash3", "com.microsoft.UnfoldTensor")
def vendor_movement(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(2, 3, empty=0)
    match op_type.rsplit(".", 1)[-1]:
        case "ExpandDims":
            return vendor(op_type, draw.fed(shape), draw.deciding(draw.randint(-len(shape) - 1, len(shape)), INT32))
        case "Trilu":
            return vendor(op_type, draw.fed(shape), upper=draw.randint(0, 1))
        case "MurmurHash3":
            return vendor(op_type, draw.fed(shape, INT32), positive=draw.choice([0, 1, None]))
    axis = draw.axis(len(shape))
    size = draw.randint(1, shape[axis])
    return vendor(op_type, draw.fed(shape), dim=axis, size=size, step=draw.randint(1, 3))


@recipe("com.microsoft.Pad")
def vendor_pad(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1, empty=0)
    return vendor(op_type, draw.fed(shape), draw.deciding(draw.some(2 * len(shape), 0, 3)))
