"""What analyze simulates: strategies, lowering, planning; and the names under which results show it."""

from dataclasses import dataclass, field
from typing import Any

from spillprof.engine.run import Run
from spillprof.ir.graph import Graph
from spillprof.ir.target import Target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import OPTIMAL, Dma, PlanningOptions, Recomputing


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """What to simulate."""

    strategies: tuple[str, ...] = ()  # empty: all, but "optimal" only for models of few steps
    lowering: LoweringOptions = field(default_factory=LoweringOptions)
    planning: PlanningOptions = field(default_factory=PlanningOptions)
    what_if: bool = False  # also simulate dozens of changes, for Profile.suggestions; changes no other figure


def configuration(options: AnalyzeOptions) -> dict[str, Any]:
    """The options under the names that reports show."""
    lowering, planning = options.lowering, options.planning
    times = lowering.op_times
    return {
        **({} if times is None else {"op_times": times.digest}),
        "strategies": list(options.strategies),
        "placement": planning.placement,
        "weights": str(lowering.weights),
        "inputs": str(planning.inputs),
        "order": str(planning.order),
        "recompute": str(planning.recompute),
        **({"recompute_tensor": list(planning.recompute_tensor)} if planning.recompute_tensor else {}),
        "oversized": str(lowering.oversized),
        "fuse": str(lowering.fuse),
        **({"fuse_tensor": list(lowering.fuse_tensor)} if lowering.fuse_tensor else {}),
        "conv": str(lowering.conv),
        "inplace": lowering.inplace,
        "views": str(lowering.views),
        "fold": lowering.fold,
        "control_flow": str(lowering.control),
        "pin": list(lowering.pin),
        "act_dtype": lowering.act_dtype,
        "weight_dtype": lowering.weight_dtype,
        "prefetch": planning.dma is Dma.PREFETCH,
        "writeback": str(planning.writeback),
        "release": str(planning.release),
        "start": str(planning.start),
        **({"optimize_seconds": planning.optimize_seconds} if _is_timed(options) else {}),
    }


def _is_timed(options: AnalyzeOptions) -> bool:
    """Whether there are searches, and a time for them is given."""
    searches = OPTIMAL in options.strategies or options.planning.recompute is not Recomputing.OFF
    return searches and options.planning.optimize_seconds is not None


def run_of(graph: Graph, target: Target, options: AnalyzeOptions) -> Run:
    """The run that the options describe."""
    return Run(graph=graph, target=target, lowering=options.lowering, planning=options.planning)
