"""The table of operators: one row holds all facts of lowering about a type."""

from dataclasses import replace
from math import prod

import onnx
import pytest
from graphs import MACHINE, graph, lowered, op, picture

from spillprof.lowering.fitting import fit
from spillprof.lowering.operators.facts import Channels, LoopKind, OperandShapes, OperatorFacts
from spillprof.lowering.operators.table import CostClass, cost_class, facts_of, known_rows, register
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.verify import verify


def _outer(o: OperandShapes) -> int:
    return prod(o.output())


OUTER = OperatorFacts(types="OuterProduct", domains=("acme",), loop=LoopKind.PRODUCT, macs=_outer, leads=True)


def test_a_row_is_all_that_a_new_operator_takes() -> None:
    """a and b, 16 B each, to 4 x 4 products: 16 MACs; the Relu after it is fused; a legal plan in 96 B."""
    g = graph(
        {"a": (4,), "b": (4,)},
        [op("OuterProduct a b -> p", domain="acme"), "Relu p -> y"],
        "y",
        tensors={"p": (4, 4), "y": (4, 4)},
    )
    assert lowered(g).assumptions[0].what == "operators of unknown cost are timed by bytes alone"
    register(OUTER)
    machine = replace(MACHINE, sram_bytes=96)
    program = fit(lowered(g), machine, LoweringOptions())
    assert picture(program) == ["OuterProduct a b -> y"]
    assert (program.steps[0].macs, program.assumptions) == (16, ())
    plan = make_plan(program, machine, "lru", PlanningOptions())
    assert (plan.spills, verify(program, plan)) == ((), ())
    with pytest.raises(ValueError, match="operator OuterProduct of domain 'acme' has a row already"):
        register(OUTER)


def test_a_type_of_a_known_domain_has_one_row() -> None:
    with pytest.raises(ValueError, match="operator Relu of domain '' has a row already"):
        register(OperatorFacts(types="Relu"))


def test_a_row_of_another_domain_leaves_the_standard_operator_as_it_is() -> None:
    register(OperatorFacts(types="Conv", domains=("acme",)))
    assert facts_of(op("Conv x w -> y")).macs is not None
    assert cost_class("acme", "Conv") is CostClass.BYTES
    assert cost_class("acme", "Relu") is CostClass.UNKNOWN


@pytest.mark.parametrize(
    ("op_type", "loop", "channels"),
    [
        ("Conv", LoopKind.CONVOLUTION, Channels.MAP),
        ("MatMul", LoopKind.PRODUCT, None),
        ("MaxPool", LoopKind.POOLING, Channels.MAP),
        ("Relu", LoopKind.ELEMENTWISE, Channels.KEPT),
        ("Concat", LoopKind.CONCATENATION, Channels.RESIZED),
        ("Softmax", LoopKind.REDUCTION, Channels.KEPT),
        ("Gather", LoopKind.LOOKUP, None),
        ("Transpose", LoopKind.TRANSPOSE, None),
        ("Attention", LoopKind.OTHER, None),
    ],
)
def test_loops_and_channels_of_one_operator_a_kind(op_type: str, loop: LoopKind, channels: Channels | None) -> None:
    facts = facts_of(op(f"{op_type} x -> y"))
    assert (facts.loop, facts.channel_rule) == (loop, channels)


def test_rows_name_operators_that_there_are() -> None:
    """A slip of the pen would leave an operator without its facts."""
    standard = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    rows = known_rows()
    misspelt = {name for name in standard for row in rows if name.lower() == row.lower() and name != row}
    assert misspelt == set()
    assert {"Conv", "Gemm", "Einsum", "Add", "Softmax", "Concat", "Reshape"} <= rows.keys() & standard
