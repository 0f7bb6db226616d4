"""From models and target fields to the cases of a sweep: everything that no size of the SRAM changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spillprof.engine.simulation import prepare, sram_limits
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import Graph
from spillprof.ir.target import Target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.studies.sweep.axes import lowering_with, planning_with, with_settings
from spillprof.studies.sweep.rows import Case, case_digest
from spillprof.studies.sweep.work import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A model with its dimensions bound, or why it could not be read."""

    model: str
    graph: Graph | None
    dims: Mapping[str, int]  # those that are swept
    binding: Mapping[str, Any]  # all that bound its dimensions
    error: str = ""


def make_study(
    sources: Sequence[Source],
    target: Target,
    settings: Sequence[Mapping[str, Any]],
    lowering: LoweringOptions,
    planning: PlanningOptions,
) -> tuple[Study, list[Case]]:
    """The study that travels to the processes, and one case for each source and combination of settings."""
    graphs = [source.graph for source in sources if source.graph is not None]
    study = Study(token="", graphs=tuple(graphs))
    cases: list[Case] = []
    for source in sources:
        graph = None if source.graph is None else next(k for k, g in enumerate(graphs) if g is source.graph)
        for setting in settings:
            machine = with_settings(target, setting)
            lowered, planned = lowering_with(lowering, setting), planning_with(planning, setting)
            sha256 = source.graph.fingerprint if source.graph is not None else ""
            cases.append(
                Case(
                    model=source.model,
                    sha256=sha256,
                    dims=source.dims,
                    settings=setting,
                    target=machine,
                    lowering=lowered,
                    planning=planned,
                    graph=graph,
                    error=source.error,
                    digest=case_digest(sha256 or source.model, source.binding, machine, lowered, planned),
                )
            )
    study = replace(study, token=" ".join(case.digest for case in cases))
    return study, [_with_limits(study, case) for case in cases]


def _with_limits(study: Study, case: Case) -> Case:
    """The case with the sizes between which its curves move; one that cannot be lowered is one that failed."""
    if case.graph is None:
        return case
    try:
        program = prepare(study.graphs[case.graph], case.target, case.lowering)
        smallest, most = sram_limits(program, case.target, case.planning)
    except SpillprofError as error:
        return replace(case, graph=None, error=error.message)
    return replace(case, min_sram_bytes=smallest, ideal_peak_bytes=most)
