"""Programs with recomputed buffers: every use reads the same value, and nothing else changes."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from graphs import graph, op
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, step, target
from random_programs import random_program

from spillprof.ir.program import Program, Update
from spillprof.lowering.lower import lower
from spillprof.lowering.options import Fuse, LoweringOptions, Views
from spillprof.lowering.transforms import Recompute, moved_to, producers, with_recomputed
from spillprof.planning.liveness import lifetimes, step_demand_bytes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import STRATEGIES
from spillprof.verify import verify

Value = tuple[object, ...] | str


def values_read(p: Program) -> list[tuple[str, tuple[Value, ...], tuple[Value, ...]]]:
    """Each step's operator, what it reads and what it writes, as expressions over what is there at the start."""
    made = {b for s in p.steps for b in s.writes}
    value: dict[int, Value] = {b.index: b.name for b in p.buffers if b.index not in made}
    seen = []
    for s in p.steps:
        operands = tuple(value[b] for b in s.reads)  # KeyError: read before it is written
        results = tuple((s.operators, k, operands) for k in range(len(s.writes)))
        value |= dict(zip(s.writes, results, strict=True))
        seen.append((s.operators[0], operands, results))
    return seen


def any_choices(p: Program, seed: int) -> list[Recompute]:
    made_by = producers(p)
    found = [Recompute(buffer=b, use_step=i) for i, s in enumerate(p.steps) for b in s.reads if b in made_by]
    return [choice for choice in found if Random(f"{seed} {choice}").random() < 0.4]


def skip_over_two() -> Program:
    """x -> a; a is read by op1 and, two steps later, by op3."""
    return program(
        {"x": ("input", 8), "a": 16, "b": 8, "c": 8, "y": ("output", 8)}, ["x -> a", "a -> b", "b -> c", "a, c -> y"]
    )


def test_copy_stands_right_before_the_use_and_only_that_use_reads_it():
    q = with_recomputed(skip_over_two(), [Recompute(buffer=1, use_step=3)])
    assert [s.name for s in q.steps] == ["op0", "op1", "op2", "op0 (recomputed)", "op3"]
    assert [b.name for b in q.buffers] == ["x", "a", "b", "c", "y", "a (recomputed)"]
    assert [(s.reads, s.writes) for s in q.steps[3:]] == [((0,), (5,)), ((5, 3), (4,))]
    assert [s.recomputes for s in q.steps] == ["", "", "", "a", ""]
    lives = lifetimes(q)
    assert lives[1].read_steps == (1,)  # the first a dies early
    assert lives[0].read_steps == (0, 3)  # and x lives on for the copy
    assert [moved_to(i, [Recompute(buffer=1, use_step=3)]) for i in range(4)] == [0, 1, 2, 4]


def test_later_uses_read_the_newest_copy():
    p = program(
        {"x": ("input", 8), "a": 16, "b": 8, "c": 8, "d": 8, "y": ("output", 8)},
        ["x -> a", "a -> b", "a, b -> c", "a, c -> d", "a, d -> y"],
    )
    q = with_recomputed(p, [Recompute(buffer=1, use_step=2), Recompute(buffer=1, use_step=4)])
    copies = [s.writes[0] for s in q.steps if s.recomputes]
    assert [q.buffers[b].name for b in copies] == ["a (recomputed)", "a (recomputed 2)"]
    assert [s.reads[0] for s in q.steps if s.name in ("op1", "op2", "op3", "op4")] == [
        1,
        copies[0],
        copies[0],
        copies[1],
    ]


def test_chain_is_computed_from_its_own_copy():
    """b is made of a: before the step that wants both, a comes back first, and b is made of the new one."""
    p = program(
        {"x": ("input", 8), "a": 16, "b": 16, "c": 8, "y": ("output", 8)},
        ["x -> a", "a -> b", "b -> c", "a, b, c -> y"],
    )
    q = with_recomputed(p, [Recompute(buffer=2, use_step=3), Recompute(buffer=1, use_step=3)])
    assert [s.name for s in q.steps[3:]] == ["op0 (recomputed)", "op1 (recomputed)", "op3"]
    assert q.steps[4].reads == (q.steps[3].writes[0],)


def test_copy_of_a_copy_is_counted_on():
    p = with_recomputed(skip_over_two(), [Recompute(buffer=1, use_step=3)])
    q = with_recomputed(p, [Recompute(buffer=5, use_step=4)])
    assert [s.name for s in q.steps][3:] == ["op0 (recomputed)", "op0 (recomputed 2)", "op3"]
    assert q.buffers[6].name == "a (recomputed 2)"
    assert [s.recomputes for s in q.steps][3:] == ["a", "a", ""]


def test_names_that_the_model_uses_itself_are_left_to_it():
    p = program(
        {"x": ("input", 8), "a": 16, "a (recomputed)": 8, "c": 8, "y": ("output", 8)}, ["x -> a", "a -> c", "c -> y"]
    )
    q = with_recomputed(p, [Recompute(buffer=1, use_step=1)])
    assert q.buffers[-1].name == "a (recomputed 2)"


def test_operand_that_the_copy_wants_is_not_written_over():
    """op1 writes over x where x dies; with a copy of op0 after it, x must stay."""
    p = program(
        {"x": ("input", 16), "a": 16, "b": 16, "y": ("output", 16)},
        ["x -> a", step("x -> b", updates={"x": "b"}), "a, b -> y"],
    )
    assert p.steps[1].updates == (Update(old=0, new=2),)
    q = with_recomputed(p, [Recompute(buffer=1, use_step=2)])
    assert q.steps[1].updates == ()
    assert q.steps[1].may_overwrite == (0,)


def test_what_cannot_be_made_again_is_refused():
    p = skip_over_two()
    for buffer, use_step in ((0, 0), (1, 2)):  # an input; a step that does not read it
        with pytest.raises(ValueError, match="cannot be computed again"):
            with_recomputed(p, [Recompute(buffer=buffer, use_step=use_step)])
    random = replace(p, steps=(replace(p.steps[0], repeatable=False), *p.steps[1:]))
    with pytest.raises(ValueError, match="cannot be computed again"):
        with_recomputed(random, [Recompute(buffer=1, use_step=3)])


@given(st.integers(0, 10**6))
@settings(max_examples=120, deadline=None)
def test_every_operator_reads_and_writes_what_it_did(seed: int) -> None:
    p = random_program(seed)
    q = with_recomputed(p, any_choices(p, seed))
    kept: Sequence[object] = [v for s, v in zip(q.steps, values_read(q), strict=True) if not s.recomputes]
    assert kept == values_read(p)
    copies = [v for s, v in zip(q.steps, values_read(q), strict=True) if s.recomputes]
    assert set(copies) <= set(values_read(p))  # a copy does what an operator did


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_plans_of_changed_programs_are_legal(seed: int) -> None:
    p = random_program(seed)
    q = with_recomputed(p, any_choices(p, seed))
    demand = max(step_demand_bytes(q, s) for s in q.steps)
    q = replace(q, capacity_bytes=max(p.capacity_bytes or 0, q.reserved_bytes + demand))
    for strategy in STRATEGIES:
        assert not verify(q, make_plan(q, target(), strategy, PlanningOptions()))


def test_what_chance_or_effects_decide_is_not_run_twice() -> None:
    shape = (1, 8)
    g = graph(
        {"x": shape},
        [
            "Relu x -> r",
            "RandomNormalLike r -> n",
            "Dropout n -> d",
            op("Foo d -> f", domain="com.example"),
            "Relu f -> y",
        ],
        "y",
        tensors=dict.fromkeys("rndfy", shape),
    )
    steps = lower(g, target(), LoweringOptions(fuse=Fuse.NONE, views=Views.COPY)).steps
    assert {s.op_type: s.repeatable for s in steps} == {
        "Relu": True, "RandomNormalLike": False, "Dropout": False, "Foo": False,
    }  # fmt: skip
