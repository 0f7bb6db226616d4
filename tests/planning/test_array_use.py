"""How much of an array of multipliers tiles keep busy: passes over the array counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests import convolution, elementwise, product
from programs import target

from spillprof.ir.loop_nest import LoopNest, Tiling
from spillprof.ir.target import Target
from spillprof.planning.tiling.array import array_use, least_tile

ARRAY = target(array_rows=16, array_columns=32)


def tiled(*tile: int) -> Tiling:
    return Tiling(tile=tile, order=tuple(range(len(tile))))


@pytest.mark.parametrize(
    ("tile", "expected"),
    [
        # axes batch, m, n, k: k lies along 16 rows, n along 32 columns
        ((1, 100, 64, 64), 1.0),  # untiled
        ((1, 1, 64, 64), 1.0),  # m does not lie along the array
        ((1, 100, 32, 16), 1.0),  # full passes
        ((1, 100, 64, 8), 4 / 8),  # 8 slices of k, a pass each, where 4 full ones do
        ((1, 100, 64, 1), 4 / 64),
        ((1, 100, 16, 64), 2 / 4),  # 4 blocks of n for 2
        ((1, 100, 48, 64), 2 / 3),  # 48 takes 2 passes, the 16 that are left 1
        ((1, 100, 16, 8), 4 / 8 * 2 / 4),
        ((1, 100, 64, 24), 4 / 5),  # 24 + 24 + 16: 2 + 2 + 1 passes
    ],
)
def test_a_tile_narrower_than_the_array_leaves_units_idle(tile: tuple[int, ...], expected: float) -> None:
    assert array_use(product(100, 64, 64), tiled(*tile), ARRAY) == pytest.approx(expected)


def test_what_the_whole_operator_leaves_idle_is_no_loss_of_its_tiles() -> None:
    """k of 20 takes 2 passes over 16 rows, whole or as 16 + 4; as 10 + 10 too."""
    nest = product(8, 20, 32)
    assert [array_use(nest, tiled(1, 8, 32, k), ARRAY) for k in (20, 16, 10, 5)] == [1.0, 1.0, 1.0, 0.5]


def test_channels_of_a_convolution_lie_along_the_array_and_pixels_do_not() -> None:
    """Axes batch, rows, columns, out, into."""
    nest = convolution(64, 14, 64, 3)
    assert array_use(nest, tiled(1, 1, 1, 64, 64), ARRAY) == 1.0
    assert array_use(nest, tiled(1, 14, 14, 16, 64), ARRAY) == 0.5
    assert array_use(nest, tiled(1, 14, 14, 64, 4), ARRAY) == 4 / 16
    assert array_use(convolution(64, 14, 64, 3, depthwise=True), tiled(1, 14, 14, 1), ARRAY) == 1.0


def test_nothing_is_lost_without_products_or_without_an_array() -> None:
    assert array_use(elementwise(64, 64), tiled(1, 1), ARRAY) == 1.0
    assert array_use(product(100, 64, 64), tiled(1, 1, 1, 1), target()) == 1.0


def test_the_least_tile_fills_the_array() -> None:
    assert least_tile(product(100, 64, 64), ARRAY) == (1, 1, 32, 16)
    assert least_tile(product(100, 10, 20), ARRAY) == (1, 1, 20, 10)
    assert least_tile(convolution(64, 14, 64, 3), ARRAY) == (1, 1, 1, 32, 16)
    assert least_tile(product(100, 64, 64), target()) == (1, 1, 1, 1)
    assert least_tile(elementwise(64, 64), ARRAY) == (1, 1)


NESTS = st.builds(product, st.integers(1, 9), st.integers(1, 70), st.integers(1, 70))
ARRAYS = st.builds(lambda rows, columns: target(array_rows=rows, array_columns=columns), *[st.integers(0, 20)] * 2)


@given(nest=NESTS, machine=ARRAYS, data=st.data())
def test_use_is_a_share_and_the_untiled_nest_has_all(nest: LoopNest, machine: Target, data: st.DataObject) -> None:
    tile = tuple(data.draw(st.integers(1, axis.size)) for axis in nest.axes)
    assert 0 < array_use(nest, tiled(*tile), machine) <= 1
    assert array_use(nest, tiled(*(axis.size for axis in nest.axes)), machine) == 1


@given(nest=NESTS, machine=ARRAYS)
def test_multiples_of_the_array_lose_nothing(nest: LoopNest, machine: Target) -> None:
    tile = least_tile(nest, machine)
    assert array_use(nest, tiled(*tile), machine) == 1
