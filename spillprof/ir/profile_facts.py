"""Facts in a Profile that hold for every strategy: model, steps, buffers. Field names are keys of its JSON."""

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
    peak_padding_bytes: int = 0  # part of peak_live_bytes that is padding of channels and sizes
    external_sha256: str = ""  # of contents of other files that sizes depend on; "": none
    outputs: Mapping[str, str | None] = field(default_factory=dict)  # buffer by name; None: no step touches it

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that its figures depend on."""
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
    """Which steps have a measured time, and which names match no step."""

    source: str
    measured_steps: int
    estimated_steps: int
    estimated: tuple[str, ...]  # the first steps without a measured time
    unused_names: int  # names in the file that match no step
    unused: tuple[str, ...]  # the first of these names


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class StepFact:
    """A scheduled step, and its place in the roofline if nothing spills."""

    name: str
    op_type: str
    macs: int = 0
    mac_dtype: str = "float32"
    sram_bytes: int = 0  # that it touches on-chip
    dram_bytes: int = 0  # compulsory: first loads, weights, outputs
    macs_per_sram_byte: float | None = None  # None: no bytes
    macs_per_dram_byte: float | None = None
    compute_s: float = 0.0  # launches included
    dram_s: float = 0.0  # its DRAM bytes / bandwidth
    bound: str | None = None  # its longest part: "compute", "SRAM", "DRAM" or "launch"
    algorithm: str | None = None  # of a convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionFacts:
    """The convolutions of one algorithm."""

    algorithm: str
    steps: int
    workspace_bytes: int  # the largest
    blocks: int  # of all their im2col matrices: one launch each
    fell_back: int  # steps that would run a faster algorithm if memory did not matter


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class BufferFact:
    """A buffer of the program, with the steps that write and read it."""

    name: str
    kind: str  # as in BufferKind
    size_bytes: int  # as stored
    written_by: int | None  # step; None: present at the start
    read_by: tuple[int, ...]  # steps, ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBuffer:
    """A buffer live at the peak step."""

    name: str
    kind: str
    size_bytes: int
    start: int
    end: int
    used_here: bool  # whether the peak step uses it; otherwise a later step does


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedOperator:
    """An operator that runs in tiles, and what they move."""

    step: int
    name: str
    demand_bytes: int
    streamed_bytes: int  # bytes of all tiles, compulsory part included
    beyond_bytes: int  # part of streamed_bytes that infinite SRAM would not move
    passes_bytes: int = 0  # part of them: what is read or written more than once
    fits: bool = False  # all its operands would fit: it leaves room for others
    tiling: str = ""  # its loops over tiles, in words; empty: unknown, each operand is assumed to pass once
