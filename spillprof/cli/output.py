"""Where results go: stdout, or files that are either whole or not there."""

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from spillprof.cli.encoding import with_whole_bars
from spillprof.cli.files import descriptor_of, real_path
from spillprof.cli.session import Session
from spillprof.cli.streams import say
from spillprof.ir.errors import UsageError
from spillprof.ir.interrupts import raised
from spillprof.ir.profile import Profile
from spillprof.ir.units import format_size

_RESERVED_ON_WINDOWS = {"CON", "PRN", "AUX", "NUL", *(f"{port}{i}" for port in ("COM", "LPT") for i in range(1, 10))}
_MAX_STEM = 100
_MOST_TRIES = 100


def default_report(model: str, graph_name: str) -> str:
    """``<model name>.spill.html``: of the file, or of the graph where the file has no name."""
    name = Path(model).stem if model != "-" else graph_name
    kept = "".join(c if c.isalnum() or c in "._- " else "_" for c in name)[:_MAX_STEM].strip(" .")
    if not kept or kept.split(".")[0].upper() in _RESERVED_ON_WINDOWS:
        kept = f"model_{kept}".rstrip("_")
    return f"{kept}.spill.html"


def write_file(path: Path, content: str | bytes | Iterable[bytes], session: Session) -> None:
    """Write bytes, or a text as UTF-8: into a new file beside it, then over the old one in one go.

    A link stays a link, and permissions stay as they were. What cannot be replaced is written into: a pipe, a device,
    or a descriptor that is open, as /dev/stdout.
    """
    data = content.encode("utf-8", errors="backslashreplace") if isinstance(content, str) else content
    pieces = (data,) if isinstance(data, bytes) else data
    descriptor = descriptor_of(str(path))
    try:
        if descriptor is not None:
            sys.stdout.flush()
            with open(os.dup(descriptor), "wb") as file:  # opened by its name, a file behind it would be emptied
                nbytes = sum(map(file.write, pieces))
        elif path.exists() and not path.is_file():
            with path.open("wb") as file:
                nbytes = sum(map(file.write, pieces))
        else:
            with raised():  # what is half written is taken away first
                nbytes = _replace(real_path(str(path)), pieces)
    except OSError as error:
        raise UsageError(
            f"cannot write '{path}'", where=(error.strerror or str(error),), hint="make room, or write it elsewhere"
        ) from None
    session.note(f"Wrote {path} ({format_size(nbytes)})")


def print_result(text: str) -> None:
    """The result on stdout, as it stands."""
    shown = with_whole_bars(text, sys.stdout.encoding)
    say(shown if shown.endswith("\n") else shown + "\n")


def render_json(profile: Profile, *, events: bool) -> str:
    """The profile as JSON text."""
    from spillprof.report.json_text import render

    return render(profile, events=events)


def _replace(real: str, pieces: Iterable[bytes]) -> int:
    """Bytes written. Until all of them are, the old file is there; afterwards, the new one with its permissions."""
    try:
        old = os.stat(real)
    except FileNotFoundError:
        old = None
    descriptor, scratch = _scratch(os.path.dirname(real), 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o600)
    try:
        with open(descriptor, "wb") as file:
            nbytes = sum(map(file.write, pieces))
        if old is not None:
            _take_over(old, scratch)
        os.replace(scratch, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(scratch)
        raise
    return nbytes


def _scratch(folder: str, mode: int) -> tuple[int, str]:
    """A new file in the folder, open; its name is short, for the file's own may be as long as names can be."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    for _ in range(_MOST_TRIES):
        path = os.path.join(folder, f".spillprof-{secrets.token_hex(8)}.tmp")
        try:
            return os.open(path, flags, mode), path
        except FileExistsError:
            continue
    raise FileExistsError(errno.EEXIST, "no name is left for a new file", folder)


def _take_over(old: os.stat_result, scratch: str) -> None:
    """Give the new file the owner and permissions of the old one, as far as the system lets us."""
    new = os.stat(scratch)
    if hasattr(os, "chown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.chown(scratch, old.st_uid, old.st_gid)
    os.chmod(scratch, stat.S_IMODE(old.st_mode))
