"""Dataclasses as JSON values, and back: the types of their fields say what a file must hold.

Reading is strict about types, sizes and finite numbers. Unknown keys come from a later version and are ignored;
missing keys take the default of their field.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

_LARGEST = 2**63 - 1
_LARGEST_FLOAT = 1e36  # of seconds, bytes/s or joules: products of a few stay finite, in narrow floats too
_SHOWN = 60

Read = Callable[[Any], Any]


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def json_values(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, enums as texts."""
    if value is None or isinstance(value, str | int | float):
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, tuple | list):
        return [json_values(item) for item in value]
    if is_dataclass(value):
        return {name: json_values(getattr(value, name)) for name in _names(value.__class__)}
    if isinstance(value, Mapping):
        return {str(key): json_values(item) for key, item in value.items()}
    raise TypeError(f"no JSON value for {type(value).__name__}")


class MalformedError(Exception):
    """``what`` does not fit (None: a key is missing); ``path``: the keys that lead to it, innermost first."""

    def __init__(self, what: str | None) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str] = []

    @property
    def place(self) -> str:
        """``results[2].latency_s``."""
        return "".join(reversed(self.path)).removeprefix(".")


@cache
def reader_of(kind: Any) -> Read:
    """A function from JSON values to values of the type; it raises ``MalformedError``."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (inner,) = (a for a in arguments if a is not type(None))
        read = reader_of(inner)
        return lambda raw: None if raw is None else read(raw)
    if origin is tuple:
        return _array(arguments[0]) if arguments[1:] == (...,) else _row(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _table(arguments[1])
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _object(kind)
    return _SCALARS[kind]


def _object(kind: type) -> Read:
    hints = get_type_hints(kind)
    columns = [
        (f.name, reader_of(hints[f.name]), f.default is MISSING and f.default_factory is MISSING) for f in fields(kind)
    ]

    def read(raw: Any) -> Any:
        _checked(raw, dict, "an object")
        values, name = {}, ""
        try:
            for name, of_type, required in columns:
                if name in raw:
                    values[name] = of_type(raw[name])
                elif required:
                    raise MalformedError(None)
        except MalformedError as error:
            error.path.append(f".{name}")
            raise
        return kind(**values)

    return read


def _array(element: Any) -> Read:
    of_type = reader_of(element)

    def read(raw: Any) -> Any:
        _checked(raw, list, "a list")
        values: list[Any] = []
        try:
            for item in raw:
                values.append(of_type(item))  # its length is the index of the item that failed
        except MalformedError as error:
            error.path.append(f"[{len(values)}]")
            raise
        return tuple(values)

    return read


def _row(elements: Sequence[Any]) -> Read:
    of_types = [reader_of(element) for element in elements]

    def read(raw: Any) -> Any:
        if not isinstance(raw, list) or len(raw) != len(of_types):
            raise MalformedError(f"{shown(raw)} where {len(of_types)} values belong")
        return tuple(of_type(item) for of_type, item in zip(of_types, raw, strict=True))

    return read


def _table(element: Any) -> Read:
    of_type = reader_of(element)

    def read(raw: Any) -> Any:
        _checked(raw, dict, "an object")
        return {key: of_type(item) for key, item in raw.items()}

    return read


def _checked(raw: Any, kind: type, what: str) -> Any:
    if not isinstance(raw, kind):
        raise MalformedError(f"{shown(raw)} where {what} belongs")
    return raw


def _integer(raw: Any) -> Any:
    if type(raw) is not int:
        raise MalformedError(f"{shown(raw)} where a whole number belongs")
    if not -_LARGEST <= raw <= _LARGEST:
        raise MalformedError("a number of more than 64 bits")
    return raw


def _number(raw: Any) -> Any:
    if type(raw) is int:
        return _integer(raw)  # written without a point: kept as it is
    if type(raw) is not float or not math.isfinite(raw):
        raise MalformedError(f"{shown(raw)} where a number belongs")
    if abs(raw) > _LARGEST_FLOAT:
        raise MalformedError(f"a number as large as {shown(raw)}")
    return raw


def _text(raw: Any) -> Any:
    return _checked(raw, str, "a text")


def _boolean(raw: Any) -> Any:
    return _checked(raw, bool, "true or false")


def _setting(raw: Any) -> Any:
    """A value of the configuration: a scalar, or a list of scalars."""
    if isinstance(raw, list):
        return [_setting_scalar(item) for item in raw]
    return _setting_scalar(raw)


def _setting_scalar(raw: Any) -> Any:
    if raw is None or isinstance(raw, str | bool):
        return raw
    return _number(raw)


_SCALARS: dict[Any, Read] = {int: _integer, float: _number, str: _text, bool: _boolean, Any: _setting}


def shown(raw: Any) -> str:
    """The value, short enough for one line."""
    if isinstance(raw, dict | list):
        return "an object" if isinstance(raw, dict) else "a list"
    if raw is None or isinstance(raw, bool):
        return {None: "null", True: "true", False: "false"}[raw]
    if isinstance(raw, int) and abs(raw) > _LARGEST:
        return "a number of more than 64 bits"
    text = repr(raw)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
