"""Knees, cliffs, answers and Pareto fronts of curves drawn by hand."""

from typing import Any

from spillprof.ir.target import load_target
from spillprof.report.sweep.wording import answer_sentence
from spillprof.studies.sweep.answers import pareto, smallest
from spillprof.studies.sweep.curves import cliffs, knees
from spillprof.studies.sweep.grid import next_sizes
from spillprof.studies.sweep.rows import Row, SweepCase


def row(sram_bytes: int, spill_bytes: int | None, latency_s: float = 1.0, **others: Any) -> Row:
    """A point of one curve; the ideal takes a second unless it is given."""
    figures = {} if spill_bytes is None else dict.fromkeys(
        ("spill_write_bytes", "spill_read_bytes", "streamed_bytes", "spill_count", "compaction_count", "peak_bytes"), 0
    )  # fmt: skip
    defaults: dict[str, Any] = {
        "model": "m",
        "target": "t",
        "strategy": "lru",
        "placement": "best-fit",
        "energy_j": 1.0,
    }
    return Row(
        **{**defaults, **figures, **others},
        sram_bytes=sram_bytes,
        spill_bytes=spill_bytes,
        latency_s=None if spill_bytes is None else latency_s,
        spill_time_s=None if spill_bytes is None else latency_s - others.get("ideal_latency_s", 1.0),
        status="does not fit" if spill_bytes is None else "ok",
    )


def test_the_knee_is_where_the_fall_ends() -> None:
    rows = [row(1, 100), row(2, 60), row(4, 10), row(8, 8), row(16, 0)]
    found = knees(rows)
    assert [(k.metric, k.sram_bytes, k.value) for k in found] == [("spill_bytes", 4, 10)]


def test_a_straight_line_and_a_flat_one_have_no_knee() -> None:
    assert knees([row(1, 30), row(2, 20), row(4, 10), row(8, 0)]) == ()
    assert knees([row(1, 0), row(2, 0), row(4, 0)]) == ()
    assert knees([row(1, 5), row(2, 0)]) == ()


def test_a_rise_is_a_cliff_worst_first() -> None:
    rows = [row(1, 100), row(2, 110), row(4, 0), row(8, 5), row(16, 0)]
    assert [(c.sram_bytes, c.larger_sram_bytes, c.value, c.larger_value) for c in cliffs(rows)] == [
        (4, 8, 0, 5), (1, 2, 100, 110)
    ]  # fmt: skip
    assert cliffs(rows)[0].rise == float("inf")


def test_a_latency_increase_that_the_ideal_has_too_is_no_cliff() -> None:
    both_grow = [row(1, 0, 2.0, ideal_latency_s=1.0), row(2, 0, 2.5, ideal_latency_s=1.5)]
    assert cliffs(both_grow) == ()
    alone = [row(1, 0, 2.0, ideal_latency_s=1.0), row(2, 0, 2.5, ideal_latency_s=1.1)]
    assert [c.metric for c in cliffs(alone)] == ["latency_s"]


def test_a_point_that_failed_is_left_out_of_the_curve() -> None:
    rows = [row(1, None), row(2, 10), row(4, None), row(8, 11)]
    assert [(c.sram_bytes, c.larger_sram_bytes) for c in cliffs(rows)] == [(2, 8)]


def test_strategies_are_curves_of_their_own() -> None:
    assert cliffs([row(1, 1, strategy="lru"), row(2, 5, strategy="size")]) == ()


def test_the_smallest_sizes_that_are_enough() -> None:
    rows = [row(1, 9, 2.0), row(2, 3, 1.04, strategy="size"), row(2, 4, 1.2), row(4, 0, 1.0), row(8, 0, 1.0)]
    no_spill, near = smallest(rows, 0.05)
    assert (no_spill.goal, no_spill.sram_bytes, no_spill.strategy) == ("no spill", 4, "lru")
    assert (near.goal, near.sram_bytes, near.strategy) == ("within 5 % of the ideal", 2, "size")


def test_enough_for_all_models_is_a_size_that_all_have() -> None:
    rows = [
        row(1, 0, model="a"),
        row(2, 0, model="a"),
        row(4, 5, model="a"),
        row(1, 7, model="b"),
        row(2, 0, model="b"),
    ]
    answers = {(a.goal, a.model): a.sram_bytes for a in smallest(rows, 0.0)}
    assert answers["no spill", "a"] == 1
    assert answers["no spill", "b"] == 2
    assert answers["no spill", None] == 2


def test_none_of_the_sizes_may_be_enough() -> None:
    assert [a.sram_bytes for a in smallest([row(1, 5, 9.0)], 0.05)] == [None, None]


def test_a_model_that_failed_at_every_size_is_named_where_it_keeps_all_from_meeting_the_goal() -> None:
    rows = [row(1, 0), row(2, 0), *(row(size, None, model="broken") for size in (1, 2))]
    answers = {a.model: a for a in smallest(rows, 0.05) if a.goal == "no spill"}
    assert (answers["m"].sram_bytes, answers["m"].failed_models) == (1, ())
    assert (answers[None].sram_bytes, answers[None].failed_models) == (None, ("broken",))
    words = answer_sentence(answers[None])
    assert words == "smallest SRAM with no spill: none of the sizes swept (broken failed at all of them)"


def test_infinite_memory_is_no_answer() -> None:
    assert smallest([row(1, 0, strategy="none")], 0.05) == ()


def test_the_front_leaves_out_dominated_choices() -> None:
    rows = [
        row(1, 5, 4.0, energy_j=4.0),
        row(2, 5, 4.0, energy_j=4.0),  # larger and no better
        row(2, 5, 3.0, energy_j=5.0, strategy="size"),  # faster, with more energy
        row(4, 0, 2.0, energy_j=2.0),
        row(8, 0, 2.0, energy_j=2.0),
    ]
    assert [(c.sram_bytes, c.strategy) for c in pareto(rows)] == [(1, "lru"), (2, "size"), (4, "lru")]


def test_a_choice_counts_only_if_every_model_runs_there() -> None:
    rows = [row(1, 0, 1.0, model="a"), row(1, None, model="b"), row(2, 0, 1.0, model="a"), row(2, 0, 3.0, model="b")]
    assert [(c.sram_bytes, c.latency_s) for c in pareto(rows)] == [(2, 4.0)]


def test_sizes_come_close_together_where_the_curve_bends() -> None:
    case = SweepCase(
        model="m", sha256="", dims={}, settings={}, target=load_target("generic-npu"), run=0,
        min_sram_bytes=1 << 20, ideal_peak_bytes=1 << 28,
    )  # fmt: skip
    rows: list[Row] = []
    while sizes := next_sizes([case], rows):
        assert not {r.sram_bytes for r in rows} & set(sizes)
        rows += [row(size, 1000 if size < 3 << 20 else 0) for size in sizes]
        assert len(rows) <= 25
    near = [r.sram_bytes for r in rows if 2 << 20 <= r.sram_bytes <= 4 << 20]
    assert min(r.sram_bytes for r in rows) == 1 << 20
    assert max(r.sram_bytes for r in rows) == 1 << 28
    assert len(near) > len(rows) // 2
