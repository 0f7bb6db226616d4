"""What was analysed: the model, the machine, the steps and buffers of a Profile. Field names are keys of its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillprof.ir.fast_init import fast_init
from spillprof.ir.graph import Assumption, model_fingerprint
from spillprof.ir.program import ControlFlow


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
    peak_live_bytes: int  # largest sum of live activations, as stored, without weights and workspaces
    peak_step: int
    min_sram_bytes: int  # the smallest capacity at which no operator is oversized
    min_sram_step: int  # the step that needs it
    dims: Mapping[str, int]
    folded_operators: int
    removed_operators: int
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]
    control_flow: tuple[ControlFlow, ...] = ()
    peak_padding_bytes: int = 0  # of peak_live_bytes, what channels and sizes are rounded up by
    external_sha256: str = ""  # of what was read from other files, because sizes follow from it; "": nothing
    outputs: Mapping[str, str | None] = field(default_factory=dict)  # by name: its buffer; None: no step touches it

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that its figures follow from."""
        return model_fingerprint(self.sha256, self.external_sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedBytes:
    """SRAM that is reserved for this model before buffers are placed."""

    runtime_bytes: int  # what the runtime keeps for itself
    weight_staging_bytes: int
    stream_staging_bytes: int  # held only while an operator streams operands; no part of reserved_bytes
    shared_workspace_bytes: int  # the block for all workspaces: as large as the largest of them; 0: none
    reserved_bytes: int  # runtime, weight staging, shared workspace, resident weights and dedicated slots together


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTimeFacts:
    """Which steps have a measured time, and which names did not find a partner."""

    source: str
    measured_steps: int
    estimated_steps: int
    estimated: tuple[str, ...]  # the first of those without a measured time
    unused_names: int  # in the file, but of no step of the model
    unused: tuple[str, ...]  # the first of those


@fast_init
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


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class BufferFact:
    """A buffer of the program: who writes it, and who reads it. What ties the steps together."""

    name: str
    kind: str  # as in BufferKind
    size_bytes: int  # as stored
    written_by: int | None  # step; None: there from the start
    read_by: tuple[int, ...]  # steps, ascending


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
