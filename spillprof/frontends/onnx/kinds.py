"""What operators do, apart from what they are called and what they work on: equal ones share one value."""

from collections.abc import Mapping
from dataclasses import dataclass

from spillprof.frontends.onnx.attributes import plain_attributes
from spillprof.frontends.onnx.proto import AttributeProto
from spillprof.ir.graph import AttributeValue


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """A type of operator with its attributes. Compared by identity: see ``Kinds``."""

    op_type: str
    domain: str  # "" is the default one
    version: int  # of the operator set that it was written for
    attributes: tuple[AttributeProto, ...]
    settings: Mapping[str, AttributeValue]  # the same as plain Python; tensors, graphs and types are left out


class Kinds:
    """Makes kinds, equal ones once. Those with graphs inside are never equal."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | int | bytes, ...], Kind] = {}

    def kind(self, op_type: str, domain: str, version: int, attributes: tuple[AttributeProto, ...] = ()) -> Kind:
        """The kind with these attributes."""
        if any(a.HasField("g") or a.graphs for a in attributes):
            return _made(op_type, domain, version, attributes)
        key = (op_type, domain, version, *[a.SerializeToString() for a in attributes])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _made(op_type, domain, version, attributes)
        return known


def _made(op_type: str, domain: str, version: int, attributes: tuple[AttributeProto, ...]) -> Kind:
    settings = plain_attributes(attributes)
    return Kind(op_type=op_type, domain=domain, version=version, attributes=attributes, settings=settings)
