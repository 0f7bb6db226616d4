"""Writes results: to stdout, or to files atomically."""

import errno
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from spillprof.cli.files import descriptor_of, real_path
from spillprof.cli.invocation import Invocation
from spillprof.cli.streams import say, with_whole_bars
from spillprof.ir.errors import UsageError
from spillprof.ir.interrupts import raised
from spillprof.ir.units import format_size

if TYPE_CHECKING:
    from spillprof.ir.profile import Profile

_RESERVED_ON_WINDOWS = {"CON", "PRN", "AUX", "NUL", *(f"{port}{i}" for port in ("COM", "LPT") for i in range(1, 10))}
_MAX_STEM = 100
_MOST_TRIES = 100


def default_report(model: str, graph_name: str) -> str:
    """``NAME.spill.html``, from the name of the model file, or of the graph for stdin."""
    name = Path(model).stem if model != "-" else graph_name
    kept = "".join(c if c.isalnum() or c in "._- " else "_" for c in name)[:_MAX_STEM].strip(" .")
    if not kept or kept.split(".")[0].upper() in _RESERVED_ON_WINDOWS:
        kept = f"model_{kept}".rstrip("_")
    return f"{kept}.spill.html"


def write_file(path: Path, content: str | bytes | Iterable[bytes], invocation: Invocation) -> None:
    """Write bytes, or text as UTF-8, atomically: into a temporary file beside the path, which then replaces it.

    Links and permissions are kept. A pipe, a device or an open descriptor like /dev/stdout is written in place.
    """
    data = content.encode("utf-8", errors="backslashreplace") if isinstance(content, str) else content
    pieces = (data,) if isinstance(data, bytes) else data
    descriptor = descriptor_of(str(path))
    try:
        if descriptor is not None:
            sys.stdout.flush()
            with open(os.dup(descriptor), "wb") as file:  # opening it by name would truncate a file behind it
                nbytes = sum(map(file.write, pieces))
        elif path.exists() and not path.is_file():
            with path.open("wb") as file:
                nbytes = sum(map(file.write, pieces))
        else:
            with raised():  # Ctrl-C removes the temporary file first
                nbytes = _replace(real_path(str(path)), pieces)
    except OSError as error:
        raise UsageError(
            f"cannot write '{path}'", where=(error.strerror or str(error),), hint="make room, or write it elsewhere"
        ) from None
    invocation.note(f"Wrote {path} ({format_size(nbytes)})")


def print_result(text: str) -> None:
    """Print a result on stdout."""
    shown = with_whole_bars(text, sys.stdout.encoding)
    say(shown if shown.endswith("\n") else shown + "\n")


def print_profile(profile: "Profile", invocation: Invocation, *, as_json: bool, events: bool | None, top: int) -> None:
    """The profile on stdout: as JSON, or as a summary, as wide as the terminal. ``events``: JSON has times."""
    if as_json:
        from spillprof.report.json_text import profile_json

        print_result(profile_json(profile, events=events))
    else:
        import shutil

        from spillprof.report.profile import terminal

        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print_result(terminal.render(profile, top=top, width=width, color=invocation.colored(sys.stdout)))


def _replace(real: str, pieces: Iterable[bytes]) -> int:
    """Replace the file atomically, keeping its permissions; the number of bytes written."""
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
    """A new open file in the folder. Its name is short: the final name may be as long as the file system allows."""
    import secrets

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    for _ in range(_MOST_TRIES):
        path = os.path.join(folder, f".spillprof-{secrets.token_hex(8)}.tmp")
        try:
            return os.open(path, flags, mode), path
        except FileExistsError:
            continue
    raise FileExistsError(errno.EEXIST, "no name is left for a new file", folder)


def _take_over(old: os.stat_result, scratch: str) -> None:
    """Give the new file the owner and permissions of the old one, as far as the system permits."""
    new = os.stat(scratch)
    if hasattr(os, "chown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.chown(scratch, old.st_uid, old.st_gid)
    os.chmod(scratch, stat.S_IMODE(old.st_mode))
