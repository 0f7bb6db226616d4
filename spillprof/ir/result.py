"""Totals and Result: what one strategy did and cost, with its parts. Field names are keys of the Profile JSON."""

from dataclasses import dataclass, fields

from spillprof.ir.fast_init import fast_init


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one run costs: the figures that sweeps, what-ifs, the gate and ``diff`` compare."""

    spill_bytes: int  # spill_write_bytes + spill_read_bytes + streamed_bytes: what infinite SRAM would not move
    spill_write_bytes: int
    spill_read_bytes: int
    streamed_bytes: int  # of operators that cannot fit, beyond the compulsory
    spill_count: int  # evictions of buffers that are still to be read
    reload_count: int = 0
    compaction_count: int = 0
    peak_bytes: int = 0  # SRAM in use at most, reserved part included
    latency_s: float
    energy_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseBytes:
    """Spill bytes by cause, found by re-simulation. They add up to the spill bytes of the strategy."""

    capacity_bytes: int  # left under the best plan known, in the best order found; streamed operands included
    order_bytes: int  # avoided by the best order found; 0 if none was searched, see Result.order_searched
    policy_bytes: int  # avoided by the best plan known for this order
    tiling_bytes: int = 0  # what tiles move beyond the best mode of each operator, alone in the whole memory
    late_release_bytes: int  # avoided by freeing buffers at their last use
    fragmentation_bytes: int  # avoided if a buffer may lie in several pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class KindBytes:
    """Spill bytes by kind: why they did not fit. They add up to the spill bytes of the strategy."""

    capacity_bytes: int  # at the forcing step, more bytes are live than the memory holds
    lifetime_bytes: int  # live bytes would have fitted: dead buffers occupied the space
    fragmentation_bytes: int  # enough bytes were free, but not in one piece
    oversized_bytes: int  # streamed operands of operators that cannot fit, and the evictions that these force


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """The run with infinite SRAM: same order, same weights policy."""

    latency_s: float
    energy_j: float
    compulsory_read_bytes: int
    compulsory_write_bytes: int
    peak_bytes: int  # SRAM that it would use


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCost:
    """What one step costs under a strategy. Steps without cost are left out; the costliest comes first.

    Write-backs and reloads are charged to the step that forced the buffer out; stalls to the step that waited.
    """

    step: int
    name: str
    op_type: str
    spill_write_bytes: int
    spill_read_bytes: int
    streamed_bytes: int
    stall_s: float
    stall_buffer: str | None  # buffer whose transfer it waited for
    cause: str | None  # of most of its bytes: as in CauseBytes, e.g. "late release"; as ``kind`` if none were simulated
    victims: tuple[str, ...]  # buffers that it evicted, largest first
    kind: str | None = None  # "capacity", "lifetime", "fragmentation" or "oversized": most of its bytes
    causes: CauseBytes | None = None  # its spill bytes by cause
    dram_bytes: int = 0  # its first loads, weights and outputs, what it streams, and the spills that it forces
    bound: str | None = None  # as in StepFact, with these bytes
    added_s: float | None = None  # of the spill time; None: not compared with an ideal run
    tiling: str = ""  # how it runs in tiles, in words; empty: it holds all of its operands
    passes_bytes: int = 0  # of what its tiles move: beyond one transfer of each operand

    @property
    def spill_bytes(self) -> int:
        """Spill bytes charged to the step, in both directions, streamed ones included."""
        return self.spill_write_bytes + self.spill_read_bytes + self.streamed_bytes


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class BufferCost:
    """A buffer that is spilled or streamed; the costliest comes first."""

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
    tried: bool = True  # False: not re-simulated (only the costliest are)


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One transfer, spill or move, in the order of the steps that issue them."""

    kind: str  # "fetch", "reload", "write-back", "drain", "evict-clean", "move", "stream-in", "stream-out", "weights"
    buffer: str
    size_bytes: int
    step: int  # issued (evicted, moved) when this step is about to start
    needed_step: int | None  # None: it is not read again
    address: int | None
    start_s: float | None  # None: a clean eviction, which takes no time
    end_s: float | None
    issued_s: float | None = None  # queued for a channel since then


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """Columns by step: start, end, stall; and the load of the bus over time. Seconds from the start of the run."""

    step_start_s: tuple[float, ...]
    step_end_s: tuple[float, ...]
    step_core: tuple[int, ...]  # the compute unit
    stall_s: tuple[float, ...]  # how long a free compute unit waited before the step
    stall_event: tuple[int, ...]  # the event waited for: index into Result.events; -1: none, or none that is listed
    bus_time_s: tuple[float, ...]  # when the next three columns change
    bus_read_bytes_per_s: tuple[float, ...]
    bus_write_bytes_per_s: tuple[float, ...]
    bus_background_bytes_per_s: tuple[float, ...]


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class SpillArc:
    """A spill from eviction to reload."""

    buffer: str
    size_bytes: int
    last_use_step: int
    evict_step: int
    needed_step: int
    written: bool
    reloaded: bool
    cause: str
    idle_s: float  # from the end of the last use to the start of the next
    wait_s: float  # stalls of any step caused by its write-back or its reload
    evicted: bool = True  # False: its previous use was streamed, so it was not in SRAM


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """A rectangle of the address map: steps x addresses."""

    buffer: str
    kind: str
    start_step: float  # fractions are phases
    end_step: float
    address: int
    size_bytes: int
    start_s: float | None = None  # the space is taken: a read starts to fill it, or a step to write it
    end_s: float | None = None  # the space is free: the buffer died or left, and its write to DRAM is complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Latency by what the machine waits for. Time in which any unit computes counts as computing."""

    compute_s: float  # at least one compute unit computes
    compulsory_s: float  # stalls for compulsory transfers, as long as they take alone
    spill_s: float  # the same, for write-backs, reloads and streamed operands
    sync_s: float  # stalls for the set-up of transfers
    contention_s: float  # stalls because transfers share the bus with others or with background traffic
    fragmentation_s: float  # stalls for compaction moves
    tail_s: float  # from the end of the last step to the end of the last transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Joules of a run by level. DRAM includes all traffic: spill, compulsory, streamed operands, weights."""

    dram_read_j: float
    dram_write_j: float
    sram_j: float  # bytes that steps touch, DMA transfers, and compaction moves twice
    mac_j: float

    @property
    def total_j(self) -> float:
        """Sum of the levels."""
        return self.dram_read_j + self.dram_write_j + self.sram_j + self.mac_j


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one strategy does on one target."""

    strategy: str
    feasible: bool
    reason: str | None = None  # why it is not feasible
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
    dram_bytes: int = 0  # between DRAM and SRAM in both directions: the compulsory and the spill bytes
    passes_bytes: int = 0  # of the spill bytes: what was read or written more than once by tiles, weights included
    latency_s: float = 0.0
    spill_time_s: float = 0.0
    serial_cost_s: float = 0.0
    hidden_share: float | None = None  # 1 - spill time / serial cost; None without spills
    energy_j: float = 0.0
    breakdown: Breakdown | None = None
    energy: Energy | None = None
    causes: CauseBytes | None = None  # None: the model has too many steps to simulate again
    order_searched: bool = True  # False: savings of a better order are unknown and count as capacity
    kinds: KindBytes | None = None
    operators: tuple[OperatorCost, ...] = ()
    buffers: tuple[BufferCost, ...] = ()
    oscillations: tuple[Oscillation, ...] = ()
    in_use_bytes: tuple[int, ...] = ()  # largest SRAM use within each step, reserved part included
    arcs: tuple[SpillArc, ...] = ()
    residencies: tuple[Residency, ...] = ()
    events: tuple[Event, ...] = ()
    added_s: tuple[float, ...] = ()  # by step: what it adds to the latency of the ideal run; the sum is the spill time
    times: RunTimes | None = None  # None, like empty residencies and events: saved without them, or infeasible

    @property
    def totals(self) -> Totals:
        """The figures that are compared."""
        return Totals(**{column.name: getattr(self, column.name) for column in fields(Totals)})

    @property
    def spills(self) -> tuple[SpillArc, ...]:
        """Arcs of buffers that were evicted."""
        return tuple(arc for arc in self.arcs if arc.evicted)
