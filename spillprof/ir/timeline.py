"""Timeline: a plan played on a target. Seconds exist only here and in what is made from it."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class JobKind(IntEnum):
    """What is done besides computing."""

    FETCH = 0  # first load of a graph input (or, cold, of a cached weight)
    RELOAD = 1
    WRITE_BACK = 2
    DRAIN = 3  # a graph output's write
    WEIGHTS = 4  # streamed weights of a step: what comes early is one job, the rest another
    STREAM_IN = 5  # an operand of an oversized step, read from DRAM
    STREAM_OUT = 6  # the same, written to it
    MOVE = 7  # the compaction moves of a step, inside SRAM
    JOINT = 8  # nothing: a point where several things must be over

    @property
    def is_read(self) -> bool:
        """Whether DRAM is read (bytes come on-chip)."""
        return self in (JobKind.FETCH, JobKind.RELOAD, JobKind.WEIGHTS, JobKind.STREAM_IN)

    @property
    def is_write(self) -> bool:
        """Whether DRAM is written."""
        return self in (JobKind.WRITE_BACK, JobKind.DRAIN, JobKind.STREAM_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Joules of a run by level. All DRAM traffic is in it: spill, compulsory, streamed operands, weights."""

    dram_read_j: float
    dram_write_j: float
    sram_j: float  # what steps touch, what DMA puts in or takes out, and twice what compaction moves
    mac_j: float

    @property
    def total_j(self) -> float:
        """All levels together."""
        return self.dram_read_j + self.dram_write_j + self.sram_j + self.mac_j


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Jobs:
    """All that is done besides computing, in plan order. Shape of each array: (n_jobs,)."""

    kind: Indices  # JobKind
    size_bytes: Indices
    step: Indices  # that it is for: that needs it, evicts it or streams it
    transfer: Indices  # index into Plan.transfers, or -1
    queued_s: Seconds  # when it was issued
    start_s: Seconds  # when it got a channel: set-up begins (a move: when it begins)
    flow_s: Seconds  # when its first byte is on the bus
    end_s: Seconds
    flow_alone_s: Seconds  # what it would take from ``flow_s`` to ``end_s`` if it were alone
    cause: Indices  # the node whose end let it start, or -1


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
    step_cause: Indices  # shape (n_steps,): the node whose end let it start, or -1
    step_end_cause: Indices  # shape (n_steps,): the job that it ended with, as a node; itself if it computed to its end
    transfer_start_s: Seconds  # shape (n_transfers,), order of Plan.transfers
    transfer_end_s: Seconds  # shape (n_transfers,)
    stall_s: Seconds  # shape (n_steps,): how long a free compute unit waited for a job before the step (one core:
    # start of the step less end of the step before)
    stall_transfer: Indices  # shape (n_steps,): the transfer that came last, index into Plan.transfers, or -1
    stall_kind: Indices  # shape (n_steps,): JobKind of what came last; -1 where nothing was waited for
    jobs: Jobs
    makespan_s: float  # until the last step has ended and the last transfer has landed
    compute_s: float  # sum of the steps' own compute times
    serial_cost_s: float  # all spill transfers one after another, no overlap
    energy: Energy

    @property
    def energy_j(self) -> float:
        """Joules of the whole run."""
        return self.energy.total_j


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BusCurve:
    """What the bus carries, as a step function: each value holds from its moment to the next, the last one to the end.

    Shape of each array: (n_moments,). Divided by the bandwidth of the direction, or of the bus: the share in use.
    """

    time_s: Seconds
    read_bytes_per_s: Seconds
    write_bytes_per_s: Seconds
    background_bytes_per_s: Seconds
