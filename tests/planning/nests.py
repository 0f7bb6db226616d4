"""Literal loop nests: products, convolutions, elementwise operators, reductions."""

from spillprof.ir.loop_nest import LoopAxis, LoopNest, NestOperand, Window


def axes(**sizes: int) -> tuple[LoopAxis, ...]:
    return tuple(LoopAxis(name=name, size=size) for name, size in sizes.items())


def on(axis: int, size: int) -> Window:
    """The plain window: iteration i touches position i."""
    return Window(size=size, axis=axis)


def product(m: int, k: int, n: int, bits: int = 8, batch: int = 1) -> LoopNest:
    """Axes batch, m, n, k."""
    dims = {0: batch, 1: m, 2: n, 3: k}

    def operand(name: str, *of: int, **options: bool) -> NestOperand:
        return NestOperand(name=name, windows=tuple(on(a, dims[a]) for a in of), element_bits=bits, **options)

    return LoopNest(
        axes=axes(batch=batch, m=m, n=n, k=k),
        operands=(operand("a", 0, 1, 3), operand("b", 0, 3, 2), operand("c", 0, 1, 2, is_output=True)),
        macs=batch * m * n * k,
    )


def convolution(
    channels: int,
    size: int | tuple[int, int],
    filters: int,
    kernel: int,
    *,
    stride: int = 1,
    pad: int | None = None,
    dilation: int = 1,
    bits: int = 32,
    batch: int = 1,
    depthwise: bool = False,
) -> LoopNest:
    """Axes batch, rows, columns, out channels, in channels; depthwise: no in channels."""
    height, width = (size, size) if isinstance(size, int) else size
    extent = (kernel - 1) * dilation + 1
    offset = -(extent // 2 if pad is None else pad)
    rows, columns = ((edge - 2 * offset - extent) // stride + 1 for edge in (height, width))

    def along(axis: int, edge: int) -> Window:
        return Window(size=edge, axis=axis, stride=stride, offset=offset, extent=extent)

    taps = (Window(size=kernel), Window(size=kernel))
    channel = 3 if depthwise else 4
    image = (on(0, batch), on(channel, channels), along(1, height), along(2, width))
    weights = (on(3, filters), *taps) if depthwise else (on(3, filters), on(4, channels), *taps)
    result = (on(0, batch), on(3, filters), on(1, rows), on(2, columns))
    names = {"batch": batch, "rows": rows, "columns": columns, "out": filters}
    return LoopNest(
        axes=axes(**names) if depthwise else axes(**names, into=channels),
        operands=(
            NestOperand(name="x", windows=image, element_bits=bits),
            NestOperand(name="w", windows=weights, element_bits=bits, is_weight=True),
            NestOperand(name="y", windows=result, element_bits=bits, is_output=True),
        ),
        macs=batch * rows * columns * filters * kernel**2 * (1 if depthwise else channels),
    )


def elementwise(*sizes: int, broadcast: tuple[int, ...] = (), bits: int = 8) -> LoopNest:
    """y = f(a, b), where b lacks the axes ``broadcast``."""
    every = tuple(on(a, s) for a, s in enumerate(sizes))
    few = tuple(w for w in every if w.axis not in broadcast)
    return LoopNest(
        axes=axes(**{f"axis{a}": s for a, s in enumerate(sizes)}),
        operands=(
            NestOperand(name="a", windows=every, element_bits=bits),
            NestOperand(name="b", windows=few, element_bits=bits),
            NestOperand(name="y", windows=every, element_bits=bits, is_output=True),
        ),
    )
