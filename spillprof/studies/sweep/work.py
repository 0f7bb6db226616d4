"""Jobs of a sweep, and the runners that do them in this process or in others.

Nearly all jobs are tasks: one model on one machine, under all selected strategies and placements. Each process has one
engine, which lowers a model once, and plays an ideal run once for all sizes that share it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.ir.errors import SpillprofError
from spillprof.ir.result import Totals
from spillprof.planning.strategies import OPTIMAL
from spillprof.studies.sweep.rows import OK

BUG = "a bug in spillprof: "
"""Prefix of the status of a point that failed by an internal error."""
LOST = "missing: nobody who was given it finished it"
"""Status of a point whose process, worker or cluster was lost. Its sweep is incomplete."""
OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Data that all tasks of a sweep share. It is sent to each process once, where it has its own engine."""

    runs: tuple[Run, ...]  # one per case; each task sets the SRAM size
    engine: Engine = field(default_factory=Engine, init=False, repr=False, compare=False)


JobResult = TypeVar("JobResult")
_Result_co = TypeVar("_Result_co", covariant=True)


class Job(Protocol[_Result_co]):
    """A unit of work that can be sent to a process."""

    @property
    def number(self) -> int:
        """Its number, unique among the jobs of one call of ``Runner.run``."""

    def do(self, study: Study) -> _Result_co:
        """Compute the result."""

    def lost(self) -> _Result_co:
        """The result if no process survives the job."""


class Runner(Protocol):
    """Does jobs and yields their results as they finish, in any order."""

    def run(self, jobs: Sequence[Job[JobResult]]) -> Iterator[tuple[int, JobResult]]:
        """(number, result) of every job, once each."""

    def close(self) -> None:
        """Stop at once and drop unfinished jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTask:
    """One machine, and the ``(placement, strategy)`` pairs to simulate on it."""

    number: int
    run: int  # index into Study.runs
    sram_bytes: int
    pairs: tuple[tuple[str, str], ...]

    def do(self, study: Study) -> "tuple[PointOutcome, ...]":
        """One outcome per pair, in order."""
        return run_task(study, self)

    def lost(self) -> "tuple[PointOutcome, ...]":
        """A lost outcome for every pair."""
        return (PointOutcome(status=LOST),) * len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOutcome:
    """Totals of one pair, or the reason why it failed."""

    totals: Totals | None = None
    ideal_s: float | None = None
    spill_bytes_lower: int | None = None
    status: str = OK


def run_task(study: Study, task: SweepTask) -> "tuple[PointOutcome, ...]":
    """One outcome per pair, in order. Errors become the status of outcomes."""
    engine, run = study.engine, study.runs[task.run].at(task.sram_bytes)
    try:
        ideal_s, fitted = engine.ideal_s(run), engine.fitted(run)
        lower = engine.bound(fitted, run).cost
    except Exception as error:
        return (PointOutcome(status=describe(error)),) * len(task.pairs)
    outcomes = []
    for placement, strategy in task.pairs:
        try:
            outcomes.append(PointOutcome(totals=engine.totals(run, strategy, placement)))
            if strategy == OPTIMAL:
                lower = max(lower, engine.bound(fitted, run.planned(placement=placement), searched=True).cost)
        except Exception as error:
            outcomes.append(PointOutcome(status=describe(error)))
    return tuple(replace(each, ideal_s=ideal_s, spill_bytes_lower=lower) for each in outcomes)


def describe(error: Exception) -> str:
    """The status of a point that failed with the error."""
    if isinstance(error, SpillprofError):
        return error.message
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    return f"{BUG}{type(error).__name__}: {error}"
