"""Matching of the steps of two runs."""

from dataclasses import replace

from diff_runs import CHAIN, PLAIN_CHAIN, SMALL, WIDE, WITH_SKIP, chain, renamed, skeleton
from graphs import graph, op
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import make_profile
from random_programs import random_program

from spillprof.analysis.facts import buffer_facts
from spillprof.ir.graph import Graph
from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import BufferFact, StepFact
from spillprof.studies.diff.matching import Pairing, match


def paired(before: Profile, after: Profile) -> dict[str, str | None]:
    """Name after by name before; None for what was removed."""
    pairs = match(before, after)
    check(before, after, pairs)
    return {
        step.name: None if partner is None else after.steps[partner].name
        for step, partner in zip(before.steps, pairs.after_of_step, strict=True)
    }


def check(before: Profile, after: Profile, pairs: Pairing) -> None:
    """Both directions of the pairs agree."""
    for forth, back, sizes in (
        (pairs.after_of_step, pairs.before_of_step, (len(before.steps), len(after.steps))),
        (pairs.after_of_buffer, pairs.before_of_buffer, (len(before.buffers), len(after.buffers))),
    ):
        assert (len(forth), len(back)) == sizes
        assert {(b, a) for b, a in enumerate(forth) if a is not None} == {
            (b, a) for a, b in enumerate(back) if b is not None
        }


def numbered(g: Graph) -> Graph:
    """Operators named as readers name those without a name: by type and position."""
    operators = tuple(replace(o, name=f"{o.op_type}_{k}") for k, o in enumerate(g.operators))
    return replace(g, operators=operators)


def test_same_names_are_the_same_operators_in_any_order() -> None:
    forth = graph({"x": SMALL}, ops=["Sigmoid x -> a", "Tanh x -> b", "Add a b -> y"],
                  tensors=dict.fromkeys("aby", SMALL), outputs="y")  # fmt: skip
    back = replace(forth, operators=(forth.operators[1], forth.operators[0], forth.operators[2]))
    assert paired(skeleton(forth), skeleton(back)) == {"a": "a", "b": "b", "y": "y"}


def test_a_renamed_chain_is_matched_by_its_structure() -> None:
    before = skeleton(PLAIN_CHAIN)
    found = paired(before, skeleton(renamed(PLAIN_CHAIN)))
    assert found == {step.name: f"other.{k}.x" for k, step in enumerate(before.steps)}


def test_a_skip_added_to_a_renamed_chain_is_the_only_operator_without_a_partner() -> None:
    before, after = skeleton(PLAIN_CHAIN), skeleton(renamed(WITH_SKIP))
    found = paired(before, after)
    assert found == {"a": "other.0.x", "b": "other.1.x", "c": "other.2.x", "d": "other.3.x", "y": "other.5.x"}


def test_numbers_for_names_do_not_hide_that_one_operator_was_added_in_front() -> None:
    """``Sigmoid_0`` is in both, but the first one after is the new one."""
    before = numbered(graph({"x": SMALL}, ops=["Sigmoid x -> a", "Sigmoid a -> b", "Tanh b -> y"],
                            tensors=dict.fromkeys("aby", SMALL), outputs="y"))  # fmt: skip
    after = numbered(graph({"x": SMALL}, ops=["Relu x -> r", "Sigmoid r -> a", "Sigmoid a -> b", "Tanh b -> y"],
                           tensors=dict.fromkeys("raby", SMALL), outputs="y"))  # fmt: skip
    assert paired(skeleton(before), skeleton(after)) == {
        "Sigmoid_0": "Sigmoid_1", "Sigmoid_1": "Sigmoid_2", "Tanh_2": "Tanh_3"
    }  # fmt: skip


def test_two_changes_leave_the_middle_of_a_renamed_chain_matched() -> None:
    """Neither all before nor all after agrees there: what lies around it does."""
    inner = [
        f"{kind} t{k} -> t{k + 1}" for k, kind in enumerate(["Tanh", "Relu", "Sigmoid", "Exp", "Abs", "Neg", "Erf"])
    ]
    tensors = {f"t{k}": SMALL for k in range(9)} | {"y": SMALL, "z": SMALL}
    before = graph({"x": SMALL}, ops=["Sqrt x -> t0", *inner, "Sqrt t7 -> y"], tensors=tensors, outputs="y")
    after = graph({"x": SMALL}, ops=["Sin x -> t0", *inner, "Cos t7 -> y"], tensors=tensors, outputs="y")
    found = paired(skeleton(before), skeleton(renamed(after)))
    assert [found[f"t{k}"] for k in range(1, 8)] == [f"other.{k}.x" for k in range(1, 8)]
    assert found["t0"] is None
    assert found["y"] is None


def test_twins_are_told_apart_by_what_is_left_of_their_names() -> None:
    ops = [op("Sigmoid x -> a", name="left"), op("Sigmoid x -> b", name="right"), op("Concat a b -> y", name="join")]
    before = graph({"x": SMALL}, ops=ops, tensors={"a": SMALL, "b": SMALL, "y": WIDE}, outputs="y")
    ops = [op("Sigmoid x -> a", name="right"), op("Sigmoid x -> b", name="new"), op("Concat a b -> y", name="both")]
    after = graph({"x": SMALL}, ops=ops, tensors={"a": SMALL, "b": SMALL, "y": WIDE}, outputs="y")
    assert paired(skeleton(before), skeleton(after)) == {"left": "new", "right": "right", "join": "both"}


def test_another_size_of_everything_is_still_the_same_renamed_graph() -> None:
    double = replace(
        PLAIN_CHAIN,
        tensors={k: replace(t, shape=(2, *t.shape[1:])) for k, t in PLAIN_CHAIN.tensors.items()},
    )  # fmt: skip
    found = paired(skeleton(PLAIN_CHAIN), skeleton(renamed(double)))
    assert list(found.values()) == [f"other.{k}.x" for k in range(5)]


def test_an_operator_that_became_another_keeps_its_name() -> None:
    assert paired(skeleton(chain("Sigmoid d -> y")), skeleton(chain("Tanh d -> y")))["y"] == "y"


def test_buffers_follow_the_operators_that_write_them() -> None:
    before, after = skeleton(PLAIN_CHAIN), skeleton(renamed(WITH_SKIP))
    pairs = match(before, after)
    found = {
        buffer.name: None if partner is None else after.buffers[partner].written_by
        for buffer, partner in zip(before.buffers, pairs.after_of_buffer, strict=True)
    }
    assert found == {"x": None, "a": 0, "b": 1, "c": 2, "d": 3, "y": 5}


def test_profiles_without_edges_are_matched_by_name() -> None:
    before, after = (replace(skeleton(g), buffers=()) for g in (PLAIN_CHAIN, WITH_SKIP))
    assert paired(before, after) == {name: name for name in "abcdy"}


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_a_program_is_matched_with_itself_whatever_its_names(seed: int) -> None:
    program = random_program(seed)
    facts = buffer_facts(program)
    steps = tuple(StepFact(name=step.name, op_type=step.op_type) for step in program.steps)
    base = replace(make_profile(20, hostile=False), steps=steps, buffers=facts, results=())
    assert match(base, base).after_of_step == tuple(range(len(steps)))
    other = replace(base, steps=tuple(replace(s, name=f"z{k}.") for k, s in enumerate(steps)))
    pairs = match(base, other)
    check(base, other, pairs)
    wanted = {b.written_by for b in facts if b.read_by or b.kind == "output"} | {r for b in facts for r in b.read_by}
    for step, partner in enumerate(pairs.after_of_step):
        if step in wanted:
            assert partner is not None
            assert base.steps[step].op_type == other.steps[partner].op_type


def test_ten_thousand_renamed_operators_are_matched() -> None:
    """A chain of one type and size: everything looks alike but for its place."""
    n = 10_000
    steps = tuple(StepFact(name=f"a.{k}.x", op_type="Relu") for k in range(n))
    buffers = tuple(
        BufferFact(name=f"t{k}", kind="activation", size_bytes=64, written_by=k, read_by=(k + 1,) if k + 1 < n else ())
        for k in range(n)
    )
    before = replace(make_profile(20, hostile=False), steps=steps, buffers=buffers, results=())
    after = replace(before, steps=tuple(replace(s, name=f"b.{k}.x") for k, s in enumerate(steps)))
    assert match(before, after).after_of_step == tuple(range(n))


def test_chain_is_what_the_helpers_say() -> None:
    assert [step.op_type for step in skeleton(PLAIN_CHAIN).steps] == [text.split()[0] for text in CHAIN] + ["Sigmoid"]


@given(first=st.integers(0, 5_000), second=st.integers(0, 5_000))
@settings(max_examples=60, deadline=None)
def test_programs_that_have_nothing_in_common_are_still_paired_one_to_one(first: int, second: int) -> None:
    sides = []
    for k, seed in enumerate((first, second)):
        program = random_program(seed)
        steps = tuple(
            StepFact(name=f"{'xy'[k]}{i}.", op_type=("Conv", "Add")[i % 2]) for i in range(len(program.steps))
        )
        sides.append(replace(make_profile(20, hostile=False), steps=steps, buffers=buffer_facts(program), results=()))
    pairs = match(*sides)
    check(*sides, pairs)
    for step, partner in enumerate(pairs.after_of_step):
        if partner is not None:  # no name is the same: only likeness pairs
            assert sides[0].steps[step].op_type == sides[1].steps[partner].op_type
