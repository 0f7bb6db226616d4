"""What one transfer of a buffer costs alone, in seconds: the currency in which planners weigh evictions."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillprof.ir.program import Program
from spillprof.ir.target import Target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransferCosts:
    """Set-up + bytes / bandwidth for every buffer. Shape (n_buffers,), float64."""

    read_s: npt.NDArray[np.float64]
    write_s: npt.NDArray[np.float64]


def transfer_costs(program: Program, target: Target) -> TransferCosts:
    """Costs of reading and writing each buffer of the program on the target."""
    sizes = np.array([b.moved_bytes for b in program.buffers], dtype=np.float64)
    return TransferCosts(
        read_s=target.dram_read_setup_s + sizes / target.dram_read_bytes_per_s,
        write_s=target.dram_write_setup_s + sizes / target.dram_write_bytes_per_s,
    )
