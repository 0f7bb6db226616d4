"""Run: a model, a target and options, as the command passes them to every stage."""

from dataclasses import dataclass, field, replace
from typing import Any

from spillprof.ir.graph import Graph
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Timeline
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import Inputs, PlanningOptions, Start, WriteBack
from spillprof.verify import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A model, the target it runs on, and the options of lowering and planning. The strategy is a separate argument."""

    graph: Graph
    target: Target
    lowering: LoweringOptions = field(default_factory=LoweringOptions)
    planning: PlanningOptions = field(default_factory=PlanningOptions)

    def at(self, sram_bytes: int) -> "Run":
        """The run with another SRAM size."""
        return self if sram_bytes == self.target.sram_bytes else self.on(sram_bytes=sram_bytes)

    def on(self, **fields: Any) -> "Run":
        """The run with target fields replaced by ``Target.with_overrides``."""
        return replace(self, target=self.target.with_overrides(**fields))

    def lowered(self, **options: Any) -> "Run":
        """The run with some lowering options replaced."""
        return replace(self, lowering=replace(self.lowering, **options))

    def planned(self, **options: Any) -> "Run":
        """The run with some planning options replaced."""
        return replace(self, planning=replace(self.planning, **options))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPlan:
    """A program, a plan of it with issue times, and the timeline of the plan."""

    program: Program
    plan: Plan
    timeline: Timeline


def terms_of(options: PlanningOptions) -> Terms:
    """The rules that the planning options set for every plan."""
    return Terms(
        inputs_resident=options.inputs is Inputs.RESIDENT,
        cold=options.start is Start.COLD,
        rewrites=options.writeback is WriteBack.ALWAYS,
    )
