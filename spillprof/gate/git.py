"""The two questions that are put to git: what a file says at a commit, and which commit this is."""

import subprocess
from pathlib import Path

from spillprof.errors import UsageError

_TIMEOUT_S = 60


def show(ref: str, path: Path) -> str | None:
    """Text of the file at the commit; None where that commit has no such file. ``UsageError`` without the commit."""
    folder = path.parent
    if not ref or ref.startswith("-") or ":" in ref:
        raise UsageError(f"'{ref}' names no commit", where=("--against",), hint="write it like --against origin/main")
    found = _git(folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if found.returncode:
        raise UsageError(
            f"git knows no commit '{ref}'",
            where=(_text(found.stderr) or f"in {folder.absolute()}",),
            hint="fetch it first, like 'git fetch origin main'; in CI, check out with the whole history",
        )
    commit = _text(found.stdout)
    listed = _git(folder, "ls-tree", "--name-only", commit, "--", f"./{path.name}")
    if listed.returncode or not listed.stdout:
        return None
    shown = _git(folder, "show", f"{commit}:./{path.name}")
    if shown.returncode:
        raise UsageError(f"cannot read the baseline at '{ref}'", where=(_text(shown.stderr),))
    try:
        return shown.stdout.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("the baseline is not UTF-8 text", where=(f"{ref}:{path.name}",)) from None


def head_commit(folder: Path) -> str:
    """Hash of the commit that is checked out. ``UsageError`` where there is none."""
    found = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if found.returncode:
        raise UsageError("no commit is checked out here", where=(str(folder.absolute()),), hint="name one: --commit")
    return _text(found.stdout)


def _git(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
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
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError("git does not answer", where=(str(error),)) from None


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip()
