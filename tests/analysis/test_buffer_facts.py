"""Producers and readers of each buffer in a profile."""

from graphs import MACHINE, graph

from spillprof.analysis.facts import buffer_facts
from spillprof.lowering.lower import lower
from spillprof.lowering.options import Fuse, LoweringOptions


def test_a_skip_is_read_by_both_ends() -> None:
    g = graph(
        {"x": (1, 4, 8, 8)},
        ops=["Sigmoid x -> a", "Tanh a -> b", "Add b a -> y"],
        tensors={"a": (1, 4, 8, 8), "b": (1, 4, 8, 8), "y": (1, 4, 8, 8)},
        outputs="y",
    )
    facts = buffer_facts(lower(g, MACHINE, LoweringOptions(fuse=Fuse.NONE)))
    assert {(f.name, f.kind, f.size_bytes, f.written_by, f.read_by) for f in facts} == {
        ("x", "input", 1024, None, (0,)),
        ("a", "activation", 1024, 0, (1, 2)),
        ("b", "activation", 1024, 1, (2,)),
        ("y", "output", 1024, 2, ()),
    }
