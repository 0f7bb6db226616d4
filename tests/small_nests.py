"""Loop nests for tests: products, convolutions, and what else steps are."""

from dataclasses import dataclass

from spillprof.ir.loop_nest import LoopAxis, LoopNest, NestOperand, Window


def axes(**sizes: int) -> tuple[LoopAxis, ...]:
    return tuple(LoopAxis(name=name, size=size) for name, size in sizes.items())


def matmul(m: int, n: int, k: int, bits: int = 8, weight_bits: int | None = None) -> LoopNest:
    """C[m, n] = A[m, k] B[k, n]."""
    return LoopNest(
        axes=axes(m=m, n=n, k=k),
        operands=(
            NestOperand(name="A", windows=(Window(size=m, axis=0), Window(size=k, axis=2)), element_bits=bits),
            NestOperand(
                name="B", windows=(Window(size=k, axis=2), Window(size=n, axis=1)), is_weight=True,
                element_bits=weight_bits or bits,
            ),
            NestOperand(
                name="C", windows=(Window(size=m, axis=0), Window(size=n, axis=1)), element_bits=bits, is_output=True,
            ),
        ),
        macs=m * n * k,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Slide:
    """One dimension of an image under a kernel."""

    size: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def extent(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    @property
    def results(self) -> int:
        return (self.size + self.before + self.after - self.extent) // self.stride + 1

    def window(self, axis: int) -> Window:
        return Window(size=self.size, axis=axis, stride=self.stride, offset=-self.before, extent=self.extent)


def convolution(channels: int, filters: int, rows: Slide, columns: Slide, groups: int = 1, bits: int = 8) -> LoopNest:
    """Y[g, f, y, x] from X[g, c, rows, columns] and W[g, f, c, kernel]; channels and filters of one group."""
    return LoopNest(
        axes=axes(g=groups, f=filters, y=rows.results, x=columns.results, c=channels),
        operands=(
            NestOperand(
                name="X", element_bits=bits,
                windows=(Window(size=groups, axis=0), Window(size=channels, axis=4), rows.window(2), columns.window(3)),
            ),
            NestOperand(
                name="W", element_bits=bits, is_weight=True,
                windows=(
                    Window(size=groups, axis=0), Window(size=filters, axis=1), Window(size=channels, axis=4),
                    Window(size=rows.kernel), Window(size=columns.kernel),
                ),
            ),
            NestOperand(
                name="Y", element_bits=bits, is_output=True,
                windows=(
                    Window(size=groups, axis=0), Window(size=filters, axis=1),
                    Window(size=rows.results, axis=2), Window(size=columns.results, axis=3),
                ),
            ),
        ),
        macs=groups * filters * rows.results * columns.results * channels * rows.kernel * columns.kernel,
    )  # fmt: skip


def pooling(channels: int, rows: Slide, columns: Slide) -> LoopNest:
    """Y[c, y, x] from windows of X[c, rows, columns]."""
    return LoopNest(
        axes=axes(c=channels, y=rows.results, x=columns.results),
        operands=(
            NestOperand(
                name="X", windows=(Window(size=channels, axis=0), rows.window(1), columns.window(2)), element_bits=8
            ),
            NestOperand(
                name="Y", element_bits=8, is_output=True,
                windows=(
                    Window(size=channels, axis=0), Window(size=rows.results, axis=1),
                    Window(size=columns.results, axis=2),
                ),
            ),
        ),
    )  # fmt: skip


def elementwise(shape: tuple[int, ...], *broadcast: frozenset[int]) -> LoopNest:
    """Y = f(X0, X1, ...), where operand i has size 1 on the axes of ``broadcast[i]``."""
    operands = [
        NestOperand(
            name=f"X{i}", element_bits=8,
            windows=tuple(
                Window(size=1) if axis in ones else Window(size=size, axis=axis) for axis, size in enumerate(shape)
            ),
        )
        for i, ones in enumerate(broadcast)
    ]  # fmt: skip
    result = NestOperand(
        name="Y", windows=tuple(Window(size=size, axis=axis) for axis, size in enumerate(shape)),
        element_bits=8, is_output=True,
    )  # fmt: skip
    return LoopNest(axes=axes(**{f"d{i}": size for i, size in enumerate(shape)}), operands=(*operands, result))


def reduction(shape: tuple[int, ...], over: frozenset[int]) -> LoopNest:
    """Y sums X over some axes, which stay with size 1."""
    return LoopNest(
        axes=axes(**{f"d{i}": size for i, size in enumerate(shape)}),
        operands=(
            NestOperand(
                name="X", windows=tuple(Window(size=size, axis=axis) for axis, size in enumerate(shape)), element_bits=8
            ),
            NestOperand(
                name="Y", element_bits=8, is_output=True,
                windows=tuple(
                    Window(size=1) if axis in over else Window(size=size, axis=axis) for axis, size in enumerate(shape)
                ),
            ),
        ),
    )  # fmt: skip
