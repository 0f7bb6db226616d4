"""Tilings of a nest: counts worked out by hand, figures to reach, and the best of all tilings of tiny nests."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise, permutations
from itertools import product as combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nests import axes, convolution, elementwise, on, product
from programs import target

from spillprof.ir.errors import CapacityError
from spillprof.ir.loop_nest import LoopAxis, LoopNest, NestOperand, Tiling, Window
from spillprof.planning.tiling.cost import AxisSpans, TileBuffers, TilingCost, operand_spans, tiling_cost
from spillprof.planning.tiling.loops import MOST_TILE_SIZES, tile_loops, tile_sizes
from spillprof.planning.tiling.modes import GRID_POINTS, MOST_MODES, Mode, modes, modes_or_error, smallest_mode

PLAIN = TileBuffers()
IN_SRAM = TileBuffers(accumulator_bits=32)
B, ROWS, COLUMNS, OUT, INTO = range(5)  # axes of convolutions
M, N, K = 1, 2, 3  # axes of products


def best(nest: LoopNest, sram_bytes: int, buffers: TileBuffers = PLAIN) -> Mode:
    return modes(nest, sram_bytes, buffers)[0]


# --- what a tiling moves and needs


def test_a_product_whose_output_tile_stays() -> None:
    """4096^3 at 64 KiB: 19 x 14 tiles of 216 x 293; slices of one k, each there twice."""
    tiling = Tiling(tile=(1, 216, 293, 1), order=(M, N, K))
    cost = tiling_cost(product(4096, 4096, 4096), tiling, PLAIN)
    assert cost == TilingCost(
        footprint_bytes=2 * 216 + 2 * 293 + 216 * 293,
        read_bytes=(14 * 2**24, 19 * 2**24, 0),
        written_bytes=(0, 0, 2**24),
        passes=(14, 19, 1),
        tiles=19 * 14 * 4096,
    )
    assert cost.moved_bytes == 34 * 2**24


def test_partial_sums_leave_and_come_back_at_the_accumulators_width() -> None:
    """K outside of M and N, in 3 tiles: the output, 8 x 6, is written 3 times and read twice."""
    tiling = Tiling(tile=(1, 4, 6, 2), order=(K, M))
    nest = product(8, 6, 6)
    cost = tiling_cost(nest, tiling, PLAIN)
    assert (cost.read_bytes, cost.written_bytes, cost.passes) == ((48, 36, 2 * 48), (0, 0, 3 * 48), (1, 1, 3))
    assert cost.footprint_bytes == 2 * 8 + 12 + 24  # a streams, b stays, c drains before the next one begins
    cost = tiling_cost(nest, tiling, IN_SRAM)
    assert (cost.read_bytes, cost.written_bytes) == ((48, 36, 2 * 4 * 48), (0, 0, 2 * 4 * 48 + 48))
    assert cost.footprint_bytes == 2 * 8 + 12 + 4 * 24


def test_an_operand_that_stays_is_read_once_and_there_once() -> None:
    """B stays over M: it is read once; a passes once for each block of N."""
    cost = tiling_cost(product(8, 6, 6), Tiling(tile=(1, 4, 3, 6), order=(N, M)), PLAIN)
    assert (cost.passes, cost.read_bytes, cost.footprint_bytes) == ((2, 1, 1), (96, 36, 0), 2 * 24 + 18 + 12)


@pytest.mark.parametrize(
    ("buffers", "footprint"),
    [
        (PLAIN, 2 * 24 + 18 + 12),
        (TileBuffers(double_buffered=False), 24 + 18 + 12),
        (TileBuffers(double_buffer_outputs=True), 2 * 24 + 18 + 2 * 12),
        (TileBuffers(alignment_bytes=16), 2 * 32 + 32 + 16),
        (TileBuffers(accumulator_bits=32, double_buffer_outputs=True), 2 * 24 + 18 + 2 * 48),
    ],
)
def test_how_often_a_tile_is_there(buffers: TileBuffers, footprint: int) -> None:
    tiling = Tiling(tile=(1, 4, 3, 6), order=(N, M))
    assert tiling_cost(product(8, 6, 6), tiling, buffers).footprint_bytes == footprint


def test_rows_with_line_buffers_are_read_once() -> None:
    """3 x 3, stride 1, pad 1 over 6 rows of 4: stripes of two rows touch 3, 4 and 3 rows."""
    nest = convolution(1, (6, 4), 1, 3, bits=8)
    tiling = Tiling(tile=(1, 2, 4, 1, 1), order=(ROWS,))
    again = tiling_cost(nest, tiling, PLAIN)
    assert (again.read_bytes, again.footprint_bytes) == ((40, 9, 0), 2 * 4 * 4 + 9 + 8)
    once = tiling_cost(nest, replace(tiling, line_buffered=frozenset({0})), PLAIN)
    assert (once.read_bytes, once.footprint_bytes) == ((24, 9, 0), 4 * 4 + 2 * 4 + 9 + 8)


def test_line_buffers_hold_the_overlap_along_the_innermost_loop_alone() -> None:
    """Two blocks of columns, each with one column of the other, each in stripes of rows."""
    nest = convolution(1, (6, 4), 1, 3, bits=8)
    tiling = Tiling(tile=(1, 2, 2, 1, 1), order=(COLUMNS, ROWS), line_buffered=frozenset({0}))
    cost = tiling_cost(nest, tiling, PLAIN)
    assert (cost.read_bytes, cost.footprint_bytes) == ((6 * (3 + 3), 9, 0), 4 * 3 + 2 * 3 + 9 + 4)


def test_a_broadcast_operand_is_read_again_for_each_tile_of_what_it_lacks() -> None:
    nest = elementwise(6, 4, broadcast=(0,))
    assert tiling_cost(nest, Tiling(tile=(3, 2), order=(0, 1)), PLAIN).read_bytes == (24, 2 * 4, 0)
    assert tiling_cost(nest, Tiling(tile=(3, 2), order=(1, 0)), PLAIN).read_bytes == (24, 4, 0)
    assert tiling_cost(nest, Tiling(tile=(3, 4), order=(0,)), PLAIN).read_bytes == (24, 4, 0)


def test_held_operands_cost_nothing_here() -> None:
    tiling = Tiling(tile=(1, 4, 3, 6), order=(N, M), held=frozenset({0, 2}))
    cost = tiling_cost(product(8, 6, 6), tiling, PLAIN)
    assert (cost.read_bytes, cost.written_bytes, cost.footprint_bytes) == ((0, 36, 0), (0, 0, 0), 18)


def test_narrow_elements_round_up_once_a_pass() -> None:
    """3 x 5 elements of 4 bits: 8 bytes a pass, although the tiles of 3 would be 5 x 2."""
    cost = tiling_cost(elementwise(5, 3, bits=4), Tiling(tile=(1, 3), order=(0,)), PLAIN)
    assert (cost.read_bytes, cost.written_bytes, cost.footprint_bytes) == ((8, 8, 0), (0, 0, 8), 4 + 4 + 2)


@pytest.mark.parametrize(
    ("tiling", "message"),
    [
        (Tiling(tile=(1, 9, 6, 6), order=()), "outside of 1"),
        (Tiling(tile=(1, 0, 6, 6), order=(M,)), "outside of 1"),
        (Tiling(tile=(1, 4, 6, 6), order=()), "not the axes"),
        (Tiling(tile=(1, 4, 6, 6), order=(M, M)), "not the axes"),
        (Tiling(tile=(1, 4, 6, 6), order=(N,)), "not the axes"),
        (Tiling(tile=(1, 8, 6, 3), order=(K,)), "cannot be cut"),
        (Tiling(tile=(1, 8, 6, 6), order=(), held=frozenset({3})), "lacks"),
    ],
)
def test_a_tiling_of_another_nest_is_refused(tiling: Tiling, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiling_cost(replace(product(8, 6, 6), whole=frozenset({K})), tiling, PLAIN)


def test_accumulators_are_those_of_the_machine_where_the_nest_multiplies() -> None:
    machine = replace(target(), accumulator_bytes_per_output=4, alignment_bytes=32)
    of = TileBuffers.of(machine, product(8, 6, 6))
    assert (of.accumulator_bits, of.alignment_bytes) == (32, 32)
    assert TileBuffers.of(machine, elementwise(6, 4)).accumulator_bits == 0


@st.composite
def windows(draw: st.DrawFn, axis: int, size: int) -> Window:
    """Any window on an axis, often the plain one, often a convolution's."""
    if draw(st.booleans()):
        return on(axis, size)
    stride, per = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 2, 3]))
    offset, extent = draw(st.integers(-3, 3)), draw(st.integers(1, 5))
    reached = (size - 1) * stride // per + offset + extent
    return Window(
        size=max(reached + draw(st.integers(-3, 3)), 1),
        axis=axis,
        stride=stride,
        per=per,
        shift=draw(st.integers(0, per - 1)),
        offset=offset,
        extent=extent,
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_spans_of_an_axis_are_those_of_a_walk_over_its_tiles(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    tile = data.draw(st.integers(1, size))
    found = tuple(data.draw(st.lists(windows(0, size), min_size=1, max_size=2)))
    touched = [
        set(combinations(*(range(*window.span(start, min(start + tile, size))) for window in found)))
        for start in range(0, size, tile)
    ]
    new = [here - before for before, here in pairwise(touched)]
    operand = NestOperand(name="x", windows=found, element_bits=8)
    assert operand_spans(operand, 0, size, tile) == AxisSpans(
        total=sum(map(len, touched)),
        largest=max(map(len, touched)),
        total_new=len(touched[0]) + sum(map(len, new)),
        largest_new=max(map(len, new), default=0),
    )


# --- figures to reach

MB = 10**6
CUBE = product(4096, 4096, 4096)
FLOATS = product(2048, 2048, 2048, bits=32)
HALVES = product(3000, 5000, 2000, bits=16)


@pytest.mark.parametrize(
    ("nest", "sram_bytes", "buffers", "least_mb", "most_mb"),
    [
        (CUBE, 2**16, PLAIN, 536.7, 570 * 1.01),
        (CUBE, 2**16, IN_SRAM, 536.7, 1107 * 1.01),
        (CUBE, 2**20, PLAIN, 132, 168 * 1.01),
        (CUBE, 2**20, IN_SRAM, 132, 302 * 1.01),
        (CUBE, 2**26, PLAIN, 50.3, 50.4),
        (product(512, 1408, 768), 125440, PLAIN, 2.9, 4.0 * 1.01),
        (product(512, 1408, 768), 125440, IN_SRAM, 2.9, 7.2 * 1.01),
        (FLOATS, 2**20, PLAIN, 132, 168 * 1.01),
        (HALVES, 204800, PLAIN, 374.6, 392 * 1.01),
        (HALVES, 204800, IN_SRAM, 374.6, 552 * 1.01),
    ],
)
def test_products_move_what_a_good_tiling_moves_and_never_less_than_the_floor(
    nest: LoopNest, sram_bytes: int, buffers: TileBuffers, least_mb: float, most_mb: float
) -> None:
    """Floors: 2 M N K e / sqrt(S / e) - 2 S (Hong and Kung; Smith et al. 2019), or each operand once."""
    assert least_mb * MB <= best(nest, sram_bytes, buffers).cost.moved_bytes <= most_mb * MB


VGG16 = [
    (3, 224, 64, 1), (64, 224, 64, 1), (64, 112, 128, 1), (128, 112, 128, 1), (128, 56, 256, 1), (256, 56, 256, 2),
    (256, 28, 512, 1), (512, 28, 512, 2), (512, 14, 512, 3),
]  # fmt: skip
UNET = [
    (3, 512, 64, 1), (64, 512, 64, 2), (64, 256, 128, 1), (128, 256, 128, 2), (128, 128, 256, 1), (256, 128, 256, 2),
    (256, 64, 512, 1), (512, 64, 512, 2), (512, 32, 1024, 1), (1024, 32, 1024, 1), (1024, 64, 512, 1),
    (512, 128, 256, 1), (256, 256, 128, 1), (128, 512, 64, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("layers", "sram_bytes", "once_mib", "most_mib"), [(VGG16, 2**18, 90, 185), (UNET, 2**20, 600, 1226)]
)
def test_convolutions_read_no_more_than_a_simple_search_found(
    layers: list[tuple[int, int, int, int]], sram_bytes: int, once_mib: int, most_mib: int
) -> None:
    """All 3 x 3, stride 1, pad 1, float32: in channels, edge, out channels, how many."""
    read = sum(
        count * sum(best(convolution(into, edge, out, 3), sram_bytes).cost.read_bytes)
        for into, edge, out, count in layers
    )
    assert once_mib * 2**20 <= read <= most_mib * 2**20


def test_a_depthwise_convolution_moves_everything_once_in_blocks_of_channels() -> None:
    nest = convolution(960, 14, 960, 3, depthwise=True, bits=8)
    for sram_bytes in (2**10, 2**12, 2**14):
        cost = best(nest, sram_bytes).cost
        assert cost.moved_bytes == sum(operand.nbytes for operand in nest.operands)


def test_elementwise_moves_everything_once_down_to_one_element() -> None:
    nest = elementwise(2, 3, 4, 5)
    for sram_bytes in (5, 50, 100, 359):
        assert best(nest, sram_bytes).cost.moved_bytes == 3 * 120
    assert modes(nest, 4, PLAIN) == ()


# --- the best of all tilings


def all_tilings(nest: LoopNest) -> Iterator[Tiling]:
    """Every size, every order, line buffers wherever tiles overlap."""
    sizes = [(axis.size,) if number in nest.whole else range(1, axis.size + 1) for number, axis in enumerate(nest.axes)]
    for tile in combinations(*sizes):
        for order in permutations([a for a, axis in enumerate(nest.axes) if tile[a] < axis.size]):
            lines = set()
            for place, operand in enumerate(nest.operands):
                own = next((a for a in reversed(order) if a in operand.axes), None)
                if own is not None and not operand.is_output:
                    spans = operand_spans(operand, own, nest.axes[own].size, tile[own])
                    lines |= {place} if spans.overlaps else set()
            yield Tiling(tile=tile, order=order, line_buffered=frozenset(lines))


def least_by_footprint(nest: LoopNest, buffers: TileBuffers) -> dict[int, int]:
    """By footprint that some tiling has: the fewest bytes of any that needs no more."""
    costs = sorted(
        (cost.footprint_bytes, cost.moved_bytes)
        for cost in map(partial(tiling_cost, nest, buffers=buffers), all_tilings(nest))
    )
    least: dict[int, int] = {}
    fewest = costs[0][1]
    for footprint, moved in costs:
        fewest = min(fewest, moved)
        least[footprint] = fewest
    return least


@pytest.mark.parametrize("buffers", [PLAIN, IN_SRAM, TileBuffers(double_buffered=False, double_buffer_outputs=True)])
@pytest.mark.parametrize(
    "nest",
    [
        product(5, 6, 7),
        product(4, 3, 4, batch=3),
        convolution(3, 5, 3, 3, bits=8),
        convolution(2, (6, 5), 2, 3, stride=2, bits=8),
        convolution(2, (7, 4), 3, 2, dilation=2, pad=1, bits=16),
        convolution(4, (6, 5), 4, 3, depthwise=True),
        convolution(2, 4, 3, 1, stride=2, pad=0, bits=8),
        elementwise(4, 5, 3, broadcast=(0, 2)),
        replace(product(4, 6, 5), whole=frozenset({K})),
    ],
)
def test_tiny_nests_get_the_best_of_all_tilings_in_every_memory(nest: LoopNest, buffers: TileBuffers) -> None:
    least = least_by_footprint(nest, buffers)
    for sram_bytes in sorted(least)[:: max(len(least) // 25, 1)]:
        assert best(nest, sram_bytes, buffers).cost.moved_bytes == least[sram_bytes], sram_bytes
    assert modes(nest, min(least) - 1, buffers) == ()
    assert smallest_mode(nest, buffers).cost.footprint_bytes == min(least)


@st.composite
def kernel_windows(draw: st.DrawFn, axis: int, size: int) -> Window:
    """Those of operators: the plain one, or a kernel's, with less padding at either end than the kernel is long."""
    if draw(st.booleans()):
        return on(axis, size)
    extent = draw(st.integers(1, 4))
    stride, start, end = (draw(st.integers(*limits)) for limits in ((1, 3), (0, extent - 1), (0, extent - 1)))
    reached = (size - 1) * stride + extent - start
    return Window(size=max(reached - end, 1), axis=axis, stride=stride, offset=-start, extent=extent)


@st.composite
def small_nests(draw: st.DrawFn, any_windows: bool = False) -> LoopNest:
    """Up to four axes and three inputs; each axis in some operand."""
    window = windows if any_windows else kernel_windows
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    everything = range(len(sizes))
    subsets = st.sets(st.sampled_from(everything))
    inputs = draw(st.lists(subsets, min_size=1, max_size=3))
    result = draw(subsets)
    inputs[0] |= set(everything) - result - set().union(*inputs)
    return LoopNest(
        axes=tuple(LoopAxis(name=f"axis {a}", size=size) for a, size in enumerate(sizes)),
        operands=(
            *(
                NestOperand(
                    name=f"input {i}",
                    windows=tuple(draw(window(a, sizes[a])) for a in sorted(own)),
                    element_bits=draw(st.sampled_from([4, 8, 16])),
                )
                for i, own in enumerate(inputs)
            ),
            NestOperand(
                name="output", windows=tuple(on(a, sizes[a]) for a in sorted(result)), element_bits=8, is_output=True
            ),
        ),
        whole=frozenset(draw(st.sets(st.sampled_from(everything), max_size=1))),
    )


@settings(max_examples=60, deadline=None)
@given(
    small_nests(),
    st.builds(
        TileBuffers,
        accumulator_bits=st.sampled_from([0, 32]),
        double_buffered=st.booleans(),
        double_buffer_outputs=st.booleans(),
        alignment_bytes=st.sampled_from([1, 4]),
    ),
)
def test_random_nests_get_the_best_of_all_tilings_or_nearly(nest: LoopNest, buffers: TileBuffers) -> None:
    """Exactly the best without overlaps. With padding, tiles of another size for as many may need a position less."""
    least = least_by_footprint(nest, buffers)
    smallest = smallest_mode(nest, buffers).cost.footprint_bytes
    assert min(least) <= smallest <= (1 if is_simple(nest) else 1.5) * min(least)
    for sram_bytes in {smallest, max(least), *sorted(least)[:: max(len(least) // 4, 1)]}:
        found = modes(nest, sram_bytes, buffers)
        assert bool(found) == (sram_bytes >= smallest)
        if found:
            fewest = min(moved for footprint, moved in least.items() if footprint <= sram_bytes)
            assert fewest <= found[0].cost.moved_bytes <= (fewest if is_simple(nest) else 1.5 * fewest + 4)


def is_simple(nest: LoopNest) -> bool:
    """Whether no window is clipped, skips or overlaps."""
    return all(w == on(w.axis or 0, nest.axes[w.axis or 0].size) for operand in nest.operands for w in operand.windows)


@settings(max_examples=60, deadline=None)
@given(small_nests(any_windows=True), st.lists(st.integers(1, 600), min_size=2, max_size=4))
def test_more_memory_never_moves_more_and_no_mode_is_worse_than_another(nest: LoopNest, sizes: list[int]) -> None:
    before = None
    for sram_bytes in sorted(sizes):
        found = modes(nest, sram_bytes, PLAIN)
        assert len(found) <= MOST_MODES
        figures = [(m.cost.footprint_bytes, m.cost.moved_bytes, m.cost.tiles) for m in found]
        assert all(footprint <= sram_bytes for footprint, _, _ in figures)
        assert [moved for _, moved, _ in figures] == sorted(moved for _, moved, _ in figures)
        assert not [
            (a, b) for a in figures for b in figures if a is not b and all(x <= y for x, y in zip(a, b, strict=True))
        ]
        assert all(m.cost == tiling_cost(nest, m.tiling, PLAIN) for m in found)
        if before is not None:
            assert figures[0][1] <= before
        before = figures[0][1] if figures else before


@pytest.mark.parametrize("nest", [CUBE, convolution(64, 56, 128, 3, stride=2), product(197, 64, 197, batch=12)])
def test_a_larger_memory_never_moves_more(nest: LoopNest) -> None:
    moved = [best(nest, 2**13 * step // 8).cost.moved_bytes for step in range(8, 80, 3)]
    assert moved == sorted(moved, reverse=True)


def test_modes_are_a_choice_between_footprint_bytes_and_tiles() -> None:
    found = modes(CUBE, 2**16, PLAIN)
    assert 8 <= len(found) <= MOST_MODES
    assert min(mode.cost.footprint_bytes for mode in found) == 4
    assert min(mode.cost.tiles for mode in found) * 10 < found[0].cost.tiles
    assert {mode.cost.footprint_bytes.bit_length() for mode in found} >= set(range(11, 17))


def test_equal_nests_in_equal_memory_are_searched_once() -> None:
    assert modes(product(40, 50, 60), 999, TileBuffers()) is modes(product(40, 50, 60), 999, TileBuffers())


def test_held_operands_leave_their_room_and_their_passes_out() -> None:
    nest = product(64, 64, 64)
    found = modes(nest, 64 + 1, PLAIN, frozenset({1}))[0]  # a row of a, and an element of c
    assert found.tiling.held == {1}
    assert found.cost.moved_bytes == 2 * 64 * 64
    assert modes(nest, 0, PLAIN, frozenset({0, 1, 2}))[0].cost.moved_bytes == 0


def test_what_fits_whole_is_not_cut() -> None:
    nest = product(8, 6, 7)
    first = best(nest, 48 + 42 + 56)
    assert (first.tiling.order, first.cost.tiles, first.cost.moved_bytes) == ((), 1, 146)


def test_no_tile_fits() -> None:
    """Each tile takes 64 bytes at least: the input that stays and the output once, the other input twice."""
    aligned = TileBuffers(alignment_bytes=64)
    with pytest.raises(CapacityError) as error:
        modes_or_error("scores", FLOATS, 255, aligned)
    assert error.value.message == "operator 'scores' does not fit into 255 B of SRAM, however it is tiled"
    assert error.value.where == ("its smallest tile (m 1, n 1, k 1) needs 256 B",)
    assert error.value.hint == "the smallest SRAM for it is 256 bytes"
    assert modes_or_error("scores", FLOATS, 256, aligned)[0].cost.footprint_bytes == 256


# --- loops and sizes


def test_sizes_are_the_smallest_for_each_number_of_tiles() -> None:
    assert tile_sizes((10,)) == ((1,), (2,), (3,), (4,), (5,))
    assert tile_sizes((7,)) == ((1,), (2,), (3,), (4,))
    assert tile_sizes((1,)) == ()


def test_axes_that_are_cut_as_one_have_blocks_that_no_other_beats() -> None:
    """Of 2 x 3: 1 x 2 makes four tiles, as many as 2 x 2 makes two; 2 x 1 makes three."""
    assert tile_sizes((2, 3)) == ((1, 1), (2, 1), (1, 3))
    assert tile_sizes((4, 1024))[-1] == (2, 1024)


def test_axes_of_the_same_operands_are_one_loop_unless_tiles_overlap() -> None:
    def loops(nest: LoopNest) -> list[tuple[int, ...]]:
        return [loop.axes for loop in tile_loops(nest, frozenset())]

    assert loops(elementwise(4, 5, 6)) == [(0, 1, 2)]
    assert loops(elementwise(4, 5, 6, broadcast=(1,))) == [(0, 2), (1,)]
    assert loops(convolution(8, 9, 8, 1, batch=4)) == [(B, ROWS, COLUMNS), (OUT,), (INTO,)]
    assert loops(convolution(8, 9, 8, 3, batch=4)) == [(B,), (ROWS,), (COLUMNS,), (OUT,), (INTO,)]
    assert [loop.axes for loop in tile_loops(product(4, 5, 6), frozenset({0, 1}))] == [(M, N)]


def test_large_nests_are_thinned() -> None:
    assert len(tile_loops(elementwise(100_000), frozenset())[0].tiles) == MOST_TILE_SIZES
    parts = tuple(
        NestOperand(name=f"part {i}", windows=(Window(size=300, axis=0, offset=-300 * i),), element_bits=8)
        for i in range(90)
    )
    whole = NestOperand(name="whole", windows=(on(0, 27000),), element_bits=8, is_output=True)
    joined = LoopNest(axes=axes(axis0=27000), operands=(*parts, whole))
    assert len(tile_loops(joined, frozenset())[0].tiles) == 11
    assert best(joined, 20000).cost.moved_bytes == 2 * 27000
    seven = tuple(on(a, 3 + a) for a in range(7))
    nest = LoopNest(
        axes=axes(**{f"axis{a}": 3 + a for a in range(7)}),
        operands=(
            *(NestOperand(name=f"x{a}", windows=(seven[a],), element_bits=8) for a in range(7)),
            NestOperand(name="y", windows=seven, element_bits=8, is_output=True),
        ),
    )
    assert [loop.axes for loop in tile_loops(nest, frozenset())] == [(1,), (2,), (3,), (4,), (5,), (6,)]
    assert GRID_POINTS <= 2**14
    assert best(nest, 1000).cost.footprint_bytes <= 1000
