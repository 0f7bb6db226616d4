"""Run: a model on a machine under options. The one value that carries them from the command to every stage."""

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
    """A model, the target it runs on, and the options of lowering and planning. The strategy is asked for beside it."""

    graph: Graph
    target: Target
    lowering: LoweringOptions = field(default_factory=LoweringOptions)
    planning: PlanningOptions = field(default_factory=PlanningOptions)

    def at(self, sram_bytes: int) -> "Run":
        """The same run in another size of SRAM."""
        return self if sram_bytes == self.target.sram_bytes else self.on(sram_bytes=sram_bytes)

    def on(self, **fields: Any) -> "Run":
        """The same run on a target with some fields replaced, as ``Target.with_overrides`` does it."""
        return replace(self, target=self.target.with_overrides(**fields))

    def lowered(self, **options: Any) -> "Run":
        """The same run with some options of lowering replaced."""
        return replace(self, lowering=replace(self.lowering, **options))

    def planned(self, **options: Any) -> "Run":
        """The same run with some options of planning replaced."""
        return replace(self, planning=replace(self.planning, **options))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPlan:
    """A program, a verified plan of it with its transfers issued, and the timeline of that."""

    program: Program
    plan: Plan
    timeline: Timeline


def terms_of(options: PlanningOptions) -> Terms:
    """What the options of planning ask of any plan."""
    return Terms(
        inputs_resident=options.inputs is Inputs.RESIDENT,
        cold=options.start is Start.COLD,
        rewrites=options.writeback is WriteBack.ALWAYS,
    )
