"""Formats of a profile by the suffix of the file. What makes them is imported when it is needed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from spillprof.cli.invocation import Invocation
from spillprof.cli.output import write_file
from spillprof.ir.errors import UsageError

if TYPE_CHECKING:
    from spillprof.ir.profile import Profile

Content = str | Iterable[bytes]
_Render = Callable[["Profile"], Content]

TABLES = ("operators", "buffers", "spills", "steps", "events", "suggestions", "sizes", "results")
"""Tables that ``.NAME.csv`` asks for; ``.csv`` alone is the first."""

ANNOTATED_SUFFIX = ".spill.onnx"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A file to write, and how its contents are made of a profile."""

    path: Path
    render: _Render


def destination(path: str, invocation: Invocation, *, events: bool | None) -> Destination:
    """The file at ``path``, format by its suffix. ``UsageError`` if it cannot be written there.

    ``events``: with times in the JSON; None: where the profile has them.
    """
    name = Path(path).name.lower()
    formats = _formats(path, events=events)
    suffix = max((s for s in formats if name.endswith(s) and name not in formats), key=len, default=None)
    if suffix is None:
        raise UsageError(
            f"'{path}' has no suffix that names a format", hint=f"end it with {', '.join(formats)}; or '-' for JSON"
        )
    return Destination(path=invocation.files.writes(path), render=formats[suffix])


def write_all(destinations: Sequence[Destination], profile: "Profile", invocation: Invocation) -> None:
    """Make all files, then write them: a failure leaves no half of a set."""
    contents = [each.render(profile) for each in destinations]
    for each, content in zip(destinations, contents, strict=True):
        write_file(each.path, content, invocation)


def has_events(profile: "Profile") -> bool:
    """Whether a result was saved with the times of its steps and transfers."""
    return any(result.times is not None for result in profile.results)


def _formats(path: str, *, events: bool | None) -> Mapping[str, _Render]:
    return {
        ".html": _made_by("profile.html", "render"),
        ".json": lambda profile: _json(profile, events=has_events(profile) if events is None else events),
        ".md": _made_by("profile.markdown", "render"),
        ".csv": _table(TABLES[0]),
        **{f".{name}.csv": _table(name) for name in TABLES},
        ".minimalloc.csv": _made_by("packing", "render_residencies"),
        ".trace.json": _made_by("exports.chrome_trace", "render"),
        ".speedscope.json": _made_by("exports.speedscope", "render"),
        ".netron.json": _made_by("exports.netron", "render"),
        ANNOTATED_SUFFIX: lambda profile: _annotated(profile, path),
    }


def _made_by(module: str, function: str) -> _Render:
    def render(profile: "Profile") -> Content:
        made: Content = getattr(import_module(f"spillprof.report.{module}"), function)(profile)
        return made

    return render


def _table(name: str) -> _Render:
    def render(profile: "Profile") -> str:
        from spillprof.report.exports import tables

        return tables.render_csv(getattr(tables, f"{name}_table")(profile))

    return render


def _annotated(profile: "Profile", path: str) -> Iterable[bytes]:
    """The model with notes; its weights stay where they are, so those in other files need it beside them."""
    from spillprof.frontends.onnx.annotate import annotate
    from spillprof.report.exports.node_notes import as_pairs, model_notes, operator_notes

    model = profile.model.path
    if model == "-":
        raise UsageError(f"'{path}' is a copy of the model, which came through a pipe", hint="give MODEL as a file")
    annotated = annotate(
        model,
        sha256=profile.model.sha256,
        of_model=as_pairs(model_notes(profile)),
        of_nodes={name: as_pairs(notes) for name, notes in operator_notes(profile).items()},
    )
    if annotated.has_external_weights and Path(path).resolve().parent != Path(model).resolve().parent:
        raise UsageError(
            f"'{path}' would not find its weights, which lie in files beside the model",
            where=(model,),
            hint="write it into the folder of the model",
        )
    return annotated.contents()


def _json(profile: "Profile", *, events: bool) -> str:
    from spillprof.report.json_text import render

    return render(profile, events=events)
