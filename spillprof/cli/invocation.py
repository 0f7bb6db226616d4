"""One run of the command line: its arguments, output settings and files, and the command that reproduces it."""

import os
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

import click

from spillprof.cli.files import Files
from spillprof.cli.streams import tell
from spillprof.ir.lru_cache import LruCache

if TYPE_CHECKING:
    from spillprof.cli.config import Config
    from spillprof.engine.engine import Engine
    from spillprof.frontends.models import GraphCache

ENVIRONMENT_PREFIX = "SPILLPROF_"
"""Of environment variables that stand for options."""


@dataclass(slots=True, kw_only=True)
class Invocation:
    """One run of the command line. Parsing sets ``verbose``, ``quiet`` and ``color``."""

    arguments: tuple[str, ...]
    verbose: bool = False
    quiet: bool = False
    color: str = "auto"
    files: Files = field(default_factory=Files)
    warned: set[str] = field(default_factory=set)
    graphs: "GraphCache" = field(default_factory=lambda: LruCache(16))
    _engine: "Engine | None" = None

    @property
    def engine(self) -> "Engine":
        """What answers all questions of this run of the command line; imported when it is first asked."""
        if self._engine is None:
            from spillprof.engine.engine import Engine

            self._engine = Engine(self.graphs)
        return self._engine

    def colored(self, stream: TextIO) -> bool:
        """Whether to colour output on the stream: by ``--color``, then NO_COLOR, FORCE_COLOR, then the terminal."""
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def note(self, text: str) -> None:
        """Print a note on stderr, unless ``--quiet``."""
        if not self.quiet:
            tell(text)

    def warn(self, text: str) -> None:
        """Print a warning on stderr once, unless ``--quiet``."""
        if text not in self.warned:
            self.warned.add(text)
            self.note(f"warning: {text}")

    def detail(self, text: str) -> None:
        """Print a note on stderr if ``--verbose``."""
        if self.verbose:
            tell(text)


def reproduce(invocation: Invocation, command: click.Command, config: "Config") -> str:
    """The command line that reproduces a result: environment variables, command as typed, configuration file."""
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
    if any(argument.startswith("--config") for argument in invocation.arguments):
        file = []
    return " ".join([*settings, "spillprof", shlex.join([*invocation.arguments, *file])])
