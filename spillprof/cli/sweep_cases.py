"""From the options of ``sweep`` to its study and cases: every model read, once for each binding of its dimensions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spillprof.cli.model_file import read_bindings, read_model
from spillprof.cli.option_values import read_lowering, read_planning, read_target, warn_of_units
from spillprof.cli.session import Session
from spillprof.ir.errors import ModelError, SpillprofError, UsageError
from spillprof.ir.target_settings import with_fields
from spillprof.planning.options import PlanningOptions

if TYPE_CHECKING:
    from spillprof.ir.target import Target
    from spillprof.studies.sweep.rows import SweepCase
    from spillprof.studies.sweep.work import Study


def read_study(models: Sequence[str], values: Mapping[str, Any], session: Session) -> tuple["Study", list["SweepCase"]]:
    """Every model read once for each binding of its dimensions, and all cases. The first error, if none is readable."""
    from spillprof.studies.sweep.axes import OPTION_AXES, settings_of
    from spillprof.studies.sweep.cases import SweepModel, make_study

    target, lowering, planning = base_target(values), first_lowering(values), first_planning(values)
    bindings = settings_of(values["dims"])
    if "-" in models and len(bindings) > 1:
        raise UsageError("a model on stdin can be read only once", hint="save it to a file to sweep its dimensions")
    sources: list[SweepModel] = []
    errors: list[SpillprofError] = []
    for model in models:
        for dims in bindings:
            fixed = {**values, "dims": list(dims.items())}
            graph, message = None, ""
            try:
                graph = read_model(model, fixed, session)
            except (ModelError, UsageError) as error:
                errors.append(error)
                message = error.message
            swept = {name: dims[name] for name, sizes in values["dims"] if len(sizes) > 1}
            given = read_bindings(fixed)
            sources.append(SweepModel(model=model, graph=graph, dims=swept, bindings=given, error=message))
    if len(errors) == len(sources):
        raise errors[0]
    for failed in errors:
        session.note(f"warning: {failed.message}; its points are rows with this error")
    _warn_of_axes(target, values)
    axes = [*values["variations"], *((name, values[name]) for name in OPTION_AXES if len(values[name]) > 1)]
    return make_study(sources, target, settings_of(axes), lowering, planning)


def _warn_of_axes(target: "Target", values: Mapping[str, Any]) -> None:
    """Says which values of the axes look as if their unit had been forgotten."""
    for field, each in values["variations"]:
        for value in each:
            warn_of_units(with_fields(target, {field: value}))
    if isinstance(values.get("sram"), tuple):
        warn_of_units(target.with_overrides(sram_bytes=min(values["sram"])))


def first_lowering(values: Mapping[str, Any]) -> Any:
    """The options of lowering; those that are swept with their first value."""
    from spillprof.studies.sweep.axes import LOWERING_AXES, lowering_with

    firsts = {name: values[name][0] for name in LOWERING_AXES}
    return lowering_with(read_lowering({**values, **firsts}), firsts)


def first_planning(values: Mapping[str, Any]) -> PlanningOptions:
    """The options of planning; those that are swept with their first value. Each point brings its own placement."""
    return read_planning({**values, "placement": PlanningOptions().placement, "order": values["order"][0]})


def base_target(values: Mapping[str, Any]) -> Any:
    """The target before any field is varied; its SRAM is on the axis."""
    return read_target({**values, "sram": None})
