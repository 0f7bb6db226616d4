"""Graph inputs that are on-chip for the whole run."""

from spillprof.model.program import BufferKind, Program
from spillprof.planning.options import Inputs, PlanningOptions


def resident_inputs(program: Program, options: PlanningOptions) -> frozenset[int]:
    """Inputs that never leave under ``--inputs resident``: all but those that an oversized step reads from DRAM."""
    if options.inputs is not Inputs.RESIDENT:
        return frozenset()
    streamed = {b for step in program.steps for b in step.streamed_reads}
    return frozenset(b.index for b in program.buffers if b.kind is BufferKind.INPUT and b.index not in streamed)
