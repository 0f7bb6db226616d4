"""Values of a gate: what a baseline remembers, and what a comparison finds. All figures are integers.

What a verdict means is said here, and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from spillprof.ir.metric import Metric
from spillprof.ir.result import Totals


class Verdict(StrEnum):
    """What became of one model on one target, worst first."""

    ERROR = "error"  # the model could not be evaluated
    INCOMPARABLE = "incomparable"  # the baseline has another configuration or simulator revision
    OVER_BUDGET = "over-budget"  # an absolute limit is passed, whatever the baseline says
    REGRESSED = "regressed"  # a judged metric grew by more than the relative and by more than the absolute tolerance
    NEW = "new"  # not in the baseline
    REMOVED = "removed"  # in the baseline alone
    IMPROVED = "improved"  # a judged metric shrank by more than both tolerances, and none regressed
    OK = "ok"  # moved, but within the tolerance
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
    """Totals of one model on one target in whole numbers, which files hold exactly and merge line by line."""

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
    """An operator that costs something."""

    name: str
    op_type: str
    spill_bytes: int  # written, read and streamed because of it
    stall_ns: int
    cause: str | None = None
    victims: tuple[str, ...] = ()  # buffers that it forces out


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferRow:
    """A buffer that is spilled or streamed."""

    name: str
    size_bytes: int
    spill_bytes: int
    needed_by: str | None = None  # operator of its last read


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known of one model on one target: measured now, or remembered by a baseline."""

    config: Mapping[str, str | int | bool | None]  # the fingerprint: entries that differ in it are not compared
    model_sha256: str
    totals: Figures
    operators: tuple[OperatorRow, ...] = ()  # dearest first, at most TOP_ROWS in a baseline
    buffers: tuple[BufferRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What growth is tolerated. Both the share and the floor must be passed for a regression."""

    metrics: tuple[Metric, ...] = (Metric.SPILL_BYTES, Metric.LATENCY)
    max_increase: Fraction = Fraction(0)  # share of the baseline
    floors: Mapping[Metric, int] = field(default_factory=dict)  # in the unit of the metric

    def allowed(self, metric: Metric, before: int) -> int:
        """The growth that passes: the larger of the share of the baseline and of the floor."""
        return max(int(self.max_increase * before), self.floors.get(metric, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """One metric, before and now."""

    metric: Metric
    before: int | None  # None: nothing to compare with
    after: int
    allowed: int | None  # growth that passes; None: not judged
    budget: int | None = None

    @property
    def delta(self) -> int | None:
        """How much it grew."""
        return None if self.before is None else self.after - self.before

    @property
    def over_budget(self) -> bool:
        """Whether it passes its absolute limit."""
        return self.budget is not None and self.after > self.budget

    @property
    def regressed(self) -> bool:
        """Whether it is judged, and grew by more than is tolerated."""
        return self.delta is not None and self.allowed is not None and self.delta > self.allowed

    @property
    def improved(self) -> bool:
        """Whether it is judged, and shrank by more than is tolerated in growth."""
        return self.delta is not None and self.allowed is not None and -self.delta > self.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """An operator or buffer whose spilled bytes (or else whose stall) differ from the baseline."""

    kind: str  # "operator" or "buffer"
    name: str
    op_type: str = ""
    metric: Metric  # spill-bytes, or latency for a stall
    before: int | None  # None: not among the dearest that the baseline lists
    after: int
    cause: str | None = None
    victims: tuple[str, ...] = ()
    needed_by: str | None = None

    @property
    def delta(self) -> int:
        """How much it grew; all of it where the baseline does not list it."""
        return self.after - (self.before or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a project says that a model is watched."""

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
    moved: tuple[Moved, ...] = ()  # largest movement first
    mismatches: tuple[str, ...] = ()  # settings in which an incomparable baseline differs
    model_changed: bool | None = None  # None: nothing to compare with
    peak_operator: str | None = None
    failure: Failure | None = None
    entry: Entry | None = None  # as measured now
    location: Location | None = None
    accepted: bool = False  # written into the baseline

    @property
    def key(self) -> str:
        """What baselines call it."""
        return entry_key(self.model, self.target)

    @property
    def over_budget(self) -> bool:
        """Whether a limit is passed."""
        return any(change.over_budget for change in self.changes)


def entry_key(model: str, target: str) -> str:
    """``model@target``."""
    return f"{model}@{target}"


class Policy(StrEnum):
    """What becomes of figures that are better than the baseline."""

    SUGGEST = "suggest"  # pass, and suggest to update
    RATCHET = "ratchet"  # fail until the baseline takes them over, so that a gain cannot be lost unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """Every model on every target, judged."""

    spillprof_version: str
    simulator_revision: int
    baseline: str  # as shown: a file, or REF:file
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
        """Whether nothing can be said of it."""
        return check.verdict is Verdict.ERROR or (check.verdict is Verdict.INCOMPARABLE and not check.accepted)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 could not be evaluated. 2 wins: what was not evaluated may be worse."""
        if any(map(self.unjudged, self.checks)):
            return 2
        return 1 if any(map(self.fails, self.checks)) else 0
