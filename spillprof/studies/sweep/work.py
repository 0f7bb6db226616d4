"""The work of a sweep: what one job computes, in this process or in another one.

Nearly all jobs are tasks. A task is one model on one machine; it fits the program once, plays the ideal once, and
simulates every strategy and placement that is asked for. A process lowers a model when it first meets it, and keeps
it (see ``simulation.prepare``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from spillprof.engine.known import bound_of
from spillprof.engine.simulation import Ideal, Points, Totals, on_machine, prepare
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import Graph
from spillprof.ir.lru_cache import LruCache
from spillprof.ir.target import Target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.studies.sweep.rows import OK

BUG = "a bug in spillprof: "
"""How the status of a point begins that failed for a reason of ours."""
LOST = "missing: nobody who was given it finished it"
"""Of a point whose process, worker or cluster was lost. Its sweep is not complete."""
OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What all tasks of a sweep share. It travels to each process once."""

    token: str  # tells one study from another in a process that serves several
    graphs: tuple[Graph, ...]


Result = TypeVar("Result")
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

    def run(self, jobs: Sequence[Job[Result]]) -> Iterator[tuple[int, Result]]:
        """(number, result) of every job once."""

    def close(self) -> None:
        """Stop at once; what is unfinished is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One machine, and the ``(placement, strategy)`` pairs to simulate on it."""

    number: int
    case: int  # tasks of one case differ in the size of the SRAM alone
    graph: int
    lowering: LoweringOptions
    planning: PlanningOptions
    target: Target  # with the size of its SRAM
    pairs: tuple[tuple[str, str], ...]

    def do(self, study: Study) -> "tuple[Outcome, ...]":
        """One outcome a pair, in their order."""
        return run_task(study, self)

    def lost(self) -> "tuple[Outcome, ...]":
        """Every pair failed."""
        return (Outcome(status=LOST),) * len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one pair costs, or why it failed."""

    totals: Totals | None = None
    ideal_s: float | None = None
    spill_bytes_lower: int | None = None
    status: str = OK


def run_task(study: Study, task: Task) -> tuple[Outcome, ...]:
    """One outcome a pair, in their order. Never raises for what a model or a memory can cause."""
    try:
        lowered = prepare(study.graphs[task.graph], task.target, task.lowering)
        key = (study.token, task.case)
        machine = on_machine(lowered, task.target, task.planning, _ideals.get(key))
        bound_of(machine.fitted, task.planning)
    except Exception as error:
        return (Outcome(status=describe(error)),) * len(task.pairs)
    _ideals.put(key, machine.ideal)
    points = Points(machine, task.planning)
    outcomes = [_outcome(points, placement, strategy) for placement, strategy in task.pairs]
    lower = bound_of(machine.fitted, task.planning).cost  # that a search for the optimum may have raised
    return tuple(replace(each, ideal_s=machine.ideal_s, spill_bytes_lower=lower) for each in outcomes)


def describe(error: Exception) -> str:
    """The status of a point that failed so: the message of the error."""
    if isinstance(error, SpillprofError):
        return error.message
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    return f"{BUG}{type(error).__name__}: {error}"


_ideals: LruCache[Ideal] = LruCache(64)


def _outcome(points: Points, placement: str, strategy: str) -> Outcome:
    try:
        return Outcome(totals=points.totals(strategy, placement))
    except Exception as error:
        return Outcome(status=describe(error))
