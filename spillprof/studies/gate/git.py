"""Asks git for a file at a commit, and for the current commit.

A commit that lacks the file is an answer. A commit, folder or file that git cannot read is an error: taken for "no
such file", it would let every regression pass.
"""

import re
import subprocess
from pathlib import Path

from spillprof.ir.errors import UsageError
from spillprof.ir.side_files.kinds import BASELINE
from spillprof.ir.units import format_size

_TIMEOUT_S = 60
_HASH = re.compile(r"[0-9a-f]{40,64}")
_FETCH = "fetch it first, like 'git fetch origin main'; in CI, check out with the whole history"


def show(ref: str, path: Path) -> str | None:
    """Text of the file at the commit; None if that commit has no such file. ``UsageError`` if git fails."""
    folder = path.parent
    if not ref or ref.startswith("-") or ":" in ref:
        raise UsageError(f"'{ref}' names no commit", where=("--against",), hint="write it like --against origin/main")
    commit = _commit(folder, ref, hint=_FETCH)
    if commit is None:
        raise UsageError(f"git knows no commit '{ref}'", where=(f"in {folder.absolute()}",), hint=_FETCH)
    listed = _read(folder, ref, "ls-tree", "-z", commit, "--", f"./{path.name}")
    if not listed:
        return None
    mode, kind, blob = listed.split(b"\t")[0].decode("ascii").split()
    if kind != "blob" or mode == "120000":
        what = "a link" if kind == "blob" else "no file"
        raise UsageError(f"the baseline is {what} at '{ref}'", where=(f"{ref}:{path.name}",))
    nbytes = int(_read(folder, ref, "cat-file", "-s", blob))
    if nbytes > BASELINE.most_bytes:
        raise UsageError(
            f"the baseline is larger than {format_size(BASELINE.most_bytes)}",
            where=(f"{ref}:{path.name}: {format_size(nbytes)}",),
        )
    try:
        return _read(folder, ref, "cat-file", "blob", blob).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("the baseline is not UTF-8 text", where=(f"{ref}:{path.name}",)) from None


def head_commit(folder: Path) -> str:
    """Hash of HEAD. ``UsageError`` if there is none."""
    hint = "name one: --commit"
    commit = _commit(folder, "HEAD", hint=hint)
    if commit is None:
        raise UsageError("no commit is checked out here", where=(str(folder.absolute()),), hint=hint)
    return commit


def _commit(folder: Path, ref: str, *, hint: str) -> str | None:
    """Hash of a single commit (no range or negation); None if git knows no such name."""
    found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode and found.stderr:
        raise UsageError(f"git cannot read '{ref}'", where=(_text(found.stderr),), hint=hint)
    commit = _text(found.stdout)
    return commit if not found.returncode and _HASH.fullmatch(commit) else None


def _read(folder: Path, ref: str, *arguments: str) -> bytes:
    """Output of git. ``UsageError`` if it fails, for example at a missing or damaged object."""
    done = _git(folder, *arguments)
    if done.returncode:
        raise UsageError(
            f"cannot read the baseline at '{ref}'",
            where=(_text(done.stderr) or f"git {arguments[0]} ended with {done.returncode}",),
            hint="an object is missing or damaged: 'git fsck' lists it; a partial clone needs its remote",
        )
    return done.stdout


def _git(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    if not folder.is_dir():
        raise UsageError(f"there is no folder '{folder}'", hint="it is where git is asked for the baseline")
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise UsageError("git is not installed", hint="it is needed for --against, and for --record") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:  # ValueError: a null character
        raise UsageError("git does not answer", where=(str(error),)) from None


def _text(output: bytes) -> str:
    return " ".join(output.decode("utf-8", "replace").split())
