"""Suggestions, and the story of one tensor or operator: what evicted it, when, at what cost."""

from dataclasses import dataclass

ANY_CHANGE = "any change"
"""``Profile.untried`` if no what-if run was made at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A re-simulated change that improves the result that reports show first."""

    change: str  # "pin", "sram", "order", ...
    argument: str  # option to add to the command line, quoted for a shell: "--pin skip_0"
    strategy: str  # under which it was simulated
    spill_bytes: int  # of one run with the change
    latency_s: float
    energy_j: float
    saves_s: float
    costs: str  # what it costs, in words
    saves_bytes: int = 0  # spill bytes; negative if the change saves only time
    saves_j: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A spill: a gap between two uses that a buffer spends off-chip, in whole or in part."""

    buffer: str
    size_bytes: int
    last_use_step: int  # -1: it was not used before
    forced_by_step: int  # the step that needed the space
    forced_by: str  # its operator
    needed_step: int | None  # None: it is not read again
    needed_by: str | None
    write_bytes: int  # 0: DRAM has a valid copy, or the write is compulsory
    read_bytes: int
    kind: str  # "capacity", "lifetime", "fragmentation" or "oversized"
    cause: str | None  # of most spill bytes of the forcing step, by re-simulation
    wait_s: float  # stalls of any step caused by its write-back or its reload


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """A compaction move of a buffer inside SRAM."""

    step: int  # it moves when this step is about to start
    before: str  # the operator of that step
    from_address: int
    to_address: int
    took_s: float  # all moves of the step together


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStory:
    """One buffer under one strategy."""

    buffer: str
    tensors: tuple[str, ...]  # that are stored in it
    kind: str
    size_bytes: int
    dedicated: bool  # it has a dedicated slot
    written_by_step: int | None  # None: present at the start
    written_by: str | None
    read_by_steps: tuple[int, ...]
    read_by: tuple[str, ...]
    held_by_step: int | None  # last step that holds it without reading it
    held_by: str | None
    absences: tuple[Absence, ...]  # in time order
    streamed_bytes: int  # tiled through DRAM by operators that cannot fit, beyond the compulsory
    spill_bytes: int
    wait_s: float
    pinned: Suggestion | None  # with a dedicated slot; None: never evicted, has one already, or it does not fit
    stays: (
        Suggestion | None
    )  # with the smallest SRAM found in which it is never evicted; None: it never is, or none was found
    moves: tuple[Relocation, ...] = ()  # inside SRAM, in time order


@dataclass(frozen=True, slots=True, kw_only=True)
class Bystander:
    """A buffer in SRAM during a step that does not use it."""

    buffer: str
    size_bytes: int
    next_use_step: int | None  # None: dead but not freed yet, a graph output, or a cached weight


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
    operators: tuple[str, ...]  # graph operators that run in it
    demand_bytes: int  # needed at once; staging included, and workspaces outside of the shared block
    pool_bytes: int  # SRAM that is not reserved
    operands: tuple[Operand, ...]
    bystanders: tuple[Bystander, ...]  # largest first
    victims: tuple[Absence, ...]  # spills that it forced
    streamed_bytes: int  # of its operands, beyond the compulsory
    cause: str | None  # of most spill bytes charged to it
    stall_s: float  # before it starts
    stall_buffer: str | None  # buffer that it waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Answer to ``--why``: every tensor and operator of that name, under one strategy."""

    asked: str
    strategy: str
    tensors: tuple[TensorStory, ...]
    operators: tuple[OperatorStory, ...]
