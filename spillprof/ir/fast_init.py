"""Fast ``__init__`` for frozen dataclasses.

A frozen dataclass writes each field through ``object.__setattr__``, which takes ten times as long as an assignment;
a large model has hundreds of thousands of steps, buffers and transfers. During construction the instance has a mutable
class with the same slots; when its fields are assigned, it takes on the frozen class.
"""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

_Value = TypeVar("_Value")


def fast_init(cls: type[_Value]) -> type[_Value]:
    """Class decorator: replaces ``__init__`` of a frozen, slotted dataclass by one that assigns its fields.

    ``TypeError`` for a class with a base or a ``__post_init__``.
    """
    slots: tuple[str, ...] = cls.__dict__["__slots__"]
    if cls.__bases__ != (object,) or hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__name__} has a base or a __post_init__")
    known = fields(cls)  # type: ignore[arg-type]
    names: dict[str, Any] = {
        "_become": object.__setattr__,
        "_frozen": cls,
        "_open": type(f"_Open{cls.__name__}", (), {"__slots__": slots}),
        "_unset": MISSING,
    }
    names |= {f"_default_{f.name}": f.default for f in known} | {f"_make_{f.name}": f.default_factory for f in known}
    exec("\n".join(_source(known)), names)  # source made of field names alone, as dataclasses does it
    made = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = cls.__init__.__annotations__
    cls.__init__ = made  # type: ignore[method-assign]
    return cls


def _source(known: tuple[Field[Any], ...]) -> Iterator[str]:
    yield f"def __init__(self, *, {', '.join(map(_parameter, known))}):"
    yield "    _become(self, '__class__', _open)"
    for f in known:
        if f.default_factory is not MISSING:
            yield f"    self.{f.name} = _make_{f.name}() if {f.name} is _unset else {f.name}"
        else:
            yield f"    self.{f.name} = {f.name}"
    yield "    _become(self, '__class__', _frozen)"


def _parameter(f: Field[Any]) -> str:
    if f.default_factory is not MISSING:
        return f"{f.name}=_unset"
    return f.name if f.default is MISSING else f"{f.name}=_default_{f.name}"
