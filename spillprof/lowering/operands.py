"""Shapes and attributes of one operator, as cost rules ask for them."""

from dataclasses import dataclass

from spillprof.ir.graph import Graph, Operator

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """One operator and its tensors. Absent operands raise ``KeyError`` or ``IndexError``."""

    op: Operator
    graph: Graph

    def input(self, index: int) -> Shape:
        """Shape of an input."""
        return self.graph.tensors[self.op.inputs[index]].shape

    def output(self, index: int = 0) -> Shape:
        """Shape of an output."""
        return self.graph.tensors[self.op.outputs[index]].shape

    def has_input(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.op.inputs) and bool(self.op.inputs[index])

    def has_output(self, index: int) -> bool:
        """Whether an optional output is given."""
        return index < len(self.op.outputs) and bool(self.op.outputs[index])

    def integer(self, attribute: str, default: int = 0) -> int:
        """An integer attribute. ``TypeError`` if it is something else."""
        value = self.op.attributes.get(attribute, default)
        if not isinstance(value, int):
            raise TypeError(attribute)
        return value

    def text(self, attribute: str) -> str:
        """A text attribute, "" if absent."""
        value = self.op.attributes.get(attribute, "")
        return value.decode() if isinstance(value, bytes) else str(value)

    def length(self, attribute: str) -> int:
        """Elements of a list attribute, 0 if absent."""
        value = self.op.attributes.get(attribute, ())
        return len(value) if isinstance(value, tuple) else 1
