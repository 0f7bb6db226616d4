"""docs/model.md names the limits that the code has."""

from pathlib import Path

import pytest

from spillprof.cli.analyze import FEW_STRATEGIES
from spillprof.explain import counterfactuals, oscillation, pipeline
from spillprof.explain.whatif import size_curve, suggest
from spillprof.lowering import bodies, streaming
from spillprof.planning import bounds, offline_packing, screening
from spillprof.planning.bounding import rows

PAGE = (Path(__file__).parents[2] / "docs" / "model.md").read_text("utf-8")
LIMITS = PAGE.partition("### Limits that shape results")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (pipeline.SEARCHED_STEPS, "| {:,} steps | `optimal`"),
        (FEW_STRATEGIES[1][0], "| {:,} operators | `analyze` compares"),
        (FEW_STRATEGIES[0][0], "| {:,} operators | `analyze` simulates"),
        (counterfactuals.MOST_STEPS_TO_ORDER, "| {:,} steps to judge"),
        (counterfactuals.MOST_STEPS_IN_ANY_ORDER, "| {:,} steps | no bound over all orders"),
        (counterfactuals.MOST_STEPS, "| {:,} steps | causes"),
        (oscillation._SLOT_TRIALS[1][0], "| {:,} steps | causes are told by kind alone, and no slot"),
        (oscillation._SLOT_TRIALS[0][0], "| {:,} steps | one oscillating"),
        (bodies.UNFOLD_LIMIT, "| {:,} operators unfolded"),
        (bounds._LP_GAPS, "| {:,} gaps"),
        (bounds._LP_VISITS, "or {:,} (gap, step) pairs | no linear"),
        (rows.MANY_VISITS, "| {:,} (gap, step) pairs | no row-by-row"),
        (offline_packing.MANY_BLOCKS, "| {:,} residencies"),
        (suggest.STEPS_IN_ALL, "| {:,} steps in all, "),
        (suggest.MOST_RUNS, "in all, {:,} runs"),
        (size_curve.MOST_STEPS, "| {:,} steps in all | no further size"),
        (oscillation.OSCILLATES_FROM, "| {:,} spills"),
        (streaming.EXACT_OPERANDS, "| {:,} operands"),
    ],
)
def test_the_page_names_the_limits_of_the_code(limit: int, said: str) -> None:
    assert said.format(limit) in LIMITS


def test_the_page_names_the_questions_of_the_screening() -> None:
    assert f"at least {screening.MIN_SPAN} steps lie between" in PAGE
    assert f"at most {screening.CLOSE_USES} further uses follow" in PAGE
