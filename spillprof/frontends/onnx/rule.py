"""What a rule of our own about an operator's outputs can ask, and what it can say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spillprof.frontends.onnx.body import Node
from spillprof.frontends.onnx.elements import ValueType
from spillprof.model.graph import AttributeValue

Sized = tuple[str, tuple[int, ...]]
"""Type and shape of one output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The operator has the shape of one of the default domain, over some of its inputs."""

    op_type: str
    inputs: tuple[int, ...]
    dtype: str | None = None  # if it differs from what the standard operator gives
    version: int = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One operator with what is known of its inputs."""

    node: Node
    types: Sequence[ValueType | None]
    settings: Mapping[str, AttributeValue]

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


Rule = Callable[[Case], Sequence[Sized] | Standard]


def same(case: Case) -> Sequence[Sized]:
    """The output is like the first input."""
    return [(case.dtype(0), case.shape(0))]


def undecided() -> int:
    """Stands for a size that an attribute should have given."""
    raise ValueError("an attribute is missing")
