"""How an option of the command line is declared: read from the environment too, parsed, completed."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import click

from spillprof.ir.errors import UsageError

ENVIRONMENT_PREFIX = "SPILLPROF_"
Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option = Callable[[Any], Any]


def option(*declarations: str, **attributes: Any) -> Option:
    """A click option that can also be given as ``SPILLPROF_NAME`` in the environment."""
    long = next(name for name in declarations if name.startswith("--"))
    return click.option(*declarations, envvar=_variable(long), **attributes)


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that reads an option's text, or each of its texts; an error says which option it came from."""

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


def _variable(flag: str) -> str:
    """The variable of the environment that stands for an option."""
    return ENVIRONMENT_PREFIX + flag.removeprefix("--").replace("-", "_").upper()


def completing(names: Callable[[], Sequence[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion of the last of comma-separated names."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]

    return complete


def choice(name: str, values: type[StrEnum], default: StrEnum, text: str) -> Option:
    choices = click.Choice([str(value) for value in values])
    return option(name, type=choices, default=str(default), show_default=True, help=text)


def switch(name: str, default: bool, text: str) -> Option:
    """An option that is on or off."""
    on_off = click.Choice(["on", "off"])
    return option(name, type=on_off, default="on" if default else "off", show_default=True, help=text)


def examples(*lines: str) -> str:
    """The end of a command's help. A test runs every line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def apply(command: Decorated, *options: Option) -> Decorated:
    for each in reversed(options):
        command = each(command)
    return command
