"""Random graphs of operators with loops, lowered as any model is, and memories from the smallest that they run in on.

Sizes are tiny, so that all tilings can be tried. Each kind of loop nest occurs: convolutions with strides, pads,
dilations and groups, products, pools, elementwise operators with and without broadcast, reductions, concatenations,
transposes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from graphs import MACHINE, graph, op
from hypothesis import note
from hypothesis import strategies as st

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.ir.graph import Graph, Operator
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.fitting import min_sram
from spillprof.lowering.options import Fuse, LoweringOptions, WeightsPolicy
from spillprof.planning.options import PlanningOptions
from spillprof.planning.tiling.menus import smallest_demand

Draw = Callable[[st.SearchStrategy[Any]], Any]
Shape = tuple[int, ...]

PLAIN_MACHINE = MACHINE.with_overrides(weight_staging_bytes=16, stream_staging_bytes=16)
"""Its reservations do not change with the memory."""


@dataclass(slots=True)
class _Growing:
    """A graph to which operators are added one by one."""

    draw: Draw
    shapes: dict[str, Shape] = field(default_factory=dict)  # of inputs and results, in order
    weights: dict[str, Shape] = field(default_factory=dict)
    ops: list[Operator] = field(default_factory=list)

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def tensor(self) -> str:
        """A tensor to read: mostly one of the last ones."""
        names = list(self.shapes)
        return names[-1 - self.draw(st.integers(0, min(len(names) - 1, 3)))]

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = shape
        return name

    def add(self, kind: str, inputs: list[str], shape: Shape, **attributes: Any) -> None:
        name = f"t{len(self.ops)}"
        self.ops.append(op(f"{kind} {' '.join(inputs)} -> {name}", **attributes))
        self.shapes[name] = shape

    # One method for each kind of operator.

    def convolution(self) -> None:
        x = self.tensor()
        _, channels, *edges = self.shapes[x]
        group = self.pick(1, 1, channels)
        filters = self.pick(1, 2, 3) * (group if group > 1 else 1)
        window = _window(self, edges)
        w = self.weight(filters, channels // group, *window.kernel)
        self.add("Conv", [x, w], (1, filters, *window.result(edges)), group=group, **window.attributes(dilations=True))

    def pool(self) -> None:
        x = self.tensor()
        _, channels, *edges = self.shapes[x]
        window = _window(self, edges, dilated=False)
        kind = self.pick("MaxPool", "AveragePool")
        self.add(kind, [x], (1, channels, *window.result(edges)), **window.attributes(dilations=False))

    def product(self) -> None:
        x = self.tensor()
        *outer, inner = self.shapes[x]
        columns = self.pick(1, 2, 3, 5)
        if self.pick(True, False):
            self.add("MatMul", [x, self.weight(inner, columns)], (*outer, columns))
            return
        fitting = [n for n, shape in self.shapes.items() if shape[-2] == inner and shape[1] in (1, outer[1])]
        if fitting:
            y = self.pick(*fitting)
            self.add("MatMul", [x, y], (*outer, self.shapes[y][-1]))

    def unary(self) -> None:
        x = self.tensor()
        self.add(self.pick("Relu", "Sigmoid", "Erf"), [x], self.shapes[x])

    def binary(self) -> None:
        x = self.tensor()
        shape = self.shapes[x]
        others = [
            n for n, own in self.shapes.items() if n != x and all(a in (1, b) for a, b in zip(own, shape, strict=True))
        ]
        y = self.pick(*others) if others else self.weight(1, shape[1], 1, 1)
        self.add(self.pick("Add", "Mul"), [x, y], shape)

    def softmax(self) -> None:
        x = self.tensor()
        self.add("Softmax", [x], self.shapes[x], axis=self.pick(-1, 1))

    def mean(self) -> None:
        x = self.tensor()
        self.add("GlobalAveragePool", [x], (*self.shapes[x][:2], 1, 1))

    def concatenation(self) -> None:
        x = self.tensor()
        shape = self.shapes[x]
        y = self.pick(*(n for n, own in self.shapes.items() if (own[0], *own[2:]) == (shape[0], *shape[2:])))
        self.add("Concat", [x, y], (1, shape[1] + self.shapes[y][1], *shape[2:]), axis=1)

    def transpose(self) -> None:
        x = self.tensor()
        perm = self.pick((0, 1, 3, 2), (0, 2, 1, 3))
        self.add("Transpose", [x], tuple(self.shapes[x][axis] for axis in perm), perm=perm)

    def of_no_known_loops(self) -> None:
        x = self.tensor()
        self.add("ReverseSequence", [x, self.weight(1)], self.shapes[x])


_KINDS = (
    _Growing.convolution, _Growing.convolution, _Growing.pool, _Growing.product, _Growing.product, _Growing.unary,
    _Growing.binary, _Growing.binary, _Growing.softmax, _Growing.mean, _Growing.concatenation, _Growing.transpose,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Window:
    kernel: Shape
    strides: Shape
    dilations: Shape
    pads: Shape  # starts, then ends

    def result(self, edges: list[int]) -> Shape:
        ends = zip(edges, self.kernel, self.strides, self.dilations, self.pads, self.pads[len(edges) :], strict=False)
        return tuple((edge + a + b - (k - 1) * d - 1) // s + 1 for edge, k, s, d, a, b in ends)

    def attributes(self, *, dilations: bool) -> dict[str, Shape]:
        found = {"kernel_shape": self.kernel, "strides": self.strides, "pads": self.pads}
        return {**found, "dilations": self.dilations} if dilations else found


def _window(growing: _Growing, edges: list[int], *, dilated: bool = True) -> _Window:
    """A window of which each position touches the image."""
    along = []
    for edge in edges:
        kernel = growing.pick(*range(1, min(edge, 3) + 1))
        widest = (edge - 1) // (kernel - 1) if kernel > 1 else 1
        dilation = growing.pick(*range(1, min(widest, 2) + 1)) if dilated else 1
        pads = [growing.pick(*range(min(kernel - 1, 1) + 1)) for _ in range(2)]
        along.append((kernel, growing.pick(1, 1, 2), dilation, *pads))
    kernel, strides, dilations, starts, ends = zip(*along, strict=True)
    return _Window(kernel, strides, dilations, (*starts, *ends))


@st.composite
def small_graphs(draw: Draw, most_operators: int = 5, most_elements: int = 160, *, loops_known: bool = False) -> Graph:
    """A graph of a few operators on tensors of four axes, the first of size 1; each result is read, or an output.

    ``loops_known``: without operators that have no loop nest.
    """
    growing = _Growing(draw)
    for k in range(draw(st.integers(1, 2))):
        growing.shapes[f"x{k}"] = (1, *(draw(st.integers(1, most)) for most in (4, 6, 6)))
    count = draw(st.integers(1, most_operators))
    for _ in range(3 * count):
        before = len(growing.ops)
        draw(st.sampled_from(_KINDS if loops_known else (*_KINDS, _Growing.of_no_known_loops)))(growing)
        if len(growing.ops) > before and prod(growing.shapes[growing.ops[-1].outputs[0]]) > most_elements:
            del growing.shapes[growing.ops.pop().outputs[0]]
        if len(growing.ops) == count:
            break
    if not growing.ops:
        growing.unary()
    results = [each.outputs[0] for each in growing.ops]
    read = {name for each in growing.ops for name in each.inputs}
    outputs = [name for name in results if name not in read or draw(st.integers(0, 9)) == 0]
    used = {name: shape for name, shape in growing.weights.items() if name in read}
    return graph(
        {name: shape for name, shape in growing.shapes.items() if name not in results},
        growing.ops,
        outputs=" ".join(outputs),
        weights=used,
        tensors={name: growing.shapes[name] for name in results},
    )


@st.composite
def small_runs(
    draw: Draw,
    most_operators: int = 5,
    weights: tuple[WeightsPolicy, ...] = tuple(WeightsPolicy),
    machine: Target = PLAIN_MACHINE,
    *,
    loops_known: bool = False,
    **planning: Any,
) -> Run:
    """A small graph on a machine whose memory lies between the smallest that it runs in and more than it needs."""
    run = Run(
        graph=draw(small_graphs(most_operators, loops_known=loops_known)),
        target=machine.with_overrides(
            alignment_bytes=draw(st.sampled_from([1, 16])),
            accumulator_bytes_per_output=draw(st.sampled_from([0, 4])),
        ),
        lowering=LoweringOptions(
            fuse=draw(st.sampled_from(Fuse)),
            inplace=draw(st.booleans()),
            weights=draw(st.sampled_from(weights)),
            act_dtype=draw(st.sampled_from([None, "int8"])),
        ),
        planning=PlanningOptions(**planning),
    )
    least, most = sram_range(run)
    unit = run.target.alignment_bytes
    run = run.at(draw(st.integers(least // unit, -(-most // unit))) * unit)
    note(described(run))
    return run


def described(run: Run) -> str:
    """The run in a few lines."""
    g, target, options = run.graph, run.target, run.lowering
    lines = [
        f"{target.sram_bytes} B, alignment {target.alignment_bytes}, accumulators "
        f"{target.accumulator_bytes_per_output}, weights {options.weights}, fuse {options.fuse}, in place "
        f"{options.inplace}, {options.act_dtype}; {run.planning}"
    ]
    for each in g.operators:
        shapes = [g.tensors[name].shape for name in (*each.inputs, *each.outputs)]
        lines.append(f"  {each.op_type} {each.inputs} -> {each.outputs} {shapes} {dict(each.attributes)}")
    return "\n".join([*lines, f"  outputs {g.outputs}"])


def sram_range(run: Run) -> tuple[int, int]:
    """The smallest SRAM that the run's model runs in, tiled as far as may be; and one in which all lies at once.

    The staging area of operators of no known loops is taken to be 16 bytes.
    """
    program = Engine().lowered(run)
    least, _ = min_sram(program, run.target, run.lowering, smallest_demands)
    most, _ = min_sram(program, run.target, run.lowering, _all_bytes)
    return least, max(least, most)


def smallest_demands(program: Program) -> list[int]:
    """Pool bytes that each step needs in the smallest of its modes."""
    found = [smallest_demand(program, i)[0] for i in range(len(program.steps))]
    return [least if step.nest else min(least, 16) for least, step in zip(found, program.steps, strict=True)]


def _all_bytes(program: Program) -> list[int]:
    workspaces = [sum(w.size_bytes for w in step.workspaces) for step in program.steps]
    return [sum(buffer.size_bytes for buffer in program.buffers) + max(workspaces, default=0)]
