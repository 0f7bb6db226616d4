"""How much of an array of multipliers a tiling keeps busy.

The array multiplies ``array_rows`` channels of the input by the weights of ``array_columns`` channels of the result at
once, and sums over the rows. What an axis gives beyond full passes over the array, or a tile narrower than it, leaves
units idle. Other axes (rows and columns of an image, positions of a kernel, batch) take one pass after another.
"""

from itertools import product
from math import prod

from spillprof.ir.loop_nest import LoopNest, Tiling
from spillprof.ir.target import Target


def array_use(nest: LoopNest, tiling: Tiling, target: Target) -> float:
    """Passes over the array that the untiled nest takes, as a share of those that it takes in tiles: in (0, 1].

    1 if no tile is too narrow, for nests without products, and on targets that state no array.
    """
    if not nest.macs:
        return 1.0
    return _share(nest, _row_axes(nest), tiling, target.array_rows) * _share(
        nest, _column_axes(nest), tiling, target.array_columns
    )


def least_tile(nest: LoopNest, target: Target) -> tuple[int, ...]:
    """By axis: the fewest iterations of a tile that keeps as much of the array busy as the untiled nest does.

    1 for axes that do not lie along the array. Of several axes along one side, the inner ones are filled first.
    """
    least = [1] * len(nest.axes)
    if nest.macs:
        for axes, width in ((_row_axes(nest), target.array_rows), (_column_axes(nest), target.array_columns)):
            for axis in reversed(axes):
                size = nest.axes[axis].size
                least[axis] = max(1, min(size, width))
                width = -(-width // max(size, 1))
    return tuple(least)


def _share(nest: LoopNest, axes: tuple[int, ...], tiling: Tiling, width: int) -> float:
    sizes = [nest.axes[axis].size for axis in axes]
    if not width or not axes or 0 in sizes:
        return 1.0
    passes = 0
    for blocks in product(*(_blocks(size, tiling.tile[axis]) for axis, size in zip(axes, sizes, strict=True))):
        passes += prod(count for count, _ in blocks) * -(-prod(length for _, length in blocks) // width)
    return -(-prod(sizes) // width) / passes


def _blocks(size: int, tile: int) -> list[tuple[int, int]]:
    """Tiles along an axis: how many of which length; the last may be shorter."""
    full, rest = divmod(size, tile)
    return [(count, length) for count, length in ((full, tile), (1, rest)) if count and length]


def _row_axes(nest: LoopNest) -> tuple[int, ...]:
    """Axes that are summed over."""
    return tuple(sorted(nest.reduced))


def _column_axes(nest: LoopNest) -> tuple[int, ...]:
    """Axes of the result that its first operand does not depend on: weights alone differ along them."""
    inputs = [operand for operand in nest.operands if not operand.is_output]
    results = frozenset().union(*(operand.axes for operand in nest.operands if operand.is_output))
    return tuple(sorted(results - inputs[0].axes)) if inputs else ()
