"""Nodes and graphs of a file as plain values; equal operators share an ``OperatorKind``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spillprof.frontends.onnx.proto import AttributeProto, TypeProto
from spillprof.frontends.onnx.stored_tensors import Constant
from spillprof.ir.graph import AttributeValue

_KIND = AttributeProto


def plain_attributes(attributes: Iterable[AttributeProto]) -> Mapping[str, AttributeValue]:
    """Numbers, texts and lists of them by name; tensors, graphs and types are left out."""
    plain: dict[str, AttributeValue] = {}
    for a in attributes:
        match a.type or _guessed_kind(a):
            case _KIND.INT:
                plain[a.name] = a.i
            case _KIND.FLOAT:
                plain[a.name] = a.f
            case _KIND.STRING:
                plain[a.name] = _text(a.s)
            case _KIND.INTS:
                plain[a.name] = tuple(a.ints)
            case _KIND.FLOATS:
                plain[a.name] = tuple(a.floats)
            case _KIND.STRINGS:
                plain[a.name] = tuple(s.decode("utf-8", "replace") for s in a.strings)
    return plain


def _guessed_kind(a: AttributeProto) -> int:
    """The type of an attribute in files so old that they do not state it."""
    for name, kind in (("i", _KIND.INT), ("f", _KIND.FLOAT), ("s", _KIND.STRING)):
        if a.HasField(name):
            return int(kind)
    for values, kind in ((a.ints, _KIND.INTS), (a.floats, _KIND.FLOATS), (a.strings, _KIND.STRINGS)):
        if values:
            return int(kind)
    return int(_KIND.UNDEFINED)


def _text(raw: bytes) -> AttributeValue:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorKind:
    """A type of operator with its attributes. Compared by identity: see ``OperatorKinds``."""

    op_type: str
    domain: str  # "" is the default one
    version: int  # of the operator set that it was written for
    attributes: tuple[AttributeProto, ...]
    settings: Mapping[str, AttributeValue]  # the same as plain Python; tensors, graphs and types are left out


class OperatorKinds:
    """Interns operator kinds. Kinds with subgraphs are never shared."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | int | bytes, ...], OperatorKind] = {}

    def kind(
        self, op_type: str, domain: str, version: int, attributes: tuple[AttributeProto, ...] = ()
    ) -> OperatorKind:
        """The kind with these attributes."""
        if any(a.HasField("g") or a.graphs for a in attributes):
            return _made(op_type, domain, version, attributes)
        key = (op_type, domain, version, *[a.SerializeToString() for a in attributes])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _made(op_type, domain, version, attributes)
        return known


def _made(op_type: str, domain: str, version: int, attributes: tuple[AttributeProto, ...]) -> OperatorKind:
    settings = plain_attributes(attributes)
    return OperatorKind(op_type=op_type, domain=domain, version=version, attributes=attributes, settings=settings)


@dataclass(slots=True, kw_only=True)
class Node:
    """One operator of the file, under its final names."""

    name: str
    kind: OperatorKind
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: tuple["Body", ...] = ()
    captures: tuple[str, ...] = ()  # names that the bodies read from outside

    @property
    def op_type(self) -> str:
        """The type of operator."""
        return self.kind.op_type

    @property
    def domain(self) -> str:
        """The operator's domain: "" for the standard."""
        return self.kind.domain

    @property
    def version(self) -> int:
        """The version of the operator set."""
        return self.kind.version

    @property
    def attributes(self) -> tuple[AttributeProto, ...]:
        """The attributes as in the file."""
        return self.kind.attributes

    @property
    def settings(self) -> Mapping[str, AttributeValue]:
        """Attributes as plain Python."""
        return self.kind.settings


@dataclass(slots=True, kw_only=True)
class Body:
    """The main graph, or the body of a branch or loop."""

    name: str
    inputs: tuple[tuple[str, TypeProto | None], ...]
    outputs: tuple[str, ...]
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    stored_types: dict[str, TypeProto] = field(default_factory=dict)  # value_info; not trusted
    declared_types: dict[str, TypeProto] = field(default_factory=dict)  # of the outputs; not trusted
    free_names: tuple[str, ...] = ()  # read here, defined outside
