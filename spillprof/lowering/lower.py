"""Lowering: from what the model says (Graph) to what the machine runs (Program)."""

from dataclasses import replace

from spillprof.ir.errors import ModelError, UsageError
from spillprof.ir.graph import Graph
from spillprof.ir.op_times import OpTimes, TimeUnit
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.units import LARGEST_SIZE
from spillprof.lowering.algorithms import RunTime
from spillprof.lowering.aliasing import share_views
from spillprof.lowering.assembly import assemble
from spillprof.lowering.deployment import as_deployed
from spillprof.lowering.draft import Draft, first_draft
from spillprof.lowering.folding import fold_constants, remove_dead
from spillprof.lowering.fusion import fuse_chains, fuse_pairs
from spillprof.lowering.options import Fuse, LoweringOptions, Views
from spillprof.lowering.quantisation import absorb_quantisation
from spillprof.lowering.unfolding import unfold


def lower(graph: Graph, target: Target, options: LoweringOptions, run_s: RunTime | None = None) -> Program:
    """The Program of a Graph, not yet fitted to a memory: no capacity, no reservations, no streamed operands.

    ``run_s``: seconds that a candidate program takes, which ``ConvAlgorithm.AUTO`` needs (``Engine.lowered`` gives it).
    ``ModelError`` for a graph that cannot run, ``UsageError`` for a tensor that cannot be pinned or fused
    over, or for measured times of which none belongs to the model.
    """
    program = assemble(make_draft(graph, target, options), target, options, run_s)
    _check_total(program)
    return program if options.op_times is None else with_measured_times(program, options.op_times, target)


def _check_total(program: Program) -> None:
    """Raises ``ModelError`` if the sum of all sizes exceeds the largest exact size."""
    total = sum(b.size_bytes for b in program.buffers)
    total += sum(w.size_bytes for step in program.steps for w in step.workspaces)
    if total > LARGEST_SIZE:
        largest = max(program.buffers, key=lambda b: b.size_bytes, default=None)
        raise ModelError(
            f"the tensors of the model add up to more than {LARGEST_SIZE:,} bytes",
            where=() if largest is None else (f"the largest is {largest.name} with {largest.size_bytes:,} bytes",),
            hint="are the dimensions right? a smaller batch, --dim or --shape binds others",
        )


def make_draft(graph: Graph, target: Target, options: LoweringOptions) -> Draft:
    """All passes up to the assembly: task ``i`` of the draft becomes step ``i``.

    Control flow is unfolded first, so that no other pass deals with it. Q/DQ pairs are absorbed before folding,
    or each dequantised weight would fold into its float form; views are shared before chains are fused, so that a
    Reshape does not break a chain.
    """
    unfolded = unfold(as_deployed(graph, options), options)
    draft = replace(
        first_draft(unfolded.graph),
        control_steps=unfolded.control_steps,
        control_flow=unfolded.control_flow,
        removed_operators=unfolded.removed_operators,
    )
    if options.fuse is Fuse.STANDARD:
        draft = absorb_quantisation(draft)
    if options.fold:
        draft = remove_dead(fold_constants(draft, options))
    if options.views is Views.SHARE:
        draft = share_views(draft, target)
    if options.fuse is Fuse.STANDARD:
        draft = fuse_chains(draft)
    return fuse_pairs(draft, options.fuse_tensor)


def with_measured_times(program: Program, times: OpTimes, target: Target) -> Program:
    """The program with ``measured_s`` of each step that has a measured operator: the sum of the measured times.

    A runtime reports a fused operator under one of its names, so operators of a step without a time add nothing.
    ``UsageError`` if no name matches, or if times in cycles meet a target without a clock.
    """
    if times.unit is TimeUnit.CYCLES and target.clock_hz is None:
        raise UsageError(
            f"the times are in cycles, and target '{target.name}' has no clock",
            where=(times.source,),
            hint="add clock_hz = '1GHz' to a target of your own",
        )
    seconds = times.seconds(target.clock_hz)
    steps = []
    for step in program.steps:
        measured = [seconds[name] for name in step.operators if name in seconds]
        steps.append(replace(step, measured_s=sum(measured)) if measured else step)
    if program.steps and all(step.measured_s is None for step in steps):
        in_file = ", ".join(f"'{name}'" for name, _ in times.times[:3])
        in_model = ", ".join(f"'{step.name}'" for step in program.steps[:3])
        raise UsageError(
            "no operator of the model has a time in the file",
            where=(times.source,),
            hint=f"operators go by their names in the model: the file has {in_file}, the model {in_model}",
        )
    return replace(program, steps=tuple(steps))
