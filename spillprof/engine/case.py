"""One program on one machine: what every strategy on it, and every question about one, starts from."""

from dataclasses import dataclass

from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program, unfitted and fitted, its target and the options that made it."""

    program: Program  # in the order that was asked for
    fitted: Program
    target: Target
    lowering: LoweringOptions
    planning: PlanningOptions
