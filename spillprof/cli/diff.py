"""``spillprof diff``: compare two runs."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import completing, examples, option
from spillprof.cli.formats import as_json, completing_suffixes, destinations, suffix_list, write_all
from spillprof.cli.inputs import load_graph, read_json, read_saved_profile, read_simulation, read_target
from spillprof.cli.invocation import Invocation, reproduce
from spillprof.cli.options import (
    binding_options,
    config_options,
    simulation_options,
    strategy_names,
    target_options,
    verbosity_options,
)
from spillprof.cli.output import print_result
from spillprof.cli.progress import stages
from spillprof.ir.errors import CapacityError, PlanError, SpillprofError, UsageError
from spillprof.ir.side_files.kinds import PLAN
from spillprof.ir.units import format_size_exact
from spillprof.planning.strategies import IDEAL, STRATEGIES
from spillprof.report.exports.registry import Subject
from spillprof.report.text import count_of, label

if TYPE_CHECKING:
    from spillprof.engine.engine import Engine
    from spillprof.explain.options import AnalyzeOptions
    from spillprof.ir.graph import Graph
    from spillprof.ir.profile import Profile
    from spillprof.ir.target import Target
    from spillprof.studies.diff import ProfileDiff

_MAX_VIOLATIONS = 3
_DEFAULT_STRATEGIES = ("interval",)
_OF_BOTH = (
    "before_options", "after_options", "outputs", "as_json", "top", "config", "quiet", "verbose", "color"
)  # fmt: skip
"""Options that do not belong to one side."""


@click.command(
    "diff",
    epilog=examples(
        'spillprof diff sample_models/unet.onnx sample_models/unet.onnx --sram 12MB --after "--sram 10MB"',
        "spillprof analyze sample_models/unet.onnx --sram 12MB --strategy lru -o old.json",
        'spillprof diff old.json sample_models/unet.onnx --after "--sram 12MB --order memory" -o unet.diff.html',
    ),
)
@click.argument("before")
@click.argument("after")
@option("--before", "before_options", metavar='"OPTIONS"', help="More options for the run before, in quotes.")
@option("--after", "after_options", metavar='"OPTIONS"', help="More options for the run after, in quotes.")
@binding_options
@target_options
@option(
    "--strategy",
    metavar="A,B",
    shell_complete=completing(lambda: STRATEGIES),
    help="Strategies to compare. Default: those of a saved profile, else interval.",
)
@option(
    "--plan", metavar="FILE", help="A plan (JSON) to cost in place of strategies; for one side in --before, --after."
)
@simulation_options
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    shell_complete=completing_suffixes(Subject.DIFF),
    help=f"Write the comparison: {suffix_list(Subject.DIFF)}; '-' for JSON on stdout. Repeatable.",
)
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the page.")
@option("--top", default=10, show_default=True, type=click.IntRange(min=0), metavar="N",
        help="Operators and buffers to list.")  # fmt: skip
@config_options()
@verbosity_options
@click.pass_context
def command(ctx: click.Context, /, before: str, after: str, **values: Any) -> None:
    """Compare the run BEFORE with the run AFTER: figures, operators and buffers that moved and why, settings.

    Each is a model (an ONNX file, '-' for stdin), simulated under the options given, or a profile that was saved with
    'analyze -o NAME.json'. Options apply to both; --before and --after give options to one of them.
    Operators are matched by name, then by their place in the graph. The exit code is 0 whatever the comparison finds;
    use 'spillprof gate' to fail a build.
    """
    invocation = ctx.ensure_object(Invocation)
    to_stdout = values["as_json"] or "-" in values["outputs"]
    targets = destinations(Subject.DIFF, values["outputs"], invocation)
    if before == "-" and after == "-":
        raise UsageError("both runs cannot be read from stdin", hint="save one of the models to a file")
    old, new = _read_sides(
        command,
        invocation,
        _Side(which="before", path=before, extra=values["before_options"] or ""),
        _Side(which="after", path=after, extra=values["after_options"] or ""),
    )

    from spillprof.studies.diff import compare

    comparison = compare(old, new, command=reproduce(invocation, command, values["config"]))
    print_result(as_json(Subject.DIFF, comparison) if to_stdout else _terminal(comparison, values["top"]))
    write_all(targets, comparison, invocation)
    if not any(result.feasible for profile in (old, new) for result in profile.results):
        raise CapacityError(
            "neither run can be planned in its memory",
            where=[f"{result.strategy}: {result.reason}" for result in new.results],
            hint=f"the smallest SRAM without tiling is {format_size_exact(new.model.min_sram_bytes)}",
        )


def _terminal(comparison: "ProfileDiff", top: int) -> str:
    from spillprof.report.diff.text import render

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return render(comparison, top=top, width=width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of the two runs, as given on the command line."""

    which: str  # "before" or "after"
    path: str
    extra: str  # options of this side alone, as typed

    @property
    def is_saved(self) -> bool:
        """Whether the file is JSON: a saved profile, not a model."""
        if self.path == "-":
            return False
        try:
            if not os.path.isfile(self.path):  # a pipe would wait for ever
                raise OSError
            with open(self.path, "rb") as file:
                return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        except OSError:
            return Path(self.path).suffix.lower() == ".json"


def _read_sides(
    command: click.Command, invocation: Invocation, before: _Side, after: _Side
) -> "tuple[Profile, Profile]":
    """The profiles of both sides, read or simulated. Errors name their side."""
    if before.is_saved and after.is_saved:
        _check_unused(command)
    saved = {side.which: _named(side, _saved) for side in (before, after) if side.is_saved}
    other = next(iter(saved.values()), None)  # its strategies apply to the other side
    strategies = tuple(r.strategy for r in other.results if r.strategy in STRATEGIES) if other else ()

    def simulated(side: _Side) -> "Profile":
        return _simulated(command, invocation, side, strategies or _DEFAULT_STRATEGIES)

    return (
        saved.get("before") or _named(before, simulated),
        saved.get("after") or _named(after, simulated),
    )


def _named(side: _Side, read: "Callable[[_Side], Profile]") -> "Profile":
    try:
        return read(side)
    except SpillprofError as error:
        error.where = (*error.where, f"in the run {side.which}: {side.path} {side.extra}".rstrip())
        raise


def _saved(side: _Side) -> "Profile":
    if side.extra:
        raise UsageError(
            f"--{side.which} changes a run that is over",
            hint="a saved profile keeps its options: give the model instead, or drop the option",
        )
    profile = read_saved_profile(side.path)
    wanted = click.get_current_context().params["strategy"]
    if wanted is None:
        return profile
    results = tuple(result for result in profile.results if result.strategy in strategy_names(wanted))
    if not results:
        names = ", ".join(label(result.strategy, 20) for result in profile.results)
        raise UsageError(f"the profile has no strategy of '{wanted}'", hint=f"there are {names}")
    return replace(profile, results=results)


def _check_unused(command: click.Command) -> None:
    """``UsageError`` if an option of the simulation is given although both runs are saved."""
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


def _simulated(command: click.Command, invocation: Invocation, side: _Side, strategies: Sequence[str]) -> "Profile":
    from spillprof.explain.analyze import analyze

    with _context(
        command, invocation, side
    ) as ctx:  # of this side, so that its options override the configuration file
        values = ctx.params
        asked = strategies if values["strategy"] is None else strategy_names(values["strategy"])
        options = read_simulation(values, asked)
        target, graph = read_target(values), load_graph(side.path, values, invocation)
        if values["plan"] is not None:
            return _of_plan(graph, target, options, values["plan"], invocation.engine)
        with stages(sys.stderr, shown=not invocation.quiet) as stage:
            return analyze(
                graph,
                target,
                options,
                engine=invocation.engine,
                stage=lambda done, total, what: stage(done, total, f"{side.which}: {what}"),
            )


def _of_plan(graph: "Graph", target: "Target", options: "AnalyzeOptions", path: str, engine: "Engine") -> "Profile":
    """The profile of a model with the result of a plan, whoever made it, in place of strategies."""
    from spillprof.explain.analyze import analyze
    from spillprof.explain.options import run_of
    from spillprof.explain.plan_files import check_plan

    check = check_plan(engine, run_of(graph, target, options), read_json(path, PLAN))
    if check.result is None:
        first = check.violations[:_MAX_VIOLATIONS]
        raise PlanError(
            f"the plan breaks {count_of(len(check.violations), 'rule')}",
            where=(path, *(v.message if v.step is None else f"step {v.step}: {v.message}" for v in first)),
            hint="'spillprof verify' lists all of them; give the options with which the plan was made",
        )
    profile = analyze(graph, target, replace(options, strategies=(IDEAL,)), engine=engine)
    config = {**profile.config, "strategies": [check.result.strategy]}
    return replace(profile, results=(check.result,), config=config)


def _context(command: click.Command, invocation: Invocation, side: _Side) -> click.Context:
    """The context of the command line as typed, followed by the side's own options: the last of two values wins."""
    try:
        extra = shlex.split(side.extra)
    except ValueError as error:
        raise UsageError(f"--{side.which} has an open quote", where=(str(error).lower(),)) from None
    own = [p for p in command.params if isinstance(p, click.Option) and p.name not in _OF_BOTH]
    try:
        click.Command("diff", params=list(own)).make_context(f"--{side.which}", list(extra), obj=invocation)
    except click.UsageError as error:
        raise UsageError(
            f"--{side.which}: {_sentence(error.format_message())}",
            hint=f'write it like --{side.which} "--sram 12MB --order memory"',
        ) from None
    typed = invocation.arguments[invocation.arguments.index("diff") + 1 :]
    return command.make_context("diff", [*typed, *extra], obj=invocation)


def _sentence(message: str) -> str:
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:]
