"""Lower bounds: worked by hand, against all subsets of gaps, against every strategy, and their certificates."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program, step, target
from random_programs import planning_options, random_program, streaming_case

from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program
from spillprof.planning.bounds.covering import Covering, covering
from spillprof.planning.bounds.methods import NOTHING_FORCED, ONLY_FORCED, lower_bound, quick_bound
from spillprof.planning.bounds.rows import SCALE, WeightedRow, proven_cost
from spillprof.planning.options import Inputs, PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.planning.strategies import CHEAP_STRATEGIES
from spillprof.planning.traffic import count_traffic

TARGET = target(dram_read_setup_s=8.0, dram_write_setup_s=4.0)
OPTIONS = planning_options("inputs", "writeback", "release", "start")


def cheapest_cover(problem: Covering) -> int | None:
    """The least bytes over all subsets of gaps that cover the excess; None if none does, or there are too many."""
    if len(problem.gaps) > 12:
        return None
    best = None
    for chosen in product((False, True), repeat=len(problem.gaps)):
        off = [0] * len(problem.excess_bytes)
        gaps = [gap for gap, taken in zip(problem.gaps, chosen, strict=True) if taken]
        for gap in gaps:
            for start, end in gap.ranges:
                for i in range(start, end):
                    off[i] += gap.size_bytes
        if all(o >= need for o, need in zip(off, problem.excess_bytes, strict=True)):
            cost = sum(c for c, taken in zip(problem.gap_costs, chosen, strict=True) if taken) + sum(
                problem.write_costs[b] for b in {g.buffer for g in gaps}
            )
            best = cost if best is None else min(best, cost)
    return None if best is None else best + problem.forced_cost


def least_spill(p: Program, options: PlanningOptions) -> int | None:
    """The fewest spill bytes of all strategies; None if resident inputs leave no room."""
    found = []
    for strategy in CHEAP_STRATEGIES:
        try:
            found.append(count_traffic(p, make_plan(p, TARGET, strategy, options)).spill_bytes)
        except CapacityError:
            assert options.inputs is Inputs.RESIDENT
    return min(found, default=None)


def skip_over_a_large_step(capacity: int) -> Program:
    """s is written, waits while a large pair is live, and is read at the end.

    Step 0 writes s (40) from x (10); step 1 writes a (60) from x; step 2 writes b (60) from a: 120 live, beside s
    160; step 3 writes y (10) from b and s.
    """
    return program(
        {"x": ("input", 10), "s": 40, "a": 60, "b": 60, "y": ("output", 10)},
        ["x -> s", "x -> a", "a -> b", "b, s -> y"],
        capacity=capacity,
    )


def test_a_skip_over_a_full_step_must_be_written_and_reloaded_once() -> None:
    # At step 2 a + b + s = 160 > 130: only s can leave, in its gap over steps 1 and 2: 40 written + 40 read.
    bound = lower_bound(skip_over_a_large_step(130), PlanningOptions())
    assert bound.cost == 80
    assert least_spill(skip_over_a_large_step(130), PlanningOptions()) == 80


def test_one_missing_byte_costs_the_whole_buffer() -> None:
    # The excess is 1 byte; fractions of a buffer would cost next to nothing, whole buffers cost 80.
    bound = lower_bound(skip_over_a_large_step(159), PlanningOptions())
    assert bound.cost == 80


def test_nothing_must_spill_where_all_that_is_live_fits() -> None:
    bound = lower_bound(skip_over_a_large_step(160), PlanningOptions())
    assert (bound.cost, bound.proven_by, bound.certificate) == (0, NOTHING_FORCED, ())


def test_a_clean_input_costs_its_reload_alone() -> None:
    # x (40) is read at steps 0 and 2, and a + b (120) pass between: it leaves without a write.
    p = program(
        {"x": ("input", 40), "a": 60, "b": 60, "y": ("output", 10)}, ["x -> a", "a -> b", "b, x -> y"], capacity=130
    )
    assert lower_bound(p, PlanningOptions()).cost == 40


def test_the_write_of_a_graph_output_is_no_spill() -> None:
    # s is an output that step 3 reads again: its write is due anyway, so only the reload of 40 counts.
    p = program(
        {"x": ("input", 10), "s": ("output", 40), "a": 60, "b": 60, "y": ("output", 10)},
        ["x -> s", "x -> a", "a -> b", "b, s -> y"],
        capacity=130,
    )
    assert lower_bound(p, PlanningOptions()).cost == 40


def test_two_gaps_of_one_buffer_share_its_write() -> None:
    # s (40) is dead weight over two full steps with a use between: one write, two reloads.
    p = program(
        {"x": ("input", 10), "s": 40, "a": 60, "b": 60, "c": 20, "d": 100, "e": 20, "y": ("output", 10)},
        ["x -> s", "x -> a", "a -> b", "b, s -> c", "c -> d", "d -> e", "e, s -> y"],
        capacity=130,
    )
    assert covering(p, PlanningOptions()).write_costs == {1: 40}
    assert lower_bound(p, PlanningOptions()).cost == 120
    assert least_spill(p, PlanningOptions()) == 120


def test_streamed_operands_and_what_they_force_are_part_of_the_bound() -> None:
    # Step 1 streams a in: a (60) must be written once and is read once through DRAM, whatever the strategy.
    p = program(
        {"x": ("input", 10), "a": 60, "y": ("output", 10)},
        ["x -> a", step("a -> y", streamed_reads="a", stream_staging_bytes=4)],
        capacity=100,
    )
    bound = lower_bound(p, PlanningOptions())
    assert (bound.cost, bound.proven_by) == (120, ONLY_FORCED)
    assert least_spill(p, PlanningOptions()) == 120


def test_another_choice_of_streamed_operands_may_spill_less_than_the_bound() -> None:
    """r (40) is written, read beside y (50), and read again; r + y = 90 do not fit 80.

    Streaming r, the smaller: written 40, streamed in 40, reloaded 40 = 120. Streaming the output y instead costs
    nothing, because its write is due anyway. The bound belongs to the choice.
    """
    buffers = {"x": ("input", 10), "r": 40, "y": ("output", 50), "z": ("output", 10)}
    by_size = program(
        buffers, ["x -> r", step("r -> y", streamed_reads="r", stream_staging_bytes=8), "r -> z"], capacity=80
    )
    by_cost = program(
        buffers, ["x -> r", step("r -> y", streamed_writes="y", stream_staging_bytes=8), "r -> z"], capacity=80
    )
    assert lower_bound(by_size, PlanningOptions()).cost == least_spill(by_size, PlanningOptions()) == 120
    assert lower_bound(by_cost, PlanningOptions()).cost == least_spill(by_cost, PlanningOptions()) == 0


def test_infinite_memory_has_no_covering_problem() -> None:
    with pytest.raises(ValueError, match="infinite"):
        covering(replace(random_program(1), capacity_bytes=None), PlanningOptions())


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), options=OPTIONS)
def test_bound_lies_below_the_cheapest_cover_and_that_below_every_plan(seed: int, options: PlanningOptions) -> None:
    p = random_program(seed)
    bound = lower_bound(p, options).cost
    least, cover = least_spill(p, options), cheapest_cover(covering(p, options))
    if cover is not None:
        assert bound <= cover
        assert least is None or cover <= least
    assert least is None or bound <= least


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_bound_lies_below_every_plan_with_streamed_operands(seed: int) -> None:
    case = streaming_case(seed)
    if case is not None:
        least = least_spill(case[0], PlanningOptions())
        assert least is None or lower_bound(case[0], PlanningOptions()).cost <= least


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), data=st.data())
def test_no_weights_whatsoever_prove_too_much(seed: int, data: st.DataObject) -> None:
    problem = covering(random_program(seed, capacity_factor=1.0), PlanningOptions())
    cover = cheapest_cover(problem)
    if cover is None or not problem.gaps:
        return
    full = sorted(problem.spanning)
    rows = data.draw(
        st.lists(
            st.builds(
                WeightedRow,
                step=st.sampled_from(full),
                apart=st.lists(st.integers(0, len(problem.gaps) - 1), max_size=2, unique=True).map(tuple),
                weight=st.integers(-SCALE, 3 * SCALE),
            ),
            max_size=5,
        )
    )
    rows = [replace(row, apart=tuple(g for g in row.apart if g in problem.spanning[row.step])) for row in rows]
    assert proven_cost(problem, rows) <= cover


def test_certificate_proves_what_the_bound_says_and_no_more_after_tampering() -> None:
    p = skip_over_a_large_step(130)
    bound, problem = lower_bound(p, PlanningOptions()), covering(p, PlanningOptions())
    assert proven_cost(problem, bound.certificate) == bound.cost
    doubled = [replace(row, weight=2 * row.weight) for row in bound.certificate]
    negative = [replace(row, weight=-row.weight) for row in bound.certificate]
    assert proven_cost(problem, doubled) <= bound.cost
    assert proven_cost(problem, negative) == 0


def test_the_solver_prints_nothing(tmp_path: os.PathLike[str]) -> None:
    code = "from spillprof.planning.highs import quiet_solver; quiet_solver(); quiet_solver(); print('only this')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "only this\n"


@given(st.integers(0, 1 << 32), OPTIONS)
@settings(max_examples=60, deadline=None)
def test_the_quick_bound_never_passes_the_best_one(seed: int, options: PlanningOptions) -> None:
    p = random_program(seed)
    try:
        best = lower_bound(p, options).cost
    except CapacityError:
        return  # resident inputs leave no room
    assert 0 <= quick_bound(p, options) <= best
