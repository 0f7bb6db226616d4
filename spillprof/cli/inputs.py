"""Reads what commands work on: models, targets, options of the simulation, saved profiles, plans."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import read_options
from spillprof.cli.invocation import Invocation
from spillprof.frontends.targets import open_target
from spillprof.ir.errors import ProfileError, UsageError
from spillprof.ir.graph import Bindings
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import PROFILE, FileKind
from spillprof.ir.side_files.opening import decoded_stdin, read_text
from spillprof.ir.target import Target
from spillprof.ir.target_settings import unit_doubts, with_fields
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions

if TYPE_CHECKING:
    from spillprof.explain.options import AnalyzeOptions
    from spillprof.ir.graph import Graph
    from spillprof.ir.profile import Profile


def load_graph(model: str, values: Mapping[str, Any], invocation: Invocation) -> "Graph":
    """The graph in a file, or on stdin for ``-``; one command reads equal models once."""
    from spillprof.frontends import read_model

    given = read_bindings(values)
    invocation.files.reads(model)
    invocation.detail(f"reading {model}")
    if model == "-":
        if sys.stdin is None:
            raise UsageError("there is no stdin to read a model from", hint="give the path of a file")
        return read_model(sys.stdin.buffer, given, cache=invocation.graphs, is_alone=True)
    return read_model(model, given, cache=invocation.graphs, is_alone=True)


def read_bindings(values: Mapping[str, Any]) -> Bindings:
    """What the options say about open dimensions, branches and trips."""
    return Bindings(
        dims=_mapping(values["dims"], "--dim"),
        shapes=_mapping(values["shapes"], "--shape"),
        batch=values["batch"],
        assume=_mapping(values["assume"], "--assume"),
        branches=_mapping(values["branches"], "--branch"),
        trips=_mapping(values["trips"], "--trips"),
    )


def _mapping(pairs: Sequence[tuple[str, Any]], option: str) -> dict[str, Any]:
    """Pairs as a mapping. ``UsageError`` if one name is given two values."""
    mapping: dict[str, Any] = {}
    for name, value in pairs:
        if mapping.setdefault(name, value) != value:
            raise UsageError(f"{option} gives '{name}' two values", hint=f"drop one of the two {option}")
    return mapping


def read_target(values: Mapping[str, Any], name: str | None = None) -> Target:
    """The target that the options describe; ``name`` overrides ``--target``.

    ``--sram``, ``--align``, ``--dram-read`` and ``--dram-write`` replace fields of the target. Where they come from the
    configuration file, they do so only if the target does too. ``--set`` comes last; of a field set twice, the last
    value counts.
    """
    named = {"sram": "sram_bytes", "align": "alignment_bytes",
             "dram_read": "dram_read_bytes_per_s", "dram_write": "dram_write_bytes_per_s"}  # fmt: skip
    config = values.get("config")
    chosen = name or values["target"]
    target = config.target(chosen) if config else open_target(chosen)
    given = {key: field for key, field in named.items() if values[key] is not None}
    if name or is_given("target"):
        given = {key: field for key, field in given.items() if is_given(key)}
    target = target.with_overrides(**{field: values[key] for key, field in given.items()})
    target = with_fields(target, dict(values["target_settings"]))
    warn_of_units(target)
    return target


def warn_of_units(target: Target) -> None:
    """Warn of fields of a target so small that their unit was probably forgotten."""
    invocation = click.get_current_context().find_object(Invocation)
    for doubt in unit_doubts(target):
        if invocation is not None:
            invocation.warn(doubt)


def is_given(parameter: str) -> bool:
    """Whether a value comes from the command line or the environment, not from a file or a default."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source in (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def read_simulation(
    values: Mapping[str, Any], strategies: Sequence[str] = (), *, what_if: bool = False
) -> "AnalyzeOptions":
    """The options of a simulation; without strategies, all that are affordable."""
    from spillprof.explain.options import AnalyzeOptions

    return AnalyzeOptions(
        strategies=tuple(strategies),
        lowering=read_options(LoweringOptions, values),
        planning=read_options(PlanningOptions, values),
        what_if=what_if,
    )


def read_saved_profile(path: str) -> "Profile":
    """The profile in a file, or on stdin for ``-``. ``ProfileError`` if it is none."""
    from spillprof.ir.profile_json import profile_from_json

    text = decoded_stdin(PROFILE) if path == "-" else read_text(path, PROFILE)
    data = parse_json(text, PROFILE, path)
    try:
        return profile_from_json(data)
    except ProfileError as error:
        raise ProfileError(error.message, where=(path, *error.where), hint=error.hint) from None


def read_json(path: str, kind: FileKind) -> Any:
    """The JSON values in a plan or certificate. ``PlanError`` if the file is not JSON."""
    return parse_json(read_text(path, kind), kind, path)
