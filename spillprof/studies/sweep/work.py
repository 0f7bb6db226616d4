"""The work of a sweep: what one job computes, in this process or in another one.

Nearly all jobs are tasks. A task is one model on one machine, under every strategy and placement that is asked for.
Each process has one engine: it lowers a model when it first meets it, and plays an ideal run once for all sizes that
share it.
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
"""How the status of a point begins that failed for a reason of ours."""
LOST = "missing: nobody who was given it finished it"
"""Of a point whose process, worker or cluster was lost. Its sweep is not complete."""
OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What all tasks of a sweep share. It travels to each process once, where it has an engine of its own."""

    runs: tuple[Run, ...]  # one a case; each task brings its SRAM
    engine: Engine = field(default_factory=Engine, init=False, repr=False, compare=False)


JobResult = TypeVar("JobResult")
_Result_co = TypeVar("_Result_co", covariant=True)


class Job(Protocol[_Result_co]):
    """A piece of work that travels to a process."""

    @property
    def number(self) -> int:
        """Which of the jobs that are given to a runner at once it is."""

    def do(self, study: Study) -> _Result_co:
        """Its result."""

    def lost(self) -> _Result_co:
        """What stands for the result where no process survives the work."""


class Runner(Protocol):
    """Does jobs, and gives each one's result back when it is finished, in any order."""

    def run(self, jobs: Sequence[Job[JobResult]]) -> Iterator[tuple[int, JobResult]]:
        """(number, result) of every job once."""

    def close(self) -> None:
        """Stop at once; what is unfinished is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTask:
    """One machine, and the ``(placement, strategy)`` pairs to simulate on it."""

    number: int
    run: int  # index into Study.runs
    sram_bytes: int
    pairs: tuple[tuple[str, str], ...]

    def do(self, study: Study) -> "tuple[PointOutcome, ...]":
        """One outcome a pair, in their order."""
        return run_task(study, self)

    def lost(self) -> "tuple[PointOutcome, ...]":
        """Every pair failed."""
        return (PointOutcome(status=LOST),) * len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOutcome:
    """What one pair costs, or why it failed."""

    totals: Totals | None = None
    ideal_s: float | None = None
    spill_bytes_lower: int | None = None
    status: str = OK


def run_task(study: Study, task: SweepTask) -> "tuple[PointOutcome, ...]":
    """One outcome a pair, in their order. Never raises for what a model or a memory can cause."""
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
    """The status of a point that failed so: the message of the error."""
    if isinstance(error, SpillprofError):
        return error.message
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    return f"{BUG}{type(error).__name__}: {error}"
