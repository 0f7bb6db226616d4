"""One run as the options describe it, and what it comes to."""

from dataclasses import dataclass

from spillprof.engine.known import fitted_of, plans_of
from spillprof.engine.recompute.search import most_trials, running_again
from spillprof.engine.scheduling import scheduled, steps_to_judge
from spillprof.engine.simulation import planned, prepare
from spillprof.ir.errors import SpillprofError
from spillprof.ir.graph import Graph
from spillprof.ir.plan import Traffic
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.options import LoweringOptions
from spillprof.lowering.transforms import reordered
from spillprof.planning.bounds.covering import covering
from spillprof.planning.options import Order, PlanningOptions, Recomputing
from spillprof.planning.ordering import order_effort
from spillprof.planning.traffic import count_traffic

_NEVER = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A model on a machine, and how it is run there."""

    graph: Graph
    target: Target
    lowering: LoweringOptions
    planning: PlanningOptions
    strategy: str
    order: tuple[int, ...] | None = None  # what the search for ``planning.order`` finds here, if that is known already

    def program(self) -> Program:
        """The program fitted to the memory. ``SpillprofError`` where there is none."""
        program = prepare(self.graph, self.target, self.lowering).program
        if self.order is not None:
            program = reordered(program, self.order)
        else:
            program = scheduled(program, self.target, self.lowering, self.planning)
        return fitted_of(running_again(program, self.target, self.lowering, self.planning), self.target, self.lowering)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Totals of one run."""

    spill_bytes: int
    latency_s: float
    energy_j: float
    moved_bytes: int = 0  # inside SRAM


def outcome(setup: Setup) -> Outcome | None:
    """The run, planned, verified and played; None if it cannot be done."""
    try:
        program = setup.program()
        plan, timeline = planned(program, setup.target, setup.strategy, setup.planning)
    except SpillprofError:
        return None
    moved = count_traffic(program, plan)
    return Outcome(
        spill_bytes=moved.spill_bytes,
        moved_bytes=moved.moved_bytes,
        latency_s=timeline.makespan_s,
        energy_j=timeline.energy_j,
    )


def tiled_operators(setup: Setup) -> int:
    """Operators of a run that can be done, whose operands do not fit at once and are tiled through DRAM."""
    return sum(1 for step in setup.program().steps if step.stream_staging_bytes)


def traffic(setup: Setup) -> Traffic | None:
    """Bytes of the run, which is planned but not played: a fraction of the work. None if it cannot be done."""
    try:
        program = setup.program()
        plans, _ = plans_of(program, setup.target, setup.strategy, setup.planning)
        return count_traffic(program, plans[0])
    except SpillprofError:
        return None


def has_to_spill(setup: Setup) -> bool:
    """Whether every plan of the run spills something, or none can be made."""
    try:
        problem = covering(setup.program(), setup.planning)
    except SpillprofError:
        return True
    return bool(problem.gaps or problem.forced_cost)


def runs_in_one(setup: Setup, program: Program) -> int:
    """How many runs every run of this kind takes: it may search first, for an order or for what to compute again.

    The joint choice is never affordable: each run would solve integer programs.
    """
    if setup.planning.recompute is Recomputing.JOINT:
        return _NEVER
    runs = 1
    if setup.planning.order is Order.MEMORY and setup.order is None:
        trials = order_effort(steps_to_judge(program))
        runs += trials.restarts + trials.changes
    if setup.planning.recompute is not Recomputing.OFF:
        runs += most_trials(setup.planning.recompute, len(program.steps))
    return runs
