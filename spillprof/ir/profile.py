"""Profile: everything that one ``analyze`` found. Reports, ``diff`` and the gate see only this.

Field names are the keys of the Profile JSON (schema ``spillprof-profile/1``); a suffix names the unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from spillprof.ir.certificate import Certificate
from spillprof.ir.json_values import json_values
from spillprof.ir.profile_facts import (
    BufferFact,
    ConvolutionFacts,
    LiveBuffer,
    ModelFacts,
    OpTimeFacts,
    ReservedBytes,
    StepFact,
    StreamedOperator,
)
from spillprof.ir.result import Ideal, Result
from spillprof.ir.story import Story, Suggestion
from spillprof.ir.target import PROFILE_FIELDS, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePoint:
    """One strategy in one size of SRAM. Figures are None where it cannot run."""

    sram_bytes: int
    strategy: str
    spill_bytes: int | None
    latency_s: float | None
    spill_bytes_lower: int | None  # proven, by quick methods: no plan in this memory spills less
    reason: str | None = None  # why it cannot run


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCurve:
    """Points by size, then strategy; none where they were not simulated."""

    points: tuple[SizePoint, ...] = ()
    left_out: str = ""  # why there are no points


PROFILE_SCHEMA = "spillprof-profile/1"
MOST_ENTRIES = 2_000
"""The JSON leaves out certificates with more rows and gaps, unless it holds events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Lower bounds: for this order of operators, however each is tiled, under any policy; and for any execution."""

    spill_bytes_lower: int  # proven
    spill_bytes_best: int | None  # least of all strategies; None if none is feasible
    gap: float | None  # best / lower - 1; 0 if the best is proven optimal; None if lower is 0 and best is not
    proven_by: str  # "nothing must spill", "operators that cannot fit", "local ratio", ...
    certified_bytes: int  # best bound with a certificate: below spill_bytes_lower if only a solver proved that
    certified_by: str  # as proven_by, but never a solver
    serial_cost_s_lower: float | None = None  # proven bound of the serial cost; None: not asked for
    certificate: Certificate | None = None  # of certified_bytes
    search: str = ""  # how strategy "optimal" ended: "complete" or what cut it short; empty: not asked for
    any_order_bytes: int | None = None  # proven for every order of operators; None: not known
    dram_bytes_floor: int | None = None  # DRAM bytes that no execution of the network moves less than


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeFacts:
    """What ``--recompute`` found, under the strategy that compared the runs."""

    operators: int  # that run twice
    macs: int  # more than the model's
    compute_s: float  # more than the model's
    weight_bytes: int  # read through the weight staging area again
    judge: str  # strategy of the figures below
    spill_bytes_before: int
    spill_bytes: int  # repeated weight reads included
    latency_s_before: float
    latency_s: float
    dear_gaps: int  # spills that cost less than computing again from operands on-chip
    dear_and_far_gaps: int  # spills that cost less than computing again, and whose operands are off-chip
    cheap_gaps: int  # spills kept although computing again is cheaper: no better plan was found
    search: str = ""  # "complete" or what cut the search short; empty: nothing was searched


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedOperator:
    """An operator that runs a second time, instead of a spill of its result."""

    buffer: str  # that it computes again
    step: int  # of the second run
    macs: int
    compute_s: float
    weight_bytes: int  # read through the weight staging area again
    saves_bytes: int  # transfers avoided in the plan on which it was chosen, less ``weight_bytes``


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Facts of the model, target, configuration, and one result per strategy."""

    spillprof_version: str
    model: ModelFacts
    reserved: ReservedBytes  # in JSON, part of the target
    target: Target  # its MAC rates per second
    config: Mapping[str, Any]
    steps: tuple[StepFact, ...]
    live_bytes: tuple[int, ...]  # of each step as stored, at its fullest phase; workspaces, or their block, included
    peak_buffers: tuple[LiveBuffer, ...]  # at model.peak_step, largest first
    oversized: tuple[StreamedOperator, ...]
    ideal: Ideal
    results: tuple[Result, ...]  # in the order of --strategy
    buffers: tuple[BufferFact, ...] = ()  # of the program, streamed weights left out; empty: not known
    bounds: Bounds | None = None  # None: not asked for
    suggestions: tuple[Suggestion, ...] = ()
    untried: tuple[str, ...] = ()  # kinds of changes that the run budget did not reach
    size_curve: SizeCurve | None = None  # over the size of the SRAM; None: not asked for
    why: Story | None = None  # answer to --why
    op_times: OpTimeFacts | None = None  # None: every time is estimated
    convolutions: tuple[ConvolutionFacts, ...] = ()  # one per algorithm, by name
    recompute: RecomputeFacts | None = None  # None: not asked for, or nothing spills
    recomputed: tuple[RecomputedOperator, ...] = ()  # in program order
    command: str = ""  # to reproduce
    simulator_revision: int = 0  # figures of different revisions do not compare; 0: not known
    schema: str = field(default=PROFILE_SCHEMA)

    @property
    def machine(self) -> dict[str, Any]:
        """``target`` of the JSON: fields of the target, what it reserves for the model, and the sources."""
        target = {name: getattr(self.target, name) for name in PROFILE_FIELDS}
        sources = target.pop("sources")
        reserved = {column.name: getattr(self.reserved, column.name) for column in fields(self.reserved)}
        return {**target, **reserved, "sources": sources}

    def to_json(self, *, events: bool = False) -> dict[str, Any]:
        """The Profile as JSON values. ``events`` adds transfers, residencies, and certificates of any length."""
        data: dict[str, Any] = json_values(self if events else replace(self, results=tuple(map(_brief, self.results))))
        data["target"] = json_values(self.machine)
        del data["reserved"]
        ordered = {"schema": data.pop("schema"), **data}
        if not events:
            for result in ordered["results"]:
                del result["events"], result["residencies"], result["times"]
            if self.bounds and self.bounds.certificate and self.bounds.certificate.entries > MOST_ENTRIES:
                ordered["bounds"]["certificate"] = None
        return ordered


def _brief(result: Result) -> Result:
    return replace(result, events=(), residencies=(), times=None)
