"""The work of a sweep: what one task computes, in this process or in another one.

A task is one model on one machine; it fits the program once, plays the ideal once, and simulates every strategy and
placement that is asked for. A process lowers a model when it first meets it, and keeps it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from spillprof.errors import SpillprofError
from spillprof.lowering.options import LoweringOptions
from spillprof.model.graph import Graph
from spillprof.model.target import Target
from spillprof.planning.options import PlanningOptions
from spillprof.simulation import Machine, Prepared, Totals, lowering_key, on_machine, prepare, simulate_point
from spillprof.sweep.rows import OK

_MOST_KEPT = 64  # lowered models in one process
BUG = "a bug in spillprof: "
"""How the status of a point begins that failed for a reason of ours."""
LOST = "the process that did it died"
OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What all tasks of a sweep share. It travels to each process once."""

    token: str  # tells one study from another in a process that serves several
    graphs: tuple[Graph, ...]
    lowering: LoweringOptions
    planning: PlanningOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One machine, and the ``(placement, strategy)`` pairs to simulate on it."""

    number: int
    graph: int
    target: Target  # with the size of its SRAM
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one pair costs, or why it failed."""

    totals: Totals | None = None
    ideal_s: float | None = None
    status: str = OK


Finished = tuple[Task, tuple[Outcome, ...]]


class Runner(Protocol):
    """Does tasks, and gives each back when it is finished, in any order."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Finished]:
        """Every task once."""

    def close(self) -> None:
        """Stop at once; what is unfinished is dropped."""


def run_task(study: Study, task: Task) -> tuple[Outcome, ...]:
    """One outcome a pair, in their order. Never raises for what a model or a memory can cause."""
    try:
        machine = on_machine(prepared(study, task.graph, task.target), task.target, study.planning)
    except Exception as error:
        return (Outcome(status=describe(error)),) * len(task.pairs)
    return tuple(_outcome(study, machine, placement, strategy) for placement, strategy in task.pairs)


def describe(error: Exception) -> str:
    """The status of a point that failed so: the message of the error."""
    if isinstance(error, SpillprofError):
        return error.message
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    return f"{BUG}{type(error).__name__}: {error}"


_kept: dict[tuple[object, ...], Prepared] = {}


def prepared(study: Study, graph: int, target: Target) -> Prepared:
    """The model lowered for the target; kept for the next task of this process."""
    key = (study.token, graph, *lowering_key(target, study.lowering))
    found = _kept.get(key)
    if found is None:
        while len(_kept) >= _MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
        found = _kept[key] = prepare(study.graphs[graph], target, study.lowering)
    return found


def _outcome(study: Study, machine: Machine, placement: str, strategy: str) -> Outcome:

    try:
        totals = simulate_point(machine, strategy, replace(study.planning, placement=placement))
    except Exception as error:
        return Outcome(ideal_s=machine.ideal_s, status=describe(error))
    return Outcome(totals=totals, ideal_s=machine.ideal_s)
