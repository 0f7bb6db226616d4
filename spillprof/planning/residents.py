"""Graph inputs that are on-chip for the whole run."""

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.options import Inputs, PlanningOptions


def resident_inputs(program: Program, options: PlanningOptions) -> frozenset[int]:
    """The inputs, under ``--inputs resident``. ``CapacityError`` if an oversized step reads one from DRAM."""
    if options.inputs is not Inputs.RESIDENT:
        return frozenset()
    for step in program.steps:
        for b in step.streamed_reads:
            if program.buffers[b].kind is BufferKind.INPUT:
                raise CapacityError(
                    f"graph input '{program.buffers[b].name}' cannot stay on-chip: "
                    f"operator '{step.name}' does not fit beside it and tiles it through DRAM",
                    hint="load inputs on demand (--inputs on-demand), or give more --sram",
                )
    return frozenset(b.index for b in program.buffers if b.kind is BufferKind.INPUT)
