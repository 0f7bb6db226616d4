"""Covers that are improved stretch by stretch: they stay covers, never get dearer; one stretch of all is solved."""

from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program
from random_programs import random_program

from spillprof.ir.program import Program
from spillprof.planning.bounds.covering import planners_covering
from spillprof.planning.bounds.methods import lower_bound
from spillprof.planning.bounds.reduction import reduce
from spillprof.planning.budget import Budget
from spillprof.planning.optimal.cover import Cover, complete_greedily
from spillprof.planning.optimal.milp import improve_in_windows, solve_milp
from spillprof.planning.options import PlanningOptions

DEFAULTS = PlanningOptions()


def greedy_cover(p: Program) -> Cover:
    cover = Cover(reduce(planners_covering(p, DEFAULTS)))
    assert complete_greedily(cover)
    return cover


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**9), visits=st.sampled_from([2, 8, 30]))
def test_covers_stay_covers_and_never_get_dearer(seed: int, visits: int) -> None:
    p = random_program(seed, max_steps=40)
    cover = greedy_cover(p)
    before = cover.cost
    assert improve_in_windows(cover, Budget(), (visits,))
    assert cover.covers()
    assert cover.cost <= before
    assert Cover(cover.reduced, cover.columns()).cost == cover.cost
    assert lower_bound(p, DEFAULTS).cost <= cover.cost + planners_covering(p, DEFAULTS).forced_cost


def test_a_stretch_of_all_rows_is_solved_as_the_whole() -> None:
    covers = [cover for seed in range(80) if (cover := greedy_cover(random_program(seed, max_steps=40))).cost]
    assert len(covers) > 10
    for cover in covers:
        solved = solve_milp(cover.reduced, cover.columns(), Budget())
        assert improve_in_windows(cover, Budget())
        assert solved is not None
        assert solved.columns is not None
        assert cover.cost <= 1.002 * Cover(cover.reduced, solved.columns).cost


def test_the_dear_one_of_two_gaps_is_exchanged_for_the_cheap_one() -> None:
    """Of s (60) and t (30) one must leave while n (60) is there, in 120: s is given, t is cheaper."""
    p = program({"s": 60, "t": 30, "n": 60}, ["-> s", "-> t", "-> n", "n ->", "s, t ->"], capacity=120)
    reduced = reduce(planners_covering(p, DEFAULTS))
    cover = Cover(reduced, [reduced.buffers.index(0)])
    assert cover.cost == 120
    assert improve_in_windows(cover, Budget())
    assert cover.cost == 60


def test_without_time_nothing_is_exchanged() -> None:
    cover = next(cover for seed in range(30) if (cover := greedy_cover(random_program(seed, max_steps=40))).cost)
    before = cover.columns()
    assert not improve_in_windows(cover, Budget(0))
    assert cover.columns() == before
