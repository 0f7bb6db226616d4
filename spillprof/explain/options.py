"""Options of analyze: strategies, lowering and planning, and their names in results."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spillprof.ir.option_rows import config_json, option_field
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions, Recomputing
from spillprof.planning.strategies import OPTIMAL

if TYPE_CHECKING:  # the command line imports this module to show its help
    from spillprof.engine.run import Run
    from spillprof.ir.graph import Graph
    from spillprof.ir.target import Target

_FIRST = (
    "op_times", "strategies", "placement", "weights", "inputs", "order", "recompute", "recompute_tensor", "oversized"
)  # fmt: skip
"""Options that results list first; the others follow in the order of their fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """Options of ``analyze``."""

    strategies: tuple[str, ...] = option_field(  # empty: all, but "optimal" only for models of few steps
        (), "--strategy", "Strategies to simulate.", json_name="strategies",
        by_command="gate takes one strategy, the others several; their defaults differ",
    )  # fmt: skip
    lowering: LoweringOptions = field(default_factory=LoweringOptions)
    planning: PlanningOptions = field(default_factory=PlanningOptions)
    what_if: bool = option_field(
        False, "--what-if", "Also simulate dozens of changes, and list those that help.",
        by_command="analyze alone lists suggestions",
        not_in_json="it changes no figure",
    )  # fmt: skip


def configuration(options: AnalyzeOptions) -> dict[str, Any]:
    """The options by their names in results."""
    found = config_json((options, options.lowering, options.planning))
    if OPTIMAL not in options.strategies and options.planning.recompute is Recomputing.OFF:
        found.pop("optimize_seconds", None)  # nothing is searched
    return {name: found[name] for name in (*_FIRST, *found) if name in found}


def run_of(graph: "Graph", target: "Target", options: AnalyzeOptions) -> "Run":
    """The run that the options describe."""
    from spillprof.engine.run import Run

    return Run(graph=graph, target=target, lowering=options.lowering, planning=options.planning)
