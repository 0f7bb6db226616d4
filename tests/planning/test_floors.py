"""Floors of operators: known figures, the inequalities that they rest on, and where they do not apply."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_nests import Slide, convolution, elementwise, matmul, pooling, reduction

from spillprof.ir.loop_nest import LoopNest, NestOperand, Tiling, Window
from spillprof.planning.tiling.floors import io_floor
from spillprof.verify.nest import recount_nest

KiB, MiB = 1024, 1024**2


@pytest.mark.parametrize(
    ("nest", "sram", "expected"),
    [
        (matmul(4096, 4096, 4096), 64 * KiB, 536_739_840),  # 2 * 4096^3 / 256 - 2 * 65536
        (matmul(4096, 4096, 4096), MiB, 132_120_576),  # 2 * 4096^3 / 1024 - 2 * 1048576
        (matmul(4096, 4096, 4096), 64 * MiB, 3 * 4096**2),  # each once
        (matmul(2048, 2048, 2048, 32), MiB, 132_120_576),  # e = 4: 8 * 2048^3 / 512 - 2 * 1048576
        (matmul(3000, 5000, 2000, 16), 204_800, 374_590_400),  # 4 * 3e10 / 320 - 409600
    ],
)
def test_products_of_known_floors(nest, sram, expected):
    assert io_floor(nest, sram).nbytes == expected


def test_wide_accumulators_and_narrow_weights_count_with_their_widths():
    """4096^3 at 64 KiB: sqrt(1 * 1 * 4) doubles the leading term; results were narrowed, so 3 bytes each come off."""
    assert io_floor(matmul(4096, 4096, 4096), 64 * KiB, accumulator_bits=32).nbytes == (
        2 * 2 * 4096**3 // 256 - 2 * 65536 - 3 * 4096**2
    )
    assert io_floor(matmul(4096, 4096, 4096, weight_bits=2), 64 * KiB).nbytes == 2 * 4096**3 // 256 // 2 - 2 * 65536


def test_a_convolution_divides_by_the_root_of_its_kernel_positions():
    """64 to 64 channels, 3x3 over 128x128: of 384 x 384 pairs of row and kernel row, 2 lie in padding."""
    row = Slide(size=128, kernel=3, before=1, after=1)
    found = io_floor(convolution(64, 64, row, row), 1024)
    assert found.kernel_positions == 9
    assert found.product_bytes == 2 * 64 * 64 * 382**2 // (3 * 32) - 2048
    assert found.nbytes == found.product_bytes > found.once_bytes


@pytest.mark.parametrize(("stride", "dilation", "positions"), [(1, 1, 3), (2, 1, 2), (3, 1, 1), (2, 2, 3), (2, 3, 2)])
def test_a_stride_leaves_fewer_kernel_positions_to_an_input(stride, dilation, positions):
    row = Slide(size=40, kernel=3, stride=stride, dilation=dilation)
    assert io_floor(convolution(8, 8, row, Slide(size=8)), 64).kernel_positions == positions


def test_operands_beside_a_product_are_moved_once_more():
    plain = matmul(512, 512, 512)
    bias = NestOperand(name="bias", windows=(Window(size=512, axis=1),), element_bits=32)
    fused = LoopNest(axes=plain.axes, operands=(*plain.operands[:2], bias, plain.operands[2]), macs=plain.macs)
    assert io_floor(fused, 4096).nbytes == io_floor(plain, 4096).nbytes + 4 * 512


def test_a_tensor_that_is_two_operands_is_read_once():
    """Times itself, an element serves for two: what is proven of two operands does not hold."""
    nest = matmul(512, 512, 512)
    found = io_floor(nest, 1024, storages=("x", "x", "y"))
    assert (found.nbytes, found.product_bytes) == (2 * 512**2, None)
    assert io_floor(nest, 1024, storages=("x", "w", "y")) == io_floor(nest, 1024)


def test_what_is_no_product_is_moved_once():
    for nest in (
        elementwise((8, 9), frozenset(), frozenset({0})), pooling(3, Slide(size=8, kernel=2, stride=2), Slide(size=5)),
        reduction((4, 6), frozenset({1})),
    ):  # fmt: skip
        found = io_floor(nest, 16)
        assert found.product_bytes is None
        assert found.nbytes == sum(operand.nbytes for operand in nest.operands)


def test_positions_that_no_iteration_touches_are_not_read():
    """A 1x1 convolution of stride 2 needs 4 x 3 of 8 x 5 inputs; its rows tiled one by one, it reads 4 of 8 rows."""
    nest = convolution(1, 1, Slide(size=8, stride=2), Slide(size=5, stride=2))
    assert io_floor(nest, 64).once_bytes == 4 * 3 + 1 + 4 * 3
    count = recount_nest(nest, Tiling(tile=(1, 1, 1, 1, 1), order=(2, 3)))
    assert count.moved_bytes == io_floor(nest, 64).once_bytes


@given(
    kernel=st.integers(1, 3), stride=st.integers(1, 3), dilation=st.integers(1, 3), results=st.integers(1, 5),
    data=st.data(),
)  # fmt: skip
def test_multiplications_are_at_most_the_root_of_what_they_touch(kernel, stride, dilation, results, data):
    """F^2 <= R A B C for any set of multiplications of a convolution, A, B, C the elements that they touch."""
    row = Slide(
        size=(results - 1) * stride + (kernel - 1) * dilation + 1, kernel=kernel, stride=stride, dilation=dilation
    )
    space = list(product(range(results), range(kernel), range(2), range(2)))  # row, tap, channel, filter
    chosen = data.draw(st.lists(st.sampled_from(space), unique=True, min_size=1, max_size=len(space)))
    inputs = {(y * stride + tap * dilation, c) for y, tap, c, _ in chosen}
    weights = {(tap, c, f) for _, tap, c, f in chosen}
    sums = {(y, f) for y, _, _, f in chosen}
    shared = io_floor(convolution(2, 2, row, Slide(size=1)), 64).kernel_positions
    assert len(chosen) ** 2 <= shared * len(inputs) * len(weights) * len(sums)


@given(
    sizes=st.tuples(*[st.integers(1, 12)] * 3), bits=st.sampled_from([8, 16]), wide=st.sampled_from([0, 32]),
    data=st.data(),
)  # fmt: skip
def test_no_tiling_of_a_product_moves_less(sizes, bits, wide, data):
    nest = matmul(*sizes, bits)
    tile = tuple(data.draw(st.integers(1, size)) for size in sizes)
    order = data.draw(st.permutations([axis for axis in range(3) if tile[axis] < sizes[axis]]))
    count = recount_nest(nest, Tiling(tile=tile, order=tuple(order)), accumulator_bits=wide)
    assert count.moved_bytes >= io_floor(nest, count.footprint_bytes, accumulator_bits=wide).nbytes


@given(
    rows=st.builds(
        Slide, size=st.integers(5, 12), kernel=st.integers(1, 3), stride=st.integers(1, 3), dilation=st.integers(1, 2),
        before=st.integers(0, 2), after=st.integers(0, 2),
    ),
    channels=st.integers(1, 6), filters=st.integers(1, 6), groups=st.integers(1, 2), data=st.data(),
)  # fmt: skip
def test_no_tiling_of_a_convolution_moves_less(rows, channels, filters, groups, data):
    nest = convolution(channels, filters, rows, Slide(size=6, kernel=3, before=1, after=1), groups)
    sizes = [axis.size for axis in nest.axes]
    tile = tuple(data.draw(st.integers(1, size)) for size in sizes)
    order = data.draw(st.permutations([axis for axis in range(5) if tile[axis] < sizes[axis]]))
    lines = data.draw(st.sampled_from([frozenset(), frozenset({0})]))
    count = recount_nest(nest, Tiling(tile=tile, order=tuple(order), line_buffered=lines))
    assert count.moved_bytes >= io_floor(nest, count.footprint_bytes).nbytes


def test_the_theorem_is_named():
    assert "Smith" in io_floor(matmul(512, 512, 512), 1024).theorem
    row = Slide(size=64, kernel=3)
    assert "Chen" in io_floor(convolution(64, 64, row, row), 1024).theorem
    assert io_floor(elementwise((4,), frozenset()), 1024).theorem == "each operand once"
