"""Inspection of a model before planning: its tensors, operators, peak of live bytes and smallest SRAM."""

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import Any

from spillprof.ir.graph import Assumption, Graph
from spillprof.ir.program import Buffer, BufferKind, ControlFlow, Program
from spillprof.ir.target import Target
from spillprof.lowering.assembly import assemble
from spillprof.lowering.draft import Draft
from spillprof.lowering.fitting import min_sram
from spillprof.lowering.lower import make_draft
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import held_until, lifetimes, live_peak


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFact:
    """A tensor that the program stores, or a weight that it reads."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int  # of the tensor itself; a weight: as it lies in DRAM
    kind: BufferKind
    def_step: int | None  # step that writes its buffer; None: there at the start
    uses: tuple[int, ...]  # steps that read it, ascending; views of it that have no other storage read it too
    last_use: int | None  # the last of them, of a graph output the last step; None: no step reads it
    is_output: bool = False  # declared as an output of the graph, whatever its kind: a view, a folded constant


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFact:
    """A step of the program."""

    step: int
    name: str
    op_type: str
    macs: int
    nbytes: int  # payload that it reads and writes, weights included


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The model as read and lowered.

    ``peak_live_bytes`` is the largest sum of live tensors as stored, without weights and workspaces;
    ``min_sram_bytes`` the smallest capacity at which no operator is oversized, with all of these.
    """

    model: str
    path: str | None
    opset: int | None
    dims: dict[str, int]
    peak_live_bytes: int
    peak_padding_bytes: int  # of these, what channels and sizes are rounded up by
    peak_step: int
    min_sram_bytes: int
    min_sram_step: int
    weight_bytes: int
    macs: int
    folded_operators: int
    removed_operators: int
    control_flow: tuple[ControlFlow, ...]
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]
    tensors: tuple[TensorFact, ...]  # graph inputs, then in the order of the steps that first touch them
    operators: tuple[OperatorFact, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values, the keys of ``inspect --json``."""
        return {
            "model": self.model,
            "path": self.path,
            "opset": self.opset,
            "dims": self.dims,
            "peak_live_bytes": self.peak_live_bytes,
            "peak_padding_bytes": self.peak_padding_bytes,
            "peak_step": self.peak_step,
            "min_sram_bytes": self.min_sram_bytes,
            "min_sram_step": self.min_sram_step,
            "weight_bytes": self.weight_bytes,
            "macs": self.macs,
            "folded_operators": self.folded_operators,
            "removed_operators": self.removed_operators,
            "control_flow": [asdict(each) for each in self.control_flow],
            "assumptions": [{"what": a.what, "count": a.count} for a in self.assumptions],
            "notes": list(self.notes),
            "tensors": [
                {
                    "name": t.name,
                    "shape": list(t.shape),
                    "dtype": t.dtype,
                    "bytes": t.nbytes,
                    "kind": str(t.kind),
                    "def": t.def_step,
                    "uses": list(t.uses),
                    "last_use": t.last_use,
                    "is_output": t.is_output,
                }
                for t in self.tensors
            ],
            "operators": [
                {"step": o.step, "name": o.name, "op_type": o.op_type, "macs": o.macs, "bytes": o.nbytes}
                for o in self.operators
            ],
        }


def inspect_graph(graph: Graph, target: Target, options: LoweringOptions) -> Inspection:
    """Every tensor and operator of a graph as lowered, peak live bytes, and the smallest SRAM without tiling.

    Steps are those of the program. Uses of a tensor with views are those of all of them; uses of a view are its own; a
    graph output is used until the last step. Every graph output is listed. ``ModelError`` and ``UsageError`` as
    ``lower`` raises them.
    """
    draft = make_draft(graph, target, options)
    program = assemble(draft, target, options)
    peak = live_peak(program)
    smallest, smallest_step = min_sram(program, target, options)
    return Inspection(
        model=graph.name,
        path=graph.path,
        opset=graph.opset,
        dims=dict(graph.dims),
        peak_live_bytes=peak.live_bytes,
        peak_padding_bytes=peak.padding_bytes,
        peak_step=peak.step,
        min_sram_bytes=smallest,
        min_sram_step=smallest_step,
        weight_bytes=program.weight_bytes,
        macs=sum(step.macs for step in program.steps),
        folded_operators=program.folded_operators,
        removed_operators=program.removed_operators,
        control_flow=program.control_flow,
        assumptions=program.assumptions,
        notes=program.notes,
        tensors=_tensors(draft, program),
        operators=tuple(
            OperatorFact(step=i, name=s.name, op_type=s.op_type, macs=s.macs, nbytes=s.touched_bytes)
            for i, s in enumerate(program.steps)
        ),
    )


def _tensors(draft: Draft, program: Program) -> tuple[TensorFact, ...]:
    uses: dict[str, dict[int, None]] = defaultdict(dict)
    for i, task in enumerate(draft.tasks):
        for name in task.operands:
            uses[name][i] = None
    facts: dict[str, TensorFact] = {}
    stored = {name for buffer in program.buffers for name in buffer.tensors}
    held = held_until(program)
    for name in draft.graph.inputs:
        if name not in stored:  # nothing reads it
            facts[name] = _fact(draft, name, BufferKind.INPUT)
    outputs = frozenset(draft.graph.outputs)
    for buffer, life in zip(program.buffers, lifetimes(program), strict=True):
        if buffer.kind is BufferKind.WEIGHT:
            continue
        for name in buffer.tensors:
            own = life.read_steps if name == buffer.name else tuple(uses.get(name, ()))
            last = max(life.last_step, held[buffer.index]) if name == buffer.name else max(own, default=None)
            if buffer.kind is BufferKind.OUTPUT and (name == buffer.name or name in outputs):
                last = len(program.steps) - 1
            kind = _kind(buffer, name, outputs)
            facts[name] = _fact(draft, name, kind, def_step=life.write_step, uses=own, last_use=last)
    for name, steps in uses.items():
        if draft.is_weight(name):
            facts[name] = _fact(draft, name, BufferKind.WEIGHT, uses=tuple(steps), last_use=max(steps))
    for name in draft.graph.outputs:
        if name not in facts:  # no step touches it: a constant, or a view of an input that nothing reads
            facts[name] = _fact(draft, name, BufferKind.WEIGHT if draft.is_weight(name) else BufferKind.INPUT)
    return tuple(replace(fact, is_output=True) if name in outputs else fact for name, fact in facts.items())


def _kind(buffer: Buffer, name: str, outputs: frozenset[str]) -> BufferKind:
    """A view of a graph output is an activation, unless it is declared as an output itself."""
    if buffer.kind is BufferKind.OUTPUT and name != buffer.name and name not in outputs:
        return BufferKind.ACTIVATION
    return buffer.kind


def _fact(
    draft: Draft,
    name: str,
    kind: BufferKind,
    *,
    def_step: int | None = None,
    uses: tuple[int, ...] = (),
    last_use: int | None = None,
) -> TensorFact:
    tensor = draft.graph.tensors[name]
    return TensorFact(
        name=name,
        shape=tensor.shape,
        dtype=tensor.dtype,
        nbytes=draft.weights[draft.storage(name)] if kind is BufferKind.WEIGHT else tensor.nbytes,
        kind=kind,
        def_step=def_step,
        uses=uses,
        last_use=last_use,
    )
