"""Timeline: a plan played on a target, in seconds."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from spillprof.ir.result import Energy

Seconds = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class JobKind(IntEnum):
    """Work other than computing."""

    FETCH = 0  # first load of a graph input (or, cold, of a cached weight)
    RELOAD = 1
    WRITE_BACK = 2
    DRAIN = 3  # a graph output's write
    WEIGHTS = 4  # streamed weights of a step: one job for what is prefetched, one for the rest
    STREAM_IN = 5  # an operand of an oversized step, read from DRAM
    STREAM_OUT = 6  # an operand of an oversized step, written to DRAM
    MOVE = 7  # the compaction moves of a step, inside SRAM
    JOINT = 8  # no work: a point that waits for several jobs

    @property
    def is_read(self) -> bool:
        """Whether DRAM is read (bytes come on-chip)."""
        return self in (JobKind.FETCH, JobKind.RELOAD, JobKind.WEIGHTS, JobKind.STREAM_IN)

    @property
    def is_write(self) -> bool:
        """Whether DRAM is written."""
        return self in (JobKind.WRITE_BACK, JobKind.DRAIN, JobKind.STREAM_OUT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Jobs:
    """Transfers, streams and moves, in plan order. Shape of each array: (n_jobs,)."""

    kind: Indices  # JobKind
    size_bytes: Indices
    step: Indices  # step that needs, evicts or streams it
    transfer: Indices  # index into Plan.transfers, or -1
    queued_s: Seconds  # when it was issued
    start_s: Seconds  # when it got a channel: set-up begins (a move: when it begins)
    flow_s: Seconds  # when its first byte is on the bus
    end_s: Seconds
    flow_alone_s: Seconds  # duration from ``flow_s`` to ``end_s`` without other traffic
    cause: Indices  # node whose end it waited for, or -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Start and end of each step and transfer, in seconds from the start of the run.

    A *node* is a step or a job: step ``i`` is node ``i``, job ``j`` is node ``n_steps + j``. Causes are what came
    last: the chain of causes leads from any start back to the start of the run without a gap.
    """

    step_start_s: Seconds  # shape (n_steps,)
    step_end_s: Seconds  # shape (n_steps,): it has computed, and all that it streams has passed
    step_compute_s: Seconds  # shape (n_steps,): its own compute time
    step_core: Indices  # shape (n_steps,): the compute unit that it runs on
    step_cause: Indices  # shape (n_steps,): node whose end it waited for, or -1
    step_end_cause: Indices  # shape (n_steps,): node that ended last: a job, or the step itself
    transfer_start_s: Seconds  # shape (n_transfers,), order of Plan.transfers
    transfer_end_s: Seconds  # shape (n_transfers,)
    stall_s: Seconds  # shape (n_steps,): how long a free compute unit waited for a job before the step (one core:
    # start of the step less end of the step before)
    stall_transfer: Indices  # shape (n_steps,): transfer that it waited for, index into Plan.transfers, or -1
    stall_kind: Indices  # shape (n_steps,): JobKind that it waited for, or -1
    jobs: Jobs
    makespan_s: float  # until the last step has ended and the last transfer has landed
    compute_s: float  # sum of the steps' own compute times
    serial_cost_s: float  # sum of all spill transfers, without overlap
    energy: Energy

    @property
    def energy_j(self) -> float:
        """Joules of the whole run."""
        return self.energy.total_j


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BusCurve:
    """Load of the bus as a step function: each value holds until the next time, the last one to the end.

    Shape of each array: (n_moments,). Divided by the bandwidth of the direction, or of the bus: the share in use.
    """

    time_s: Seconds
    read_bytes_per_s: Seconds
    write_bytes_per_s: Seconds
    background_bytes_per_s: Seconds
