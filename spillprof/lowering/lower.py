"""Lowering: from what the model says (Graph) to what the machine runs (Program)."""

from dataclasses import replace

from spillprof.lowering.aliasing import share_views
from spillprof.lowering.assembly import assemble
from spillprof.lowering.dead import remove_dead
from spillprof.lowering.deployment import as_deployed
from spillprof.lowering.draft import Draft
from spillprof.lowering.folding import fold_constants
from spillprof.lowering.fusion import fuse_chains
from spillprof.lowering.measured import with_measured_times
from spillprof.lowering.options import Fuse, LoweringOptions, Views
from spillprof.lowering.quantisation import absorb_quantisation
from spillprof.lowering.schedule import first_draft
from spillprof.lowering.unfolding import unfold
from spillprof.model.graph import Graph
from spillprof.model.program import Program
from spillprof.model.target import Target


def lower(graph: Graph, target: Target, options: LoweringOptions) -> Program:
    """The Program of a Graph, not yet fitted to a memory: no capacity, no reservations, no streamed operands.

    ``ModelError`` for a graph that cannot run, ``UsageError`` for a tensor that cannot be pinned, or for
    measured times of which none belongs to the model.
    """
    program = assemble(make_draft(graph, target, options), target, options)
    return program if options.op_times is None else with_measured_times(program, options.op_times, target)


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
    return draft
