"""No figure depends on the clock: searches count their work; only a time limit by the user ends one by time."""

import ast
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from programs import target
from random_programs import random_program

import spillprof
from spillprof.ir.layout_problem import Layout, LayoutBuffer, LayoutProblem
from spillprof.ir.plan import BY_CLOCK, BY_WORK, COMPLETE
from spillprof.planning.bounds.covering import covering
from spillprof.planning.bounds.reduction import reduce
from spillprof.planning.budget import Budget
from spillprof.planning.layout.search import LayoutEffort, lay_out
from spillprof.planning.optimal.cover import Cover, complete_greedily
from spillprof.planning.optimal.local_search import improve
from spillprof.planning.optimal.milp import OUT_OF_BUDGET, solve_milp
from spillprof.planning.optimal.search import Optimum
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import optimize
from spillprof.verify import verify

TARGET = target(dram_read_setup_s=8.0, dram_write_setup_s=4.0)
DEFAULTS = PlanningOptions()
SEARCHED = random_program(1, max_steps=200, capacity_factor=1.0)
"""195 steps, 265 gaps: too many partial choices for dynamic programming."""

PACKAGE = Path(spillprof.__file__).parent


def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every clock advance by a day at each reading."""
    days = count(1)
    for name in ("process_time", "monotonic", "perf_counter", "thread_time", "time"):
        monkeypatch.setattr(time, name, lambda: 86_400.0 * next(days))


def _optimum(work: int) -> Optimum:
    return optimize(SEARCHED, TARGET, replace(DEFAULTS, optimize_work=work))


def _layout(work: int) -> Layout:
    rng = np.random.default_rng(5)
    rows = rng.integers([0, 1, 1], [30, 15, 60], (60, 3)).tolist()
    buffers = (LayoutBuffer(name=f"b{k}", lower=a, upper=a + n, size_bytes=size) for k, (a, n, size) in enumerate(rows))
    return lay_out(LayoutProblem(buffers=tuple(buffers)), None, LayoutEffort(budget=Budget(work)))


def test_a_jumping_clock_changes_no_plan_and_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, short = _optimum(DEFAULTS.optimize_work), _optimum(5_000)
    assert whole.search == COMPLETE
    assert short.search == f"{BY_WORK} (--optimize-seconds N searches longer)"
    assert whole.bound.cost >= short.bound.cost
    assert verify(SEARCHED, short.plans[0]) == ()
    _hurry(monkeypatch)
    assert _optimum(DEFAULTS.optimize_work) == whole
    assert _optimum(5_000) == short


def test_a_jumping_clock_changes_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = _layout(10_000), _layout(400_000)
    assert short.search == f"{BY_WORK} (--seconds N searches longer)"
    _hurry(monkeypatch)
    assert [_layout(10_000), _layout(400_000)] == [short, long]


def test_a_time_that_is_given_ends_the_search_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _hurry(monkeypatch)
    found = optimize(SEARCHED, TARGET, replace(DEFAULTS, optimize_seconds=3.0))
    assert found.search == f"{BY_CLOCK}, 3 s (--optimize-seconds)"
    assert verify(SEARCHED, found.plans[0]) == ()


def test_a_time_takes_the_place_of_the_work() -> None:
    found = optimize(SEARCHED, TARGET, replace(DEFAULTS, optimize_work=1, optimize_seconds=600.0))
    assert found.search == COMPLETE


def test_the_integer_program_ends_with_its_budget_and_keeps_what_it_has() -> None:
    reduced = reduce(covering(SEARCHED, DEFAULTS))
    start = Cover(reduced)
    assert complete_greedily(start)
    found = [solve_milp(reduced, start.columns(), Budget(1)) for _ in range(2)]
    assert found[0] is not None
    assert (found[0].stopped, found[0]) == (OUT_OF_BUDGET, found[1])
    whole = solve_milp(reduced, start.columns(), Budget())
    assert whole is not None
    assert whole.stopped == ""
    assert whole.lower_cost is not None
    if found[0].columns is not None:
        assert Cover(reduced, found[0].columns).cost >= whole.lower_cost >= (found[0].lower_cost or 0)
    assert solve_milp(reduced, start.columns(), Budget(0)) is None


def test_local_search_ends_with_its_budget() -> None:
    reduced = reduce(covering(SEARCHED, DEFAULTS))
    costs = []
    for work in (0, 50_000, 400_000):
        cover = Cover(reduced)
        assert complete_greedily(cover)
        assert not improve(cover, 0, Budget(work))
        assert cover.covers()
        costs.append(cover.cost)
    assert costs[0] > costs[1] > costs[2]


def test_half_of_a_budget_is_spent_from_the_whole() -> None:
    whole = Budget(10)
    half = whole.half()
    half.spend(5)
    assert half.is_spent
    assert not whole.is_spent
    whole.spend(5)
    assert whole.is_spent


def test_no_clock_is_read_and_no_solver_is_timed_but_by_a_budget() -> None:
    """Progress is shown, and memories are measured, by clocks; figures are not made by them."""
    timed, limited = set(), set()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if "time" in names or (isinstance(node, ast.ImportFrom) and node.module == "time"):
                timed.add(module)
            if isinstance(node, ast.Constant) and node.value == "time_limit":
                limited.add(module)
    assert limited == {"planning/highs.py"}
    assert {name for name in timed if not name.startswith("frontends/calibration/")} == {
        "planning/budget.py", "cli/calibrate.py", "cli/progress.py", "studies/gate/lock.py", "studies/sweep/cluster.py",
    }  # fmt: skip
