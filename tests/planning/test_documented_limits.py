"""The table of limits in docs/model.md matches the code."""

from dataclasses import astuple
from pathlib import Path

import pytest

from spillprof.cli.analyze import FEW_STRATEGIES
from spillprof.engine.recompute import joint
from spillprof.engine.recompute.search import _TRIALS
from spillprof.explain import analyze, counterfactuals
from spillprof.explain.whatif import size_curve, suggest
from spillprof.frontends.onnx import loops
from spillprof.ir import profile
from spillprof.lowering import bodies, streaming
from spillprof.planning import interval, offline, steady
from spillprof.planning.bounds import methods
from spillprof.planning.optimal import dynamic_program, local_search, milp, row_model, search
from spillprof.planning.optimal import joint as joint_modes
from spillprof.planning.options import Recomputing
from spillprof.planning.ordering import order_effort
from spillprof.planning.tiling import menus
from spillprof.timing import issue_times

MODEL = (Path(__file__).parents[2] / "docs" / "model.md").read_text("utf-8")
SECTION = MODEL.partition("## Limits by count")[2].partition("\n## ")[0]
ROWS = {row.split("|")[1].strip(): row for row in SECTION.splitlines() if row.startswith("|")}

LIMITS = {
    "`optimal`, compared by default": (analyze.SEARCHED_STEPS,),
    "— exact search step by step": (dynamic_program._MOST_OPEN, dynamic_program._MOST_STATES),
    "— integer program": (milp.MOST_COLUMNS, milp.MANY_COLUMNS),
    "— local search": (local_search._ROUNDS_A_COLUMN, local_search._MOST_ROUNDS, local_search._MOST_COLUMNS),
    "— choices of gaps that are placed": (search._PLACED, search._PLACED_IF_LONG, search._LONG),
    "— exchanges, which move blocks inside SRAM": (search._LONG,),
    "offline placement: layout of all at once": (offline._LAID_OUT,),
    "— in several orders": (offline.MANY_BLOCKS,),
    "lower bound: linear program": (methods._LP_GAPS,),
    "bound for every order": (counterfactuals.MOST_STEPS_IN_ANY_ORDER,),
    "`analyze` without `--strategy`": tuple(most for most, _ in FEW_STRATEGIES),
    "causes of bytes": (counterfactuals.MOST_EXPLAINED_STEPS,),
    "— a better order for them": (counterfactuals.MOST_STEPS_TO_ORDER,),
    "`--order memory`: schedules and changes tried": tuple(
        n for most in (300, 1_000, 3_000, 20_000) for n in (most, *astuple(order_effort(most)))
    ),
    "`--recompute rules`: programs judged": tuple(n for pair in _TRIALS[Recomputing.RULES] for n in pair),
    "`--recompute joint`": (*(n for pair in _TRIALS[Recomputing.JOINT] for n in pair), joint.MOST_GAPS),
    "modes: sets of operands to stream": (menus.MOST_STREAMED,),
    "— tilings of each set": (menus._FOOTPRINTS + 2,),
    "— modes and gaps together": (joint_modes.MOST_BINARIES, row_model._MOST_NODES),
    "operands to tile without known loops": (streaming.EXACT_OPERANDS,),
    "issue times: simulations": tuple(n for pair in issue_times._TRIALS for n in pair),
    "steady state of cached weights": (steady._NATURAL_RUNS,),
    "slots for oscillating buffers": (
        *(n for pair in analyze._SLOT_TRIALS for n in pair), analyze.OSCILLATES_FROM,
    ),
    "suggestions": (suggest.STEPS_IN_ALL, suggest.MOST_RUNS),
    "size curve": (size_curve.MOST_CURVE_STEPS, size_curve.LEAST_SIZES, size_curve.MOST_SIZES),
    "loops, unfolded": (bodies.UNFOLD_LIMIT,),
    "a loop followed trip by trip": (loops.MAX_WALKED_NODES, loops.MAX_WALKED_TRIPS),
    "certificate in the JSON": (profile.MOST_ENTRIES,),
}  # fmt: skip


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_is_documented_as_it_is(what: str) -> None:
    for limit in LIMITS[what]:
        assert f"{limit:,}" in ROWS[what].replace(" million in all", "")


def test_every_row_is_held_to_the_code() -> None:
    assert set(LIMITS) == set(ROWS) - {"what", "---"}


def test_the_screening_is_documented_as_it_is() -> None:
    assert f"- fewer than {interval.MIN_SPAN} steps lie between" in MODEL
    assert f"- more than {interval.CLOSE_USES} other uses follow" in MODEL
