"""How options are declared: by hand or from rows of a dataclass; each also as a variable of the environment."""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spillprof.cli.invocation import ENVIRONMENT_PREFIX
from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest
from spillprof.ir.op_times import OpTimes
from spillprof.ir.option_rows import OptionRow, option_rows

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Options = TypeVar("Options", bound="DataclassInstance")
Decorator = Callable[[Any], Any]


def option(*declarations: str, **attributes: Any) -> Decorator:
    """A click option that can also be given as ``SPILLPROF_NAME`` in the environment."""
    long = next(name for name in declarations if name.startswith("--"))
    return click.option(*declarations, envvar=_variable(long), **attributes)


def switch(name: str, default: bool, text: str) -> Decorator:
    """An option that is on or off."""
    on_off = click.Choice(["on", "off"])
    return option(name, type=on_off, default="on" if default else "off", show_default=True, help=text)


def apply(command: Decorated, *options: Decorator) -> Decorated:
    """The command with these options, in this order."""
    for each in reversed(options):
        command = each(command)
    return command


def options_of(kind: "type[DataclassInstance]", *, without: Collection[str] = ()) -> Decorator:
    """The options that the rows of a dataclass declare, less those of some fields."""
    rows = [row for row in option_rows(kind) if row.field not in without and not row.by_command]
    return lambda command: apply(command, *map(_declared, rows))


def _declared(row: OptionRow) -> Decorator:
    if row.switched_on is not None:
        return option(row.flag, is_flag=True, help=row.help)
    match row.default:
        case bool():
            return switch(row.flag, row.default, row.help)
        case StrEnum():
            choices = click.Choice([str(value) for value in type(row.default)])
            return option(row.flag, type=choices, default=str(row.default), show_default=True, help=row.help)
    attributes: dict[str, Any] = {"metavar": row.metavar, "help": row.help, "multiple": isinstance(row.default, tuple)}
    if row.most is not None:
        attributes["type"] = click.FloatRange(min=0, max=row.most)
    if row.names is not None:
        attributes |= {"shell_complete": completing(row.names), "callback": parsed(row.parse or _one_of(row))}
    if isinstance(row.default, str):
        attributes |= {"default": row.default, "show_default": True}
    return option(row.flag, **attributes)


def _one_of(row: OptionRow) -> Callable[[str], str]:
    def parse(text: str) -> str:
        known = row.names() if row.names else ()
        if text not in known:
            raise unknown_name(row.key, text, known)
        return text

    return parse


def read_options(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """The dataclass that a command's values make; fields that the command has no option for get their default."""
    return kind(**{row.field: _value(row, values[row.parameter]) for row in option_rows(kind) if _has(values, row)})


def _has(values: Mapping[str, Any], row: OptionRow) -> bool:
    return row.parameter in values and not row.by_command


def _value(row: OptionRow, given: Any) -> Any:
    """The field's value for what click made of the option."""
    if row.switched_on is not None:
        return row.switched_on if given else row.default
    if row.is_file:
        return _op_times(given)
    match row.default:
        case bool():
            return given == "on"
        case StrEnum():
            return type(row.default)(given)
        case tuple():
            return tuple(given)
    return given


def _op_times(path: str | None) -> OpTimes | None:
    if not path:
        return None
    from spillprof.frontends.op_times import read_op_times

    return read_op_times(path)


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that parses an option's text, or each of its texts; an error names the option or the variable."""

    def read(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        try:
            if isinstance(value, tuple):
                return tuple(parse(each) for each in value)
            return None if value is None else parse(value)
        except UsageError as error:
            flag = max(param.opts, key=len)
            if ctx.get_parameter_source(param.name or "") is not click.core.ParameterSource.ENVIRONMENT:
                raise UsageError(error.message, where=(flag,), hint=error.hint) from None
            variable = _variable(flag)
            hint = error.hint and error.hint.replace(f"{flag} ", f"{variable}=")
            raise UsageError(error.message, where=(variable,), hint=hint) from None

    return read


def completing(names: Callable[[], Sequence[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion of the last of comma-separated names."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]

    return complete


def unknown_name(kind: str, name: str, known: Sequence[str]) -> UsageError:
    """The error for a name that is not one of ``known``."""
    near = nearest(name, known)
    hint = f"did you mean '{near[0]}'? There are {', '.join(known)}" if near else f"there are {', '.join(known)}"
    return UsageError(f"unknown {kind} '{name}'", hint=hint)


def names_of_list(text: str, known: Sequence[str], kind: str) -> tuple[str, ...]:
    """The names in a comma-separated list, each once. ``UsageError`` for an unknown name, or an empty list."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError(f"no {kind} is named", where=(f"--{kind}",), hint=f"there are {', '.join(known)}")
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names


def examples(*lines: str) -> str:
    """The end of a command's help. A test runs every line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _variable(flag: str) -> str:
    """The environment variable of an option."""
    return ENVIRONMENT_PREFIX + flag.removeprefix("--").replace("-", "_").upper()
