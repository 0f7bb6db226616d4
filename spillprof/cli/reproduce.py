"""The command line that gives a result again."""

import os
import shlex
from typing import TYPE_CHECKING

import click

from spillprof.cli.declaring import ENVIRONMENT_PREFIX
from spillprof.cli.session import Session

if TYPE_CHECKING:
    from spillprof.cli.config import Config


def reproduce(session: Session, command: click.Command, config: "Config") -> str:
    """The command as typed, settings from the environment in front, the file with settings behind."""
    variables = {
        variable
        for parameter in command.params
        for variable in ([parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or [])
        if variable.startswith(ENVIRONMENT_PREFIX)
    }
    settings = [
        f"{name}={shlex.quote(value)}" for name, value in sorted(os.environ.items()) if name in variables and value
    ]
    file = ["--config", os.path.relpath(config.path)] if config.settings and config.path else []
    if any(argument.startswith("--config") for argument in session.arguments):
        file = []
    return " ".join([*settings, "spillprof", shlex.join([*session.arguments, *file])])
