"""The axes of ``spillprof sweep``: parsed, and made into a study and its cases."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spillprof.cli.declaring import read_options
from spillprof.cli.inputs import load_graph, read_bindings, read_target, warn_of_units
from spillprof.cli.invocation import Invocation
from spillprof.ir.errors import ModelError, SpillprofError, UsageError
from spillprof.ir.target_settings import with_fields
from spillprof.ir.units import parse_size
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.studies.sweep.axes import LOWERING_AXES, OPTION_AXES, lowering_with, parse_axis, settings_of

if TYPE_CHECKING:
    from spillprof.ir.target import Target
    from spillprof.studies.sweep.rows import SweepCase
    from spillprof.studies.sweep.work import Study

AUTO = "auto"


def parse_within(text: str) -> float:
    """0.05 from ``5%``. Like all parsers here, raises ``UsageError`` if the text is malformed."""
    try:
        share = float(text.strip().removesuffix("%").strip()) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < 1e6:
        raise UsageError(f"'{text}' is no share", hint="write it like --within 5%")
    return share


def parse_dims(text: str) -> tuple[str, tuple[int, ...]]:
    """``(dimension, sizes)`` from ``batch=1,2,4``."""
    name, separator, sizes = text.rpartition("=")
    if not separator or not name:
        raise UsageError(f"'{text}' binds no dimension", hint="write it like --dim batch=1,2,4 or --dim batch=1..8")
    return name, parse_axis(sizes, _parse_count)


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"'{text}' is no size of a dimension", hint="write it like --dim batch=1,2,4")
    return int(text)


def parse_sizes(text: str) -> str | tuple[int, ...]:
    """Bytes from ``1MB..4MB/1MB``, ascending; or ``AUTO``."""
    return AUTO if text.strip().lower() == AUTO else parse_axis(text, parse_size)


def read_study(
    models: Sequence[str], values: Mapping[str, Any], invocation: Invocation
) -> tuple["Study", list["SweepCase"]]:
    """Every model read once for each binding of its dimensions, and all cases. The first error, if none is readable."""
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
                graph = load_graph(model, fixed, invocation)
            except (ModelError, UsageError) as error:
                errors.append(error)
                message = error.message
            swept = {name: dims[name] for name, sizes in values["dims"] if len(sizes) > 1}
            given = read_bindings(fixed)
            sources.append(SweepModel(model=model, graph=graph, dims=swept, bindings=given, error=message))
    if len(errors) == len(sources):
        raise errors[0]
    for failed in errors:
        invocation.note(f"warning: {failed.message}; its points are rows with this error")
    _warn_of_axes(target, values)
    axes = [*values["variations"], *((name, values[name]) for name in OPTION_AXES if len(values[name]) > 1)]
    return make_study(sources, target, settings_of(axes), lowering, planning)


def _warn_of_axes(target: "Target", values: Mapping[str, Any]) -> None:
    """Warn of values on the axes so small that their unit was probably forgotten."""
    for field, each in values["variations"]:
        for value in each:
            warn_of_units(with_fields(target, {field: value}))
    if isinstance(values.get("sram"), tuple):
        warn_of_units(target.with_overrides(sram_bytes=min(values["sram"])))


def first_lowering(values: Mapping[str, Any]) -> Any:
    """The options of lowering, with the first value of each swept one."""
    firsts = {name: values[name][0] for name in LOWERING_AXES}
    return lowering_with(read_options(LoweringOptions, {**values, **firsts}), firsts)


def first_planning(values: Mapping[str, Any]) -> PlanningOptions:
    """The options of planning, with the first value of each swept one. Each point sets its own placement."""
    firsts = {"placement": PlanningOptions().placement, "order": values["order"][0]}
    return read_options(PlanningOptions, {**values, **firsts})


def base_target(values: Mapping[str, Any]) -> Any:
    """The target before any field is varied. Each point sets its own SRAM size."""
    return read_target({**values, "sram": None})
