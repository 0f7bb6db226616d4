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


def _table(name: str, help: str, *, suffix: str | None = None) -> Export:
    return Export(
        subject=Subject.PROFILE,
        suffix=f".{name}.csv" if suffix is None else suffix,
        name=name if suffix is None else "csv",
        help=help,
        renderer="spillprof.report.exports.tables:render",
        settings=(("table", name),),
    )


EXPORTS: tuple[Export, ...] = (
    Export(subject=Subject.PROFILE, suffix=".html", name="html", help="the report, one file that loads nothing",
           renderer="spillprof.report.profile.html:render"),
    Export(subject=Subject.PROFILE, suffix=".json", name="json", help="the profile, which `spillprof report` reads",
           renderer="spillprof.report.json_text:profile_json", takes=("events",)),
    Export(subject=Subject.PROFILE, suffix=".md", name="markdown", help="a short summary for comments",
           renderer="spillprof.report.profile.markdown:render"),
    _table("operators", "the table of operators", suffix=".csv"),
    _table("operators", "operators with a figure, dearest first"),
    _table("buffers", "buffers that spill or are streamed, dearest first"),
    _table("spills", "spills of buffers that come back"),
    _table("steps", "when each step ran, and how full the memory was"),
    _table("events", "transfers, moves and clean evictions"),
    _table("suggestions", "changes that were simulated, best first"),
    _table("sizes", "other sizes of memory"),
    _table("results", "the totals of each strategy"),
    Export(subject=Subject.PROFILE, suffix=".minimalloc.csv", name="minimalloc",
           help="the placement problem of the plan, for other allocators",
           renderer="spillprof.report.packing:render_residencies"),
    Export(subject=Subject.PROFILE, suffix=".trace.json", name="trace", help="the timeline, for Perfetto",
           renderer="spillprof.report.exports.chrome_trace:render", tool="Perfetto"),
    Export(subject=Subject.PROFILE, suffix=".speedscope.json", name="speedscope",
           help="time by operator and stall, for speedscope", renderer="spillprof.report.exports.speedscope:render"),
    Export(subject=Subject.PROFILE, suffix=".netron.json", name="netron", help="a side-car for netron",
           renderer="spillprof.report.exports.netron:render"),
    Export(subject=Subject.PROFILE, suffix=".spill.onnx", name="onnx", help="the model with notes, for netron",
           renderer="spillprof.report.exports.netron:annotated", tool="netron", takes=("path",)),
    Export(subject=Subject.DIFF, suffix=".html", name="html", help="the page of a comparison",
           renderer="spillprof.report.diff.html:render"),
    Export(subject=Subject.DIFF, suffix=".json", name="json", help="the comparison as values",
           renderer="spillprof.report.json_text:diff_json"),
    Export(subject=Subject.DIFF, suffix=".md", name="markdown", help="a short comparison for comments",
           renderer="spillprof.report.diff.text:render_markdown"),
    Export(subject=Subject.SWEEP, suffix=".csv", name="csv", help="a row for each point",
           renderer="spillprof.report.sweep.data:render_csv"),
    Export(subject=Subject.SWEEP, suffix=".json", name="json", help="points and findings; --resume reads it",
           renderer="spillprof.report.sweep.data:render_json"),
    Export(subject=Subject.SWEEP, suffix=".parquet", name="parquet", help="the rows of the CSV, typed",
           renderer="spillprof.report.sweep.data:render_parquet", check="spillprof.report.sweep.data:require_parquet"),
    Export(subject=Subject.SWEEP, suffix=".html", name="html", help="curves over the size of the memory",
           renderer="spillprof.report.sweep.html:render"),
    Export(subject=Subject.GATE, suffix=".txt", name="text", help="one line for each check, and what moved",
           renderer="spillprof.report.gate.text:render"),
    Export(subject=Subject.GATE, suffix=".json", name="json", help="the checks as values",
           renderer="spillprof.report.gate.machine:render_json"),
    Export(subject=Subject.GATE, suffix=".md", name="markdown", help="a comment that a job can update in place",
           renderer="spillprof.report.gate.text:render_markdown"),
    Export(subject=Subject.GATE, suffix=".xml", name="junit", help="JUnit, a test case for each model",
           renderer="spillprof.report.gate.machine:render_junit", tool="JUnit"),
    Export(subject=Subject.GATE, suffix="", name="github", help="the text and annotations of a GitHub job",
           renderer="spillprof.report.gate.text:render_github"),
    Export(subject=Subject.GATE, suffix=".sarif", name="sarif", help="SARIF 2.1.0, for code scanning",
           renderer="spillprof.report.gate.machine:render_sarif"),
    Export(subject=Subject.HISTORY, suffix=".html", name="html", help="the trend of each figure",
           renderer="spillprof.report.gate.history:html", takes=("metrics",)),
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
