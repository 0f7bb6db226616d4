"""What one run of the command line knows besides the options of its command, and how to run it again."""

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
    from spillprof.frontends.models import GraphCache


@dataclass(slots=True, kw_only=True)
class Session:
    """The arguments as typed, and how much the user wants to hear. Options set the rest while they are parsed."""

    arguments: tuple[str, ...]
    verbose: bool = False
    quiet: bool = False
    color: str = "auto"
    files: Files = field(default_factory=Files)
    warned: set[str] = field(default_factory=set)
    graphs: "GraphCache" = field(default_factory=lambda: LruCache(16))

    def colored(self, stream: TextIO) -> bool:
        """Whether to colour what goes to the stream: ``--color``, then NO_COLOR, FORCE_COLOR, then the terminal."""
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def note(self, text: str) -> None:
        """A remark for the user, on stderr; not with ``--quiet``."""
        if not self.quiet:
            tell(text)

    def warn(self, text: str) -> None:
        """A doubt about what the user gave, on stderr, once; not with ``--quiet``."""
        if text not in self.warned:
            self.warned.add(text)
            self.note(f"warning: {text}")

    def detail(self, text: str) -> None:
        """A remark that only ``--verbose`` shows, on stderr."""
        if self.verbose:
            tell(text)


def reproduce(session: Session, command: click.Command, config: "Config") -> str:
    """The command as typed, settings from the environment in front, the file with settings behind."""
    variables = {
        variable
        for parameter in command.params
        for variable in ([parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or [])
        if variable.startswith("SPILLPROF_")
    }
    settings = [
        f"{name}={shlex.quote(value)}" for name, value in sorted(os.environ.items()) if name in variables and value
    ]
    file = ["--config", os.path.relpath(config.path)] if config.settings and config.path else []
    if any(argument.startswith("--config") for argument in session.arguments):
        file = []
    return " ".join([*settings, "spillprof", shlex.join([*session.arguments, *file])])
