"""Literal graphs from short specifications.

    g = graph(
        {"x": (1, 3, 8, 8)}, weights={"w": (4, 3, 3, 3)}, tensors={"c": (1, 4, 6, 6), "y": (1, 4, 6, 6)},
        ops=["Conv x w -> c", "Relu c -> y"], outputs="y",
    )

A tensor is a shape (float32) or ``(dtype, shape)``. An operator is ``"Type inputs -> outputs"`` or ``op(...)``; ``-``
is an absent operand. Operators are named after their first output.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.ir.graph import Assumption, Graph, Operator, Tensor, TensorKind, TripBasis, Trips
from spillprof.ir.program import Buffer, Program
from spillprof.ir.target import Target
from spillprof.lowering.options import Control, Fuse, LoweringOptions, Views

Spec = tuple[int, ...] | tuple[str, tuple[int, ...]]


def graph(
    inputs: Mapping[str, Spec],
    ops: Sequence[str | Operator],
    outputs: str,
    *,
    weights: Mapping[str, Spec] | None = None,
    tensors: Mapping[str, Spec] | None = None,
    opset: int | None = 17,
    name: str = "g",
    assumptions: Sequence[tuple[str, int]] = (),
) -> Graph:
    """A Graph; ``tensors`` are the activations (and, for a body, tensors of enclosing graphs by ``weights``)."""
    named = [
        *((n, spec, TensorKind.INPUT) for n, spec in inputs.items()),
        *((n, spec, TensorKind.WEIGHT) for n, spec in (weights or {}).items()),
        *((n, spec, TensorKind.ACTIVATION) for n, spec in (tensors or {}).items()),
    ]
    return Graph(
        name=name,
        operators=tuple(op(o) if isinstance(o, str) else o for o in ops),
        tensors={n: _tensor(n, spec, kind) for n, spec, kind in named},
        inputs=tuple(inputs),
        outputs=tuple(outputs.split()),
        opset=opset,
        assumptions=tuple(Assumption(what=what, count=count) for what, count in assumptions),
    )


def op(
    spec: str,
    *,
    name: str | None = None,
    domain: str = "",
    captures: str = "",
    subgraphs: Sequence[Graph] = (),
    subgraph_names: str = "",
    trips: int | Trips | None = None,
    **attributes: Any,
) -> Operator:
    """An operator from ``"Type inputs -> outputs"``."""
    left, _, right = spec.partition("->")
    op_type, *inputs = left.split()
    outputs = right.split()
    return Operator(
        name=name or next((o for o in outputs if o != "-"), op_type),
        op_type=op_type,
        domain=domain,
        inputs=tuple("" if i == "-" else i for i in inputs),
        outputs=tuple("" if o == "-" else o for o in outputs),
        attributes=attributes,
        captures=tuple(captures.split()),
        subgraphs=tuple(_capturing(body, captures.split()) for body in subgraphs),
        subgraph_names=tuple(subgraph_names.split()) or _NAMES.get(op_type, ())[: len(subgraphs)],
        trips=Trips(count=trips, basis=TripBasis.KNOWN) if isinstance(trips, int) else trips,
    )


_NAMES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


def _capturing(body: Graph, captures: Sequence[str]) -> Graph:
    """The body with those of the names that it reads and does not define."""
    reads = {name for o in body.operators for name in (*o.inputs, *o.captures)} | set(body.outputs)
    defined = {*body.inputs, *(name for o in body.operators for name in o.outputs)}
    return replace(body, captures=tuple(name for name in captures if name in reads and name not in defined))


def chain(length: int, *, elements: int = 16) -> Graph:
    """``length`` unary operators one after the other, t0 (the input) to t<length> (the output), float32."""
    names = [f"t{i}" for i in range(length + 1)]
    return graph(
        {names[0]: (elements,)},
        [f"Softmax {a} -> {b}" for a, b in pairwise(names)],
        outputs=names[-1],
        tensors=dict.fromkeys(names[1:], (elements,)),
    )


def _tensor(name: str, spec: Spec, kind: TensorKind) -> Tensor:
    if len(spec) == 2 and isinstance(spec[0], str):
        return Tensor(name=name, dtype=spec[0], shape=tuple(spec[1]), kind=kind)
    return Tensor(name=name, dtype="float32", shape=tuple(spec), kind=kind)


MACHINE = Target(
    name="test",
    sram_bytes=1 << 20,
    alignment_bytes=1,
    dram_read_bytes_per_s=1e9,
    dram_write_bytes_per_s=1e9,
    dram_read_setup_s=0.0,
    dram_write_setup_s=0.0,
    sram_bytes_per_s=1e10,
    macs_per_s={"default": 1e12},
)
"""One byte of alignment, so that sizes can be worked out by hand."""

PLAIN = LoweringOptions(fuse=Fuse.NONE, inplace=False, views=Views.COPY, fold=False, control=Control.STEP)
"""Every operator a step, every tensor a buffer."""


def lowered(g: Graph, target: Target = MACHINE, **options: Any) -> Program:
    """The Program of a graph, defaults but for what is given."""
    return Engine().lowered(Run(graph=g, target=target, lowering=LoweringOptions(**options)))


def picture(program: Program) -> list[str]:
    """The steps as ``"Type reads -> writes"``, by buffer name; an in-place result as ``old=>new``."""
    lines = []
    for step in program.steps:
        old = {u.new: program.buffers[u.old].name for u in step.updates}
        writes = [f"{old[b]}=>{program.buffers[b].name}" if b in old else program.buffers[b].name for b in step.writes]
        lines.append(" ".join([step.op_type, *(program.buffers[b].name for b in step.reads), "->", *writes]))
    return lines


def buffer_named(program: Program, name: str) -> Buffer:
    """The buffer that stores the tensor."""
    return next(b for b in program.buffers if name in b.tensors)
