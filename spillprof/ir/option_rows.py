"""Options registry: one row on a dataclass field declares an option for users.

The command line, the environment, configuration files, the ``config`` of a Profile, the gate's fingerprints and
docs/cli.md derive from these rows.
"""

import dataclasses
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
_ROW, _WHY_NOT = "option", "no option because"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """How users set one field, and how results name it.

    The type of the default says what values look like: a StrEnum is a choice, a bool is ``on`` or ``off``, a tuple is a
    repeatable text.
    """

    flag: str  # "--control-flow"
    help: str
    default: Any
    field: str = ""  # of the dataclass
    metavar: str | None = None
    names: Callable[[], Sequence[str]] | None = None  # the values there are, unless `parse` takes others too
    parse: Callable[[str], Any] | None = None  # reads the value from its text, or raises UsageError
    most: float | None = None  # of a number from 0 up
    is_file: bool = False  # the path of a file; relative to the configuration file that names it
    switched_on: Any = None  # the value that the flag stands for, where it takes no argument
    json_name: str = ""  # in the `config` of a Profile; default: the flag's name
    as_json: Callable[[Any], Any] | None = None
    json_if_changed: bool = False  # the `config` of a Profile leaves the default out
    not_in_json: str = ""  # why the `config` of a Profile lacks it
    by_command: str = ""  # why each command declares the flag itself

    @property
    def key(self) -> str:
        """The key in configuration files."""
        return self.flag.removeprefix("--")

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return self.key.replace("-", "_")

    def json_value(self, value: Any) -> Any:
        """A value of the field as the ``config`` of a Profile holds it."""
        if self.as_json is not None:
            return self.as_json(value)
        if isinstance(value, StrEnum):
            return str(value)
        return list(value) if isinstance(value, tuple) else value


def option_field(default: T, flag: str, help: str, **attributes: Any) -> T:
    """A dataclass field that users set by ``flag``. ``attributes``: those of OptionRow."""
    row = OptionRow(flag=flag, help=help, default=default, **attributes)
    field: Any = dataclasses.field(default=default, metadata={_ROW: row})
    return field  # type: ignore[no-any-return]


def internal_field(default: T, *, because: str) -> T:
    """A dataclass field that has no option, and why."""
    field: Any = dataclasses.field(default=default, metadata={_WHY_NOT: because})
    return field  # type: ignore[no-any-return]


@cache
def option_rows(options: "type[DataclassInstance]") -> tuple[OptionRow, ...]:
    """The rows of a dataclass, in the order of its fields."""
    return tuple(
        dataclasses.replace(field.metadata[_ROW], field=field.name, json_name=_json_name(field.metadata[_ROW]))
        for field in dataclasses.fields(options)
        if _ROW in field.metadata
    )


def _json_name(row: OptionRow) -> str:
    return "" if row.not_in_json else row.json_name or row.parameter


def config_json(parts: Sequence["DataclassInstance"]) -> dict[str, Any]:
    """The values of several dataclasses of options under their names in the ``config`` of a Profile."""
    return {
        row.json_name: row.json_value(value)
        for part in parts
        for row in option_rows(type(part))
        for value in [getattr(part, row.field)]
        if row.json_name and not (row.json_if_changed and value == row.default)
    }
