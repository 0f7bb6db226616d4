"""What one run of the command line knows besides its options."""

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from spillprof.cli.files import Files
from spillprof.cli.streams import tell
from spillprof.ir.lru_cache import LruCache

if TYPE_CHECKING:
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
