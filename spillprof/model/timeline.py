"""Timeline: a plan played on a target. Seconds exist only here and in what is made from it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Start and end of each step and transfer, in seconds from the start of the run."""

    step_start_s: Seconds  # shape (n_steps,)
    step_end_s: Seconds  # shape (n_steps,)
    transfer_start_s: Seconds  # shape (n_transfers,), order of Plan.transfers
    transfer_end_s: Seconds  # shape (n_transfers,)
    stall_s: Seconds  # shape (n_steps,): start of the step less end of the step before
    stall_transfer: Indices  # shape (n_steps,): the transfer that came last, index into Plan.transfers, or -1
    makespan_s: float  # until the last step has ended and the last transfer has landed
    compute_s: float  # sum of the steps' own compute times
    serial_cost_s: float  # all spill transfers one after another, no overlap
    energy_j: float
