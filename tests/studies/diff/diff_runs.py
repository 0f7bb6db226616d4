"""Small runs to compare: a chain with a wide middle, with and without a skip over it."""

from collections.abc import Sequence
from dataclasses import replace

from graphs import MACHINE, graph
from profiles import make_profile

from spillprof.analysis.facts import buffer_facts
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.graph import Graph
from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import StepFact
from spillprof.ir.target import Target
from spillprof.lowering.lower import lower
from spillprof.lowering.options import Fuse, LoweringOptions

SMALL, WIDE = (1, 4, 8, 8), (1, 8, 8, 8)  # 1,024 and 2,048 bytes
PLAIN = LoweringOptions(fuse=Fuse.NONE, inplace=False)
CHAIN = ("Sigmoid x -> a", "Tanh a -> b", "Concat b b -> c", "MaxPool c -> d")


def chain(*last: str, output: str = "y") -> Graph:
    """a, b, the wide c, d; then the operators given."""
    tensors = dict.fromkeys("abde", SMALL) | {"c": WIDE, output: SMALL}
    return graph({"x": SMALL}, ops=[*CHAIN, *last], tensors=tensors, outputs=output)


PLAIN_CHAIN = chain("Sigmoid d -> y")
WITH_SKIP = chain("Add d a -> e", "Sigmoid e -> y")
"""``a`` is read again behind the wide middle: 4,096 bytes are live there."""


def machine(sram_bytes: int) -> Target:
    return MACHINE.with_overrides(sram_bytes=sram_bytes, alignment_bytes=64)


def run(g: Graph, sram_bytes: int = 3072, strategies: Sequence[str] = ("interval",)) -> Profile:
    return analyze(g, machine(sram_bytes), AnalyzeOptions(strategies=tuple(strategies), lowering=PLAIN))


def renamed(g: Graph, name: str = "other") -> Graph:
    """The same graph, every operator and every tensor within it under another name."""
    inner = {out for op in g.operators for out in op.outputs if out not in g.outputs}
    new = {tensor: f"{name}_{k}_t" if tensor in inner else tensor for k, tensor in enumerate(g.tensors)}
    operators = tuple(
        replace(
            op, name=f"{name}.{k}.x", inputs=tuple(new[t] for t in op.inputs), outputs=tuple(new[t] for t in op.outputs)
        )
        for k, op in enumerate(g.operators)
    )
    tensors = {new[key]: replace(tensor, name=new[key]) for key, tensor in g.tensors.items()}
    return replace(g, operators=operators, tensors=tensors, sha256="0" * 64)


def skeleton(g: Graph) -> Profile:
    """A profile of which only steps and buffers are of use."""
    program = lower(g, MACHINE, PLAIN)
    steps = tuple(StepFact(name=step.name, op_type=step.op_type) for step in program.steps)
    return replace(make_profile(20, hostile=False), steps=steps, buffers=buffer_facts(program), results=())
