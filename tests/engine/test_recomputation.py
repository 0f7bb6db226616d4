"""Recomputation on random programs: never worse, and the same operators on the same values."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import run_on, target
from random_programs import random_program

from spillprof.engine.engine import Engine
from spillprof.engine.recompute.search import JUDGES, Recomputation, recompute_facts, recomputed
from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.ir.target import Target
from spillprof.lowering.fitting import fit
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import Dma, Recomputing


def cheap_to_compute(seed: int) -> tuple[Program, Target]:
    """A random program that spills, on a machine that computes far faster than it moves."""
    p = replace(random_program(seed, capacity_factor=1.0), reservations=())
    p = replace(p, steps=tuple(replace(s, macs=s.macs // 1000, weight_stream_bytes=0) for s in p.steps))
    machine = target(sram_bytes=p.capacity_bytes, alignment_bytes=p.alignment_bytes, macs_per_s={"default": 10.0})
    return replace(p, capacity_bytes=None), machine


def latency_s(p: Program, machine: Target, strategy: str) -> float:
    return Engine().play(fit(p, machine, LoweringOptions()), run_on(machine), strategy).timeline.makespan_s


@pytest.mark.parametrize("mode", [Recomputing.RULES, Recomputing.JOINT])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_nothing_gets_worse_and_every_plan_is_legal(mode: Recomputing, seed: int) -> None:
    p, machine = cheap_to_compute(seed)
    try:
        found = recomputed(p, run_on(machine, recompute=mode), Engine())
    except CapacityError:
        return
    if found is None:
        return
    before, after = found.before, found.after
    assert after.spill_bytes <= before.spill_bytes
    assert after.latency_s <= before.latency_s
    assert after.alone_s <= before.alone_s
    assert (after == before) == (not found.copies)
    # ``play`` verifies: the figures are those of legal plans
    assert after.latency_s == min(latency_s(found.program, machine, judge) for judge in JUDGES[mode])
    facts = recompute_facts(found)
    assert facts.macs == sum(s.macs for s in found.program.steps) - sum(s.macs for s in p.steps)


def test_some_random_programs_are_made_better() -> None:
    better = 0
    for seed in range(60):
        p, machine = cheap_to_compute(seed)
        try:
            found = recomputed(p, run_on(machine, recompute=Recomputing.RULES), Engine())
        except CapacityError:
            continue
        better += isinstance(found, Recomputation) and bool(found.copies)
    assert better >= 3


def test_it_is_deterministic() -> None:
    for seed in (3, 5, 8):
        p, machine = cheap_to_compute(seed)
        on_demand = run_on(machine, recompute=Recomputing.RULES, dma=Dma.DEMAND)
        first, second = (recomputed(p, on_demand, Engine()) for _ in range(2))
        assert first == second
