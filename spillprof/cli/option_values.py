"""The values of the layers below that the options of a command make: target, lowering, planning."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.session import Session
from spillprof.frontends.targets import open_target
from spillprof.ir.op_times import OpTimes
from spillprof.ir.target import Target
from spillprof.ir.target_settings import unit_doubts, with_fields
from spillprof.lowering.options import Control, ConvAlgorithm, Fuse, LoweringOptions, Oversized, Views, WeightsPolicy
from spillprof.planning.options import Dma, Inputs, Order, PlanningOptions, Recomputing, Release, Start, WriteBack

if TYPE_CHECKING:
    from spillprof.explain.options import AnalyzeOptions


def read_target(values: Mapping[str, Any], name: str | None = None) -> Target:
    """The target that the options describe; ``name``: one that something nearer than the file's settings chose.

    Single figures replace the target's own, but those of the file do not if the target was chosen elsewhere. Fields
    named by ``--set`` come last; of one that is named twice, the last counts.
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
    """Says which figures of a target look as if their unit had been forgotten."""
    session = click.get_current_context().find_object(Session)
    for doubt in unit_doubts(target):
        if session is not None:
            session.warn(doubt)


def is_given(parameter: str) -> bool:
    """Whether a value stands on the command line or in the environment, not in a file."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source in (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def read_simulation(values: Mapping[str, Any], strategies: Sequence[str] = ()) -> "AnalyzeOptions":
    """What ``simulation_options`` ask for, under the strategies; none: all that are affordable."""
    from spillprof.explain.options import AnalyzeOptions

    return AnalyzeOptions(strategies=tuple(strategies), lowering=read_lowering(values), planning=read_planning(values))


def read_lowering(values: Mapping[str, Any]) -> LoweringOptions:
    """The switches of lowering."""
    return LoweringOptions(
        fuse=Fuse(values["fuse"]),
        inplace=values["inplace"] == "on",
        views=Views(values["views"]),
        fold=values["fold"] == "on",
        control=Control(values["control_flow"]),
        conv=ConvAlgorithm(values["conv"]),
        weights=WeightsPolicy(values["weights"]),
        oversized=Oversized(values["oversized"]),
        fuse_tensor=tuple(values["fuse_tensor"]),
        pin=tuple(values["pin"]),
        act_dtype=values["act_dtype"],
        weight_dtype=values["weight_dtype"],
        op_times=_op_times(values.get("op_times")),
    )


def _op_times(path: str | None) -> OpTimes | None:
    if not path:
        return None

    from spillprof.frontends.op_times import read_op_times

    return read_op_times(path)


def read_planning(values: Mapping[str, Any]) -> PlanningOptions:
    """The switches of planning."""
    return PlanningOptions(
        placement=values["placement"],
        inputs=Inputs(values["inputs"]),
        writeback=WriteBack(values["writeback"]),
        release=Release(values["release"]),
        dma=Dma(values["dma"]),
        start=Start.COLD if values["cold"] else Start.STEADY,
        order=Order(values["order"]),
        recompute=Recomputing(values["recompute"]),
        recompute_tensor=tuple(values["recompute_tensor"]),
        optimize_seconds=values["optimize_seconds"],
    )
