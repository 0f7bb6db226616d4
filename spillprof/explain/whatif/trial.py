"""Trial: a run under one strategy, and its totals."""

from dataclasses import dataclass, replace
from typing import Any

from spillprof.engine.engine import Engine
from spillprof.engine.recompute.search import most_trials
from spillprof.engine.run import Run
from spillprof.engine.trials import steps_to_judge
from spillprof.ir.errors import SpillprofError
from spillprof.ir.plan import Traffic
from spillprof.ir.program import Program
from spillprof.planning.bounds.covering import covering
from spillprof.planning.options import Order, PlanningOptions, Recomputing
from spillprof.planning.ordering import order_effort
from spillprof.planning.traffic import count_traffic

_NEVER = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTotals:
    """Totals of one run."""

    spill_bytes: int
    latency_s: float
    energy_j: float
    moved_bytes: int = 0  # inside SRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run under one strategy, on an engine."""

    engine: Engine
    run: Run
    strategy: str

    def at(self, sram_bytes: int) -> "Trial":
        """The trial with another SRAM size."""
        return replace(self, run=self.run.at(sram_bytes))

    def on(self, **fields: Any) -> "Trial":
        """The trial with target fields replaced."""
        return replace(self, run=self.run.on(**fields))

    def lowered(self, **options: Any) -> "Trial":
        """The trial with lowering options replaced."""
        return replace(self, run=self.run.lowered(**options))

    def planned(self, **options: Any) -> "Trial":
        """The trial with planning options replaced."""
        return replace(self, run=self.run.planned(**options))

    def fitted(self) -> Program:
        """The program fitted to the memory. ``SpillprofError`` if it cannot be read, lowered or fitted."""
        return self.engine.fitted(self.run)

    def outcome(self) -> TrialTotals | None:
        """Totals of the run, planned, verified and played; None if no plan is possible."""
        try:
            played = self.engine.play(self.fitted(), self.run, self.strategy)
        except SpillprofError:
            return None
        moved = count_traffic(played.program, played.plan)
        return TrialTotals(
            spill_bytes=moved.spill_bytes,
            moved_bytes=moved.moved_bytes,
            latency_s=played.timeline.makespan_s,
            energy_j=played.timeline.energy_j,
        )

    def tiled_operators(self) -> int:
        """Number of operators that the plan runs in tiles; 0 if no plan is possible."""
        try:
            fitted = self.fitted()
            plan = self.engine.plans(fitted, self.run, self.strategy)[0][0]
        except SpillprofError:
            return 0
        return len({s.step for s in plan.streamed})

    def traffic(self) -> Traffic | None:
        """Traffic of the run, planned but not played, which is cheaper; None if no plan is possible."""
        try:
            fitted = self.fitted()
            return count_traffic(fitted, self.engine.plans(fitted, self.run, self.strategy)[0][0])
        except SpillprofError:
            return None

    def has_to_spill(self) -> bool:
        """Whether every plan of the run spills, or no plan is possible."""
        try:
            problem = covering(self.fitted(), self.run.planning)
        except SpillprofError:
            return True
        return bool(problem.gaps or problem.forced_cost)


def runs_in_one(planning: PlanningOptions, program: Program) -> int:
    """Simulations per run, including its searches for an order or for recomputation.

    The joint choice counts as unaffordable, as each run would solve integer programs.
    """
    if planning.recompute is Recomputing.JOINT:
        return _NEVER
    runs = 1
    if planning.order is Order.MEMORY:
        trials = order_effort(steps_to_judge(program))
        runs += trials.restarts + trials.changes
    if planning.recompute is not Recomputing.OFF:
        runs += most_trials(planning.recompute, len(program.steps))
    return runs
