"""Matrix products, recurrent layers, attention, quantised operators, signals."""

from typing import Any

import numpy as np

from random_nodes.drawing import FLOAT, INT8, INT32, INT64, UINT8, Case, Draw, node, recipe, vendor


def factors(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of two factors of a product; either may be a vector, batch axes broadcast."""
    rows, inner, columns = (draw.randint(0 if draw.maybe(0.05) else 1, 4) for _ in range(3))
    batch = draw.shape(0, 2, empty=0.02)
    a, b = (*draw.spread(batch), rows, inner), (*draw.spread(batch), inner, columns)
    return (a[-1:] if draw.maybe(0.1) else a), (b[-2:-1] if draw.maybe(0.1) else b)


@recipe("MatMul", "MatMulInteger", "QLinearMatMul")
def matmul(draw: Draw, op_type: str) -> Case:
    a, b = factors(draw)
    if op_type == "MatMul":
        dtype = draw.choice([FLOAT, FLOAT, np.float64, INT32, INT64])
        return node(draw, op_type, draw.fed(a, dtype), draw.fed(b, dtype))
    if op_type == "MatMulInteger":
        points = [draw.fed((), UINT8) for _ in range(draw.randint(0, 2))]
        return node(draw, op_type, draw.fed(a, UINT8), draw.fed(b, UINT8), *points)
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, UINT8)
    return node(draw, op_type, draw.fed(a, UINT8), scale, point, draw.fed(b, UINT8), scale, point, scale, point)


@recipe("Gemm", "com.microsoft.FusedGemm")
def gemm(draw: Draw, op_type: str) -> Case:
    rows, inner, columns = (draw.randint(0 if draw.maybe(0.05) else 1, 4) for _ in range(3))
    turned = [draw.randint(0, 1) if draw.maybe(0.6) else None for _ in range(2)]
    a, b = (inner, rows) if turned[0] else (rows, inner), (columns, inner) if turned[1] else (inner, columns)
    bias = (
        [draw.fed(draw.choice([(columns,), (rows, columns), (rows, 1), (1, columns), ()]))] if draw.maybe(0.6) else []
    )
    version = None if "." in op_type else draw.choice([9, 11, 13]) if draw.maybe(0.8) else 7
    if not bias and version is not None and version < 11:
        version = 11
    if "." in op_type:
        return vendor(op_type, draw.fed(a), draw.fed(b), *bias, transA=turned[0], transB=turned[1], activation="Relu")
    return node(draw, op_type, draw.fed(a), draw.fed(b), *bias, transA=turned[0], transB=turned[1], version=version)


@recipe("Einsum")
def einsum(draw: Draw, op_type: str) -> Case:
    sizes = {letter: draw.randint(1, 4) for letter in "abcde"}
    terms = [draw.sample("abcde", draw.randint(0, 3)) for _ in range(draw.randint(1, 3))]
    used = sorted({letter for term in terms for letter in term})
    out = draw.sample(used, draw.randint(0, len(used)))
    equation = ",".join(map("".join, terms)) + (f"->{''.join(out)}" if draw.maybe(0.8) else "")
    return node(draw, op_type, *[draw.fed([sizes[c] for c in term]) for term in terms], equation=equation)


@recipe("RNN", "LSTM", "GRU")
def recurrent(draw: Draw, op_type: str) -> Case:
    version, gates = draw.version(op_type), {"RNN": 1, "LSTM": 4, "GRU": 3}[op_type]
    steps, batch, width, hidden = (draw.randint(1, 4) for _ in range(4))
    direction = draw.choice([None, "forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    layout = draw.randint(0, 1) if version >= 14 and draw.maybe(0.2) else None
    inputs = [
        draw.fed((batch, steps, width) if layout else (steps, batch, width)),
        draw.fed((ways, gates * hidden, width)),
        draw.fed((ways, gates * hidden, hidden)),
        draw.fed((ways, 2 * gates * hidden)) if draw.maybe() else None,
        draw.fed((batch,), INT32, 1, steps) if draw.maybe(0.3) else None,
    ]
    outputs = draw.randint(1, 3 if op_type == "LSTM" else 2)
    return node(
        draw,
        op_type,
        *inputs,
        version=version,
        n_outputs=outputs,
        hidden_size=hidden,
        direction=direction,
        layout=layout,
    )


@recipe("Attention")
def attention(draw: Draw, op_type: str) -> Case:
    batch, groups, length, keys, width, values = (draw.randint(1, 4) for _ in range(6))
    heads = groups * draw.randint(1, 2)
    past = draw.randint(0, 3)
    settings: dict[str, Any] = {}
    if draw.maybe():
        shapes = [(batch, heads, length, width), (batch, groups, keys, width), (batch, groups, keys, values)]
    else:
        shapes = [(batch, length, heads * width), (batch, keys, groups * width), (batch, keys, groups * values)]
        settings = {"q_num_heads": heads, "kv_num_heads": groups}
    more = []
    if draw.maybe(0.4):
        more = [None, draw.fed((batch, groups, past, width)), draw.fed((batch, groups, past, values))]
    outputs = draw.choice([1, 3, 4]) if more else draw.choice([1, 1, 4])
    return node(draw, op_type, *map(draw.fed, shapes), *more, n_outputs=outputs, **settings)


@recipe("RotaryEmbedding")
def rotary(draw: Draw, op_type: str) -> Case:
    batch, heads, length, width = draw.randint(1, 2), draw.randint(1, 3), draw.randint(1, 4), 2 * draw.randint(1, 3)
    cache = (batch, length, width // 2)
    if draw.maybe():
        return node(draw, op_type, draw.fed((batch, heads, length, width)), draw.fed(cache), draw.fed(cache))
    return node(
        draw, op_type, draw.fed((batch, length, heads * width)), draw.fed(cache), draw.fed(cache), num_heads=heads
    )


@recipe("QuantizeLinear", "DequantizeLinear")
def quantize(draw: Draw, op_type: str) -> Case:
    shape, dtype = draw.shape(1), draw.choice([UINT8, INT8])
    axis = draw.axis(len(shape))
    per_axis = draw.maybe(0.4)
    version = draw.choice([13, 19, 21]) if per_axis else None
    scale = draw.fed(shape[axis : axis + 1 or None] if per_axis else (), FLOAT, 1)
    point = [draw.fed(scale.array.shape, dtype)] if draw.maybe(0.7) or op_type == "DequantizeLinear" else []
    settings = {"axis": axis} if per_axis else {}
    first = draw.fed(shape, FLOAT if op_type == "QuantizeLinear" else dtype)
    return node(draw, op_type, first, scale, *point, version=version, **settings)


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(draw: Draw, op_type: str) -> Case:
    return node(draw, op_type, draw.fed(draw.shape()), n_outputs=3)


@recipe("DFT", "STFT")
def transforms(draw: Draw, op_type: str) -> Case:
    version = draw.version(op_type)
    if op_type == "STFT":
        length, step = draw.randint(2, 5), draw.randint(1, 3)
        signal = draw.fed((draw.randint(1, 2), length + draw.randint(0, 8), 1))
        framed = [draw.fed((length,)), None] if draw.maybe() else [None, draw.deciding(length)]
        return node(draw, op_type, signal, draw.deciding(step), *framed, onesided=draw.choice([0, 1, None]))
    shape = (draw.randint(1, 2), *draw.some(draw.randint(1, 2), 2, 6), draw.choice([1, 2]))
    length = [draw.deciding(draw.randint(2, 7))] if draw.maybe() else []
    axis = draw.randint(1, len(shape) - 2)
    onesided = draw.choice([None, 0, 1]) if shape[-1] == 1 else None
    if version >= 20:
        more = [*(length or [None]), draw.deciding(axis)] if draw.maybe(0.7) else length
        return node(draw, op_type, draw.fed(shape), *more, version=version, onesided=onesided)
    return node(draw, op_type, draw.fed(shape), *length, version=version, axis=axis, onesided=onesided)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def tables(draw: Draw, op_type: str) -> Case:
    if op_type != "MelWeightMatrix":
        return node(draw, op_type, draw.deciding(draw.randint(1, 9)), output_datatype=draw.choice([1, 11, None]))
    inputs = [draw.deciding(draw.randint(1, 4)), draw.deciding(16), draw.stored(8000)]
    return node(draw, op_type, *inputs, draw.stored(0.0, FLOAT), draw.stored(4000.0, FLOAT))


@recipe("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def fused_matmul(draw: Draw, op_type: str) -> Case:
    rows, inner, columns = draw.some(3, 1, 4)
    batch = draw.shape(0, 2, empty=0)
    turned = draw.some(2, 0, 1)
    a, b = (inner, rows) if turned[0] else (rows, inner), (columns, inner) if turned[1] else (inner, columns)
    return vendor(op_type, draw.fed((*batch, *a)), draw.fed((*batch, *b)), transA=turned[0], transB=turned[1])


@recipe("com.microsoft.MatMulIntegerToFloat", "com.microsoft.DynamicQuantizeMatMul", "com.microsoft.MatMulNBits")
def quantised_product(draw: Draw, op_type: str) -> Case:
    rows, inner, columns = draw.some(3, 1, 4)
    batch = draw.shape(0, 2, empty=0)
    scale = draw.fed((), FLOAT, 1)
    if op_type.endswith("ToFloat"):
        return vendor(op_type, draw.fed((*batch, rows, inner), UINT8), draw.fed((inner, columns), UINT8), scale, scale)
    if op_type.endswith("NBits"):
        blocks = draw.randint(1, 2)
        inputs = [
            draw.fed((*batch, rows, 16 * blocks)),
            draw.fed((columns, blocks, 8), UINT8),
            draw.fed((columns * blocks,)),
        ]
        return vendor(op_type, *inputs, K=16 * blocks, N=columns, bits=4, block_size=16)
    return vendor(op_type, draw.fed((*batch, rows, inner)), draw.fed((inner, columns), UINT8), scale)


@recipe("com.microsoft.QGemm")
def quantised_gemm(draw: Draw, op_type: str) -> Case:
    rows, inner, columns = draw.some(3, 1, 4)
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, UINT8)
    inputs = [draw.fed((rows, inner), UINT8), scale, point, draw.fed((inner, columns), UINT8), scale, point, None]
    return vendor(op_type, *inputs, *([scale, point] if draw.maybe() else []))


@recipe("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def quantised_binary(draw: Draw, op_type: str) -> Case:
    a, b = draw.pair()
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, UINT8)
    return vendor(op_type, draw.fed(a, UINT8), scale, point, draw.fed(b, UINT8), scale, point, scale, point)


@recipe("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu", "com.microsoft.QLinearSoftmax")
def quantised_unary(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, UINT8)
    settings = {"axis": draw.axis(len(shape)), "opset": 13} if op_type.endswith("Softmax") else {}
    return vendor(op_type, draw.fed(shape, UINT8), scale, point, scale, point, **settings)


@recipe("com.microsoft.QLinearConcat", "com.microsoft.QLinearWhere")
def quantised_movement(draw: Draw, op_type: str) -> Case:
    scale, point = draw.stored(0.5, FLOAT), draw.stored(0, UINT8)
    if op_type.endswith("Where"):
        shape = draw.shape()
        a, b = draw.fed(draw.spread(shape), UINT8), draw.fed(draw.spread(shape), UINT8)
        return vendor(op_type, draw.fed(draw.spread(shape), np.bool_), a, scale, point, b, scale, point, scale, point)
    shape = list(draw.shape(1))
    axis, parts = draw.axis(len(shape)), []
    for _ in range(draw.randint(1, 3)):
        shape[axis] = draw.randint(1, 4)
        parts += [draw.fed(tuple(shape), UINT8), scale, point]
    return vendor(op_type, scale, point, *parts, axis=axis)


@recipe("com.microsoft.Gelu", "com.microsoft.QuickGelu", "com.microsoft.FastGelu", "com.microsoft.BiasGelu",
        "com.microsoft.Inverse", "com.microsoft.CDist")  # fmt: skip
def vendor_elementwise(draw: Draw, op_type: str) -> Case:
    shape = draw.shape(1)
    match op_type.rsplit(".", 1)[-1]:
        case "BiasGelu":
            return vendor(op_type, draw.fed(shape), draw.fed(shape[-1:]))
        case "Inverse":
            return vendor(op_type, draw.fed((*shape[:-1], 2, 2)))
        case "CDist":
            width = draw.randint(1, 4)
            return vendor(
                op_type,
                draw.fed((draw.randint(1, 4), width)),
                draw.fed((draw.randint(1, 4), width)),
                metric="euclidean",
            )
    return vendor(op_type, draw.fed(shape))


@recipe("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")
def skip_normalization(draw: Draw, op_type: str) -> Case:
    shape = (draw.randint(1, 2), draw.randint(1, 3), draw.randint(1, 5))
    outputs = draw.choice([1, 4])
    return vendor(op_type, draw.fed(shape), draw.fed(shape), draw.fed(shape[-1:]), n_outputs=outputs)


@recipe("com.microsoft.EmbedLayerNormalization")
def embed(draw: Draw, op_type: str) -> Case:
    batch, length, width = draw.randint(1, 2), draw.randint(1, 4), draw.randint(1, 4)
    ids = draw.fed((batch, length), INT32, 0, 4)
    inputs = [ids, None, draw.fed((5, width)), draw.fed((5, width)), None, draw.fed((width,)), draw.fed((width,))]
    more = [draw.fed((batch, length), INT32, 0, 1)] if draw.maybe() else []
    return vendor(op_type, *inputs, *more, n_outputs=draw.randint(2, 3))


@recipe("com.microsoft.RotaryEmbedding")
def vendor_rotary(draw: Draw, op_type: str) -> Case:
    batch, length, heads, width = draw.randint(1, 2), draw.randint(1, 4), draw.randint(1, 3), 2 * draw.randint(1, 3)
    shape = (batch, heads, length, width) if draw.maybe() else (batch, length, heads * width)
    cache = (8, width // 2)
    return vendor(
        op_type, draw.fed(shape), draw.fed((1,), INT64, 0, 2), draw.fed(cache), draw.fed(cache), num_heads=heads
    )


@recipe("com.microsoft.Attention")
def vendor_attention(draw: Draw, op_type: str) -> Case:
    batch, length, heads, width = (draw.randint(1, 3) for _ in range(4))
    hidden = heads * width
    past = draw.fed((2, batch, heads, draw.randint(1, 3), width)) if draw.maybe(0.4) else None
    inputs = [draw.fed((batch, length, hidden)), draw.fed((hidden, 3 * hidden)), draw.fed((3 * hidden,)), None, past]
    return vendor(op_type, *inputs, num_heads=heads, n_outputs=2 if past is not None or draw.maybe() else 1)


@recipe("com.microsoft.MultiHeadAttention")
def multi_head(draw: Draw, op_type: str) -> Case:
    batch, length, keys, heads, width, values = (draw.randint(1, 3) for _ in range(6))
    query = draw.fed((batch, length, heads * width))
    if draw.maybe(0.2):
        crossed = (batch, heads, keys, width), (batch, heads, keys, values)
        return vendor(op_type, query, *map(draw.fed, crossed), num_heads=heads)
    inputs = [query, draw.fed((batch, keys, heads * width)), draw.fed((batch, keys, heads * values))]
    if draw.maybe(0.4):
        past = [draw.fed((batch, heads, 2, w)) for w in (width, values)]
        return vendor(op_type, *inputs, None, None, None, *past, num_heads=heads, n_outputs=draw.choice([3, 4]))
    return vendor(op_type, *inputs, num_heads=heads, n_outputs=draw.choice([1, 3]))


@recipe("com.microsoft.GroupQueryAttention")
def grouped(draw: Draw, op_type: str) -> Case:
    length, groups, width, capacity = draw.randint(1, 3), draw.randint(1, 2), 8, draw.choice([0, 4, 8])
    heads = groups * draw.randint(1, 3)
    total = length if draw.maybe(0.4) else draw.randint(length, capacity + length)
    cache, new = (1, groups, capacity, width), (1, length, groups * width)
    inputs = [
        draw.fed((1, length, heads * width)), draw.fed(new), draw.fed(new),
        draw.fed(cache), draw.fed(cache), draw.stored([total - 1], INT32), draw.deciding([total], INT32, 0.7),
    ]  # fmt: skip
    return vendor(op_type, *inputs, num_heads=heads, kv_num_heads=groups, n_outputs=3)
