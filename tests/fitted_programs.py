"""Random Programs fitted to so little memory that operators have to tile operands through DRAM."""

from random import Random

from programs import target
from random_programs import ALIGNMENT, random_program

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import step_demand_bytes


def streaming_machine(sram_bytes: int, staging_bytes: int) -> Target:
    """A machine whose set-up times make small buffers dear."""
    return target(
        sram_bytes=sram_bytes,
        alignment_bytes=ALIGNMENT,
        stream_staging_bytes=staging_bytes,
        shared_workspace=False,
        dram_read_setup_s=8.0,
        dram_write_setup_s=4.0,
        dram_read_j_per_byte=2.0,
        dram_write_j_per_byte=3.0,
        sram_j_per_byte=0.5,
        mac_j=1.0,
        macs_per_s={"default": 100.0},
    )


def streaming_case(seed: int) -> tuple[Program, Target] | None:
    """(fitted program, its machine), capacity a half to all of the largest step's demand; None if impossible."""
    rng = Random(seed)
    program = random_program(seed)
    demand = max(step_demand_bytes(program, step) for step in program.steps)
    share = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    sram = program.reserved_bytes + int(demand * share) // ALIGNMENT * ALIGNMENT
    machine = streaming_machine(sram, ALIGNMENT * rng.choice([1, 1, 2]))
    try:
        return fit(program, machine, LoweringOptions()), machine
    except CapacityError:
        return None
