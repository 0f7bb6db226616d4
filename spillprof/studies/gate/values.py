"""Values of a gate: entries of a baseline, checks and the report. All figures are integers.

Verdicts are defined here only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from spillprof.ir.metric import Metric
from spillprof.ir.result import Totals


class Verdict(StrEnum):
    """Verdict on one model on one target, worst first."""

    ERROR = "error"  # the model could not be evaluated
    INCOMPARABLE = "incomparable"  # the baseline was made with another configuration or simulator revision
    OVER_BUDGET = "over-budget"  # an absolute limit is exceeded, whatever the baseline says
    REGRESSED = "regressed"  # a judged metric grew by more than the relative and by more than the absolute tolerance
    NEW = "new"  # not in the baseline
    REMOVED = "removed"  # only in the baseline
    IMPROVED = "improved"  # a judged metric shrank by more than both tolerances, and none regressed
    OK = "ok"  # changed, but within the tolerance
    UNCHANGED = "unchanged"  # every figure as before


FIGURE_OF = {
    Metric.SPILL_BYTES: "spill_bytes",
    Metric.LATENCY: "latency_ns",
    Metric.PEAK: "peak_live_bytes",
    Metric.ENERGY: "energy_pj",
}
"""Metrics, and the figure that each judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Totals of one model on one target, rounded to whole numbers."""

    spill_bytes: int
    latency_ns: int
    peak_live_bytes: int
    energy_pj: int
    spill_count: int
    reload_count: int

    def of(self, metric: Metric) -> int:
        """The figure of a metric, in bytes, nanoseconds or picojoules."""
        figure: int = getattr(self, FIGURE_OF[metric])
        return figure


def figures_of(totals: Totals, peak_live_bytes: int) -> Figures:
    """Totals of a run, rounded to whole nanoseconds and picojoules, and the peak of its model."""
    return Figures(
        spill_bytes=totals.spill_bytes,
        latency_ns=Metric.LATENCY.whole(totals.latency_s),
        peak_live_bytes=peak_live_bytes,
        energy_pj=Metric.ENERGY.whole(totals.energy_j),
        spill_count=totals.spill_count,
        reload_count=totals.reload_count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """An operator of nonzero cost."""

    name: str
    op_type: str
    spill_bytes: int  # charged to it, streamed bytes included
    stall_ns: int
    cause: str | None = None
    victims: tuple[str, ...] = ()  # buffers that it evicts


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferRow:
    """A buffer that is spilled or streamed."""

    name: str
    size_bytes: int
    spill_bytes: int
    needed_by: str | None = None  # operator of its last read


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Figures of one model on one target: measured now, or read from a baseline."""

    config: Mapping[str, str | int | bool | None]  # the fingerprint: entries with different ones are not compared
    model_sha256: str
    totals: Figures
    operators: tuple[OperatorRow, ...] = ()  # costliest first, at most TOP_ROWS in a baseline
    buffers: tuple[BufferRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Tolerated growth. A regression exceeds both the share and the floor."""

    metrics: tuple[Metric, ...] = (Metric.SPILL_BYTES, Metric.LATENCY)
    max_increase: Fraction = Fraction(0)  # share of the baseline
    floors: Mapping[Metric, int] = field(default_factory=dict)  # in the unit of the metric

    def allowed(self, metric: Metric, before: int) -> int:
        """Tolerated growth: the share of the baseline or the floor, whichever is larger."""
        return max(int(self.max_increase * before), self.floors.get(metric, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """One metric, before and after."""

    metric: Metric
    before: int | None  # None: nothing to compare with
    after: int
    allowed: int | None  # tolerated growth; None: not judged
    budget: int | None = None

    @property
    def delta(self) -> int | None:
        """Growth."""
        return None if self.before is None else self.after - self.before

    @property
    def over_budget(self) -> bool:
        """Whether it exceeds its absolute limit."""
        return self.budget is not None and self.after > self.budget

    @property
    def regressed(self) -> bool:
        """Whether it is judged and grew by more than is tolerated."""
        return self.delta is not None and self.allowed is not None and self.delta > self.allowed

    @property
    def improved(self) -> bool:
        """Whether it is judged and shrank by more than the tolerated growth."""
        return self.delta is not None and self.allowed is not None and -self.delta > self.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """An operator or buffer whose spill bytes, or stall, differ from the baseline."""

    kind: str  # "operator" or "buffer"
    name: str
    op_type: str = ""
    metric: Metric  # spill-bytes, or latency for a stall
    before: int | None  # None: not among the rows of the baseline
    after: int
    cause: str | None = None
    victims: tuple[str, ...] = ()
    needed_by: str | None = None

    @property
    def delta(self) -> int:
        """Growth, from 0 if the baseline does not list it."""
        return self.after - (self.before or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Line of the configuration that lists a model."""

    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a model could not be evaluated."""

    message: str
    where: tuple[str, ...] = ()
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck:
    """One model on one target, judged."""

    model: str
    target: str
    verdict: Verdict
    changes: tuple[MetricChange, ...] = ()
    moved: tuple[Moved, ...] = ()  # largest change first
    mismatches: tuple[str, ...] = ()  # settings that make the baseline incomparable
    model_changed: bool | None = None  # None: nothing to compare with
    peak_operator: str | None = None
    failure: Failure | None = None
    entry: Entry | None = None  # as measured now
    location: Location | None = None
    accepted: bool = False  # written to the baseline

    @property
    def key(self) -> str:
        """Its key in a baseline."""
        return entry_key(self.model, self.target)

    @property
    def over_budget(self) -> bool:
        """Whether an absolute limit is exceeded."""
        return any(change.over_budget for change in self.changes)


def entry_key(model: str, target: str) -> str:
    """``model@target``."""
    return f"{model}@{target}"


class Policy(StrEnum):
    """What the gate does about figures better than the baseline."""

    SUGGEST = "suggest"  # pass, and suggest to update
    RATCHET = "ratchet"  # fail until the baseline accepts them, so no gain is lost unnoticed


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """Every model on every target, judged."""

    spillprof_version: str
    simulator_revision: int
    baseline: str  # a file, or REF:file
    checks: tuple[GateCheck, ...]
    policy: Policy = Policy.SUGGEST
    updated: bool = False  # the baseline was rewritten

    def fails(self, check: GateCheck) -> bool:
        """Whether this check alone makes the gate fail."""
        if check.over_budget:
            return True
        if check.accepted:
            return False
        worse = (Verdict.OVER_BUDGET, Verdict.REGRESSED)
        return check.verdict in worse or (self.policy is Policy.RATCHET and check.verdict is Verdict.IMPROVED)

    def unjudged(self, check: GateCheck) -> bool:
        """Whether the check has no result."""
        return check.verdict is Verdict.ERROR or (check.verdict is Verdict.INCOMPARABLE and not check.accepted)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 could not be evaluated. 2 takes precedence: what was not evaluated may be worse."""
        if any(map(self.unjudged, self.checks)):
            return 2
        return 1 if any(map(self.fails, self.checks)) else 0
