"""One order, one strategy, one figure after another: for a compiler's passes, which ask thousands of times."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spillprof.lowering.fitting import fit, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions
from spillprof.lowering.reordering import reordered
from spillprof.model.graph import Graph
from spillprof.model.program import Program
from spillprof.model.target import Target
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import IDEAL, check_strategy, make_plan
from spillprof.planning.traffic import count_traffic
from spillprof.timing.timeline import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an order costs under a strategy, every transfer issued when it is needed."""

    spill_bytes: int  # spill write + spill read + streamed: what infinite SRAM would not move
    spill_write_bytes: int
    spill_read_bytes: int
    streamed_bytes: int
    spill_count: int
    latency_s: float  # with no lookahead: prefetching can only be faster
    energy_j: float


def load_program(
    model: str | Path | Graph, target: Target, lowering: LoweringOptions | None = None, **bindings: object
) -> Program:
    """The steps of a model (a path to an ONNX file, or a Graph), lowered for a target, to be estimated in any order.

    ``bindings`` as ``read_onnx`` takes them: ``dims``, ``shapes``, ``batch``. Raises ``SpillprofError``.
    """
    if isinstance(model, Graph):
        return lower(model, target, lowering or LoweringOptions())
    from spillprof.frontends.onnx import read_onnx

    return lower(read_onnx(model, **bindings), target, lowering or LoweringOptions())  # type: ignore[arg-type]


def estimate(
    program: Program,
    target: Target,
    strategy: str = "cost",
    *,
    order: Sequence[int] | None = None,
    lowering: LoweringOptions | None = None,
    planning: PlanningOptions | None = None,
) -> Estimate:
    """The cost of a lowered program's steps in an order (positions of its steps; None: as they stand).

    Only what the order changes is computed: in-place results, fitting to ``target.sram_bytes``, the plan, one
    timeline. The program, costs of operators included, is used as it is. ``lowering`` are the options that it was
    lowered with. ``CapacityError`` if no plan is possible, ``UsageError`` for an unknown strategy, ``ValueError`` for
    an order that is none.
    """
    check_strategy(strategy)
    steps = program if order is None else reordered(program, order)
    fitted = (unlimited if strategy == IDEAL else fit)(steps, target, lowering or LoweringOptions())
    plan = make_plan(fitted, target, strategy, planning or PlanningOptions())
    traffic = count_traffic(fitted, plan)
    timeline = simulate(fitted, plan, target)
    return Estimate(
        spill_bytes=traffic.spill_bytes,
        spill_write_bytes=traffic.spill_write_bytes,
        spill_read_bytes=traffic.spill_read_bytes,
        streamed_bytes=traffic.streamed_bytes,
        spill_count=len(plan.spills),
        latency_s=timeline.makespan_s,
        energy_j=timeline.energy_j,
    )
