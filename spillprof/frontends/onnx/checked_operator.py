"""Operands and attributes of an operator, as checks read them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spillprof.frontends.onnx.elements import ValueType
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.proto import Array
from spillprof.ir.graph import AttributeValue


class CheckedOperator(NamedTuple):
    """An operator, and the types and contents of its inputs as far as known."""

    node: Node
    settings: Mapping[str, AttributeValue]
    types: Sequence[ValueType | None]
    values: Sequence[Array | None]

    def has(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def shape(self, index: int) -> tuple[int | None, ...] | None:
        """The shape of an input, None for an unknown dimension; None if the rank is unknown or the input absent."""
        known = self.types[index] if index < len(self.types) else None
        return None if known is None else known.shape

    def dim(self, index: int, axis: int) -> int | None:
        """One dimension of an input; None if it is unknown or absent."""
        shape = self.shape(index)
        return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None

    def rank(self, index: int) -> int | None:
        """The number of dimensions of an input."""
        shape = self.shape(index)
        return None if shape is None else len(shape)

    def value(self, index: int) -> list[int | float] | None:
        """The elements of an input; None unless they are known numbers."""
        value = self.values[index] if index < len(self.values) else None
        if value is None or value.dtype.kind not in "iuf":
            return None
        return [each.item() for each in np.ravel(value)]

    def text(self, name: str) -> str:
        """A text attribute; "" if absent; its ``repr`` if it is not valid UTF-8."""
        value = self.settings.get(name, "")
        return value if isinstance(value, str) else repr(value)

    def number(self, name: str) -> int | None:
        """An integer attribute; None if it is absent."""
        value = self.settings.get(name)
        return value if isinstance(value, int) else None

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers; None if it is absent or empty."""
        value = self.settings.get(name)
        return tuple(int(v) for v in value) if isinstance(value, tuple) and value else None
