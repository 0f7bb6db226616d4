"""The two sides of ``spillprof diff``: each a saved profile, or a model that is simulated under its own options."""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spillprof.cli.json_file import read_json
from spillprof.cli.model_file import read_model
from spillprof.cli.option_texts import strategy_names
from spillprof.cli.option_values import read_simulation, read_target
from spillprof.cli.profile_file import read_profile
from spillprof.cli.progress import stages
from spillprof.cli.session import Session
from spillprof.ir.errors import PlanError, SpillprofError, UsageError
from spillprof.ir.side_files.kinds import PLAN
from spillprof.planning.options import STRATEGIES
from spillprof.report.text import count_of, label

if TYPE_CHECKING:
    from spillprof.explain.options import AnalyzeOptions
    from spillprof.ir.graph import Graph
    from spillprof.ir.profile import Profile
    from spillprof.ir.target import Target

MAX_VIOLATIONS = 3
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
            if not os.path.isfile(self.path):  # a pipe would wait for ever
                raise OSError
            with open(self.path, "rb") as file:
                return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        except OSError:
            return Path(self.path).suffix.lower() == ".json"


def read_sides(command: click.Command, session: Session, before: Side, after: Side) -> "tuple[Profile, Profile]":
    """The profiles of both sides, read or simulated. Errors say which side they are about."""
    if before.is_saved and after.is_saved:
        _check_unused(command)
    saved = {side.which: _named(side, _saved) for side in (before, after) if side.is_saved}
    lent = next(iter(saved.values()), None)  # a model is simulated under the strategies of the profile beside it
    strategies = tuple(r.strategy for r in lent.results if r.strategy in STRATEGIES) if lent else ()

    def simulated(side: Side) -> "Profile":
        return _simulated(command, session, side, strategies or DEFAULT_STRATEGIES)

    return (
        saved.get("before") or _named(before, simulated),
        saved.get("after") or _named(after, simulated),
    )


def _named(side: Side, read: "Callable[[Side], Profile]") -> "Profile":
    try:
        return read(side)
    except SpillprofError as error:
        error.where = (*error.where, f"in the run {side.which}: {side.path} {side.extra}".rstrip())
        raise


def _saved(side: Side) -> "Profile":
    if side.extra:
        raise UsageError(
            f"--{side.which} changes a run that is over",
            hint="a saved profile keeps its options: give the model instead, or drop the option",
        )
    profile = read_profile(side.path)
    wanted = click.get_current_context().params["strategy"]
    if wanted is None:
        return profile
    results = tuple(result for result in profile.results if result.strategy in strategy_names(wanted))
    if not results:
        names = ", ".join(label(result.strategy, 20) for result in profile.results)
        raise UsageError(f"the profile has no strategy of '{wanted}'", hint=f"there are {names}")
    return replace(profile, results=results)


def _check_unused(command: click.Command) -> None:
    """``UsageError`` for options of a simulation where nothing is simulated."""
    unused = [
        max(p.opts, key=len)
        for p in command.params
        if isinstance(p, click.Option) and p.name not in (*_OF_BOTH, "strategy") and p.name and _is_typed(p.name)
    ]
    if unused:
        raise UsageError(
            f"{unused[0]} changes nothing: both runs are saved",
            hint="give the model instead of one of the profiles, or drop the option",
        )


def _is_typed(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _simulated(command: click.Command, session: Session, side: Side, strategies: Sequence[str]) -> "Profile":
    from spillprof.explain.analyze import analyze

    with _context(command, session, side) as ctx:  # the side's own: what is given here outranks files of settings
        values = ctx.params
        asked = strategies if values["strategy"] is None else strategy_names(values["strategy"])
        options = read_simulation(values, asked)
        target, graph = read_target(values), read_model(side.path, values, session)
        if values["plan"] is not None:
            return _of_plan(graph, target, options, values["plan"])
        with stages(sys.stderr, shown=not session.quiet) as stage:
            return analyze(
                graph,
                target,
                options,
                stage=lambda done, total, what: stage(done, total, f"{side.which}: {what}"),
            )


def _of_plan(graph: "Graph", target: "Target", options: "AnalyzeOptions", path: str) -> "Profile":
    """The profile of a model with the result of a plan, whoever made it, in place of strategies."""
    from spillprof.engine.engine import Engine
    from spillprof.explain.analyze import analyze
    from spillprof.explain.options import run_of
    from spillprof.explain.plan_files import check_plan

    engine = Engine()
    check = check_plan(engine, run_of(graph, target, options), read_json(path, PLAN))
    if check.result is None:
        first = check.violations[:MAX_VIOLATIONS]
        raise PlanError(
            f"the plan breaks {count_of(len(check.violations), 'rule')}",
            where=(path, *(v.message if v.step is None else f"step {v.step}: {v.message}" for v in first)),
            hint="'spillprof verify' lists all of them; give the options with which the plan was made",
        )
    profile = analyze(graph, target, replace(options, strategies=("none",)), engine=engine)
    config = {**profile.config, "strategies": [check.result.strategy]}
    return replace(profile, results=(check.result,), config=config)


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
