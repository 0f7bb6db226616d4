"""Recomputation of tensors given by name."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, run_on, step, target
from random_programs import random_program

from spillprof.engine.engine import Engine
from spillprof.engine.recompute.choices import named_choices
from spillprof.engine.recompute.search import recompute_facts, recomputed
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.lowering.transforms import Recompute, with_recomputed
from spillprof.planning.options import Recomputing
from spillprof.planning.strategies import STRATEGIES

LOWERING = LoweringOptions()


def two_gaps(capacity=None):
    """a is read by op1, op3 and op6: after gaps of one and of two steps."""
    return program(
        {"x": ("input", 8), "a": 16, "b": 8, "c": 8, "d": 8, "e": 8, "f": 8, "y": ("output", 8)},
        [
            step("x -> a", macs=5, repeatable=True, weight_stream_bytes=3), "a -> b", "b -> c", "a, c -> d", "d -> e",
            "e -> f", "a, f -> y",
        ],
        capacity=capacity,
    )  # fmt: skip


def test_a_tensor_is_computed_again_behind_its_longest_gap():
    p = two_gaps()
    assert named_choices(p, ["a"]) == (Recompute(buffer=1, use_step=6),)
    assert named_choices(p, ["a", "a"]) == named_choices(p, ["a"])
    q = with_recomputed(p, named_choices(p, ["a"]))
    assert [s.name for s in q.steps] == ["op0", "op1", "op2", "op3", "op4", "op5", "op0 (recomputed)", "op6"]


def test_a_named_tensor_is_recomputed_even_if_nothing_improves():
    """In 100 bytes nothing spills: the second run is 5 operations and 3 bytes of weights for nothing."""
    p, machine = two_gaps(), target(sram_bytes=100)
    found = recomputed(p, run_on(machine, recompute_tensor=("a",)), Engine())
    (copy,) = found.copies
    assert (copy.buffer, copy.step, copy.macs, copy.weight_bytes, copy.saves_bytes) == ("a", 6, 5, 3, -3)
    facts = recompute_facts(found)
    assert (facts.operators, facts.spill_bytes_before, facts.spill_bytes) == (1, 0, 3)


def test_the_savings_are_the_transfers_of_the_gap():
    """In 28 bytes a (16) leaves behind op3 until op6: written once and reloaded, less 3 bytes of weights."""
    p, machine = two_gaps(), target(sram_bytes=28)
    found = recomputed(p, run_on(machine, recompute_tensor=("a",)), Engine())
    assert found.before.spill_bytes > found.after.spill_bytes
    assert found.copies[0].saves_bytes in (16 - 3, 2 * 16 - 3)


REFUSED = {
    "x": "no operator makes it",
    "b": "nothing runs between its uses, or it has but one",
    "q": "no tensor of that name is stored",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_tensor_that_cannot_be_recomputed_is_refused(name):
    with pytest.raises(UsageError, match=REFUSED[name]):
        named_choices(two_gaps(), [name])


def test_a_pinned_and_a_nondeterministic_tensor_are_refused():
    p = two_gaps()
    pinned = replace(p, buffers=tuple(replace(b, dedicated=b.name == "a") for b in p.buffers))
    with pytest.raises(UsageError, match="it has a slot of its own"):
        named_choices(pinned, ["a"])
    chance = replace(p, steps=tuple(replace(s, repeatable=False) for s in p.steps))
    with pytest.raises(UsageError, match="is not deterministic"):
        named_choices(chance, ["a"])


@given(seed=st.integers(0, 10**6), mode=st.sampled_from([Recomputing.OFF, Recomputing.RULES]))
@settings(max_examples=40, deadline=None)
def test_plans_of_random_programs_with_a_named_tensor_are_legal(seed: int, mode: Recomputing) -> None:
    p = random_program(seed, capacity_factor=1.0)
    machine = target(sram_bytes=p.capacity_bytes, alignment_bytes=p.alignment_bytes)
    p = replace(p, capacity_bytes=None, reservations=())
    for buffer in p.buffers:
        try:
            (choice,) = named_choices(p, [buffer.name])
        except UsageError:
            continue
        found = recomputed(p, run_on(machine, recompute_tensor=(buffer.name,), recompute=mode), Engine())
        assert found is not None
        assert any(copy.buffer == buffer.name for copy in found.copies)
        if mode is Recomputing.OFF:
            assert with_recomputed(p, [choice]) == found.program
            assert [c.step for c in found.copies] == [choice.use_step]
        for strategy in STRATEGIES[:5]:
            try:
                Engine().play(fit(found.program, machine, LOWERING), run_on(machine), strategy)  # verifies
            except CapacityError:
                continue
        return
