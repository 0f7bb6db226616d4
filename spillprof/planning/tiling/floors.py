"""Floors: bytes that no execution of an operator moves less than, in a memory of S bytes.

An execution may tile, reorder, hold and spill at will, one multiplication at a time. It starts with all operands in
DRAM and ends with the outputs there; it multiplies as the operator is defined (no Strassen, no Winograd) and computes
nothing twice. Two floors hold, and the larger one counts.

**Once each.** Each position that some iteration touches is read once, each output written once. A window counts whole
from its first to its last position, also where a dilated kernel skips positions that a stride never reaches; lookups
count as many rows as they have indices, though equal indices read the same row.

**Products**, where each of F multiplications needs an element of ``a`` bytes, one of ``b`` bytes and a partial sum of
``c`` bytes on-chip, and where each loop is one of at least two of the three operands. Cut the run into stretches that
read X = 2S bytes each. To begin with, let each sum be read before its first addition. All that a stretch multiplies
was there at its start or is read in it, so that A elements, B elements and C sums of it have a A + b B + c C <= 3S.
By the inequality of Loomis and Whitney (for operands that share loops: Finner's) it has at most sqrt(A B C)
multiplications, at most S^(3/2) / sqrt(a b c) by the means. So it takes F sqrt(a b c) / S^(3/2) stretches, less one
that is not full, and together they read

    2 F sqrt(a b c) / sqrt(S) - 2 S  bytes.

The first read of a sum is not needed, but each of the N results is written, with ``d`` bytes: N (c - d) come off. For
a = b = c = d = e this is 2 M N K e / sqrt(S / e) - 2 S, with the constant of Smith, Lowery, Langou and van de Geijn, "A
Tight I/O Lower Bound for Matrix Multiplication" (arXiv:1702.02017, 2019); the order of growth is Hong and Kung's (STOC
1981), its proof by Loomis and Whitney is Irony, Toledo and Tiskin's (JPDC 2004).

**Convolutions.** With one position of the kernel fixed, a convolution is such a product. Over the R positions of a
kernel, which have weights of their own and share inputs and sums, the multiplications of a stretch are at most
sum sqrt(A B_r C) <= sqrt(A C) sqrt(R sum B_r) (Cauchy and Schwarz), that is sqrt(R A B C): R multiplies S in the floor
above. With stride s, inputs of different remainders modulo s meet different positions of the kernel, so that R is the
largest number of positions that meet the same remainder: ceil(k / s) along a dimension without dilation. The leading
term is that of Chen, Han and Wang, "Communication Lower Bound in Convolution Accelerators" (HPCA 2020). Only
multiplications with stored inputs count, not those with padding.

Registers of the array are not SRAM: where accumulators are not counted in SRAM (``accumulator_bits`` 0), a partial sum
takes an output's element of SRAM, in tilings and in this floor alike.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import isqrt, prod

from spillprof.ir.loop_nest import LoopNest, NestOperand, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class IoFloor:
    """Bytes that no execution of a nest moves less than."""

    once_bytes: int  # each touched position once
    product_bytes: int | None  # as a product or a convolution in this memory; None: the nest is neither
    kernel_positions: int = 1  # R

    @property
    def nbytes(self) -> int:
        """The larger floor."""
        return max(self.once_bytes, self.product_bytes or 0)

    @property
    def theorem(self) -> str:
        """Which floor it is, and whose theorem."""
        if self.product_bytes is None or self.product_bytes <= self.once_bytes:
            return "each operand once"
        if self.kernel_positions == 1:
            return "Hong and Kung; Loomis and Whitney; constant by Smith et al. 2019"
        return "Loomis and Whitney over kernel positions; order by Chen et al. 2020"


def io_floor(nest: LoopNest, sram_bytes: int, *, accumulator_bits: int = 0, storages: tuple[str, ...] = ()) -> IoFloor:
    """The floor of a nest alone in a memory of ``sram_bytes`` (positive).

    ``accumulator_bits`` is the width of partial sums that lie in SRAM; 0: the output's own. ``storages`` names the
    tensor that each operand is, where two may be the same: it is then read once, and its product with itself has no
    floor of a product, as one element serves for two.
    """
    once = [touched_bytes(nest, operand) for operand in nest.operands]
    found = _product_of(nest)
    for i, storage in enumerate(storages):
        first = storages.index(storage)
        if first < i and not nest.operands[i].is_output and not nest.operands[first].is_output:
            once[first], once[i] = max(once[first], once[i]), 0
            if found is not None and {storages[factor] for factor in found.factors[:2]} == {storage}:
                found = None
    if found is None:
        return IoFloor(once_bytes=sum(once), product_bytes=None)
    left, right, result = (nest.operands[i] for i in found.factors)
    sum_bits = accumulator_bits or result.element_bits
    # 2 F sqrt(a b c / (R S)) in integers, rounded down; widths are bits, of which 8^3 make a byte each
    widths = left.element_bits * right.element_bits * sum_bits
    leading = isqrt(4 * found.macs**2 * widths // (512 * found.kernel_positions * sram_bytes))
    results = prod(window.size for window in result.windows)
    widened = -(-results * (sum_bits - result.element_bits) // 8)
    others = sum(nbytes for i, nbytes in enumerate(once) if i not in found.factors)
    return IoFloor(
        once_bytes=sum(once),
        product_bytes=max(leading - 2 * sram_bytes - widened + others, 0),
        kernel_positions=found.kernel_positions,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTerm:
    """What a product adds to the floor of a network."""

    inputs: tuple[int, int]  # operands of the nest
    leading_bytes: int  # 2 F sqrt(a b c / (R S))
    result_bytes: int  # of all partial sums, at their width


def product_term(nest: LoopNest, sram_bytes: int, *, accumulator_bits: int = 0) -> ProductTerm | None:
    """The term of a nest's product in a memory of ``sram_bytes``; None if the theorem covers none."""
    found = _product_of(nest)
    if found is None:
        return None
    left, right, result = (nest.operands[i] for i in found.factors)
    sum_bits = accumulator_bits or result.element_bits
    widths = left.element_bits * right.element_bits * sum_bits
    return ProductTerm(
        inputs=found.factors[:2],
        leading_bytes=isqrt(4 * found.macs**2 * widths // (512 * found.kernel_positions * sram_bytes)),
        result_bytes=-(-prod(window.size for window in result.windows) * sum_bits // 8),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """A nest as a product of two operands."""

    factors: tuple[int, int, int]  # positions of both inputs, and of the output
    macs: int  # with stored elements
    kernel_positions: int = 1  # the most that share an input and a sum


@lru_cache(maxsize=4096)
def _product_of(nest: LoopNest) -> _Product | None:
    """The largest product of two inputs into the one output that the theorem covers."""
    outputs = [i for i, operand in enumerate(nest.operands) if operand.is_output]
    if len(outputs) != 1 or not nest.macs:
        return None
    reduced = {axis for axis in nest.reduced if nest.axes[axis].size > 1}
    inputs = [
        i
        for i, operand in enumerate(nest.operands)
        if not operand.is_output and (operand.axes & reduced or not reduced)
    ]
    pairs = ((i, j, outputs[0]) for i, j in combinations(inputs, 2))
    products = (_product(nest, pair) for pair in pairs)
    return max((found for found in products if found), key=lambda p: p.macs**2 // p.kernel_positions, default=None)


def _product(nest: LoopNest, factors: tuple[int, int, int]) -> _Product | None:
    """These operands as a product; None if the theorem does not cover them."""
    operands = [nest.operands[i] for i in factors]
    if not operands[0].is_weight and operands[1].is_weight:
        image, weight = operands[:2]
    else:
        weight, image = operands[:2]
    for axis, loop in enumerate(nest.axes):
        if loop.size > 1 and sum(axis in operand.axes for operand in operands) < 2:
            return None
    if any(len(_windows(operand, axis)) > 1 for operand in operands for axis in operand.axes):
        return None
    plain = (*weight.windows, *operands[2].windows)
    if any(w.axis is not None and (w.stride, w.per, w.shift, w.offset, w.extent) != (1, 1, 0, 0, 1) for w in plain):
        return None
    if any(w.axis is None and w.size > 1 for w in (*image.windows, *operands[2].windows)):
        return None
    kernel = [window.size for window in weight.windows if window.axis is None and window.size > 1]
    slid = [window for window in image.windows if window.axis is not None and window.extent > 1]
    if len(kernel) != len(slid) or any(w.per > 1 or w.stride < 1 for w in image.windows):
        return None
    if any((window.extent - 1) % (taps - 1) for window, taps in zip(slid, kernel, strict=True)):
        return None
    if nest.macs != prod(axis.size for axis in nest.axes) * prod(kernel):
        return None
    taps_of = dict(zip((window.axis for window in slid), kernel, strict=True))
    macs, positions = 1, 1
    for axis, loop in enumerate(nest.axes):
        window = next(iter(_windows(image, axis)), None)
        if window is None:
            macs *= loop.size
            continue
        taps = taps_of.get(axis, 1)
        macs *= _stored_pairs(window, loop.size, taps)
        positions *= _sharing(window, taps)
    return _Product(factors=factors, macs=macs, kernel_positions=positions)


def _windows(operand: NestOperand, axis: int) -> tuple[Window, ...]:
    return tuple(window for window in operand.windows if window.axis == axis)


def _dilation(window: Window, taps: int) -> int:
    return (window.extent - 1) // (taps - 1) if taps > 1 else 1


def _stored_pairs(window: Window, iterations: int, taps: int) -> int:
    """Pairs of an iteration and a kernel position whose input is stored, not padding."""
    pairs = 0
    for tap in range(taps):
        start = window.shift + window.offset + tap * _dilation(window, taps)
        first = max(-(start // window.stride), 0)  # start + first * stride >= 0
        end = min(-((start - window.size) // window.stride), iterations)  # of those below ``size``
        pairs += max(end - first, 0)
    return pairs


def _sharing(window: Window, taps: int) -> int:
    """The most kernel positions that meet the same inputs: those of one remainder modulo the stride."""
    return max(Counter(tap * _dilation(window, taps) % window.stride for tap in range(taps)).values())


def touched_bytes(nest: LoopNest, operand: NestOperand) -> int:
    """Bytes of the positions that single iterations touch. Those between the strides of a window are not needed."""
    elements = 1
    for axis in operand.axes:
        elements *= _touched(_windows(operand, axis), nest.axes[axis].size)
    return operand.bytes_of(elements * prod(window.size for window in operand.windows if window.axis is None))


@lru_cache(maxsize=4096)
def _touched(windows: tuple[Window, ...], iterations: int) -> int:
    """Elements of the union of the boxes that iterations of one axis touch in the windows on it."""
    if len(windows) > 1:  # along a diagonal: at least as many as along its longest side
        return max(_touched((window,), iterations) for window in windows)
    (window,) = windows
    if window.extent * window.per >= window.stride:  # no position lies between two iterations
        first, end = window.span(0, iterations)
        return end - first
    return sum(end - first for first, end in (window.span(i, i + 1) for i in range(iterations)))
