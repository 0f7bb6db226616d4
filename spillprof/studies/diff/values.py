"""Values of a comparison of two profiles. Field names are keys of its JSON (schema ``spillprof-diff/1``)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from spillprof.ir.result import Result

DIFF_SCHEMA = "spillprof-diff/1"


class Fate(StrEnum):
    """Whether an operator or a buffer is in both runs."""

    KEPT = "kept"  # in both, under the same name
    RENAMED = "renamed"  # in both, matched by its place in the graph, under another name
    ADDED = "added"
    REMOVED = "removed"


class Why(StrEnum):
    """Why a buffer spills more or less."""

    ADDED = "added"
    REMOVED = "removed"
    NEW_READER = "new reader"  # another operator reads it
    LOST_READER = "lost reader"
    LARGER = "larger"
    SMALLER = "smaller"
    LONGER = "longer"  # same readers, but more steps between them
    SHORTER = "shorter"
    SAME = "same"  # the buffer is unchanged; its surroundings or the target differ


class StrategyOutcome(StrEnum):
    """Change of one strategy, by spill bytes and latency."""

    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    MIXED = "mixed"  # one is better, the other worse
    RUNS_NOW = "runs now"
    RUNS_NO_MORE = "runs no more"
    RUNS_NEITHER = "runs neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Facts of one of the two runs."""

    path: str  # of the model
    model: str
    sha256: str
    target: str
    sram_bytes: int
    steps: int
    macs: int
    weight_bytes: int
    peak_live_bytes: int
    min_sram_bytes: int
    ideal_latency_s: float
    spill_bytes_lower: int | None
    spillprof_version: str
    command: str  # to reproduce; may be empty
    live_bytes: tuple[int, ...]  # of each step


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting that differs. ``None``: it is absent or not set."""

    where: str  # "model", "target", "config" or "spillprof"
    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseChange:
    """Spill bytes by cause, in both runs."""

    cause: str
    before_bytes: int
    after_bytes: int

    @property
    def delta_bytes(self) -> int:
        """After less before."""
        return self.after_bytes - self.before_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChange:
    """A step whose spill bytes or stall differ. None: it is not in that run."""

    name: str  # in the run after, or before if it was removed
    name_before: str | None
    op_type: str
    fate: Fate
    step_before: int | None
    step_after: int | None
    spill_bytes_before: int
    spill_bytes_after: int
    stall_s_before: float
    stall_s_after: float
    cause_before: str | None
    cause_after: str | None
    victims_gained: tuple[str, ...]  # buffers that it evicts only in the run after
    victims_lost: tuple[str, ...]

    @property
    def delta_bytes(self) -> int:
        """After less before."""
        return self.spill_bytes_after - self.spill_bytes_before

    @property
    def delta_s(self) -> float:
        """Stall after less before."""
        return self.stall_s_after - self.stall_s_before


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferChange:
    """A buffer whose spill bytes differ. None: it is not in that run."""

    name: str
    name_before: str | None
    kind: str
    fate: Fate
    size_bytes_before: int | None
    size_bytes_after: int | None
    spill_count_before: int
    spill_count_after: int
    spill_bytes_before: int
    spill_bytes_after: int
    steps_before: tuple[int, int] | None  # first and last step that use it
    steps_after: tuple[int, int] | None
    why: Why
    operators: tuple[str, ...]  # readers gained or lost, or its writer

    @property
    def delta_bytes(self) -> int:
        """After less before."""
        return self.spill_bytes_after - self.spill_bytes_before


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureSource:
    """A buffer that is new, larger or live for longer in one run, at steps that spill more than in the other.

    ``share_bytes`` is its part of their additional spill bytes, in proportion to size: a pointer, not a simulation.
    """

    buffer: str
    size_bytes: int
    why: Why  # ADDED, NEW_READER, LONGER or LARGER; in the other direction REMOVED, LOST_READER, SHORTER or SMALLER
    operators: tuple[str, ...]  # its additional readers, or its writer
    are_new: bool  # whether all these operators are in this run only
    steps: int  # number of steps at which it occupies more
    share_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyChange:
    """One strategy in both runs, or the leading results if the runs have no strategy in common."""

    before: Result
    after: Result
    outcome: StrategyOutcome
    causes: tuple[CauseChange, ...]
    rise_bytes: int  # additional spill bytes of steps, summed
    fall_bytes: int  # spill bytes less, summed
    rise_sources: tuple[PressureSource, ...]  # largest share first
    fall_sources: tuple[PressureSource, ...]
    operators: tuple[OperatorChange, ...]  # by |change of spill bytes|, then of stall
    buffers: tuple[BufferChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An operator without partner in the other run."""

    step: int
    name: str
    op_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How the operators of the two runs were paired."""

    by_name: int
    by_structure: int
    is_reordered: bool  # some pairs are in another order
    added: tuple[Named, ...]
    removed: tuple[Named, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDiff:
    """Everything that one ``diff`` found."""

    spillprof_version: str
    command: str
    before: RunSummary
    after: RunSummary
    is_same_model: bool  # the same file
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]
    matching: Matching
    strategies: tuple[StrategyChange, ...]  # the first is the one that reports lead with
    schema: str = field(default=DIFF_SCHEMA)

    def to_json(self) -> Mapping[str, Any]:
        """The comparison as JSON values; the schema first. Of the two results, the figures alone."""
        data = asdict(replace(self, strategies=()))
        data["strategies"] = tuple(map(_strategy_values, self.strategies))
        return {"schema": data.pop("schema"), **data}


_FIGURES = (
    "strategy", "feasible", "reason", "spill_bytes", "spill_write_bytes", "spill_read_bytes", "streamed_bytes",
    "spill_count", "reload_count", "peak_bytes", "latency_s", "spill_time_s", "energy_j",
)  # fmt: skip
"""Keys of a result in the JSON of a comparison."""


def _strategy_values(change: StrategyChange) -> dict[str, Any]:
    bare = Result(strategy="", feasible=False)  # parts of a result are large, and none is written
    sides = (("before", change.before), ("after", change.after))
    results = {side: {key: getattr(result, key) for key in _FIGURES} for side, result in sides}
    return {**asdict(replace(change, before=bare, after=bare)), **results}
