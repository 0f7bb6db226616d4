"""What would help, and the story of one tensor or operator: who pushed it out, when, what it cost."""

from dataclasses import dataclass

ANY_CHANGE = "any change"
"""All that is untried where no run was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A re-simulated change. It saves against the result that reports lead with, for the same work."""

    change: str  # "pin", "sram", "order", ...
    argument: str  # what to add to the command line, as a shell takes it: "--pin skip_0"
    strategy: str  # under which it was simulated
    spill_bytes: int  # of one run with the change
    latency_s: float
    energy_j: float
    saves_s: float
    costs: str  # its price in words
    saves_bytes: int = 0  # spill bytes; less than none where the change saves time alone
    saves_j: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A gap between two uses that a buffer spends off-chip, all of it or in part."""

    buffer: str
    size_bytes: int
    last_use_step: int  # -1: it was not used before
    forced_by_step: int  # the step that needed the space
    forced_by: str  # its operator
    needed_step: int | None  # None: nobody reads it again
    needed_by: str | None
    write_bytes: int  # 0: DRAM had a copy, or needed one anyway
    read_bytes: int
    kind: str  # "capacity", "lifetime", "fragmentation" or "oversized"
    cause: str | None  # of most bytes of the step that forced it out, by re-simulation
    wait_s: float  # stalls, of whatever step, that its write-back or its reload is blamed for


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """A compaction move of a buffer inside SRAM."""

    step: int  # it moves when this step is about to start
    before: str  # the operator of that step
    from_address: int
    to_address: int
    took_s: float  # all moves of the step together, as they happen together


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStory:
    """One buffer under one strategy."""

    buffer: str
    tensors: tuple[str, ...]  # that are stored in it
    kind: str
    size_bytes: int
    dedicated: bool  # it lies in a slot of its own
    written_by_step: int | None  # None: there from the start
    written_by: str | None
    read_by_steps: tuple[int, ...]
    read_by: tuple[str, ...]
    held_by_step: int | None  # the last step that it is kept for without being read; None: there is none
    held_by: str | None
    absences: tuple[Absence, ...]  # in time order
    streamed_bytes: int  # tiled through DRAM by operators that cannot fit, beyond the compulsory
    spill_bytes: int
    wait_s: float
    pinned: Suggestion | None  # in a slot of its own; None: it lies still, has one, or does not fit
    stays: Suggestion | None  # the smallest SRAM found in which it lies still; None: it does, or none was found
    moves: tuple[Relocation, ...] = ()  # inside SRAM, in time order


@dataclass(frozen=True, slots=True, kw_only=True)
class Bystander:
    """A buffer that lies in SRAM while an operator runs that does not touch it."""

    buffer: str
    size_bytes: int
    next_use_step: int | None  # None: dead, but not freed yet; or a graph output, or a cached weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A buffer that an operator reads or writes."""

    buffer: str
    size_bytes: int
    role: str  # "reads", "writes", "reads, tiled" or "writes, tiled"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStory:
    """One step under one strategy."""

    step: int
    name: str
    op_type: str
    operators: tuple[str, ...]  # of the graph, that run in it
    demand_bytes: int  # that it needs at once, staging and workspaces outside of the shared block included
    pool_bytes: int  # of SRAM, what is not reserved
    operands: tuple[Operand, ...]
    bystanders: tuple[Bystander, ...]  # largest first
    victims: tuple[Absence, ...]  # what it pushed out
    streamed_bytes: int  # of its operands, beyond the compulsory
    cause: str | None  # of most of the bytes that it is charged with
    stall_s: float  # how long it waits before it starts
    stall_buffer: str | None  # for whom


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that has the name that was asked for, under one strategy."""

    asked: str
    strategy: str
    tensors: tuple[TensorStory, ...]
    operators: tuple[OperatorStory, ...]
