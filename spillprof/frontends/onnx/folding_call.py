"""An operator to fold, and access to its inputs and attributes."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spillprof.frontends.onnx.proto import Array, AttributeProto
from spillprof.frontends.onnx.stored_tensors import KEPT_ELEMENTS
from spillprof.ir.graph import AttributeValue

Ins = Sequence[Array | None]


class Call(NamedTuple):
    """An operator whose inputs are known."""

    op_type: str
    version: int
    attributes: Mapping[str, AttributeValue]
    protos: Sequence[AttributeProto]  # for attributes that hold tensors
    n_outputs: int

    def ints(self, name: str) -> tuple[int, ...] | None:
        """A list attribute, None if absent."""
        value = self.attributes.get(name)
        return tuple(int(v) for v in value) if isinstance(value, tuple) else None

    def number(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default


class Impossible(Exception):
    """The operation has no result (division by zero, overflow); the message says why."""


class TooLarge(Exception):
    """The result has more elements than are kept."""


def limit(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape as integers. ``TooLarge`` if it has more than ``KEPT_ELEMENTS`` elements."""
    if math.prod(shape) > KEPT_ELEMENTS or any(size < 0 for size in shape):
        raise TooLarge
    return tuple(int(size) for size in shape)


def given(inputs: Ins, index: int) -> Array:
    """A required input. ``ValueError`` if it is absent."""
    value = inputs[index] if index < len(inputs) else None
    if value is None:
        raise ValueError("an input is missing")
    return value


def optional_input(inputs: Ins, index: int) -> Array | None:
    """An input, None if absent."""
    return inputs[index] if index < len(inputs) else None


def integers(value: Array) -> list[int]:
    """All elements as Python integers."""
    return [int(v) for v in np.asarray(value).reshape(-1)]


def axes_of(call: Call, inputs: Ins, index: int = 1) -> tuple[int, ...] | None:
    """The axes, from the input (newer opsets) or the attribute (older ones)."""
    given = optional_input(inputs, index)
    return call.ints("axes") if given is None else tuple(integers(given))


FoldRule = Callable[[Call, Ins], tuple[Array, ...]]
"""Computes the outputs. ``Impossible``: there is no result; any other exception: the rule cannot decide."""
