"""The joint choice against every subset of choices on tiny programs, and by hand where the rules miss it."""

from dataclasses import replace
from itertools import combinations
from math import inf

import pytest
from programs import program, run_on, target
from random_programs import random_program

from spillprof.engine.engine import Engine
from spillprof.engine.recompute.choices import Costs
from spillprof.engine.recompute.joint import joint_choice
from spillprof.engine.recompute.search import recomputed
from spillprof.ir.program import BufferKind, Program
from spillprof.lowering.transforms import Recompute, producers, with_recomputed
from spillprof.planning.bounds.covering import planners_covering
from spillprof.planning.liveness import lifetimes, step_demand_bytes
from spillprof.planning.options import PlanningOptions, Recomputing, WriteBack

OPTIONS = PlanningOptions()
SECOND_RUN_S = 1.0


def costs(p: Program) -> Costs:
    """A second for each operator; a second for each byte that moves."""
    return Costs(step_s=[SECOND_RUN_S] * len(p.steps), read_s=float, write_s=float)


def cheapest_cover(p: Program) -> float:
    """The least bytes that any set of gaps moves, by trying all of them; inf if a step does not fit."""
    pool = (p.capacity_bytes or 0) - p.reserved_bytes
    if any(step_demand_bytes(p, s) > pool for s in p.steps):
        return inf
    problem = planners_covering(p, OPTIONS)
    best, n = inf, len(problem.gaps)
    spanning = problem.spanning
    for mask in range(1 << n):
        taken = [g for g in range(n) if mask >> g & 1]
        moved = sum(problem.gap_costs[g] for g in taken)
        moved += sum(problem.write_costs[b] for b in {problem.gaps[g].buffer for g in taken})
        if moved < best and all(
            sum(problem.gaps[g].size_bytes for g in spanning[i] if mask >> g & 1) >= need
            for i, need in enumerate(problem.excess_bytes)
            if need
        ):
            best = moved
    return best


def choices_of(p: Program) -> list[Recompute]:
    """Every gap whose buffer may be computed again, the first use left out."""
    made_by, lives = producers(p), lifetimes(p)
    return [
        Recompute(buffer=b, use_step=i)
        for i, s in enumerate(p.steps)
        for b in s.reads
        if b in made_by
        and i > 0
        and b not in (*p.steps[i - 1].reads, *p.steps[i - 1].writes)
        and (lives[b].read_steps[0] != i or p.buffers[b].kind is BufferKind.OUTPUT)
    ]


def cheapest_of_all(p: Program) -> float:
    """The least seconds over every subset of choices, each with its cheapest cover."""
    choices = choices_of(p)
    return min(
        cheapest_cover(with_recomputed(p, subset)) + SECOND_RUN_S * len(subset)
        for k in range(len(choices) + 1)
        for subset in combinations(choices, k)
    )


def tiny(seed: int) -> Program | None:
    p = random_program(seed, max_steps=9, capacity_factor=1.0, weights_persist=False, features=False)
    p = replace(p, steps=tuple(replace(s, weight_stream_bytes=0) for s in p.steps))
    return p if len(choices_of(p)) in range(1, 6) and len(planners_covering(p, OPTIONS).gaps) in range(1, 9) else None


def test_joint_choice_is_the_best_of_all_subsets() -> None:
    """What it says it costs is never less than the best, nearly always the best, and its choice costs no more."""
    compared, best, again = 0, 0, 0
    for seed in range(4_000):
        p = tiny(seed)
        if p is None:
            continue
        found = joint_choice(p, OPTIONS, costs(p))
        assert found is not None
        least = cheapest_of_all(p)
        choices = [proposal.choice for proposal in found.proposals]
        realised = cheapest_cover(with_recomputed(p, choices)) + SECOND_RUN_S * len(choices)
        assert realised <= found.alone_s + 1e-6, seed
        assert realised >= least
        compared += 1
        best += realised == least
        again += least < cheapest_cover(p)
        if compared == 60:
            break
    assert compared == 60
    assert again >= 10
    assert best >= 57


def test_one_write_of_an_output_is_due_however_often_it_is_written() -> None:
    """s (40) has to leave twice: two reloads, and where each eviction writes, one write beyond the compulsory one."""
    p = program(
        {"x": ("input", 10), "s": ("output", 40), "a": 60, "b": 60, "c": 10, "d": 60, "e": 60, "y": ("output", 10)},
        ["x -> s", "x -> a", "a -> b", "b, s -> c", "c -> d", "d -> e", "e, s -> y"],
        capacity=130,
    )
    dear = Costs(step_s=[1000.0] * len(p.steps), read_s=float, write_s=float)
    seconds = {}
    for writeback in WriteBack:
        found = joint_choice(p, replace(OPTIONS, writeback=writeback), dear)
        assert found is not None
        assert found.proposals == ()
        seconds[writeback] = found.alone_s
    assert seconds == {WriteBack.ONCE: pytest.approx(80), WriteBack.ALWAYS: pytest.approx(120)}


def living_on() -> Program:
    """a (100) is made of r (20), which no other step reads; in between b and c leave room for r, but not for a."""
    return program(
        {"x": ("input", 10), "r": 20, "a": 100, "b": 90, "c": 90, "d": 10, "y": ("output", 10)},
        ["x -> r", "r -> a", "a -> b", "b -> c", "c -> d", "a, d -> y"],
        capacity=210,
    )


def test_operand_is_kept_longer_instead_of_its_result() -> None:
    """Spilling a moves 200 bytes. Keeping r costs 20 bytes of space at op3 (90 + 90 + 20), and one second run."""
    p = living_on()
    found = joint_choice(p, OPTIONS, costs(p))
    assert found is not None
    assert [proposal.choice for proposal in found.proposals] == [Recompute(buffer=2, use_step=5)]
    assert found.alone_s == SECOND_RUN_S


def test_operand_that_does_not_fit_either_is_spilled_instead() -> None:
    """r (40) passes the 210 bytes beside b and c: it is written and reloaded, 80 bytes in place of 200."""
    p = program(
        {"x": ("input", 10), "r": 40, "a": 100, "b": 90, "c": 90, "d": 10, "y": ("output", 10)},
        ["x -> r", "r -> a", "a -> b", "b -> c", "c -> d", "a, d -> y"],
        capacity=210,
    )
    found = joint_choice(p, OPTIONS, costs(p))
    assert found is not None
    assert found.alone_s == 80 + SECOND_RUN_S


def test_evicted_copy_has_its_own_write_back() -> None:
    """If a was evicted, its copy has no copy in DRAM: recomputing pays twice or not at all."""
    p = living_on()
    found = joint_choice(p, OPTIONS, Costs(step_s=[500.0] * 6, read_s=float, write_s=float))
    assert found is not None
    assert found.proposals == ()
    assert found.alone_s == 200


@pytest.mark.parametrize("mode", [Recomputing.RULES, Recomputing.JOINT])
def test_rules_and_joint_choice_keep_the_operand(mode: Recomputing) -> None:
    machine = target(sram_bytes=210)
    found = recomputed(living_on(), run_on(machine, recompute=mode), Engine())
    assert found is not None
    assert [(copy.buffer, copy.step, copy.saves_bytes) for copy in found.copies] == [("a", 5, 200)]
    assert found.after.spill_bytes == 0
