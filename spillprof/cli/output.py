"""Where results go: stdout, or files that are either whole or not there."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from spillprof.cli.encoding import with_whole_bars
from spillprof.cli.session import Session
from spillprof.cli.streams import say
from spillprof.errors import UsageError
from spillprof.interrupts import raised
from spillprof.model.profile import Profile
from spillprof.units import format_size

_RESERVED_ON_WINDOWS = {"CON", "PRN", "AUX", "NUL", *(f"{port}{i}" for port in ("COM", "LPT") for i in range(1, 10))}
_MAX_STEM = 100


def writable_path(path: str) -> Path:
    """The path, if a file can be written there. Checked before the work, which may be long."""
    if not path:
        raise UsageError("an output file has no name", hint="write it like -o report.html")
    parent = Path(path).parent
    if not parent.is_dir():
        raise UsageError(f"cannot write '{path}'", where=(f"there is no folder '{parent}'",), hint="make it first")
    if Path(path).is_dir():
        raise UsageError(f"cannot write '{path}'", where=("it is a folder",), hint="give the name of a file")
    if not os.access(parent, os.W_OK):
        raise UsageError(
            f"cannot write '{path}'", where=(f"folder '{parent}' is read-only",), hint="choose another folder with -o"
        )
    return Path(path)


def default_report(model: str, graph_name: str) -> str:
    """``<model name>.spill.html``: of the file, or of the graph where the file has no name."""
    name = Path(model).stem if model != "-" else graph_name
    kept = "".join(c if c.isalnum() or c in "._- " else "_" for c in name)[:_MAX_STEM].strip(" .")
    if not kept or kept.split(".")[0].upper() in _RESERVED_ON_WINDOWS:
        kept = f"model_{kept}".rstrip("_")
    return f"{kept}.spill.html"


def write_file(path: Path, content: str | bytes | Iterable[bytes], session: Session) -> None:
    """Write bytes, or a text as UTF-8: into a new file beside it, then over the old one in one go."""
    data = content.encode("utf-8", errors="backslashreplace") if isinstance(content, str) else content
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            with path.open("wb") as file:
                nbytes = sum(map(file.write, pieces))
        else:
            with raised():  # what is half written is taken away first
                nbytes = _replace(path, pieces)
    except OSError as error:
        raise UsageError(f"cannot write '{path}'", where=(error.strerror or str(error),)) from None
    session.note(f"Wrote {path} ({format_size(nbytes)})")


def print_result(text: str) -> None:
    """The result on stdout, as it stands."""
    shown = with_whole_bars(text, sys.stdout.encoding)
    say(shown if shown.endswith("\n") else shown + "\n")


def render_json(profile: Profile, *, events: bool) -> str:
    """The profile as JSON text."""
    from spillprof.report.json_report import render

    return render(profile, events=events)


def _replace(path: Path, pieces: Iterable[bytes]) -> int:
    real = path.resolve()  # a link stays a link
    scratch = real.with_name(f".{real.name}.{os.getpid()}.tmp")
    try:
        with open(scratch, "xb") as file:
            nbytes = sum(map(file.write, pieces))
        os.replace(scratch, real)
        return nbytes
    finally:
        scratch.unlink(missing_ok=True)
