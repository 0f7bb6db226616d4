"""Loops of matrix products: M, N, K and batch."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from math import prod
from typing import TypeVar

from spillprof.ir.loop_nest import Window
from spillprof.lowering.loops.loop_map import LoopMap, Unmapped, Windows, uncut
from spillprof.lowering.operators.facts import OperandShapes, TensorShape

_T = TypeVar("_T")

_OPERANDS_AT: Mapping[str, tuple[int, int]] = {"QLinearMatMul": (0, 3), "QGemm": (0, 3), "QOrderedMatMul": (0, 2)}
"""Positions of the two matrices where they are not the first two inputs."""

_PACKED = ("MatMulNBits", "MatMulBnb4")
_UNMAPPED = ("MatMulFpQ4",)


def product_loops(o: OperandShapes) -> LoopMap:
    """Batch, rows of the left matrix (m), columns of the right one (n); reduced: k.

    If all of a batch share the right matrix, the batch is rows. Other axes of a batch are joined where both
    matrices have them, or the same one lacks them.
    """
    op_type = o.op.op_type
    if op_type in _UNMAPPED or o.integer("transBatchA") or o.integer("transBatchB"):
        raise Unmapped(op_type)
    if op_type in _PACKED:
        return _packed_loops(o)
    at = _OPERANDS_AT.get(op_type, (0, 1))
    left, right = _matrix(o.input(at[0]), column=False), _matrix(o.input(at[1]), column=True)
    left_turned = bool(o.integer("transA"))
    right_turned = bool(o.integer("transB")) or op_type == "CDist"
    rows, depth = _turned(left[-2:], left_turned)
    deep, columns = _turned(right[-2:], right_turned)
    if depth != deep:
        raise Unmapped(op_type)
    batches = list(_batches(left[:-2], right[:-2]))
    if not left_turned and all(in_left and not in_right for _, in_left, in_right in batches):
        rows *= prod(size for size, _, _ in batches)
        batches = []

    loops = LoopMap()
    names = [f"batch {i}" for i in range(len(batches))] if len(batches) > 1 else ["batch"]
    batch = [loops.dimension(name, size) for name, (size, _, _) in zip(names, batches, strict=False)]
    m, n, k = loops.dimension("m", rows), loops.dimension("n", columns), loops.dimension("k", depth)
    of_left = [window for window, (_, has, _) in zip(batch, batches, strict=True) if has]
    of_right = [window for window, (_, _, has) in zip(batch, batches, strict=True) if has]
    loops.read(at[0], *of_left, *_turned((m, k), left_turned), role="left")
    loops.read(at[1], *of_right, *_turned((k, n), right_turned), role="right")
    loops.write(0, *batch, m, n)
    loops.align_others(o)
    return loops


def _matrix(shape: TensorShape, *, column: bool) -> TensorShape:
    if not shape:
        raise Unmapped(shape)
    if len(shape) > 1:
        return shape
    return (*shape, 1) if column else (1, *shape)


def _turned(pair: tuple[_T, ...], turned: bool) -> tuple[_T, ...]:
    return pair[::-1] if turned else pair


def _batches(left: TensorShape, right: TensorShape) -> Iterator[tuple[int, bool, bool]]:
    """Axes of the batch, and which of the matrices have each; neighbours that the same have are one axis."""
    rank = max(len(left), len(right))
    pairs = list(zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise Unmapped(left, right)
    for has, group in groupby((p for p in pairs if p != (1, 1)), key=lambda p: (p[0] > 1, p[1] > 1)):
        yield prod(max(p) for p in group), *has


def _packed_loops(o: OperandShapes) -> LoopMap:
    """The right matrix is packed, N rows of blocks of K: tiles of k are not cut inside of a byte or block."""
    left = _matrix(o.input(0), column=False)
    columns, depth = o.integer("N", o.output()[-1]), left[-1]
    loops = LoopMap()
    m, n, k = loops.dimension("m", prod(left[:-1])), loops.dimension("n", columns), loops.dimension("k", depth)
    loops.read(0, m, k, role="left")
    loops.read(1, *_rows_of(o.input(1), n, k), role="right")
    loops.write(0, m, n)
    for index in range(2, len(o.op.inputs)):
        if o.has_input(index):
            loops.read(index, *_rows_of(o.input(index), n, k))
    return loops


def _rows_of(shape: TensorShape, n: Window, k: Window) -> Windows:
    """Windows of a packed operand: a row for each n, in which blocks or bytes follow k."""
    elements = prod(shape)
    if elements % n.size or elements < n.size:
        return uncut(shape)
    blocks = shape[1] if len(shape) == 3 else elements // n.size
    rest = elements // n.size // max(blocks, 1)
    block = Window(size=blocks)
    if 1 < blocks <= k.size and k.size % blocks == 0 and n.size * blocks * rest == elements:
        block = Window(size=blocks, axis=k.axis, per=k.size // blocks)
    return (n, block, Window(size=rest))
