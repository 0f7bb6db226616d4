"""Reads descriptions of machines, TOML and formats of other tools, into Targets."""

import re
from pathlib import Path

from spillprof.ir.target import Target, load_target

__all__ = ["TARGET_FILES", "open_target", "resolve_path"]

TARGET_FILES = (".toml", ".ini", ".mpool")
"""File suffixes of target descriptions."""

_FILE = re.compile(r"(?P<path>.+\.(?P<kind>toml|ini|mpool))(?::(?P<selection>.*))?", re.IGNORECASE | re.DOTALL)


def open_target(name: str) -> Target:
    """The target of a name: a built-in one, a TOML file, ``vela.ini[:SYSTEM[:MODE[:ACCELERATOR]]]``, ``FILE.mpool``.

    ``UsageError`` if there is none, or if the file is malformed.
    """
    match = _FILE.fullmatch(name)
    kind = match["kind"].lower() if match else ""
    if match is None or kind == "toml":
        return load_target(name)
    path, selection = Path(match["path"]), tuple(match["selection"].split(":")) if match["selection"] else ()
    if kind == "ini":
        from spillprof.frontends.targets.vela_ini import read_vela_ini

        return read_vela_ini(path, selection)
    from spillprof.frontends.targets.mpool import read_mpool

    return read_mpool(path, selection)


def resolve_path(name: str, folder: Path) -> str:
    """The name, its file path resolved against ``folder``; names of built-in targets do not change."""
    return str(folder / name) if _FILE.fullmatch(name) else name
