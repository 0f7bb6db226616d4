"""Operator attributes as plain Python."""

from collections.abc import Iterable, Mapping

from spillprof.frontends.onnx.proto import AttributeProto
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
    """The kind of an attribute of the oldest files, which do not state it."""
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
