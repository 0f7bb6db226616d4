"""What an operator with bodies gives, and the scopes that its bodies are walked in."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillprof.frontends.onnx.body import Body, Node
from spillprof.frontends.onnx.elements import ValueType, parse_type
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import SizedBody
from spillprof.ir.graph import Graph, TensorKind, Trips

Types = Sequence[ValueType | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an operator with bodies gives."""

    subgraphs: tuple[Graph, ...]
    names: tuple[str, ...]  # the attribute of each subgraph
    types: Types  # one per output
    values: Sequence[Array | None]
    is_bounded: bool = False  # sizes are upper bounds
    trips: Trips | None = None
    is_decided: bool = False  # of an If: its condition is constant


def inner_scope(node: Node, body: Body, types: Types, scope: Scope) -> Scope:
    """The scope of a loop body: its inputs have the given types, or the declared ones where those are unknown."""
    inner = Scope(parent=scope)
    is_bounded = any(scope.is_bounded(name) for name in node.inputs if name)
    for (name, declared), known in zip(body.inputs, types, strict=True):
        stated = None if declared is None else parse_type(declared.SerializeToString())
        inner.types[name] = known if known is not None else stated
        inner.kinds[name] = TensorKind.INPUT
        if is_bounded:
            inner.bounded.add(name)
    return inner


def output_types(sized: SizedBody, body: Body) -> list[ValueType | None]:
    """What is known of each output of a body."""
    return [known_type(sized, name) for name in body.outputs]


def known_type(sized: SizedBody, name: str) -> ValueType | None:
    """What is known of a value that a body sees."""
    return sized.scope.type_of(name)
