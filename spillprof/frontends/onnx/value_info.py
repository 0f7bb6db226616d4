"""Types and shapes stated in value_info: they fill gaps of inference, which overrules them on contradiction."""

from spillprof.frontends.onnx.contrib import contrib_rule
from spillprof.frontends.onnx.elements import ValueType, stated_type
from spillprof.frontends.onnx.node import Body, Node
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import Session

_LONGEST_NAME = 80


def claimed_type(name: str, node: Node, session: Session, body: Body) -> ValueType | None:
    """The type that the file states for an output."""
    proto = body.stored_types.get(name)
    if proto is None and name in body.declared_types and _is_defined(node, session):
        proto = body.declared_types[name]
    return None if proto is None else stated_type(proto, session.symbols)


def check_claims(body: Body, scope: Scope, session: Session) -> None:
    """Compares stated types of weights and inputs with the actual ones."""
    stated = [(n, proto) for n, proto in body.inputs if proto is not None]
    stated += [*body.stored_types.items(), *body.declared_types.items()]
    for name, proto in stated:
        known = scope.types.get(name)
        if known is not None and not scope.is_bounded(name):
            claimed = stated_type(proto, session.symbols)
            if claimed is not None and not agree(known, claimed):
                overrule(name, known, claimed, session)


def agree(found: ValueType | None, stored: ValueType) -> bool:
    """Whether two types of a value are compatible."""
    if found is None:
        return True
    if found.dtype != stored.dtype:
        return False
    if found.shape is None or stored.shape is None:
        return True
    pairs = zip(found.shape, stored.shape, strict=False)
    return len(found.shape) == len(stored.shape) and all(a is None or b is None or a == b for a, b in pairs)


def may_be(bound: ValueType | None, stored: ValueType, least: ValueType | None = None) -> bool:
    """Whether a stated type is compatible with an upper bound, and with a lower one if known."""
    if least is not None and least.shape is not None and stored.shape is not None:
        pairs = zip(least.shape, stored.shape, strict=False)
        if not all(a is None or b is None or a <= b for a, b in pairs):
            return False
    if bound is None or bound.dtype != stored.dtype:
        return bound is None
    if bound.shape is None or stored.shape is None:
        return True
    pairs = zip(bound.shape, stored.shape, strict=False)
    return len(bound.shape) == len(stored.shape) and all(a is None or b is None or a >= b for a, b in pairs)


def lies_between(stored: ValueType | None, least: ValueType | None, limit: ValueType | None) -> bool:
    """Whether a stated, fully known shape lies between two known bounds."""
    if stored is None or least is None or limit is None or not stored.is_sized:
        return False
    return may_be(limit, stored, least)


def overrule(name: str, found: ValueType | None, claimed: ValueType, session: Session) -> None:
    """Notes that inference overrules a stated type."""
    what = "a type or shape stored in the file contradicts inference, and is overruled"
    session.tally.note(what, f"'{name[:_LONGEST_NAME]}' is {_written(found)}, not {_written(claimed)}")


def _written(known: ValueType | None) -> str:
    if known is None or known.shape is None:
        return "unknown" if known is None else known.dtype
    return f"{known.dtype}[{', '.join('?' if dim is None else str(dim) for dim in known.shape[:8])}]"


def _is_defined(node: Node, session: Session) -> bool:
    """Whether a schema or rule defines the operator; otherwise its declared output type is no evidence."""
    return session.finder.inference.has_schema(node) or contrib_rule(node) is not None
