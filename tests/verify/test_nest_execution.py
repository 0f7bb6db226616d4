"""Tilings are run tile by tile on numbers, and give what the whole operator gives.

The machine sees only what was brought on-chip: every other position is poisoned, and so is a tile once another one
takes its place, but for the overlap that a line buffer keeps. It counts what it copies, which the recount must equal.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_nests import Slide, axes, convolution, elementwise, matmul, pooling, reduction

from spillprof.ir.loop_nest import LoopNest, NestOperand, Tiling, Window
from spillprof.verify.nest import recount_nest

POISON = 10**12
LOWEST = -(10**9)
Ranges = tuple[range, ...]  # iterations of each axis
Step = Callable[[Ranges, list[np.ndarray]], None]
"""Runs some iterations: reads inputs and updates outputs, all as large as the whole operand."""


class Machine:
    """SRAM and DRAM while a nest runs in tiles."""

    def __init__(self, nest: LoopNest, tiling: Tiling, inputs: list[np.ndarray], start: int) -> None:
        self.nest, self.tiling, self.start = nest, tiling, start
        results = [np.full([w.size for w in o.windows], POISON) for o in nest.operands if o.is_output]
        self.dram = [*inputs, *results]
        self.sram = [
            array.copy() if i in tiling.held and not nest.operands[i].is_output else np.full_like(array, POISON)
            for i, array in enumerate(self.dram)
        ]
        self.tile: list[tuple[int, ...] | None] = [None] * len(nest.operands)
        self.touched: list[set[tuple[int, ...]]] = [set() for _ in nest.operands]
        self.read, self.written = Counter[int](), Counter[int]()
        self.most_cells = 0

    def run(self, step: Step) -> list[np.ndarray]:
        trips = self.tiling.trips(self.nest)
        for at in product(*(range(trips[axis]) for axis in self.tiling.order)):
            where = dict(zip(self.tiling.order, at, strict=True))
            for i in range(len(self.nest.operands)):
                self.bring(i, where)
            cells = [int((a != POISON).sum()) for i, a in enumerate(self.sram) if i not in self.tiling.held]
            self.most_cells = max(self.most_cells, sum(cells))
            step(tuple(self.iterations(axis, where) for axis in range(len(trips))), self.sram)
        for i, operand in enumerate(self.nest.operands):
            if operand.is_output:
                self.drain(i)
        return [array for array, o in zip(self.dram, self.nest.operands, strict=True) if o.is_output]

    def iterations(self, axis: int, where: Mapping[int, int]) -> range:
        size, tile = self.nest.axes[axis].size, self.tiling.tile[axis]
        begin = where.get(axis, 0) * tile
        return range(begin, min(begin + tile, size))

    def bring(self, i: int, where: dict[int, int]) -> None:
        """The tile of operand ``i`` for this iteration of the loops over tiles."""
        operand = self.nest.operands[i]
        own = [axis for axis in self.tiling.order if axis in operand.axes]
        tile = tuple(where[axis] for axis in own)
        if tile == self.tile[i]:
            return
        box = self.box(operand, where)
        if operand.is_output:
            self.bring_result(i, tile, box)
        elif i not in self.tiling.held:
            fresh = np.full_like(self.sram[i], POISON)
            if i in self.tiling.line_buffered and tile and tile[-1] > 0:  # else a row of tiles begins
                fresh[box] = self.sram[i][box]
            missing = np.zeros(fresh.shape, dtype=bool)
            missing[box] = fresh[box] == POISON
            fresh[missing] = self.dram[i][missing]
            self.read[i] += int(missing.sum())
            self.sram[i] = fresh
        self.tile[i] = tile

    def bring_result(self, i: int, tile: tuple[int, ...], box: tuple[slice, ...]) -> None:
        self.drain(i)
        if tile in self.touched[i]:
            self.sram[i][box] = self.dram[i][box]
            self.read[i] += 0 if i in self.tiling.held else self.sram[i][box].size
        else:
            self.sram[i][box] = self.start
        self.touched[i].add(tile)

    def drain(self, i: int) -> None:
        """The result's tile is written to DRAM, finished or not, and leaves."""
        here = self.sram[i] != POISON
        self.dram[i][here] = self.sram[i][here]
        self.written[i] += 0 if i in self.tiling.held else int(here.sum())
        self.sram[i][:] = POISON

    def box(self, operand: NestOperand, where: Mapping[int, int]) -> tuple[slice, ...]:
        spans = []
        for window in operand.windows:
            if window.axis is None:
                spans.append((0, window.size))
            else:
                iterations = self.iterations(window.axis, where)
                spans.append(window.span(iterations.start, iterations.stop))
        return tuple(slice(*span) for span in spans)


def check(nest: LoopNest, data: st.DataObject, step: Step, whole: Callable[..., np.ndarray], start: int = 0) -> None:
    """Runs the nest in a tiling that is drawn, and compares result, traffic and room."""
    sizes = [axis.size for axis in nest.axes]
    tile = tuple(data.draw(st.integers(1, size)) for size in sizes)
    order = tuple(data.draw(st.permutations([axis for axis, size in enumerate(sizes) if tile[axis] < size])))
    read = [i for i, operand in enumerate(nest.operands) if not operand.is_output]
    kinds = {i: data.draw(st.sampled_from(["tiles", "lines", "held"])) for i in read}
    tiling = Tiling(
        tile=tile,
        order=order,
        held=frozenset(i for i, kind in kinds.items() if kind == "held"),
        line_buffered=frozenset(i for i, kind in kinds.items() if kind == "lines"),
    )
    numbers = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    inputs = [numbers.integers(-9, 10, [w.size for w in nest.operands[i].windows]) for i in read]
    machine = Machine(nest, tiling, inputs, start)
    (result,) = machine.run(step)
    np.testing.assert_array_equal(result, whole(*inputs))
    count = recount_nest(nest, tiling, double_buffered=False)
    assert count.read_bytes == tuple(machine.read[i] for i in range(len(nest.operands)))
    assert count.written_bytes == tuple(machine.written[i] for i in range(len(nest.operands)))
    assert machine.most_cells <= count.footprint_bytes <= recount_nest(nest, tiling).footprint_bytes


def at(*ranges: range) -> tuple[slice, ...]:
    return tuple(slice(r.start, r.stop) for r in ranges)


def positions(slide: Slide, tap: int, results: range) -> tuple[list[int], list[int]]:
    """Results whose input under one tap of the kernel is stored, and these inputs."""
    pairs = [(y, y * slide.stride - slide.before + tap * slide.dilation) for y in results]
    stored = [(y, at) for y, at in pairs if 0 <= at < slide.size]
    return [y for y, _ in stored], [at for _, at in stored]


def windows_of(image: np.ndarray, rows: Slide, columns: Slide, fill: int) -> np.ndarray:
    """The image's windows, padded: [..., y, x, kernel rows, kernel columns]."""
    pads = [(0, 0)] * (image.ndim - 2) + [(rows.before, rows.after), (columns.before, columns.after)]
    padded = np.pad(image, pads, constant_values=fill)
    found = np.lib.stride_tricks.sliding_window_view(padded, (rows.extent, columns.extent), axis=(-2, -1))
    return found[..., :: rows.stride, :: columns.stride, :: rows.dilation, :: columns.dilation]


@st.composite
def slides(draw: st.DrawFn) -> Slide:
    kernel, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    extent = (kernel - 1) * dilation + 1
    before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    size = draw(st.integers(max(extent - before - after, 1), extent + 8))
    return Slide(
        size=size, kernel=kernel, dilation=dilation, stride=draw(st.integers(1, 3)), before=before, after=after
    )


@settings(max_examples=250, deadline=None)
@given(
    rows=slides(), columns=slides(), channels=st.integers(1, 4), filters=st.integers(1, 4), groups=st.integers(1, 3),
    data=st.data(),
)  # fmt: skip
def test_convolutions(rows, columns, channels, filters, groups, data):
    def step(ranges: Ranges, arrays: list[np.ndarray]) -> None:
        g, f, y, x, c = ranges
        image, weights, result = arrays
        for i, j in product(range(rows.kernel), range(columns.kernel)):
            ys, top = positions(rows, i, y)
            xs, left = positions(columns, j, x)
            terms = np.einsum(
                "gcyx,gfc->gfyx", image[np.ix_(g, c, top, left)], weights[(*at(g, f, c), i, j)], dtype=np.int64
            )
            result[np.ix_(g, f, ys, xs)] += terms

    def whole(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.einsum("gcyxij,gfcij->gfyx", windows_of(image, rows, columns, 0), weights)

    check(convolution(channels, filters, rows, columns, groups), data, step, whole)


@settings(max_examples=200, deadline=None)
@given(rows=slides(), columns=slides(), channels=st.integers(1, 4), data=st.data())
def test_pooling(rows, columns, channels, data):
    def step(ranges: Ranges, arrays: list[np.ndarray]) -> None:
        c, y, x = ranges
        image, result = arrays
        for i, j in product(range(rows.kernel), range(columns.kernel)):
            ys, top = positions(rows, i, y)
            xs, left = positions(columns, j, x)
            where = np.ix_(c, ys, xs)
            result[where] = np.maximum(result[where], image[np.ix_(c, top, left)])

    def whole(image: np.ndarray) -> np.ndarray:
        return windows_of(image, rows, columns, LOWEST).max(axis=(-2, -1))

    check(pooling(channels, rows, columns), data, step, whole, start=LOWEST)


@settings(max_examples=200, deadline=None)
@given(sizes=st.tuples(*[st.integers(1, 9)] * 3), data=st.data())
def test_products(sizes, data):
    def step(ranges: Ranges, arrays: list[np.ndarray]) -> None:
        m, n, k = ranges
        a, b, result = arrays
        result[at(m, n)] += a[at(m, k)] @ b[at(k, n)]

    check(matmul(*sizes), data, step, lambda a, b: a @ b)


@settings(max_examples=150, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    ones=st.lists(st.frozensets(st.integers(0, 3)), min_size=1, max_size=3), data=st.data(),
)  # fmt: skip
def test_elementwise_operators_with_broadcast_operands(shape, ones, data):
    def step(ranges: Ranges, arrays: list[np.ndarray]) -> None:
        *inputs, result = arrays
        for factor, x in enumerate(inputs, 1):
            cells = at(*(range(1) if x.shape[d] == 1 else r for d, r in enumerate(ranges)))
            result[at(*ranges)] += factor * x[cells]

    def whole(*inputs: np.ndarray) -> np.ndarray:
        return sum((i * x for i, x in enumerate(inputs, 1)), np.zeros(shape, dtype=np.int64))

    check(elementwise(shape, *ones), data, step, whole)


@settings(max_examples=150, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple), over=st.frozensets(st.integers(0, 3)),
    data=st.data(),
)  # fmt: skip
def test_reductions(shape, over, data):
    axes_over = tuple(axis for axis in sorted(over) if axis < len(shape))

    def step(ranges: Ranges, arrays: list[np.ndarray]) -> None:
        x, result = arrays
        cells = at(*(range(1) if axis in over else r for axis, r in enumerate(ranges)))
        result[cells] += x[at(*ranges)].sum(axis=axes_over, keepdims=True)

    check(reduction(shape, over), data, step, lambda x: x.sum(axis=axes_over, keepdims=True))


@settings(max_examples=100, deadline=None)
@given(size=st.integers(1, 9), factor=st.integers(1, 4), channels=st.integers(1, 3), data=st.data())
def test_enlarged_images(size, factor, channels, data):
    """Nearest neighbours: iterations that share a position, and tiles that overlap in it."""
    nest = LoopNest(
        axes=axes(c=channels, y=size * factor),
        operands=(
            NestOperand(
                name="X", windows=(Window(size=channels, axis=0), Window(size=size, axis=1, per=factor)), element_bits=8
            ),
            NestOperand(
                name="Y", windows=(Window(size=channels, axis=0), Window(size=size * factor, axis=1)), element_bits=8,
                is_output=True,
            ),
        ),
    )  # fmt: skip

    def step(ranges: Ranges, arrays: list[np.ndarray]) -> None:
        c, y = ranges
        x, result = arrays
        result[at(c, y)] = x[np.ix_(c, [row // factor for row in y])]

    check(nest, data, step, lambda x: x.repeat(factor, axis=1))


def test_an_input_that_a_tile_does_not_see_is_not_there():
    """What the machine is for: a window that is one row short, as without the last row of the kernel, is found out."""
    row = Slide(size=6, kernel=3)
    right = pooling(1, row, Slide(size=1))
    short = pooling(1, Slide(size=6, kernel=2), Slide(size=1)).operands[0]
    wrong = LoopNest(axes=right.axes, operands=(short, right.operands[1]))
    image = np.arange(6).reshape(1, 6, 1)

    def step(ranges: Ranges, arrays: list[np.ndarray]) -> None:
        _, y, _ = ranges
        for row in y:
            arrays[1][0, row] = arrays[0][0, row : row + 3].max(axis=0)

    tiling = Tiling(tile=(1, 2, 1), order=(1,))
    assert Machine(right, tiling, [image], 0).run(step)[0].tolist() == [[[2], [3], [4], [5]]]
    assert Machine(wrong, tiling, [image], 0).run(step)[0].tolist() != [[[2], [3], [4], [5]]]


@pytest.mark.parametrize(
    "tiling",
    [
        Tiling(tile=(4, 4), order=(0, 1, 2)),
        Tiling(tile=(4, 4, 0), order=(0, 1, 2)),
        Tiling(tile=(4, 4, 4), order=(0, 1)),
        Tiling(tile=(4, 4, 8), order=(0, 1, 2)),
        Tiling(tile=(8, 8, 8), order=(), held=frozenset({3})),
        Tiling(tile=(4, 8, 8), order=(0,), line_buffered=frozenset({2})),
        Tiling(tile=(4, 8, 8), order=(0,), line_buffered=frozenset({0}), held=frozenset({0})),
    ],
)
def test_what_is_no_tiling_of_the_nest_is_refused(tiling):
    with pytest.raises(ValueError, match=r"\w"):
        recount_nest(matmul(8, 8, 8), tiling)
