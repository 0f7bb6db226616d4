"""Files that a command writes: the format by the suffix, everything rendered before anything is written."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from spillprof.cli.invocation import Invocation
from spillprof.cli.output import write_file
from spillprof.report.exports.registry import Export, Subject, export_for, exports_of, named_export, suffixes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A file to write, and its format."""

    path: Path
    export: Export


def destination(subject: Subject, path: str, invocation: Invocation) -> Destination:
    """The file at ``path``. ``UsageError`` if it cannot be written there, or in no such format."""
    export = export_for(subject, path)
    export.require()
    return Destination(path=invocation.files.writes(path), export=export)


def destinations(subject: Subject, paths: Sequence[str], invocation: Invocation) -> list[Destination]:
    """The files among ``paths``: all but ``-``, which is stdout."""
    return [destination(subject, path, invocation) for path in paths if path != "-"]


def write_all(targets: Sequence[Destination], value: Any, invocation: Invocation, **values: Any) -> None:
    """Render all files, then write them: a failure leaves no half of a set. ``values``: what exports may take."""
    contents = [each.export.render(value, path=str(each.path), **values) for each in targets]
    sys.stdout.flush()
    for each, content in zip(targets, contents, strict=True):
        write_file(each.path, content, invocation)


def as_json(subject: Subject, value: Any, **values: Any) -> str:
    """What ``-o -`` and ``--json`` print."""
    return str(named_export(subject, "json").render(value, **values))


def suffix_list(subject: Subject) -> str:
    """``.html, .json or .xml (JUnit)``: for help texts."""
    files = [export for export in exports_of(subject) if export.suffix]
    *most, last = [f"{export.suffix} ({export.tool})" if export.tool else export.suffix for export in files]
    return f"{', '.join(most)} or {last}" if most else last


def completing_suffixes(subject: Subject) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion of a file's suffix, once its name is typed."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        folder, slash, name = incomplete.rpartition("/")
        stem, dot, typed = name.partition(".")
        if not stem:
            return []
        return [f"{folder}{slash}{stem}{s}" for s in suffixes_of(subject) if s.startswith(dot + typed)]

    return complete
