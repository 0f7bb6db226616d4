"""Cases of a sweep, from models and target fields: all that does not depend on the SRAM size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spillprof.engine.run import Run
from spillprof.explain.options import AnalyzeOptions, configuration
from spillprof.ir.errors import SpillprofError
from spillprof.ir.fingerprint import changed_fields
from spillprof.ir.graph import Bindings, Graph
from spillprof.ir.target import Target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.planning.strategies import OPTIMAL
from spillprof.studies.fingerprint import digest, fingerprint, source_digest
from spillprof.studies.sweep.axes import lowering_with, planning_with, with_settings
from spillprof.studies.sweep.rows import SweepCase
from spillprof.studies.sweep.work import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepModel:
    """A model with its dimensions bound, or why it could not be read."""

    model: str
    graph: Graph | None
    dims: Mapping[str, int]  # swept ones
    bindings: Bindings = field(default_factory=Bindings)  # all bindings of its dimensions
    error: str = ""


def make_study(
    models: Sequence[SweepModel],
    target: Target,
    settings: Sequence[Mapping[str, Any]],
    lowering: LoweringOptions,
    planning: PlanningOptions,
) -> tuple[Study, list[SweepCase]]:
    """The study to send to processes, and one case for each model and combination of settings."""
    code = source_digest()
    runs: list[Run] = []
    cases: list[SweepCase] = []
    for model in models:
        for setting in settings:
            machine = with_settings(target, setting)
            lowered, planned = lowering_with(lowering, setting), planning_with(planning, setting)
            sha256 = "" if model.graph is None else model.graph.fingerprint
            cases.append(
                SweepCase(
                    model=model.model,
                    sha256=sha256,
                    dims=model.dims,
                    settings=setting,
                    target=machine,
                    run=None if model.graph is None else len(runs),
                    error=model.error,
                    digest=case_digest(sha256 or model.model, model.bindings, machine, lowered, planned, code),
                )
            )
            if model.graph is not None:
                runs.append(Run(graph=model.graph, target=machine, lowering=lowered, planning=planned))
    study = Study(runs=tuple(runs))
    return study, [_with_limits(study, case) for case in cases]


def case_digest(
    model: str,
    bindings: Bindings,
    target: Target,
    lowering: LoweringOptions,
    planning: PlanningOptions,
    code: str,
) -> str:
    """Digest of the model, its bindings, target, options, simulator revision and code: see ``fingerprint``."""
    options = AnalyzeOptions(strategies=(OPTIMAL,), lowering=lowering, planning=replace(planning, placement=""))
    settings = fingerprint(target, configuration(options), bindings, without=("sram_bytes",))
    switches = changed_fields(lowering, without=("op_times",)), changed_fields(planning, without=("placement",))
    return digest([model, settings, switches, code])


def _with_limits(study: Study, case: SweepCase) -> SweepCase:
    """The case with the range of sizes over which its curves change; marked as failed if it cannot be lowered."""
    if case.run is None:
        return case
    try:
        smallest, most = study.engine.sram_limits(study.runs[case.run])
    except SpillprofError as error:
        return replace(case, run=None, error=error.message)
    return replace(case, min_sram_bytes=smallest, ideal_peak_bytes=most)
