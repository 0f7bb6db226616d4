"""Loops of one operator, as the rule of its kind writes them down: axes, and windows of inputs and outputs."""

from collections.abc import Sequence
from math import prod

from spillprof.ir.loop_nest import LoopAxis, Window
from spillprof.lowering.operators.facts import OperandShapes, TensorShape

Windows = tuple[Window, ...]


class Unmapped(ValueError):
    """An operator whose operands do not fit the rule of its kind."""


class LoopMap:
    """Axes of an operator, and windows of its operands by their positions.

    Inputs without windows are on-chip whole. Axes of one iteration are left out.
    """

    def __init__(self) -> None:
        self.axes: list[LoopAxis] = []
        self.whole: set[int] = set()  # axes that no tiling may cut
        self.inputs: dict[int, Windows] = {}
        self.outputs: dict[int, Windows] = {}
        self.roles: dict[int, str] = {}  # of inputs, where "input 1" would say too little
        self.two_passes = False  # whether uncut axes may be cut if inputs are read twice: for statistics, for results
        self.parts: set[int] = set()  # inputs that are read in part: their windows span the part

    def axis(self, name: str, size: int, *, whole: bool = False) -> int | None:
        """Adds an axis. None, a dimension that nothing cuts, for a size of 1."""
        if size == 1:
            return None
        self.axes.append(LoopAxis(name=name, size=size))
        if whole:
            self.whole.add(len(self.axes) - 1)
        return len(self.axes) - 1

    def dimension(self, name: str, size: int, *, whole: bool = False) -> Window:
        """Adds an axis and returns the window of a dimension that it runs along, one position an iteration."""
        return Window(size=size, axis=self.axis(name, size, whole=whole))

    def dimensions(self, shape: Sequence[int], whole: Sequence[int] = ()) -> Windows:
        """One axis for each dimension of a shape. ``whole``: dimensions that no tiling may cut."""
        return tuple(self.dimension(f"axis {i}", size, whole=i in whole) for i, size in enumerate(shape))

    def read(self, index: int, *windows: Window, role: str = "") -> None:
        """Sets the windows of an input."""
        self.inputs[index] = windows
        if role:
            self.roles[index] = role

    def read_part(self, index: int, *windows: Window, role: str = "") -> None:
        """Sets the windows of an input of which the operator reads only as much as they span."""
        self.read(index, *windows, role=role)
        self.parts.add(index)

    def write(self, index: int, *windows: Window) -> None:
        """Sets the windows of an output."""
        self.outputs[index] = windows

    def align_others(self, o: OperandShapes) -> None:
        """Aligns all other operands with the first output: those of its shape, or broadcast to it."""
        shape = o.output()
        for index in range(len(o.op.inputs)):
            if index not in self.inputs and o.has_input(index):
                self.read(index, *aligned(o.input(index), shape, self.outputs[0]))
        for index in range(1, len(o.op.outputs)):
            if index not in self.outputs and o.has_output(index):
                self.write(index, *aligned(o.output(index), shape, self.outputs[0]))


def uncut(shape: Sequence[int]) -> Windows:
    """Windows of an operand that every tile touches whole."""
    return tuple(Window(size=size) for size in shape)


def fixed(axis: int, rank: int) -> int:
    """The position of an axis that may count from the end."""
    if not -rank <= axis < rank:
        raise Unmapped(axis)
    return axis % rank


def aligned(shape: TensorShape, result: TensorShape, windows: Windows) -> Windows:
    """Windows of an operand that is broadcast to a result, from the result's windows.

    An operand with as many elements as the result has them in the same order, whatever its shape. A dimension that
    is not in the result is touched whole by every tile.
    """
    if prod(shape) == prod(result):
        return windows
    of_result = along(result, windows)
    found: list[Window] = []
    for i, size in enumerate(shape, start=len(result) - len(shape)):
        matches = size > 1 and i >= 0 and result[i] == size
        found += of_result[i] if matches else (Window(size=size),)
    return tuple(found)


def along(shape: TensorShape, windows: Windows) -> list[Windows]:
    """Windows of each dimension of a tensor, from windows of the same elements in another shape, in the same order.

    A dimension is found by its size and the distance of its elements, and may be several windows; one that is not
    found is touched whole by every tile.
    """
    cut = [window for window in windows if window.size > 1]
    distance = [prod(window.size for window in cut[i + 1 :]) for i in range(len(cut))]
    return [_of_dimension(size, prod(shape[i + 1 :]), cut, distance) for i, size in enumerate(shape)]


def _of_dimension(size: int, apart: int, cut: Sequence[Window], distance: Sequence[int]) -> Windows:
    if size > 1 and apart in distance:
        last = distance.index(apart)
        for first in range(last, -1, -1):
            if prod(window.size for window in cut[first : last + 1]) == size:
                return tuple(cut[first : last + 1])
    return (Window(size=size),)
