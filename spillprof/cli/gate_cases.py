"""Options and configuration to the cases of a gate."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillprof.cli.declaring import unknown_name
from spillprof.cli.inputs import is_given, read_bindings, read_simulation, read_target
from spillprof.ir.bindings import Bindings
from spillprof.ir.errors import UsageError
from spillprof.planning.strategies import STRATEGIES

if TYPE_CHECKING:
    from spillprof.cli.config import Config, ModelEntry
    from spillprof.studies.gate import Case


def read_cases(models: Sequence[str], config: "Config", root: Path, values: Mapping[str, Any]) -> "list[Case]":
    """Every model on every target that is to be judged: those of the configuration, or the models named."""
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
    """The entry of the configuration with that name or path; else one made up for the file."""
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


def _cases_of(entry: "ModelEntry", config: "Config", values: Mapping[str, Any]) -> "list[Case]":
    from spillprof.ir.metric import Budgets
    from spillprof.studies.gate import Case
    from spillprof.studies.gate.values import Location

    strategy = values["strategy"]
    if strategy not in (*STRATEGIES, "none"):
        if "," in strategy:
            raise UsageError("a gate judges one strategy", hint='set strategy = "interval" under [tool.spillprof.gate]')
        raise unknown_name("strategy", strategy, (*STRATEGIES, "none"))
    given = read_bindings(values)
    names = entry.targets if entry.targets and not is_given("target") else (None,)
    mine = entry.budgets
    budgets = Budgets(
        spill_bytes=mine.spill_bytes if values["max_spill"] is None else values["max_spill"],
        latency_s=mine.latency_s if values["max_latency"] is None else values["max_latency"],
        peak_bytes=mine.peak_bytes if values["max_peak"] is None else values["max_peak"],
        energy_j=mine.energy_j if values["max_energy"] is None else values["max_energy"],
    )
    listed = entry.line > 0 and config.path is not None
    return [
        Case(
            path=os.path.relpath(config.folder / entry.path) if listed else os.path.relpath(entry.path),
            model=entry.name,
            target=read_target(values, name),
            options=read_simulation(values, (strategy,)),
            bindings=Bindings(
                dims={**entry.dims, **given.dims},
                shapes={**entry.shapes, **given.shapes},
                batch=entry.batch if given.batch is None else given.batch,
                assume={**entry.assume, **given.assume},
                branches={**entry.branches, **given.branches},
                trips={**entry.trips, **given.trips},
            ),
            budgets=budgets,
            location=Location(file=_from_root(config.path), line=entry.line)
            if listed and config.path is not None
            else None,
        )
        for name in names
    ]


def _from_root(path: Path) -> str:
    """The path as code hosts name it: from the root of the checkout in a job of theirs, else from here."""
    root = os.environ.get("GITHUB_WORKSPACE")
    absolute = Path(os.path.realpath(path))
    if root and absolute.is_relative_to(os.path.realpath(root)):
        return absolute.relative_to(os.path.realpath(root)).as_posix()
    return Path(os.path.relpath(path)).as_posix()
