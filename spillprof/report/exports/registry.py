"""Every format that commands write: one row registers its suffix, name, help and renderer.

``-o``, ``--format``, their help and completion, the hint of an error, and the list in docs/exports.md come from here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from spillprof.ir.errors import UsageError

Content = str | bytes | Iterable[bytes]


class Subject(StrEnum):
    """What an export renders: the result of a command."""

    PROFILE = "profile"  # of analyze and report
    DIFF = "diff"
    SWEEP = "sweep"
    GATE = "gate"
    HISTORY = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A format of one subject. ``renderer`` and ``check`` are ``module:function``, imported when they are called."""

    subject: Subject
    suffix: str
    """Of the file, with its dot; empty for a format that only ``--format`` names."""
    name: str
    """Of ``--format``."""
    help: str
    """One line for the docs; it starts with what the file is."""
    renderer: str
    """Called with the subject's value, the ``takes`` and ``settings`` as keywords; returns text, bytes or pieces."""
    tool: str = ""
    """What opens it, where the suffix does not say."""
    takes: tuple[str, ...] = ()
    """Values of the command that the renderer wants: ``events``, ``path``, ``metrics``."""
    settings: tuple[tuple[str, str], ...] = ()
    """Further keywords, for rows that share a renderer."""
    check: str = ""
    """Called with nothing before any work; raises ``UsageError`` where the format cannot be written."""

    def render(self, value: Any, **values: Any) -> Content:
        """The content of the file."""
        keywords = {key: values[key] for key in self.takes} | dict(self.settings)
        content: Content = _function(self.renderer)(value, **keywords)
        return content

    def require(self) -> None:
        """``UsageError`` where the format cannot be written here, as its library is missing."""
        if self.check:
            _function(self.check)()


def _export(
    subject: Subject, suffix: str, name: str, help: str, renderer: str, *, check: str = "", **more: Any
) -> Export:
    """A row of EXPORTS; ``renderer`` and ``check`` are named below ``spillprof.report``."""
    where, tested = f"spillprof.report.{renderer}", f"spillprof.report.{check}" if check else ""
    return Export(subject=subject, suffix=suffix, name=name, help=help, renderer=where, check=tested, **more)


def _table(name: str, help: str, *, suffix: str = "") -> Export:
    settings, made = (("table", name),), "exports.tables:render"
    return _export(Subject.PROFILE, suffix or f".{name}.csv", "csv" if suffix else name, help, made, settings=settings)


EXPORTS: tuple[Export, ...] = (
    _export(Subject.PROFILE, ".html", "html", "the report, one file that loads nothing", "profile.html:render"),
    _export(Subject.PROFILE, ".json", "json", "the profile, which `spillprof report` reads",
            "json_text:profile_json", takes=("events",)),
    _export(Subject.PROFILE, ".md", "markdown", "a short summary for comments", "profile.markdown:render"),
    _table("operators", "the table of operators", suffix=".csv"),
    _table("operators", "operators with a figure, dearest first"),
    _table("buffers", "buffers that spill or are streamed, dearest first"),
    _table("spills", "spills of buffers that come back"),
    _table("steps", "when each step ran, and how full the memory was"),
    _table("events", "transfers, moves and clean evictions"),
    _table("suggestions", "changes that were simulated, best first"),
    _table("sizes", "other sizes of memory"),
    _table("results", "the totals of each strategy"),
    _export(Subject.PROFILE, ".minimalloc.csv", "minimalloc", "the placement problem of the plan, for other allocators",
            "packing:render_residencies"),
    _export(Subject.PROFILE, ".trace.json", "trace", "the timeline, for Perfetto",
            "exports.chrome_trace:render", tool="Perfetto"),
    _export(Subject.PROFILE, ".speedscope.json", "speedscope", "time by operator and stall, for speedscope",
            "exports.speedscope:render"),
    _export(Subject.PROFILE, ".netron.json", "netron", "a side-car for netron", "exports.netron:render"),
    _export(Subject.PROFILE, ".spill.onnx", "onnx", "the model with notes, for netron",
            "exports.netron:annotated", tool="netron", takes=("path",)),
    _export(Subject.DIFF, ".html", "html", "the page of a comparison", "diff.html:render"),
    _export(Subject.DIFF, ".json", "json", "the comparison as values", "json_text:diff_json"),
    _export(Subject.DIFF, ".md", "markdown", "a short comparison for comments", "diff.text:render_markdown"),
    _export(Subject.SWEEP, ".csv", "csv", "a row for each point", "sweep.data:render_csv"),
    _export(Subject.SWEEP, ".json", "json", "points and findings; --resume reads it", "sweep.data:render_json"),
    _export(Subject.SWEEP, ".parquet", "parquet", "the rows of the CSV, typed",
            "sweep.data:render_parquet", check="sweep.data:require_parquet"),
    _export(Subject.SWEEP, ".html", "html", "curves over the size of the memory", "sweep.html:render"),
    _export(Subject.GATE, ".txt", "text", "one line for each check, and what moved", "gate.text:render"),
    _export(Subject.GATE, ".json", "json", "the checks as values", "gate.machine:render_json"),
    _export(Subject.GATE, ".md", "markdown", "a comment that a job can update in place", "gate.text:render_markdown"),
    _export(Subject.GATE, ".xml", "junit", "JUnit, a test case for each model",
            "gate.machine:render_junit", tool="JUnit"),
    _export(Subject.GATE, "", "github", "the text and annotations of a GitHub job", "gate.text:render_github"),
    _export(Subject.GATE, ".sarif", "sarif", "SARIF 2.1.0, for code scanning", "gate.machine:render_sarif"),
    _export(Subject.HISTORY, ".html", "html", "the trend of each figure", "gate.history:html", takes=("metrics",)),
)  # fmt: skip


def exports_of(subject: Subject) -> tuple[Export, ...]:
    """The formats of a subject, in the order of help texts."""
    return tuple(export for export in EXPORTS if export.subject is subject)


def suffixes_of(subject: Subject) -> tuple[str, ...]:
    """The suffixes that ``-o`` takes."""
    return tuple(export.suffix for export in exports_of(subject) if export.suffix)


def named_export(subject: Subject, name: str) -> Export:
    """The format that ``--format`` calls ``name``. ``KeyError`` if there is none."""
    return {export.name: export for export in exports_of(subject)}[name]


def export_for(subject: Subject, path: str) -> Export:
    """The format of the longest suffix that ``path`` ends in. ``UsageError`` if there is none."""
    name, suffixes = Path(path).name.lower(), suffixes_of(subject)
    found = [e for e in exports_of(subject) if e.suffix and name.endswith(e.suffix)] if name not in suffixes else []
    if not found:
        stdout = "; or '-' for JSON" if subject in (Subject.PROFILE, Subject.DIFF, Subject.SWEEP) else ""
        raise UsageError(
            f"'{path}' has no suffix that names a format", hint=f"end it with {', '.join(suffixes)}{stdout}"
        )
    return max(found, key=lambda export: len(export.suffix))


def markdown_list() -> list[str]:
    """The list in docs/exports.md, made by docs/make_exports.py."""
    from spillprof.report.table import Table

    rows = [(str(e.subject), f"`{e.suffix}`" if e.suffix else f"`--format {e.name}`", e.help) for e in EXPORTS]
    return Table(heads=("of", "suffix", "what it is"), cells=rows, align="lll").markdown()


def _function(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
