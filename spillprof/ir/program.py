"""Program: what the machine runs. Scheduled steps over buffers; everything downstream sees only this.

Several steps may belong to one operator, and a step may have any number of operands. Time in planning is an
integer *tick*: step ``i`` owns ticks ``3i`` (READ), ``3i + 1`` (COMPUTE) and ``3i + 2`` (WRITE); intervals of
ticks are half-open. An operand that a step reads is held ``[3i, 3i + 2)``, one that it writes
``[3i + 1, 3i + 3)``, a workspace the phases it names.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from enum import IntEnum, StrEnum
from typing import Any

from spillprof.ir.fast_init import fast_init
from spillprof.ir.graph import Assumption
from spillprof.ir.modes import StepMode, StepNest


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFact:
    """One run of a branch or a loop body, nested bodies included."""

    name: str  # "then", "else" or "body"
    runs: int  # per execution of the operator; 0 for a branch that is not taken
    operators: int
    macs: int
    peak_live_bytes: int  # largest sum of live activations, payload


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFlow:
    """One If, Loop or Scan."""

    name: str  # of the operator in its own graph
    inside: str  # path of the operators around it; "" at the top
    op_type: str
    trips: str | None  # basis of a loop's trips: "known", "at most", "given" or "assumed"
    is_unfolded: bool  # False: one step, whose bodies are a workspace
    bodies: tuple[BodyFact, ...]


class Phase(IntEnum):
    """The three parts of a step, in order."""

    READ = 0
    COMPUTE = 1
    WRITE = 2


PHASES_PER_STEP = len(Phase)


class BufferKind(StrEnum):
    """Role of a buffer: it decides where the contents are before the first step and after the last."""

    ACTIVATION = "activation"
    INPUT = "input"  # in DRAM at the start
    OUTPUT = "output"  # must be in DRAM at the end
    WEIGHT = "weight"  # constant; in DRAM at the start


IN_DRAM_AT_START = frozenset({BufferKind.INPUT, BufferKind.WEIGHT})


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Storage of a tensor and of its views. Written once (or present at the start); contents never change."""

    index: int  # position in Program.buffers
    name: str  # the tensor that was written (or given) first
    tensors: tuple[str, ...]  # every tensor stored here: name, then its views
    kind: BufferKind
    payload_bytes: int  # of the tensor itself
    moved_bytes: int  # by one transfer or move of it: channels padded where it is stored so
    size_bytes: int  # as stored: what is moved, rounded up to the alignment
    dedicated: bool = False  # pinned: lies in its own slot (a Reservation), never evicted

    @property
    def in_dram_at_start(self) -> bool:
        """Whether DRAM holds a valid copy before the first step."""
        return self.kind in IN_DRAM_AT_START


ACCUMULATOR = "accumulator"
"""Purpose of the workspace that holds a whole result at accumulator width. Where the result passes in tiles, the
footprint of its tiles holds it instead."""


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Memory that exists only during one step, in the phases ``first`` to ``last`` inclusive."""

    purpose: str  # "im2col", "accumulator", "requantisation", ...
    size_bytes: int  # rounded up to the alignment
    first: Phase
    last: Phase


def largest_phase_bytes(workspaces: Iterable[Workspace]) -> int:
    """The most bytes that workspaces hold together in one phase."""
    by_phase = [0] * PHASES_PER_STEP
    for workspace in workspaces:
        for phase in range(workspace.first, workspace.last + 1):
            by_phase[phase] += workspace.size_bytes
    return max(by_phase)


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """How a convolution is computed."""

    algorithm: str  # "direct", "im2col" or "winograd"
    fastest: str  # the choice if memory did not matter; if not ``algorithm``, the convolution falls back
    workspace_bytes: int  # the largest sum of workspaces in one phase
    blocks: int = 1  # of the im2col matrix, made and multiplied one after another


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """In-place result: ``new`` takes over the address of ``old``, which dies in this step. Sizes are equal.

    ``old`` is held in READ only, ``new`` from COMPUTE on, at the same address: the bytes are needed once.
    """

    old: int
    new: int


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One scheduled operation. Buffers are given by index, each at most once in ``reads`` and in ``writes``."""

    name: str  # the operator it belongs to
    op_type: str  # of the operator that leads it, e.g. "Conv" for Conv + BatchNormalization + Relu
    operators: tuple[str, ...]  # graph operators that run in this step, in order
    reads: tuple[int, ...]  # operands read (weights too, where the policy keeps them in SRAM), operand order
    writes: tuple[int, ...]  # operands written
    updates: tuple[Update, ...] = ()
    may_overwrite: tuple[int, ...] = ()  # those of ``reads`` that die here and whose storage its one result may take
    holds: tuple[
        int, ...
    ] = ()  # kept until the step has run, in SRAM or DRAM: a branch that is not taken might read them
    workspaces: tuple[Workspace, ...] = ()  # empty when they live in the shared block
    shared_workspace_bytes: int = 0  # that its workspaces take of the shared block
    streamed_reads: tuple[int, ...] = ()  # those of ``reads`` that are tiled through DRAM: never on-chip here
    streamed_writes: tuple[int, ...] = ()  # those of ``writes`` that are tiled out to DRAM
    stream_staging_bytes: int = 0  # on-chip throughout a step that streams operands: the footprint of its tiles
    parts: int = 1  # equal parts in which it can take its operands and give its results; 1: all before it starts
    tiles: int = 1  # iterations of all loops over tiles of its mode; 1: untiled
    weight_repeat_bytes: int = 0  # of weights that its mode passes more than once, beyond the first pass
    nest: StepNest | None = None  # its loops; None: of no known loops
    mode: StepMode | None = None  # the mode that a plan chose; None: all is held, or streamed once without known loops
    weight_stream_bytes: int = 0  # weights that the step reads through the weight staging area
    macs: int = 0  # multiply-accumulates
    macs_time_factor: float = 1.0  # multiplies their time: depends on the algorithm of a convolution
    convolution: Convolution | None = None  # None: not a convolution
    launches: int = 1  # each costs the target's launch overhead: one for each block of a convolution
    mac_dtype: str = "float32"  # type of the multiplications
    product_kind: str = "default"  # of its multiplications: a row of the target's utilisation
    vector_ops: int = 0  # operations of the vector unit, beside the multiplications
    touched_bytes: int = 0  # payload read and written by the step, weights and workspaces included
    measured_s: float | None = None  # measured compute time, instead of the estimate; launch included
    repeatable: bool = True  # deterministic: on the same operands it gives the same results
    recomputes: str = ""  # buffer that it computes a second time; empty for operators of the model


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Reserved part of SRAM. Reservations are contiguous from address 0."""

    what: str  # "weight staging", "shared workspace", "resident weights" or "dedicated slot"
    size_bytes: int
    buffer: int | None = None  # the buffer that a dedicated slot belongs to


class Memo:
    """Values derived from a program, or from its steps and buffers: see ``spillprof.ir.memo``. Never pickled."""

    __slots__ = ("buffers", "steps", "values")

    def __init__(self, steps: tuple[Step, ...] = (), buffers: tuple[Buffer, ...] = ()) -> None:
        self.steps, self.buffers = steps, buffers
        self.values: dict[Hashable, Any] = {}

    def __reduce__(self) -> tuple[type["Memo"], tuple[tuple[Step, ...], tuple[Buffer, ...]]]:
        return Memo, (self.steps, self.buffers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Scheduled steps over buffers. ``capacity_bytes`` is None until it was fitted to a memory (or is infinite)."""

    name: str
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    alignment_bytes: int
    capacity_bytes: int | None = None
    reservations: tuple[Reservation, ...] = ()
    weight_bytes: int = 0  # distinct weights that the steps use, payload
    weights_persist: bool = False  # weight buffers are wanted again by the next inference (policy "cached")
    removed_operators: int = 0  # dead operators that were dropped
    folded_operators: int = 0  # operators computed from constants alone
    assumptions: tuple[Assumption, ...] = ()
    control_flow: tuple[ControlFlow, ...] = ()  # of the model, as it was simulated
    notes: tuple[str, ...] = ()
    memo_of_steps: Memo = field(default_factory=Memo, repr=False, compare=False)  # shared by copies of the same steps
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.memo_of_steps.steps is not self.steps or self.memo_of_steps.buffers is not self.buffers:
            object.__setattr__(self, "memo_of_steps", Memo(self.steps, self.buffers))

    def __hash__(self) -> int:
        values = self.memo.values
        if "hash" not in values:
            values["hash"] = hash(tuple([getattr(self, name) for name in _COMPARED]))
        found: int = values["hash"]
        return found

    @property
    def reserved_bytes(self) -> int:
        """Bytes taken off before the pool: the pool is ``[reserved_bytes, capacity_bytes)``."""
        return sum(r.size_bytes for r in self.reservations)


_COMPARED = tuple(f.name for f in fields(Program) if f.compare)
