"""Loop nest of a step, and tilings of it: which part of each operand is on-chip at once, and in which order.

A nest has *axes*: loops over the output, and reduction loops that the output does not depend on. Each dimension of an
operand is a *window* on at most one axis. A tiling cuts axes into tiles and orders the loops over tiles; an operand
that it holds is on-chip whole. What a tiling moves and needs is counted elsewhere: by planners to choose it, and by
the verifier, each with code of its own.
"""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopAxis:
    """One loop of the untiled nest."""

    name: str  # "m", "rows", "in channels", ...
    size: int  # iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One dimension of an operand: the positions that a range of iterations of an axis touches.

    Iterations ``[a, b)`` touch positions from ``(a * stride + shift) // per + offset`` to
    ``((b - 1) * stride + shift) // per + offset + extent``, end excluded, clipped to ``[0, size)``: padding is not
    stored. Where ``extent`` is below ``stride / per``, positions between those of two iterations are touched only if
    both run in one tile: a span is contiguous.
    """

    size: int  # positions of the dimension
    axis: int | None = None  # position in LoopNest.axes; None: every tile touches all of it
    stride: int = 1
    per: int = 1  # iterations that share a stride: of an enlarging interpolation, a transposed convolution
    shift: int = 0  # added before the division by ``per``: the phase of an interpolation
    offset: int = 0  # of the first position of iteration 0; negative where it lies in padding
    extent: int = 1  # positions from the first to the last of one iteration: (kernel - 1) * dilation + 1

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Positions ``[first, end)`` that iterations ``[start, stop)`` touch."""
        if self.axis is None:
            return 0, self.size
        first = (start * self.stride + self.shift) // self.per + self.offset
        end = ((stop - 1) * self.stride + self.shift) // self.per + self.offset + self.extent
        return min(max(first, 0), self.size), max(min(end, self.size), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NestOperand:
    """A tensor that the nest reads or writes, or the part of it that is read.

    Its elements are the product of its dimensions' sizes. A dimension of the tensor may be split in two (the channels
    of a grouped convolution), or two joined in one. The name is the operand's role, so that equal steps have equal
    nests; roles are unique within a nest.
    """

    name: str  # "image", "kernel", "left", "input 1", "output", ...
    windows: tuple[Window, ...]  # outermost dimension first, as the operand lies in DRAM
    element_bits: int
    is_output: bool = False
    is_weight: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the whole operand, without alignment."""
        return self.bytes_of(prod(window.size for window in self.windows))

    @property
    def axes(self) -> frozenset[int]:
        """Axes that it depends on."""
        return frozenset(window.axis for window in self.windows if window.axis is not None)

    def bytes_of(self, elements: int) -> int:
        """Bytes of so many elements, rounded up to whole bytes."""
        return -(-elements * self.element_bits // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """Axes and operands of one step. Exactly the axes that no output depends on are reduced."""

    axes: tuple[LoopAxis, ...]
    operands: tuple[NestOperand, ...]  # in the order of the step's operands, outputs last
    macs: int = 0
    whole: frozenset[int] = frozenset()  # axes that no tiling may cut

    @property
    def reduced(self) -> frozenset[int]:
        """Axes that no output depends on."""
        kept = frozenset().union(*(operand.axes for operand in self.operands if operand.is_output))
        return frozenset(range(len(self.axes))) - kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """One way to run a nest. An operand is *held* (on-chip whole, as an ordinary buffer) or passes in tiles."""

    tile: tuple[int, ...]  # by axis: iterations of a tile; the axis' size where it is not cut
    order: tuple[int, ...]  # axes that are cut, outermost loop over tiles first
    held: frozenset[int] = frozenset()  # positions in LoopNest.operands
    line_buffered: frozenset[int] = frozenset()  # operands whose overlap with the tile before stays on-chip

    def trips(self, nest: LoopNest) -> tuple[int, ...]:
        """By axis: tiles along it."""
        return tuple(-(-axis.size // tile) for axis, tile in zip(nest.axes, self.tile, strict=True))
