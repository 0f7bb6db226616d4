"""Fingerprints: what figures depend on, less what has its default value.

A field or option that is added later, at its default, so changes no fingerprint that was made before. A default that
changes makes other figures, and with them another simulator revision, which is part of every fingerprint.
"""

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def changed_fields(value: "DataclassInstance", *, without: Collection[str] = ()) -> dict[str, Any]:
    """Fields of a dataclass by name, without those at their default; a field that has none is always there."""
    found = {}
    for column in dataclasses.fields(value):
        held = getattr(value, column.name)
        if column.name not in without and not (has_default(column) and held == default_of(column)):
            found[column.name] = held
    return found


def has_default(column: "dataclasses.Field[Any]") -> bool:
    """Whether the field may be left out."""
    return column.default is not dataclasses.MISSING or column.default_factory is not dataclasses.MISSING


def default_of(column: "dataclasses.Field[Any]") -> Any:
    """The value of a field that is left out."""
    return column.default if column.default_factory is dataclasses.MISSING else column.default_factory()
