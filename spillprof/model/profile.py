"""Profile: everything that one ``analyze`` found. Reporters, the gate and sweeps see only this.

Field names are the keys of the Profile JSON (schema ``spillprof-profile/1``); a suffix names the unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from spillprof.model.certificate import Certificate
from spillprof.model.control_flow import ControlFlow
from spillprof.model.graph import Assumption
from spillprof.model.story import Story, Suggestion

SCHEMA = "spillprof-profile/1"
MOST_ENTRIES = 2_000
"""A certificate with more rows and gaps is left out of the JSON, unless events are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The model as analysed."""

    path: str
    sha256: str
    name: str
    opset: int | None
    operators: int  # in the graph, before lowering
    steps: int  # scheduled, after folding and fusion
    tensors: int
    weight_bytes: int
    macs: int
    peak_live_bytes: int  # largest sum of live activations, payload, without weights
    peak_step: int
    min_sram_bytes: int  # the smallest capacity at which no operator is oversized
    min_sram_step: int  # the step that needs it
    dims: Mapping[str, int]
    folded_operators: int
    removed_operators: int
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]
    control_flow: tuple[ControlFlow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """The machine, resolved."""

    name: str
    sram_bytes: int
    alignment_bytes: int
    channel_align: int
    dram_read_bytes_per_s: float
    dram_write_bytes_per_s: float
    dram_read_setup_s: float
    dram_write_setup_s: float
    dram_burst_bytes: int
    dram_read_curve: tuple[tuple[int, float], ...]  # (bytes, seconds); empty: set-up + bytes / bandwidth
    dram_write_curve: tuple[tuple[int, float], ...]
    dram_bus_bytes_per_s: float | None  # shared by both directions; None: they do not limit each other
    background_bytes_per_s: float  # other traffic on that bus
    dram_outstanding: int | None  # most transfers in flight; None: as many as channels
    dma_read_channels: int
    dma_write_channels: int
    dma_shared_channels: int  # > 0: they serve both directions, and those of one direction do not count
    sram_bytes_per_s: float
    cores: int
    clock_hz: float | None
    macs_per_s: Mapping[str, float]  # of one core at its peak
    utilisation: float
    conv_time_factors: Mapping[str, float]
    launch_overhead_s: float
    sram_j_per_byte: float
    dram_read_j_per_byte: float
    dram_write_j_per_byte: float
    mac_j: float
    mac_j_by_dtype: Mapping[str, float]
    runtime_bytes: int  # what the runtime keeps of the SRAM; part of reserved_bytes
    weight_staging_bytes: int  # as reserved for this model
    stream_staging_bytes: int
    shared_workspace_bytes: int  # the block for all workspaces: as large as the largest of them; 0: none
    reserved_bytes: int  # runtime, staging, shared workspace, resident weights and dedicated slots together
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTimeFacts:
    """Which steps have a measured time, and which names did not find a partner."""

    source: str
    measured_steps: int
    estimated_steps: int
    estimated: tuple[str, ...]  # the first of those without a measured time
    unused_names: int  # in the file, but of no step of the model
    unused: tuple[str, ...]  # the first of those


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFact:
    """A scheduled step, and where it stands under the roofline if nothing spills."""

    name: str
    op_type: str
    macs: int = 0
    mac_dtype: str = "float32"
    sram_bytes: int = 0  # that it touches on-chip
    dram_bytes: int = 0  # that infinite SRAM moves for it: first loads, weights, outputs
    macs_per_sram_byte: float | None = None  # None: no bytes
    macs_per_dram_byte: float | None = None
    compute_s: float = 0.0  # launches included
    dram_s: float = 0.0  # what its DRAM bytes take alone, at the bandwidth
    bound: str | None = None  # what takes it longest, alone: "compute", "SRAM", "DRAM" or "launch"
    algorithm: str | None = None  # of a convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionFacts:
    """The convolutions of one algorithm."""

    algorithm: str
    steps: int
    workspace_bytes: int  # the largest
    blocks: int  # of all their im2col matrices: one launch each
    fell_back: int  # those that would run with a faster algorithm if memory did not matter


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferFact:
    """A buffer of the program: who writes it, and who reads it. What ties the steps together."""

    name: str
    kind: str  # as in BufferKind
    size_bytes: int  # as stored
    written_by: int | None  # step; None: there from the start
    read_by: tuple[int, ...]  # steps, ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """The run with infinite SRAM: same order, same weights policy."""

    latency_s: float
    energy_j: float
    compulsory_read_bytes: int
    compulsory_write_bytes: int
    peak_bytes: int  # SRAM that it would use


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCost:
    """What one step costs under a strategy. Only steps with a figure are listed, dearest first.

    Write-backs and reloads are charged to the step that forced the buffer out; stalls to the step that waited.
    """

    step: int
    name: str
    op_type: str
    spill_write_bytes: int
    spill_read_bytes: int
    streamed_bytes: int
    stall_s: float
    stall_buffer: str | None  # the buffer whose transfer came last
    cause: str | None  # of most of its bytes: as in CauseBytes, e.g. "late release"; as ``kind`` if none were simulated
    victims: tuple[str, ...]  # buffers that it forced out, largest first
    kind: str | None = None  # "capacity", "lifetime", "fragmentation" or "oversized": most of its bytes
    causes: "CauseBytes | None" = None  # its spill bytes by cause
    dram_bytes: int = 0  # its first loads, weights and outputs, what it streams, and the spills that it forces
    bound: str | None = None  # as in StepFact, with these bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferCost:
    """A buffer that was spilled or streamed, dearest first."""

    name: str
    kind: str
    size_bytes: int
    start: int  # step of the write (0 for inputs and weights)
    end: int  # step of the last read
    uses: tuple[int, ...]
    spill_count: int
    spill_bytes: int  # write-backs + reloads + streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class Oscillation:
    """A buffer that was spilled and reloaded three times or more, and what a dedicated slot would change."""

    buffer: str
    size_bytes: int
    spill_count: int
    spill_bytes: int
    pinned_spill_bytes: int | None  # of the whole run, re-simulated; None: does not fit when pinned
    pinned_latency_s: float | None
    pinned_energy_j: float | None = None
    tried: bool = True  # False: not re-simulated, only the dearest are


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One transfer, spill or move, in the order of the steps that issue them."""

    kind: str  # "fetch", "reload", "write-back", "drain", "evict-clean", "move", "stream-in", "stream-out", "weights"
    buffer: str
    size_bytes: int
    step: int  # issued (evicted, moved) when this step is about to start
    needed_step: int | None  # None: nobody reads it again
    address: int | None
    start_s: float | None  # None: a clean eviction, which takes no time
    end_s: float | None
    issued_s: float | None = None  # from then on it waited for a channel


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """When each step ran, what it waited for, and what the bus carried. Columns; seconds from the start of the run."""

    step_start_s: tuple[float, ...]
    step_end_s: tuple[float, ...]
    step_core: tuple[int, ...]  # the compute unit
    stall_s: tuple[float, ...]  # how long a free compute unit waited before the step
    stall_event: tuple[int, ...]  # for what: position in Result.events; -1: for nothing that is listed
    bus_time_s: tuple[float, ...]  # the next three hold from each moment to the next
    bus_read_bytes_per_s: tuple[float, ...]
    bus_write_bytes_per_s: tuple[float, ...]
    bus_background_bytes_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillArc:
    """A spill from eviction to reload, for the timeline: operators between, idle time, waiting time."""

    buffer: str
    size_bytes: int
    last_use_step: int
    evict_step: int
    needed_step: int
    written: bool
    reloaded: bool
    cause: str
    idle_s: float  # from the end of the last use to the start of the next
    wait_s: float  # stall of the next use that this buffer's reload is blamed for


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """A rectangle of the address map: steps x addresses."""

    buffer: str
    kind: str
    start_step: float  # fractions are phases
    end_step: float
    address: int
    size_bytes: int
    start_s: float | None = None  # from when on the place is taken: a read starts to fill it, or a step to write it
    end_s: float | None = None  # when it is free: it left or died, and its copy to DRAM is complete


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseBytes:
    """Spill bytes by cause, from re-simulation; they add up to all of them."""

    capacity_bytes: int  # left in the best order found, with the best policy known: streamed operands too
    order_bytes: int  # gone in the best order found; 0 if none was searched, see Result.order_searched
    policy_bytes: int  # gone under the best plan known for this order
    late_release_bytes: int  # gone when buffers are freed at their last use
    fragmentation_bytes: int  # gone when bytes need no addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class KindBytes:
    """Spill bytes by kind (semantics: capacity against lifetime), adding up to the strategy's spill bytes."""

    capacity_bytes: int  # all that was live at the forcing step exceeds the memory
    lifetime_bytes: int  # what was live would have fitted: dead buffers held the space
    fragmentation_bytes: int  # the free bytes would have sufficed, but not in one piece
    oversized_bytes: int  # streamed operands of operators that cannot fit, and the transfers that these force


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Where the time goes. The parts add up to the latency; while a unit computes, time counts as computing."""

    compute_s: float  # at least one compute unit computes
    compulsory_s: float  # waits for transfers that infinite SRAM would make too, as long as they take alone
    spill_s: float  # the same, for write-backs, reloads and streamed operands
    sync_s: float  # waits for the set-up of transfers
    contention_s: float  # waits because transfers share the bus with others or with background traffic
    fragmentation_s: float  # waits for compaction moves
    tail_s: float  # from the end of the last step until the last byte has landed


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyParts:
    """Energy by level; the parts add up to the energy of the run."""

    dram_read_j: float
    dram_write_j: float
    sram_j: float
    mac_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One strategy on one target."""

    strategy: str
    feasible: bool
    reason: str | None = None  # why not feasible
    spill_bytes: int = 0
    spill_write_bytes: int = 0
    spill_read_bytes: int = 0
    streamed_bytes: int = 0
    spill_count: int = 0
    reload_count: int = 0
    clean_eviction_count: int = 0
    fragmentation_spill_bytes: int = 0
    compaction_count: int = 0
    compaction_bytes: int = 0
    peak_bytes: int = 0  # SRAM in use at most, reserved part included
    latency_s: float = 0.0
    spill_time_s: float = 0.0
    serial_cost_s: float = 0.0
    hidden_share: float | None = None  # 1 - spill time / serial cost; None without spills
    energy_j: float = 0.0
    breakdown: Breakdown | None = None
    energy: EnergyParts | None = None
    causes: CauseBytes | None = None  # None: too many steps to simulate again
    order_searched: bool = True  # False: what a better order would save is not known, and counts as capacity
    kinds: KindBytes | None = None
    operators: tuple[OperatorCost, ...] = ()
    buffers: tuple[BufferCost, ...] = ()
    oscillations: tuple[Oscillation, ...] = ()
    in_use_bytes: tuple[int, ...] = ()  # largest SRAM use within each step, reserved part included
    arcs: tuple[SpillArc, ...] = ()
    residencies: tuple[Residency, ...] = ()
    events: tuple[Event, ...] = ()
    times: RunTimes | None = None  # None with residencies and events left out: saved without them, or infeasible


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBuffer:
    """A buffer live at the peak step."""

    name: str
    kind: str
    size_bytes: int
    start: int
    end: int
    used_here: bool  # an operand of the peak step; otherwise it only waits for a later one


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedOperator:
    """An operator too large for the memory, and what tiling it could remove."""

    step: int
    name: str
    demand_bytes: int
    streamed_bytes: int  # whole-operand bytes that pass through DRAM, compulsory part included
    tiling_could_remove_bytes: int  # of those, what infinite SRAM would not move


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What no plan can beat: in this order of operators, with this choice of streamed operands, whatever the policy."""

    spill_bytes_lower: int  # proven
    spill_bytes_best: int | None  # the least that a strategy reached; None if none is feasible
    gap: float | None  # best / lower - 1; 0 if the best is proven optimal; None if lower is 0 and best is not
    proven_by: str  # "nothing must spill", "operators that cannot fit", "local ratio", ...
    certified_bytes: int  # the most that a certificate proves: below spill_bytes_lower if a solver proved that
    certified_by: str  # as proven_by, never a solver
    serial_cost_s_lower: float | None = None  # proven, of the serial cost; None: not asked for
    certificate: Certificate | None = None  # of certified_bytes
    search: str = ""  # how strategy "optimal" ended: "complete" or what cut it short; empty: not asked for
    any_order_bytes: int | None = None  # proven for every order of operators; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeFacts:
    """What ``--recompute`` found, under the strategy that judged it."""

    operators: int  # that run twice
    macs: int  # more than the model's
    compute_s: float  # more than the model's
    weight_bytes: int  # that pass through the weight staging area again
    judge: str  # the strategy that the figures below are of
    spill_bytes_before: int
    spill_bytes: int  # weights that pass again included
    latency_s_before: float
    latency_s: float
    dear_gaps: int  # spilled, and dearer to compute again although the operands are on-chip
    dear_and_far_gaps: int  # spilled, dearer to compute again, and the operands have left
    cheap_gaps: int  # spilled although clearly cheaper to compute again: it made nothing better


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedOperator:
    """An operator that runs a second time, in place of moving its result."""

    buffer: str  # that it makes again
    step: int  # of the second run
    macs: int
    compute_s: float
    weight_bytes: int  # that pass through the weight staging area again
    saves_bytes: int  # of transfers, in the plan on which it was chosen, less ``weight_bytes``


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Graph facts, target, configuration, and one result a strategy."""

    spillprof_version: str
    model: ModelFacts
    target: TargetFacts
    config: Mapping[str, Any]
    steps: tuple[StepFact, ...]
    live_bytes: tuple[int, ...]  # live buffers + workspaces of each step as stored, at its fullest phase
    peak_buffers: tuple[LiveBuffer, ...]  # at model.peak_step, largest first
    oversized: tuple[StreamedOperator, ...]
    ideal: Ideal
    results: tuple[Result, ...]  # in the order asked for; the first is the one that reports lead with
    buffers: tuple[BufferFact, ...] = ()  # of the program, streamed weights left out; empty: not known
    bounds: Bounds | None = None  # None: not asked for
    suggestions: tuple[Suggestion, ...] = ()
    why: Story | None = None  # of what was asked for by name
    op_times: OpTimeFacts | None = None  # None: every time is estimated
    convolutions: tuple[ConvolutionFacts, ...] = ()  # one an algorithm, by name
    recompute: RecomputeFacts | None = None  # None: not asked for, or nothing spills
    recomputed: tuple[RecomputedOperator, ...] = ()  # in program order
    command: str = ""  # to reproduce
    simulator_revision: int = 0  # figures of different revisions do not compare; 0: not known
    schema: str = field(default=SCHEMA)

    def to_json(self, *, events: bool = False) -> dict[str, Any]:
        """The Profile as JSON values. ``events`` adds each transfer and residency, and a certificate however long."""
        data: dict[str, Any] = _to_plain(self if events else replace(self, results=tuple(map(_brief, self.results))))
        ordered = {"schema": data.pop("schema"), **data}
        if not events:
            for result in ordered["results"]:
                del result["events"], result["residencies"], result["times"]
            if self.bounds and self.bounds.certificate and self.bounds.certificate.entries > MOST_ENTRIES:
                ordered["bounds"]["certificate"] = None
        return ordered


def _brief(result: Result) -> Result:
    return replace(result, events=(), residencies=(), times=None)


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def _to_plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, tuple | list):
        return [_to_plain(item) for item in value]
    if is_dataclass(value):
        return {name: _to_plain(getattr(value, name)) for name in _field_names(value.__class__)}
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    raise TypeError(f"no JSON value for {type(value).__name__}")
