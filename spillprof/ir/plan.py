"""Plan: where each buffer is at each tick, and every transfer. Also the words for how a search ended.

Planners, and files of other tools, make plans; the verifier, the timeline and the reports read them.
"""

from dataclasses import dataclass
from enum import StrEnum

from spillprof.ir.fast_init import fast_init
from spillprof.ir.modes import StepMode


class TransferKind(StrEnum):
    """Why bytes move between SRAM and DRAM."""

    FETCH = "fetch"  # first load of a graph input (or, cold, of a cached weight): compulsory, SRAM <- DRAM
    RELOAD = "reload"  # return of a spilled buffer, SRAM <- DRAM
    WRITE_BACK = "write-back"  # of a buffer that is still to be read, SRAM -> DRAM
    DRAIN = "drain"  # a graph output's compulsory write, SRAM -> DRAM

    is_read: bool  # whether DRAM is read (bytes come on-chip)

    def __init__(self, word: str) -> None:
        self.is_read = word in ("fetch", "reload")  # an attribute: read for every transfer


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A maximal stretch of ticks ``[start, end)`` in which a buffer is on-chip at one address."""

    buffer: int
    start: int
    end: int
    address: int


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One DMA transfer of a whole buffer. Issued when step ``issue_step`` is about to start.

    Reads fill ``segment`` (an index into Plan.segments) and must land before step ``needed_step`` starts.
    Writes empty it: ``needed_step`` is the step that evicts it (for a drain: that follows its last use).
    The last write may be issued at step ``n_steps``, after all steps.
    """

    kind: TransferKind
    buffer: int
    size_bytes: int
    issue_step: int
    needed_step: int
    segment: int


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Spill:
    """One gap in which a buffer that is still to be read is off-chip."""

    buffer: int
    last_use_step: int  # the use (or write) before the gap
    evict_step: int  # it leaves SRAM when this step is about to start
    needed_step: int | None  # the next use; None: it is never read again (a runtime that frees late wrote it back);
    # of a cached weight whose next use is in the next inference: that step + n_steps
    forced_by_step: int  # the step that needed the space
    written: bool  # a write-back was made for this spill (False: a valid DRAM copy existed already)
    reloaded: bool = True  # False: the next use streams it from DRAM, so it is never reloaded
    fragmentation: bool = False  # enough bytes were free, but not in one piece


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedOperand:
    """An operand that a step tiles through DRAM, in one direction.

    A result whose partial sums come back has two entries.
    """

    step: int
    buffer: int
    size_bytes: int  # of all passes
    write: bool  # True: written to DRAM; False: read from it
    transfers: int = 1  # tiles that it comes in, each with a set-up


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Compaction move inside SRAM, when step ``step`` is about to start. Costs read + write of SRAM bandwidth."""

    buffer: int
    step: int
    size_bytes: int
    from_address: int
    to_address: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """Address of a workspace or staging buffer of one step, in ticks ``[start, end)``."""

    step: int
    purpose: str  # of the workspace, or "stream staging"
    size_bytes: int
    address: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All residency segments, transfers, spills, streamed operands and moves of one schedule."""

    strategy: str
    capacity_bytes: int | None  # None: infinite
    reserved_bytes: int
    segments: tuple[Segment, ...]  # by start, then address
    transfers: tuple[Transfer, ...]  # in issue order: a channel serves its queue in this order
    spills: tuple[Spill, ...] = ()  # by evict_step
    streamed: tuple[StreamedOperand, ...] = ()
    modes: tuple[StepMode, ...] = ()  # of the steps that run in tiles, by step
    moves: tuple[Move, ...] = ()  # by step
    scratch: tuple[Scratch, ...] = ()  # by step
    inputs_resident: bool = False  # graph inputs are on-chip before the run starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """DRAM bytes of a plan. ``spill_bytes`` is what infinite SRAM would not move."""

    compulsory_read_bytes: int  # inputs once, weights once per step that streams them
    compulsory_write_bytes: int  # outputs once
    spill_write_bytes: int
    spill_read_bytes: int
    streamed_read_bytes: int  # of oversized operators, beyond the compulsory
    streamed_write_bytes: int
    moved_bytes: int  # compaction, inside SRAM: not DRAM traffic

    @property
    def streamed_bytes(self) -> int:
        """Streamed bytes in both directions."""
        return self.streamed_read_bytes + self.streamed_write_bytes

    @property
    def spill_bytes(self) -> int:
        """Spill write + spill read + streamed."""
        return self.spill_write_bytes + self.spill_read_bytes + self.streamed_bytes


COMPLETE = "complete"
BY_CLOCK = "cut off by the time limit"
"""Prefix for a search that a clock ended: its figures depend on the machine, so the gate refuses them."""
BY_WORK = "ended at its limit of work"
"""Prefix for a search that a work count ended: the result is deterministic."""
