"""Inter-process lock for a file that is read, changed and rewritten.

The operating system holds the lock and releases it when a process dies: a stale lock file blocks nobody.
"""

import hashlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spillprof.ir.errors import UsageError

_WAIT_S = 30.0
_POLL_S = 0.02
_MOST_NAME_BYTES = 240
_MOST_OWNER_BYTES = 200
_LOCKED_BYTE = 1 << 20
"""Windows locks byte ranges and blocks reading them: a byte beyond the owner's name."""


@contextmanager
def locked(path: Path, *, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Holds the lock of a file. ``UsageError`` if another process holds it for longer than ``wait_s``."""
    lock = _lock_path(path)
    try:
        descriptor = _acquired(lock, wait_s)
    except OSError as error:
        raise UsageError(
            f"cannot lock '{path}'",
            where=(f"{lock}: {error.strerror or error}",),
            hint="put it on a file system that has locks, in a folder that can be written",
        ) from None
    if descriptor is None:
        raise UsageError(
            f"'{path}' is being written by another process",
            where=(f"{lock}: {_owner(lock)}",),
            hint="wait until it has ended, then run this again",
        )
    try:
        yield
    finally:
        _release(descriptor, lock)


def _lock_path(path: Path) -> str:
    folder, name = os.path.split(os.path.realpath(path))
    encoded = name.encode("utf-8", "surrogatepass")
    if len(encoded) > _MOST_NAME_BYTES:  # with the suffix it would exceed the limit of file systems
        name = hashlib.sha256(encoded).hexdigest()
    return os.path.join(folder, f".{name}.lock")


def _acquired(lock: str, wait_s: float) -> int | None:
    """Descriptor that holds the lock; None on timeout."""
    end = time.monotonic() + wait_s
    while True:
        descriptor = _opened(lock)
        if descriptor is not None:
            if _try_lock(descriptor):
                if _is_at(lock, descriptor):
                    os.ftruncate(descriptor, 0)
                    os.write(
                        descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode()[:_MOST_OWNER_BYTES]
                    )
                    return descriptor
                os.close(descriptor)  # the previous holder deleted the file on release: try again
                continue
            os.close(descriptor)
        if time.monotonic() >= end:
            return None
        time.sleep(_POLL_S)


def _opened(lock: str) -> int | None:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(lock, flags, 0o666)
    except PermissionError:
        if sys.platform != "win32":
            raise
        return None  # Windows refuses to open a file that is being deleted


def _is_at(lock: str, descriptor: int) -> bool:
    """Whether the path still names the open file."""
    try:
        return os.path.samestat(os.stat(lock), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(descriptor: int, lock: str) -> None:
    if sys.platform == "win32":  # Windows cannot delete an open file, so none that another process has locked
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(lock)
        return
    with suppress(OSError):
        os.unlink(lock)
    os.close(descriptor)


def _owner(lock: str) -> str:
    try:
        with open(lock, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_OWNER_BYTES) or "of a process that is not known"
    except OSError:
        return "of a process that is not known"


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        os.lseek(descriptor, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
