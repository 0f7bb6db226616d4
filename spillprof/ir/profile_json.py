"""A saved Profile, read back: JSON values to the nouns they were made of.

The nouns themselves say what belongs where, so nothing is listed twice. Keys that are not known come from a later
version and are read over; keys that lack take their default, if they have one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from spillprof.ir.errors import ProfileError
from spillprof.ir.profile import SCHEMA, Profile
from spillprof.ir.profile_checks import faults

_LARGEST = 2**63 - 1
_LARGEST_FLOAT = 1e36  # of seconds, bytes/s or joules: nothing comes near, and narrow floats and products still hold it
_SHOWN = 60

_Read = Callable[[Any], Any]


def profile_from_json(data: object) -> Profile:
    """The Profile that JSON values describe: ``to_json`` gives the same values again. ``ProfileError`` if it cannot be.

    Without events in it, ``Result.times`` is None, and events and residencies are empty.
    """
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if schema != SCHEMA:
        found = "it has no schema" if schema is None else f"its schema is {_shown(schema)}"
        raise ProfileError(
            "this is no profile that can be read here",
            where=(f"{found}, not '{SCHEMA}'",),
            hint="'spillprof analyze MODEL -o FILE.json' writes one",
        )
    try:
        profile: Profile = _reader(Profile)(data)
    except _MalformedError as error:
        place = "".join(reversed(error.path)).removeprefix(".")
        if error.what is None:
            raise ProfileError(
                f"the profile lacks '{place}'", hint="was it saved by another version, or cut off? analyze again"
            ) from None
        raise ProfileError(f"a profile cannot hold {error.what}", where=(place,)) from None
    fault = next(faults(profile), None)
    if fault is not None:
        raise ProfileError(f"the profile contradicts itself: {fault}", hint="was the file changed, or cut off?")
    return profile


class _MalformedError(Exception):
    """A value that does not fit (None: a key that lacks); the places on the way to it, innermost first."""

    def __init__(self, what: str | None) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str] = []


@cache
def _reader(kind: Any) -> _Read:
    """What turns a JSON value into a value of the type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (inner,) = (a for a in arguments if a is not type(None))
        read = _reader(inner)
        return lambda raw: None if raw is None else read(raw)
    if origin is tuple:
        return _array(arguments[0]) if arguments[1:] == (...,) else _row(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _table(arguments[1])
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _object(kind)
    return _SCALARS[kind]


def _object(kind: type) -> _Read:
    hints = get_type_hints(kind)
    columns = [
        (f.name, _reader(hints[f.name]), f.default is MISSING and f.default_factory is MISSING) for f in fields(kind)
    ]

    def read(raw: Any) -> Any:
        if not isinstance(raw, dict):
            raise _MalformedError(f"{_shown(raw)} where an object belongs")
        values, name = {}, ""
        try:
            for name, of_type, required in columns:
                if name in raw:
                    values[name] = of_type(raw[name])
                elif required:
                    raise _MalformedError(None)
        except _MalformedError as error:
            error.path.append(f".{name}")
            raise
        return kind(**values)

    return read


def _array(element: Any) -> _Read:
    of_type = _reader(element)

    def read(raw: Any) -> Any:
        if not isinstance(raw, list):
            raise _MalformedError(f"{_shown(raw)} where a list belongs")
        values: list[Any] = []
        try:
            for item in raw:
                values.append(of_type(item))  # how many there are says where it went wrong
        except _MalformedError as error:
            error.path.append(f"[{len(values)}]")
            raise
        return tuple(values)

    return read


def _row(elements: Sequence[Any]) -> _Read:
    of_types = [_reader(element) for element in elements]

    def read(raw: Any) -> Any:
        if not isinstance(raw, list) or len(raw) != len(of_types):
            raise _MalformedError(f"{_shown(raw)} where {len(of_types)} values belong")
        return tuple(of_type(item) for of_type, item in zip(of_types, raw, strict=True))

    return read


def _table(element: Any) -> _Read:
    of_type = _reader(element)

    def read(raw: Any) -> Any:
        if not isinstance(raw, dict):
            raise _MalformedError(f"{_shown(raw)} where an object belongs")
        return {key: of_type(item) for key, item in raw.items()}

    return read


def _integer(raw: Any) -> Any:
    if type(raw) is not int:
        raise _MalformedError(f"{_shown(raw)} where a whole number belongs")
    if not -_LARGEST <= raw <= _LARGEST:
        raise _MalformedError("a number of more than 64 bits")
    return raw


def _number(raw: Any) -> Any:
    if type(raw) is int:
        return _integer(raw)  # written without a point: kept as it is
    if type(raw) is not float or not math.isfinite(raw):
        raise _MalformedError(f"{_shown(raw)} where a number belongs")
    if abs(raw) > _LARGEST_FLOAT:
        raise _MalformedError(f"a number as large as {_shown(raw)}")
    return raw


def _text(raw: Any) -> Any:
    if not isinstance(raw, str):
        raise _MalformedError(f"{_shown(raw)} where a text belongs")
    return raw


def _boolean(raw: Any) -> Any:
    if not isinstance(raw, bool):
        raise _MalformedError(f"{_shown(raw)} where true or false belongs")
    return raw


def _setting(raw: Any) -> Any:
    """A value of the configuration: a scalar, or a list of such."""
    if isinstance(raw, list):
        return [_setting_scalar(item) for item in raw]
    return _setting_scalar(raw)


def _setting_scalar(raw: Any) -> Any:
    if raw is None or isinstance(raw, str | bool):
        return raw
    return _number(raw)


_SCALARS: dict[Any, _Read] = {int: _integer, float: _number, str: _text, bool: _boolean, Any: _setting}


def _shown(raw: Any) -> str:
    """The value, short enough for one line."""
    if isinstance(raw, dict | list):
        return "an object" if isinstance(raw, dict) else "a list"
    if raw is None or isinstance(raw, bool):
        return {None: "null", True: "true", False: "false"}[raw]
    if isinstance(raw, int) and abs(raw) > _LARGEST:
        return "a number of more than 64 bits"
    text = repr(raw)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
