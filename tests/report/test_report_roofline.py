"""The roofline of the report, as plain values."""

from dataclasses import replace

import pytest
from profiles import MIB, make_profile

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import StepFact
from spillprof.report.profile.roofline import roofline_figure, roofline_summary, roofline_table


def nine_steps() -> Profile:
    profile = make_profile(12, hostile=False)
    return replace(profile, steps=profile.steps[:9])


def test_steps_that_multiply_are_points_below_the_roof() -> None:
    profile = nine_steps()
    figure = roofline_figure(profile)
    roof, compute, dram = figure.traces
    assert (roof["name"], compute["name"], dram["name"]) == ("roof, float32", "bound by compute", "bound by DRAM")
    assert len(compute["x"]) == len(dram["x"]) == 3
    assert compute["x"][0] == pytest.approx(25_000_000 / MIB)
    assert compute["y"][0] == pytest.approx(25_000_000 / 12e-6)
    rate = 4e12 * 0.6  # the best utilisation of any kind
    assert roof["y"][1:] == [rate, rate]
    assert roof["x"][1] == rate / profile.target.sram_bytes_per_s
    assert max(compute["y"] + dram["y"]) <= rate


def test_the_summary_adds_up_the_time_by_what_bounds_it() -> None:
    """Three steps of 12 µs by compute, three of 5 µs by DRAM, three of 2 µs by SRAM."""
    assert nine_steps().steps[1].dram_s == pytest.approx(5e-6)
    assert roofline_summary(nine_steps()) == (
        "The time of 9 steps, each taken alone and nothing spilled, is bound 63.2 % by compute, 26.3 % by DRAM, "
        "10.5 % by SRAM."
    )


def test_the_table_has_the_longest_step_first() -> None:
    table = roofline_table(nine_steps())
    assert [row[0] for row in table.rows[:4]] == [0, 3, 6, 1]
    assert table.rows[0][-1] == "compute"
    assert table.total == 9


def test_a_model_that_multiplies_nothing_has_no_figure() -> None:
    profile = replace(nine_steps(), steps=(StepFact(name="a", op_type="Relu"),) * 3)
    assert roofline_figure(profile).traces == []
    assert roofline_summary(profile) == "No step takes any time."
