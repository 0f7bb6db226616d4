"""The recount of a tiling, by walking its tiles, equals the planner's closed formulas; figures worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_nests import Slide, convolution, elementwise, matmul, pooling, reduction

from spillprof.ir.loop_nest import LoopAxis, LoopNest, NestOperand, Tiling, Window
from spillprof.planning.tiling.cost import TileBuffers, tiling_cost
from spillprof.verify.nest import recount_nest


def test_a_reduction_cut_outside_moves_partial_sums():
    """k outermost, in 4: the 64 sums leave 4 times, at last with 1 byte each, and come back 3 times with 4 bytes."""
    found = recount_nest(matmul(8, 8, 8), Tiling(tile=(4, 4, 2), order=(2, 0, 1)), accumulator_bits=32)
    assert found.read_bytes == (64, 2 * 64, 3 * 64 * 4)
    assert found.written_bytes == (0, 0, 3 * 64 * 4 + 64)
    assert found.footprint_bytes == 8 + 2 * 8 + 4 * 16  # B changes with the innermost loop, A stays over it
    assert found.tiles == 16


def test_a_reduction_cut_inside_accumulates_on_chip():
    """4096^3 in output tiles of 216 x 293: 14 passes of A, 19 of B, slices of K of 1 twice."""
    small = recount_nest(matmul(4096, 4096, 16), Tiling(tile=(216, 293, 1), order=(0, 1, 2)))
    assert small.read_bytes == (14 * 4096 * 16, 19 * 4096 * 16, 0)
    assert small.written_bytes == (0, 0, 4096**2)
    assert small.footprint_bytes == 216 * 293 + 2 * (216 + 293) == 64_306


def test_line_buffers_read_each_row_once():
    """10 rows under 3: tiles of 2 results need 4 rows, 2 of them new. Without line buffers, 4 tiles read 16 rows."""
    nest = pooling(5, Slide(size=10, kernel=3), Slide(size=7))
    cut = Tiling(tile=(5, 2, 7), order=(1,))
    lines = Tiling(tile=(5, 2, 7), order=(1,), line_buffered=frozenset({0}))
    assert recount_nest(nest, cut).read_bytes == (16 * 35, 0)
    assert recount_nest(nest, cut).footprint_bytes == (2 * 4 + 2) * 35
    assert recount_nest(nest, lines).read_bytes == (10 * 35, 0)
    assert recount_nest(nest, lines).footprint_bytes == (4 + 2 + 2) * 35
    assert recount_nest(nest, lines, double_buffer_outputs=True).footprint_bytes == (4 + 2 + 2 + 2) * 35
    assert recount_nest(nest, lines, double_buffered=False, alignment_bytes=64).footprint_bytes == 3 * 64 + 2 * 64


def test_what_is_held_counts_nothing():
    found = recount_nest(matmul(8, 8, 8), Tiling(tile=(2, 8, 8), order=(0,), held=frozenset({1, 2})))
    assert (found.read_bytes, found.written_bytes, found.footprint_bytes) == ((64, 0, 0), (0, 0, 0), 2 * 16)


slides = st.builds(
    Slide, size=st.integers(5, 12), kernel=st.integers(1, 3), stride=st.integers(1, 4), dilation=st.integers(1, 2),
    before=st.integers(0, 3), after=st.integers(0, 3),
)  # fmt: skip
windows = st.builds(
    Window, size=st.integers(1, 9), axis=st.none() | st.integers(0, 2), stride=st.integers(1, 4),
    per=st.integers(1, 3), shift=st.integers(-4, 4), offset=st.integers(-3, 2), extent=st.integers(1, 5),
)  # fmt: skip
operands = st.builds(
    NestOperand, name=st.just("operand"), windows=st.lists(windows, max_size=4).map(tuple),
    element_bits=st.sampled_from([4, 8, 32]), is_output=st.booleans(),
)  # fmt: skip
nests = st.one_of(
    st.builds(matmul, *[st.integers(1, 9)] * 3, st.sampled_from([4, 8, 16])),
    st.builds(convolution, st.integers(1, 4), st.integers(1, 4), slides, slides, st.integers(1, 3)),
    st.builds(pooling, st.integers(1, 4), slides, slides),
    st.builds(elementwise, st.just((3, 4, 5)), st.frozensets(st.integers(0, 2)), st.frozensets(st.integers(0, 2))),
    st.builds(reduction, st.just((3, 4, 5)), st.frozensets(st.integers(0, 2))),
    st.builds(
        LoopNest, operands=st.lists(operands, min_size=1, max_size=4).map(tuple),
        axes=st.tuples(*[st.builds(LoopAxis, name=st.just("axis"), size=st.integers(1, 7))] * 3),
    ),
)  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(
    nest=nests, bits=st.sampled_from([0, 32]), twice=st.booleans(), outputs=st.booleans(),
    alignment=st.sampled_from([1, 16]), data=st.data(),
)  # fmt: skip
def test_the_planner_counts_the_same(nest, bits, twice, outputs, alignment, data):
    sizes = [axis.size for axis in nest.axes]
    tile = tuple(data.draw(st.integers(1, size)) for size in sizes)
    order = tuple(data.draw(st.permutations([axis for axis, size in enumerate(sizes) if tile[axis] < size])))
    kinds = [data.draw(st.sampled_from(["tiles", "lines", "held"])) for _ in nest.operands]
    tiling = Tiling(
        tile=tile, order=order, held=frozenset(i for i, kind in enumerate(kinds) if kind == "held"),
        line_buffered=frozenset(
            i for i, kind in enumerate(kinds) if kind == "lines" and not nest.operands[i].is_output
        ),
    )  # fmt: skip
    counted = recount_nest(
        nest, tiling, accumulator_bits=bits, double_buffered=twice, double_buffer_outputs=outputs,
        alignment_bytes=alignment,
    )  # fmt: skip
    buffers = TileBuffers(
        accumulator_bits=bits, double_buffered=twice, double_buffer_outputs=outputs, alignment_bytes=alignment
    )
    cost = tiling_cost(nest, tiling, buffers)
    assert (counted.read_bytes, counted.written_bytes) == (cost.read_bytes, cost.written_bytes)
    assert (counted.footprint_bytes, counted.tiles) == (cost.footprint_bytes, cost.tiles)


@pytest.mark.parametrize("size", [1, 2])
def test_an_uncut_nest_moves_each_operand_once(size):
    nest = matmul(size, 3, 4)
    found = recount_nest(nest, Tiling(tile=(size, 3, 4), order=()))
    assert found.moved_bytes == found.footprint_bytes == sum(operand.nbytes for operand in nest.operands)
