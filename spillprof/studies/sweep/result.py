"""The result of a sweep: rows, and the knees, cliffs and answers derived from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spillprof import __version__
from spillprof.studies.sweep.answers import Answer, ParetoChoice, pareto, smallest
from spillprof.studies.sweep.blame import blame
from spillprof.studies.sweep.curves import Cliff, Knee, cliffs, knees
from spillprof.studies.sweep.local import InProcess
from spillprof.studies.sweep.rows import Row, SweepCase
from spillprof.studies.sweep.work import LOST, Runner, Study

_SCHEMA = "spillprof-sweep/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFacts:
    """A model and machine of a sweep, and the range of sizes over which its curves change."""

    model: str
    sha256: str
    dims: Mapping[str, int]
    settings: Mapping[str, Any]
    min_sram_bytes: int | None  # below it some operator is tiled, or nothing runs; None: the model could not be read
    ideal_peak_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The result of one ``sweep``. Field names are the keys of its JSON (schema ``spillprof-sweep/1``)."""

    spillprof_version: str
    command: str  # to reproduce
    complete: bool  # False: it was interrupted, or points were lost
    target: Mapping[str, Any]  # before any field was varied; its SRAM is on the axis
    config: Mapping[str, Any]
    cases: tuple[CaseFacts, ...]
    rows: tuple[Row, ...]
    knees: tuple[Knee, ...]
    cliffs: tuple[Cliff, ...]
    smallest: tuple[Answer, ...]
    pareto: tuple[ParetoChoice, ...]
    schema: str = field(default=_SCHEMA)


def conclude(
    study: Study,
    cases: Sequence[SweepCase],
    rows: Sequence[Row],
    *,
    within: float,
    complete: bool,
    target: Mapping[str, Any],
    config: Mapping[str, Any],
    command: str,
    runner: Runner | None = None,
) -> Sweep:
    """The sweep with its knees, cliffs and answers.

    ``runner`` searches for the causes of the cliffs; without it this process does. An incomplete sweep skips that.
    """
    complete = complete and not any(row.status == LOST for row in rows)
    found = cliffs(rows)
    return Sweep(
        spillprof_version=__version__,
        command=command,
        complete=complete,
        target=target,
        config=config,
        cases=tuple(_facts(case) for case in cases),
        rows=tuple(rows),
        knees=knees(rows),
        cliffs=blame(runner or InProcess(study), cases, found) if complete else found,
        smallest=smallest(rows, within),
        pareto=pareto(rows),
    )


def _facts(case: SweepCase) -> CaseFacts:
    readable = case.run is not None
    return CaseFacts(
        model=case.model,
        sha256=case.sha256,
        dims=case.dims,
        settings=case.settings,
        min_sram_bytes=case.min_sram_bytes if readable else None,
        ideal_peak_bytes=case.ideal_peak_bytes if readable else None,
    )
