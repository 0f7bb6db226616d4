"""A change to the command line, and the situation that it starts from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spillprof.explain.whatif.trial import Outcome, Trial
from spillprof.ir.graph import Graph
from spillprof.ir.program import Program
from spillprof.ir.result import BufferCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing done differently."""

    kind: str  # "pin", "sram", ...
    argument: str  # what to add to the command line, as a shell takes it
    costs: str  # its price in words
    trial: Trial  # with the change made
    runs: int = 1  # how many such runs do the work of one run before the change
    made: Outcome | None = None  # of the run, if it was made already


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerBatch:
    """The same model with fewer samples a run."""

    argument: str
    runs: int  # that do the same work
    read: Callable[[], Graph]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What was run, and what is known about it."""

    trial: Trial
    program: Program  # in the order that was asked for, not fitted
    spill_bytes: int  # under the strategy of the trial
    buffers: tuple[BufferCost, ...]  # what that moved, dearest first
    strategies: tuple[str, ...]  # compared already
    moved_bytes: int = 0  # inside SRAM
    pinned: Mapping[str, Outcome] = field(default_factory=dict)  # by buffer: runs with a slot for it, made already
    better_order: Callable[[], tuple[int, ...] | None] = field(default=lambda: None)  # one that spills less, if any
    smaller_batch: SmallerBatch | None = None
