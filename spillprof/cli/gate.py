"""``spillprof gate``: judge models on targets by budgets and a baseline, for CI."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.config_keys import BUDGETS, parse_budget, parse_metrics
from spillprof.cli.declaring import completing, examples, option, parsed, unknown_name
from spillprof.cli.formats import completing_suffixes, destination, suffix_list, write_all
from spillprof.cli.inputs import is_given, read_bindings, read_simulation, read_target
from spillprof.cli.invocation import Invocation
from spillprof.cli.options import binding_options, config_options, simulation_options, target_options, verbosity_options
from spillprof.cli.output import print_result, write_file
from spillprof.cli.progress import stages
from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Bindings
from spillprof.ir.metric import Metric
from spillprof.ir.units import parse_energy, parse_share, parse_size, parse_time
from spillprof.planning.strategies import IDEAL, STRATEGIES
from spillprof.report.exports.registry import Subject, exports_of, named_export
from spillprof.report.text import label

if TYPE_CHECKING:
    from spillprof.cli.config import Config, ModelEntry
    from spillprof.studies.gate import GateCase, GateReport, Rules

_BOUND_BY_NAME = ("dims", "shapes", "assume", "branches", "trips")
_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def _limit(parse: Callable[[str], Any]) -> Callable[..., Any]:
    return parsed(partial(parse_budget, parse))


@click.command(
    "gate",
    epilog=examples(
        "spillprof gate sample_models/unet.onnx --sram 12MB --max-spill 64MB --update",
        "spillprof gate sample_models/unet.onnx --sram 12MB -o gate.md -o gate.xml",
        "spillprof gate sample_models/unet.onnx --sram 12MB --record spill.sqlite --commit v1",
    ),
)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@binding_options
@target_options
@option("--strategy", default="interval", show_default=True, metavar="NAME",
        shell_complete=completing(lambda: STRATEGIES), help="The strategy that is judged.")  # fmt: skip
@option("--baseline", metavar="FILE", help="Default: spillprof-baseline.json beside the configuration.")
@option("--update", is_flag=True, help="Write the baseline: accept every figure as it is now.")
@option(
    "--ratchet",
    is_flag=True,
    help="Fail on improvements that the baseline lacks; --update then records only improvements.",
)
@option("--against", metavar="REF", help="Read the baseline from a git commit, e.g. origin/main.")
@option("--exit-zero", is_flag=True, help="Exit with 0 where the gate fails. Never replaces 2 or 3.")
@option("--metrics", default="spill-bytes,latency", show_default=True, metavar="A,B", callback=parsed(parse_metrics),
        shell_complete=completing(lambda: tuple(Metric)),
        help="Judged: spill-bytes, latency, peak, energy.")  # fmt: skip
@option("--max-increase", default="0%", show_default=True, metavar="SHARE", callback=parsed(parse_share),
        help="Relative growth over the baseline that is allowed.")  # fmt: skip
@option("--min-increase", default="0", show_default=True, metavar="SIZE", callback=_limit(parse_size),
        help="Absolute growth of spill bytes or peak that is allowed. A regression exceeds both.")  # fmt: skip
@option("--min-latency-increase", default="1us", show_default=True, metavar="TIME", callback=_limit(parse_time),
        help="The same for latency.")  # fmt: skip
@option("--min-energy-increase", default="1nJ", show_default=True, metavar="ENERGY", callback=_limit(parse_energy),
        help="The same for energy.")  # fmt: skip
@option("--max-spill", metavar="SIZE", callback=_limit(parse_size), help="Budget of spill bytes.")
@option("--max-latency", metavar="TIME", callback=_limit(parse_time), help="Budget of latency.")
@option("--max-peak", metavar="SIZE", callback=_limit(parse_size), help="Budget of live activations, as stored.")
@option("--max-energy", metavar="ENERGY", callback=_limit(parse_energy), help="Budget of energy.")
@simulation_options
@option("--format", "form", type=click.Choice([each.name for each in exports_of(Subject.GATE)]), default="text",
        show_default=True, help="What goes to stdout; github also writes the job summary.")  # fmt: skip
@option("-o", "--output", "outputs", multiple=True, metavar="FILE",
        shell_complete=completing_suffixes(Subject.GATE),
        help=f"Also write {suffix_list(Subject.GATE)}. Repeatable.")  # fmt: skip
@option("--record", metavar="FILE", help="Append the figures to a history; see 'spillprof history'.")
@option("--commit", metavar="ID", help="What --record calls this state. Default: the commit checked out.")
@config_options(lambda config: {**config.settings, **config.gate})
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, models: tuple[str, ...], **values: Any) -> int:
    """Judge each model on each target of the configuration, or each MODEL: budgets, then the committed baseline.

    The exit code is 0 if the gate passes, 1 if it fails, and 2 if any model could not be evaluated or its baseline is
    not comparable. Without a baseline everything is new, and passes.
    """
    from spillprof.studies import gate

    if values["update"] and values["against"]:
        raise UsageError("--update writes the baseline in the folder, --against reads another", hint="drop one of them")
    config: Config = values["config"]
    path = Path(values["baseline"] if is_given("baseline") else os.path.relpath(config.baseline))
    targets = [destination(Subject.GATE, name, invocation) for name in values["outputs"]]
    _name_updated(values, path, invocation)
    cases = _cases(models, config, path.parent, values)
    for case in cases:
        invocation.files.reads(case.path)
    commit = _commit(values, config) if values["record"] else ""
    baseline, shown = _baseline(path, values["against"])
    with stages(sys.stderr, shown=not invocation.quiet) as stage:
        report = gate.run_gate(
            cases,
            baseline,
            _rules(values),
            shown_baseline=shown,
            engine=invocation.engine,
            policy=gate.Policy.RATCHET if values["ratchet"] else gate.Policy.SUGGEST,
            watched=None if models else [case.key for case in cases],
            stage=lambda done, total, key: stage(done, total, label(key)),
        )
    if values["update"]:
        report = _updated(report, baseline, path, invocation)
    elif not baseline:
        invocation.note(f"there is no baseline in {shown}: 'spillprof gate --update' makes one")
    _print(report, values["form"])
    write_all(targets, report, invocation)
    if values["record"]:
        _record(report, values["record"], commit, invocation)
    return 0 if report.exit_code == 1 and values["exit_zero"] else report.exit_code


def _cases(models: Sequence[str], config: "Config", root: Path, values: Mapping[str, Any]) -> "list[GateCase]":
    """Every model to judge, on each of its targets: the models named, else those of the configuration."""
    entries = [_entry(model, config, root) for model in models] if models else list(config.models)
    if not entries:
        raise UsageError(
            "there is no model to judge",
            where=() if config.path is None else (str(config.path),),
            hint='name one, or list them: [[tool.spillprof.models]] with path = "model.onnx" in pyproject.toml',
        )
    cases = [case for entry in entries for case in _cases_of(entry, config, values)]
    keys = [case.key for case in cases]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UsageError(f"'{twice}' is to be judged twice", hint="name it once, or give one of them a name")
    return cases


def _entry(model: str, config: "Config", root: Path) -> "ModelEntry":
    """The configuration's entry of that name or path, else a new entry for the file."""
    from spillprof.cli.config import ModelEntry

    real = os.path.realpath(model)
    for entry in config.models:
        if entry.name == model or os.path.realpath(config.folder / entry.path) == real:
            return entry
    path = os.path.abspath(model)
    try:
        name = os.path.relpath(real, os.path.realpath(root))
    except ValueError:  # another drive
        name = os.path.basename(model)
    return ModelEntry(path=path, name=Path(name).as_posix(), line=0)


def _cases_of(entry: "ModelEntry", config: "Config", values: Mapping[str, Any]) -> "list[GateCase]":
    from spillprof.studies.gate import GateCase
    from spillprof.studies.gate.values import Location

    strategy = values["strategy"]
    if strategy not in (*STRATEGIES, IDEAL):
        if "," in strategy:
            raise UsageError("a gate judges one strategy", hint='set strategy = "interval" under [tool.spillprof.gate]')
        raise unknown_name("strategy", strategy, (*STRATEGIES, IDEAL))
    given, mine = read_bindings(values), entry.bindings
    bindings = Bindings(
        batch=mine.batch if given.batch is None else given.batch,
        **{name: {**getattr(mine, name), **getattr(given, name)} for name in _BOUND_BY_NAME},
    )
    limits = {name: values[key.replace("-", "_")] for key, (name, _) in BUDGETS.items()}
    names = entry.targets if entry.targets and not is_given("target") else (None,)
    listed = entry.line > 0 and config.path is not None
    return [
        GateCase(
            path=os.path.relpath(config.folder / entry.path) if listed else os.path.relpath(entry.path),
            model=entry.name,
            target=read_target(values, name),
            options=read_simulation(values, (strategy,)),
            bindings=bindings,
            budgets=replace(entry.budgets, **{name: limit for name, limit in limits.items() if limit is not None}),
            location=Location(file=_from_root(config.path), line=entry.line)
            if listed and config.path is not None
            else None,
        )
        for name in names
    ]


def _from_root(path: Path) -> str:
    """The path relative to GITHUB_WORKSPACE where that is set, as GitHub names files; else to the working folder."""
    root = os.environ.get("GITHUB_WORKSPACE")
    absolute = Path(os.path.realpath(path))
    if root and absolute.is_relative_to(os.path.realpath(root)):
        return absolute.relative_to(os.path.realpath(root)).as_posix()
    return Path(os.path.relpath(path)).as_posix()


def _name_updated(values: Mapping[str, Any], baseline: Path, invocation: Invocation) -> None:
    """Declare the files that are read and then replaced, or appended to."""
    if values["update"]:
        invocation.files.updates(str(baseline))
    else:
        invocation.files.reads(str(baseline))  # with --against too: no result may replace it
    if values["record"]:
        invocation.files.updates(values["record"])
    summary = os.environ.get(_SUMMARY_VARIABLE)
    if values["form"] == "github" and summary:
        invocation.files.updates(summary)


def _rules(values: Mapping[str, Any]) -> "Rules":
    from spillprof.studies.gate import Rules

    return Rules(
        metrics=values["metrics"],
        max_increase=values["max_increase"],
        floors={
            Metric.SPILL_BYTES: values["min_increase"],
            Metric.PEAK: values["min_increase"],
            Metric.LATENCY: round(values["min_latency_increase"] * 1e9),
            Metric.ENERGY: round(values["min_energy_increase"] * 1e12),
        },
    )


def _baseline(path: Path, against: str | None) -> tuple[dict[str, Any], str]:
    """The entries, and the name of the baseline in reports."""
    from spillprof.studies.gate import git, parse_baseline, read_baseline

    if against is None:
        return read_baseline(path), path.as_posix()
    shown = f"{against}:{path.name}"
    text = git.show(against, path)
    return ({} if text is None else parse_baseline(text, shown)), shown


def _updated(report: "GateReport", baseline: Mapping[str, Any], path: Path, invocation: Invocation) -> "GateReport":
    """Write the baseline, and return the report that says so; if a model could not be evaluated, write nothing."""
    from spillprof.studies.gate import Verdict, accept, baseline_text, locked, merged, read_baseline

    if any(check.verdict is Verdict.ERROR for check in report.checks):
        invocation.note("the baseline was not written: a model could not be evaluated")
        return report
    accepted, entries = accept(report, baseline)
    with locked(path):  # another process may have written it meanwhile
        entries = merged(baseline, entries, read_baseline(path), shown=path.as_posix())
        write_file(path, baseline_text(entries), invocation)
    return accepted


def _print(report: "GateReport", form: str) -> None:
    print_result(str(named_export(Subject.GATE, form).render(report)))
    summary = os.environ.get(_SUMMARY_VARIABLE)
    if form == "github" and summary:
        try:
            with open(summary, "a", encoding="utf-8", newline="\n") as file:
                file.write(str(named_export(Subject.GATE, "markdown").render(report)))
        except OSError as error:
            raise UsageError("cannot write the job summary", where=(f"{summary}: {error.strerror or error}",)) from None


def _commit(values: Mapping[str, Any], config: "Config") -> str:
    """The commit to record. ``UsageError`` if there is none, or the history cannot be appended to."""
    from spillprof.studies import history
    from spillprof.studies.gate import git

    history.check_history(Path(values["record"]))
    return values["commit"] or git.head_commit(config.folder)


def _record(report: "GateReport", path: str, commit: str, invocation: Invocation) -> None:
    from spillprof.studies import history

    count = history.record(Path(path), commit, report.checks)
    invocation.note(f"Recorded {count} of {len(report.checks)} in {path} for {commit[:12]}")
