"""Size rules: the operator that a rule reads, the results that it returns, and common rules."""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from spillprof.frontends.onnx.elements import ValueType
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.proto import Array
from spillprof.ir.graph import AttributeValue

Sized = tuple[str, tuple[int | None, ...]]
"""Type and shape of one output; None for an open dimension."""


class Standard(NamedTuple):
    """The output has the shape of a standard operator over some of the inputs."""

    op_type: str
    inputs: tuple[int, ...]
    dtype: str | None = None  # output type, if not the standard operator's
    version: int = 13


class OperatorCase(NamedTuple):
    """An operator, and the types and contents of its inputs as far as known."""

    node: Node
    types: Sequence[ValueType | None]
    settings: Mapping[str, AttributeValue]
    values: Sequence[Array | None] = ()  # contents of small inputs, where they are known

    def has(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def known(self, index: int) -> ValueType:
        """The type of an input; ``LookupError`` unless it is sized."""
        found = self.types[index] if self.has(index) else None
        if found is None or not found.is_sized:
            raise LookupError(index)
        return found

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an input."""
        return self.known(index).sized_shape

    def dtype(self, index: int) -> str:
        """The element type of an input."""
        return self.known(index).dtype

    def contents(self, index: int) -> tuple[int, ...]:
        """The elements of an input as integers; ``LookupError`` unless they are known."""
        value = self.values[index] if index < len(self.values) else None
        if value is None:
            raise LookupError(index)
        return tuple(int(v) for v in value.reshape(-1))

    def number(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.settings.get(name, default)
        return value if isinstance(value, int) else default

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list attribute of numbers; ``LookupError`` if it is absent."""
        values = self.settings.get(name)
        if not isinstance(values, tuple):
            raise LookupError(name)
        return tuple(int(value) for value in values)

    def count(self, *names: str) -> int:
        """The length of the first list attribute that is not empty, else 0."""
        lists = (self.settings.get(name) for name in names)
        return next((len(values) for values in lists if isinstance(values, tuple) and values), 0)


SizeRule = Callable[[OperatorCase], Sequence[Sized] | Standard]


def same(case: OperatorCase) -> Sequence[Sized]:
    """The output is like the first input."""
    return [(case.dtype(0), case.shape(0))]


def undecided() -> int:
    """Raises ``ValueError``: a size is missing in the attributes."""
    raise ValueError("an attribute is missing")


def same_as(index: int, dtype: str | None = None) -> SizeRule:
    """The output is like that input, of another type if one is given."""

    def rule(case: OperatorCase) -> Sequence[Sized]:
        return [(dtype or case.dtype(index), case.shape(index))]

    return rule


def standard(op_type: str, *inputs: int, version: int = 13, dtype: str | None = None) -> SizeRule:
    """The shape of a standard operator over those of the inputs that are given."""

    def rule(case: OperatorCase) -> Standard:
        given = tuple(i for i in inputs if case.has(i))
        return Standard(op_type=op_type, inputs=given, version=version, dtype=dtype)

    return rule


def matmul_of(first: int, second: int, dtype: str | None = None) -> SizeRule:
    """The product of two inputs, of the first one's type unless another is given."""

    def rule(case: OperatorCase) -> Sequence[Sized]:
        return [(dtype or case.dtype(first), matmul(case.shape(first), case.shape(second)))]

    return rule


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The broadcast shape. ``ValueError`` if there is none."""
    sizes = []
    for aligned in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        wide = {size for size in aligned if size != 1}
        if len(wide) > 1:
            raise ValueError(f"sizes differ: {sorted(wide)}")
        sizes.append(wide.pop() if wide else 1)
    return tuple(reversed(sizes))


def matmul(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a matrix product, batch axes broadcast. ``ValueError`` if the inner sizes differ."""
    left, right = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    if left[-1] != right[-2]:
        raise ValueError("inner sizes differ")
    shape = (*broadcast(left[:-2], right[:-2]), left[-2], right[-1])
    shape = shape if len(a) > 1 else (*shape[:-2], shape[-1])
    return shape if len(b) > 1 else shape[:-1]
