"""Fast cost estimates of one order under one strategy, for compiler passes that need thousands of them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from spillprof.analysis.attribution import evictions
from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Bindings, Graph
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.fitting import fit, unlimited
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions
from spillprof.lowering.transforms import reordered
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import IDEAL, check_strategy
from spillprof.planning.traffic import count_traffic
from spillprof.timing.timeline import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Cost of an order under a strategy, with every transfer issued on demand."""

    spill_bytes: int  # spill write + spill read + streamed: what infinite SRAM would not move
    spill_write_bytes: int
    spill_read_bytes: int
    streamed_bytes: int
    spill_count: int
    latency_s: float  # with no lookahead: prefetching can only be faster
    energy_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProgram(Program):
    """A Program with the options that lowered it, such as where its weights live."""

    lowering: LoweringOptions


def load_program(
    model: str | Path | Graph, target: Target, lowering: LoweringOptions | None = None, **bindings: Any
) -> LoadedProgram:
    """Lower a model (a path or a Graph) for a target, to estimate any order of its steps.

    ``bindings`` as ``read_model`` takes them: ``dims``, ``shapes``, ``batch``. Raises ``SpillprofError``.
    """
    options = lowering or LoweringOptions()
    if isinstance(model, Graph):
        graph = model
    else:
        from spillprof.frontends import read_model

        graph = read_model(model, Bindings(**bindings))
    program = lower(graph, target, options)
    return LoadedProgram(lowering=options, **{f.name: getattr(program, f.name) for f in fields(program) if f.init})


def estimate(
    program: Program,
    target: Target,
    strategy: str = "cost",
    *,
    order: Sequence[int] | None = None,
    lowering: LoweringOptions | None = None,
    planning: PlanningOptions | None = None,
) -> Estimate:
    """The cost of a lowered program in an order (a permutation of its steps; None: as they stand).

    Computes only what the order changes: in-place results, fitting to ``target.sram_bytes``, the plan, one timeline.
    The program is not lowered again. ``lowering``: the options that lowered it; a program of ``load_program`` has them.
    ``CapacityError`` if no plan is possible, ``UsageError`` for an unknown strategy or other lowering options,
    ``ValueError`` if ``order`` is not a permutation.
    """
    check_strategy(strategy)
    steps = program if order is None else reordered(program, order)
    fitted = (unlimited if strategy == IDEAL else fit)(steps, target, _options_of(program, lowering))
    plan = make_plan(fitted, target, strategy, planning or PlanningOptions())
    traffic = count_traffic(fitted, plan)
    timeline = simulate(fitted, plan, target)
    return Estimate(
        spill_bytes=traffic.spill_bytes,
        spill_write_bytes=traffic.spill_write_bytes,
        spill_read_bytes=traffic.spill_read_bytes,
        streamed_bytes=traffic.streamed_bytes,
        spill_count=len(evictions(fitted, plan)),
        latency_s=timeline.makespan_s,
        energy_j=timeline.energy_j,
    )


def _options_of(program: Program, given: LoweringOptions | None) -> LoweringOptions:
    """The options that lowered the program. Only ``oversized`` may be given anew."""
    if not isinstance(program, LoadedProgram):
        return given or LoweringOptions()
    if given is not None and replace(given, oversized=program.lowering.oversized) != program.lowering:
        raise UsageError(
            "the program was lowered with other options",
            hint="leave lowering= out, or load the program again with the new ones",
        )
    return given or program.lowering
