"""Reads side files: regular files only, up to the size limit of their kind.

A pipe would wait for ever, and a device may never end.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from spillprof.ir.errors import SpillprofError, UsageError
from spillprof.ir.side_files.kinds import FileKind
from spillprof.ir.units import format_size

Watcher = Callable[[str], None]

_watcher: ContextVar[Watcher | None] = ContextVar("side_file_watcher", default=None)

_REGULAR = "give a regular file"
_WHAT_IT_IS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
    (stat.S_ISSOCK, "it is a socket"),
)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Within the block the watcher is called with the path of each side file before it is opened; ``-`` for stdin.

    Its exceptions propagate.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def read_text(path: str | Path, kind: FileKind) -> str:
    """The file as text. An error of the kind if it cannot be read, is too large, or is not UTF-8."""
    return _decoded(read_bytes(path, kind), str(path), kind)


def read_bytes(path: str | Path, kind: FileKind) -> bytes:
    """The file's bytes. An error of the kind if it is no regular file, cannot be read, or is too large.

    ``FileNotFoundError`` is the cause of the error where there is no file of that name, nor a link.
    """
    _tell(os.fspath(path))
    # without O_NONBLOCK, opening a pipe blocks until a writer opens it
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            _check_mode(status.st_mode, str(path), kind)
            if status.st_size > kind.most_bytes:
                raise _too_large(kind, str(path), format_size(status.st_size))
            data = _read_to_end(file.read, kind.most_bytes + 1)
    except IsADirectoryError:
        raise _unreadable(kind, str(path), "it is a folder", hint=_REGULAR) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else None
        raise _unreadable(kind, str(path), reason or str(error)) from error
    if len(data) > kind.most_bytes:  # it grows, or reports no size
        raise _too_large(kind, str(path), "more than that")
    return data


def read_stdin(kind: FileKind) -> bytes:
    """The bytes of stdin, up to the limit of the kind."""
    if sys.stdin is None:
        raise UsageError("there is no stdin to read from", hint="give the path of a file")
    _tell("-")
    try:
        data = sys.stdin.buffer.read(kind.most_bytes + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(kind, "-", str(error)) from None
    if len(data) > kind.most_bytes:
        raise _too_large(kind, "-", "more than that")
    return data


def decoded_stdin(kind: FileKind) -> str:
    """The text of stdin."""
    return _decoded(read_stdin(kind), "-", kind)


def check_regular(path: str | Path, kind: FileKind) -> None:
    """An error of the kind unless the path is a regular file: a library that opens it could block forever.

    A missing file passes.
    """
    _tell(os.fspath(path))
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise _unreadable(kind, str(path), reason or str(error)) from None
    _check_mode(status.st_mode, str(path), kind)
    if status.st_size > kind.most_bytes:
        raise _too_large(kind, str(path), format_size(status.st_size))


def _tell(path: str) -> None:
    watcher = _watcher.get()
    if watcher is not None:
        watcher(path)


def _read_to_end(read: Callable[[int], bytes | None], most_bytes: int) -> bytes:
    pieces, left = [], most_bytes
    while left and (piece := read(min(left, 1 << 24))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _check_mode(mode: int, shown: str, kind: FileKind) -> None:
    if not stat.S_ISREG(mode):
        reason = next((text for is_it, text in _WHAT_IT_IS if is_it(mode)), "it is no regular file")
        raise _unreadable(kind, shown, reason, hint=_REGULAR)


def _decoded(data: bytes, shown: str, kind: FileKind) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise kind.error(
            f"{kind.what} is not UTF-8 text",
            where=(f"{shown}: line {line}, byte {error.start}",),
            hint=kind.hint or "save it again as UTF-8",
        ) from None


def _unreadable(
    kind: FileKind, shown: str, reason: str, hint: str = "check the path, and that it may be read"
) -> SpillprofError:
    return kind.error(f"cannot read {kind.what}", where=(f"{shown}: {reason}",), hint=hint)


def _too_large(kind: FileKind, shown: str, size: str) -> SpillprofError:
    return kind.error(
        f"{kind.what} is larger than {format_size(kind.most_bytes)}",
        where=(f"{shown}: {size}",),
        hint=kind.hint or "is it the right file?",
    )
