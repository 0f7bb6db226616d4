"""The rules of a legal plan, the options that decide what is legal, and violations."""

from dataclasses import dataclass
from enum import StrEnum


class PlanRule(StrEnum):
    """A rule that every legal plan keeps."""

    MALFORMED = "malformed"  # every buffer, step, tick and segment that it names exists
    OTHER_TERMS = "other-terms"  # inputs, cached weights and repeated writes are as the options of planning say
    RESERVED = "reserved"  # the reserved part is the program's; a dedicated buffer lies in its own slot
    OUT_OF_RANGE = "out-of-range"  # everything else lies between the reserved part and the capacity
    MISALIGNED = "misaligned"  # addresses are multiples of the alignment
    OVERLAP = "overlap"  # what is on-chip at the same time does not share addresses
    OPERAND_ABSENT = "operand-absent"  # operands that are not streamed are on-chip in the phases that need them
    SCRATCH_ABSENT = "scratch-absent"  # workspaces and stream staging have space
    SCRATCH_UNKNOWN = "scratch-unknown"  # nothing else has scratch
    BAD_UPDATE = "bad-update"  # an in-place result takes over the place of the operand that it replaces
    BAD_SEGMENT = "bad-segment"  # no buffer is on-chip before it is written, or at two addresses at once
    NOT_FILLED = "not-filled"  # a segment starts with a write, a move or exactly one read from DRAM
    NOT_STEADY = "not-steady"  # a weight that is on-chip at the start is there, at that place, at the end
    EVICTED_PINNED = "evicted-pinned"  # a dedicated buffer never leaves
    NO_DRAM_COPY = "no-dram-copy"  # what is read from DRAM was there at the start or was written before
    BAD_TRANSFER = "bad-transfer"  # transfers have the right size, kind and order, while the data is on-chip
    NEEDLESS_WRITE = "needless-write"  # what DRAM holds is not written again; one write empties a place
    BAD_STREAM = "bad-stream"  # only what the program streams is streamed, and it is off-chip meanwhile
    BAD_MODE = "bad-mode"  # tiles are of the step's loops, and need and move what the plan says
    BAD_MOVE = "bad-move"  # a compaction move joins two segments of its buffer
    BAD_SPILL = "bad-spill"  # each gap that a buffer spends off-chip has one record, which is right
    HELD_LOST = "held-lost"  # what the branch not taken may read is kept until the condition is known
    OUTPUT_LOST = "output-lost"  # every graph output is written to DRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that the plan breaks, and where."""

    rule: PlanRule
    message: str
    step: int | None = None
    buffer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Planning options that decide what is legal. They come from the caller, never from the plan."""

    inputs_resident: bool = False  # graph inputs are on-chip from start to end; else each is loaded
    cold: bool = False  # the first inference: no cached weight is on-chip before it
    rewrites: bool = False  # each eviction of what was computed writes; else only where DRAM has no copy
