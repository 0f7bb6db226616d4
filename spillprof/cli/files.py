"""Registry of the files that a command reads and writes, so that no result overwrites an input or another result.

A command registers its outputs before it works. Side files are registered when they are opened, models when they are
read; both happen before any result is written.
"""

import os
import stat
import sys
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from spillprof.ir.errors import UsageError

_STDOUT, _STDERR = 1, 2


@dataclass(slots=True, kw_only=True)
class Files:
    """The files of one run of the command line."""

    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)  # outputs that are read first and then replaced

    def reads(self, path: str) -> None:
        """Register a file that is read; ``-`` for stdin. ``UsageError`` if it is an output."""
        for output in self.outputs:
            if _are_same(path, output):
                raise _taken(output, path)
        self.inputs.append(path)

    def reads_beside(self, path: str) -> None:
        """Register a side file. An updated output may be read."""
        if path not in self.updated:
            self.reads(path)

    def writes(self, path: str) -> Path:
        """Register an output. ``UsageError`` if it is an input, already an output, or cannot be written."""
        _check_writable(path)
        for read in self.inputs:
            if _are_same(path, read):
                raise _taken(path, read)
        for other in self.outputs:
            if _are_same(path, other):
                both = f"'{path}'" if path == other else f"'{other}' and '{path}', which are one file"
                raise UsageError(f"two results would go to {both}", hint="give each a file of its own")
        if descriptor_of(path) is None:
            _check_streams(path)
        self.outputs.append(path)
        return Path(path)

    def updates(self, path: str) -> Path:
        """Register a file that is read and then replaced, or appended to."""
        self.updated.append(path)
        return self.writes(path)


def descriptor_of(path: str) -> int | None:
    """The open descriptor that a name stands for: /dev/stdout, /dev/stderr, /dev/fd/N; None for other names."""
    if sys.platform == "win32":
        return None
    name = os.path.abspath(path)
    folder, last = os.path.split(name)
    if folder == "/dev" and last in ("stdout", "stderr"):
        return _STDOUT if last == "stdout" else _STDERR
    if folder in ("/dev/fd", "/proc/self/fd") and last.isascii() and last.isdigit() and len(last) < 8:
        return int(last)
    return None


def real_path(path: str) -> str:
    """The path with every link resolved. ``UsageError`` for a cycle of links."""
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write '{path}'", where=(str(error),)) from None
    if os.path.islink(real):
        raise UsageError(f"cannot write '{path}'", where=("its links lead in a circle",))
    return real


def _check_writable(path: str) -> None:
    if not path:
        raise UsageError("an output file has no name", hint="write it like -o report.html")
    if descriptor_of(path) is not None:
        return
    real = real_path(path)
    parent = os.path.dirname(real)
    if not os.path.isdir(parent):
        shown = os.path.dirname(path) or parent
        raise UsageError(f"cannot write '{path}'", where=(f"there is no folder '{shown}'",), hint="make it first")
    mode = _mode(real)
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"cannot write '{path}'", where=("it is a folder",), hint="give the name of a file")
    if mode is not None and (not mode & 0o222 or not os.access(real, os.W_OK)):
        raise UsageError(
            f"cannot write '{path}'", where=("it is read-only",), hint="make it writable, or give another name"
        )
    if (mode is None or stat.S_ISREG(mode)) and not os.access(parent, os.W_OK):
        raise UsageError(
            f"cannot write '{path}'", where=(f"folder '{parent}' is read-only",), hint="choose another folder"
        )


def _check_streams(path: str) -> None:
    """``UsageError`` if stdout or stderr is redirected to the file, which would be replaced while they write to it."""
    mode = _mode(path)
    if mode is None or not stat.S_ISREG(mode):
        return
    for descriptor, name in ((_STDOUT, "stdout"), (_STDERR, "stderr")):
        if _is_descriptor(path, descriptor):
            raise UsageError(f"'{path}' is where {name} goes", hint="give the result a file of its own")


def _are_same(a: str, b: str) -> bool:
    """Whether two paths name the same regular file, through links or other spellings. Pipes may be shared."""
    if "-" in (a, b):
        other = b if a == "-" else a
        mode = _mode(other)
        return mode is not None and stat.S_ISREG(mode) and _is_descriptor(other, 0)
    modes = (_mode(a), _mode(b))
    if any(mode is not None and not stat.S_ISREG(mode) for mode in modes):
        return False
    if None not in modes:
        try:
            if os.path.samefile(a, b):
                return True
        except OSError:
            pass
    return _spelling(a) == _spelling(b)


def _spelling(path: str) -> str:
    """The real path; on Windows and macOS normalized as case-insensitive file systems do."""
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):  # a null character, or a cycle of links
        return path
    if sys.platform in ("win32", "darwin"):
        return unicodedata.normalize("NFC", os.path.normcase(real)).casefold()
    return real


def _is_descriptor(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except (OSError, ValueError):
        return False


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return None


def _taken(output: str, read: str) -> UsageError:
    shown = "stdin" if read == "-" else read
    return UsageError(
        f"the result would take the place of '{output}', which is read",
        where=() if shown == output else (f"{shown} is the same file",),
        hint="give the result a file of its own",
    )
