"""Lowering: from what the model says (Graph) to what the machine runs (Program)."""

from dataclasses import replace

from spillprof.ir.errors import ModelError
from spillprof.ir.graph import Graph
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.units import LARGEST_SIZE
from spillprof.lowering.algorithms import RunTime
from spillprof.lowering.aliasing import share_views
from spillprof.lowering.assembly import assemble
from spillprof.lowering.dead import remove_dead
from spillprof.lowering.deployment import as_deployed
from spillprof.lowering.draft import Draft
from spillprof.lowering.folding import fold_constants
from spillprof.lowering.fusion import fuse_chains
from spillprof.lowering.measured import with_measured_times
from spillprof.lowering.options import Fuse, LoweringOptions, Views
from spillprof.lowering.pair_fusion import fuse_pairs
from spillprof.lowering.quantisation import absorb_quantisation
from spillprof.lowering.schedule import first_draft
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
    """``ModelError`` if sums of sizes would not stay exact, or would pass for infinite memory."""
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

    Control flow is unfolded first, so that no other pass has to know of it. Q/DQ pairs are absorbed before folding,
    or each dequantised weight would fold into its float form; views are shared before chains are fused, so that a
    Reshape does not break a chain.
    """
    unfolded = unfold(as_deployed(graph, options), options)
    draft = replace(
        first_draft(unfolded.graph),
        blocks=unfolded.blocks,
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
