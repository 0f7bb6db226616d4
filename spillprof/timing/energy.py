"""Energy of a run: bytes at each level of memory, and multiply-accumulates."""

from collections import Counter
from functools import cache

from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import Energy


def energy_of(program: Program, plan: Plan, target: Target) -> Energy:
    """Joules of the whole run by level, all DRAM traffic included (spill, compulsory, streamed operands, weights).

    SRAM is charged for what the steps touch, for every byte that DMA puts in or takes out, and twice (read and
    write) for what compaction moves.
    """
    read = written = 0
    for t in plan.transfers:
        if t.kind.is_read:
            read += t.size_bytes
        else:
            written += t.size_bytes
    read += sum(s.size_bytes for s in plan.streamed if not s.write)
    read += sum([step.weight_stream_bytes for step in program.steps])
    written += sum(s.size_bytes for s in plan.streamed if s.write)
    touched = sum([step.touched_bytes for step in program.steps])
    moved = sum(move.size_bytes for move in plan.moves)
    return Energy(
        dram_read_j=read * target.dram_read_j_per_byte,
        dram_write_j=written * target.dram_write_j_per_byte,
        sram_j=(touched + read + written + 2 * moved) * target.sram_j_per_byte,
        mac_j=_macs_j(program, target),
    )


def _macs_j(program: Program, target: Target) -> float:
    """Joules of all multiply-accumulates: those of equal price are counted before they are priced."""
    price_j = cache(target.mac_energy_j)
    macs: Counter[float] = Counter()
    for step in program.steps:
        macs[price_j(step.mac_dtype)] += step.macs
    return sum(count * each_j for each_j, count in macs.items())
