"""The two sides of ``spillprof diff``: each a saved profile, or a model that is simulated under its own options."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spillprof.cli.model_file import read_model
from spillprof.cli.options import read_lowering, read_planning, read_target, strategy_names
from spillprof.cli.session import Session
from spillprof.errors import ProfileError, SpillprofError, UsageError

if TYPE_CHECKING:
    from spillprof.model.profile import Profile

DEFAULT_STRATEGIES = ("interval",)
_OF_BOTH = (
    "before_options", "after_options", "outputs", "as_json", "top", "config", "quiet", "verbose", "color"
)  # fmt: skip
"""Options that are no matter of one side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs as it was asked for."""

    which: str  # "before" or "after"
    path: str
    extra: str  # options of this side alone, as one would type them

    @property
    def is_saved(self) -> bool:
        """Whether the file is JSON, and so no model."""
        if self.path == "-":
            return False
        try:
            with open(self.path, "rb") as file:
                return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        except OSError:
            return Path(self.path).suffix.lower() == ".json"


def read_side(command: click.Command, session: Session, side: Side, *, other: Side) -> "Profile":
    """The profile of one side, read or simulated. Errors say which side it is."""
    try:
        return _saved(side) if side.is_saved else _simulated(command, session, side, other)
    except SpillprofError as error:
        error.where = (*error.where, f"in the run {side.which}: {side.path} {side.extra}".rstrip())
        raise


def _saved(side: Side) -> "Profile":
    if side.extra:
        raise UsageError(
            f"--{side.which} changes a run that is over",
            hint="a saved profile keeps its options: give the model instead, or drop the option",
        )
    return _read_profile(side.path)


def _read_profile(path: str) -> "Profile":
    from spillprof.model.profile_json import profile_from_json

    try:
        data = json.loads(Path(path).read_text("utf-8-sig"))
    except OSError as error:
        raise ProfileError("cannot read the profile", where=(f"{path}: {error.strerror or error}",)) from None
    except (ValueError, RecursionError) as error:
        raise ProfileError("the profile is no JSON", where=(f"{path}: {error}",), hint="was it cut off?") from None
    return profile_from_json(data)


def _simulated(command: click.Command, session: Session, side: Side, other: Side) -> "Profile":
    from spillprof import pipeline

    with _context(command, session, side) as ctx:  # the side's own: what is given here outranks files of settings
        values = ctx.params
        if values["strategy"] is not None:
            strategies = strategy_names(values["strategy"])
        elif other.is_saved:
            strategies = tuple(result.strategy for result in _read_profile(other.path).results)
        else:
            strategies = DEFAULT_STRATEGIES
        options = pipeline.AnalyzeOptions(
            strategies=strategies, lowering=read_lowering(values), planning=read_planning(values)
        )
        target = read_target(values)
        return pipeline.analyze(read_model(side.path, values, session), target, options)


def _context(command: click.Command, session: Session, side: Side) -> click.Context:
    """The command line as typed, with the side's own options behind: of an option given twice, the last counts."""
    try:
        extra = shlex.split(side.extra)
    except ValueError as error:
        raise UsageError(f"--{side.which} has an open quote", where=(str(error).lower(),)) from None
    own = [p for p in command.params if isinstance(p, click.Option) and p.name not in _OF_BOTH]
    try:
        click.Command("diff", params=list(own)).make_context(f"--{side.which}", list(extra), obj=session)
    except click.UsageError as error:
        raise UsageError(
            f"--{side.which}: {_sentence(error.format_message())}",
            hint=f'write it like --{side.which} "--sram 12MB --order memory"',
        ) from None
    typed = session.arguments[session.arguments.index("diff") + 1 :]
    return command.make_context("diff", [*typed, *extra], obj=session)


def _sentence(message: str) -> str:
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:]
