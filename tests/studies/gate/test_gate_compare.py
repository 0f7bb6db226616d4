"""Operators and buffers that the gate reports as moved."""

from collections.abc import Sequence

import pytest

from spillprof.ir.metric import Metric
from spillprof.studies.gate.baseline import TOP_ROWS, baseline_text, parse_baseline
from spillprof.studies.gate.compare import moved
from spillprof.studies.gate.run import LONGEST_NAME, stored_name
from spillprof.studies.gate.values import BufferRow, Entry, Figures, Moved, OperatorRow

TOTALS = Figures(spill_bytes=0, latency_ns=0, peak_live_bytes=0, energy_pj=0, spill_count=0, reload_count=0)


def _entry(operators: Sequence[tuple[str, int]], *, stalls: Sequence[int] = (), op_type: str = "Conv") -> Entry:
    waits = [*stalls, *[0] * len(operators)]
    return Entry(
        config={},
        model_sha256="",
        totals=TOTALS,
        operators=tuple(
            OperatorRow(name=name, op_type=op_type, spill_bytes=nbytes, stall_ns=stall)
            for (name, nbytes), stall in zip(operators, waits, strict=False)
        ),
    )


def _short(rows: Sequence[Moved]) -> list[tuple[str, int | None, int]]:
    return [(row.name, row.before, row.after) for row in rows]


def test_what_is_as_before_has_not_moved() -> None:
    entry = _entry([("a", 5), ("b", 3)])
    assert moved(entry, entry) == ()


def test_the_largest_movement_comes_first() -> None:
    found = moved(_entry([("a", 5), ("b", 9), ("c", 1)]), _entry([("a", 6), ("b", 3), ("d", 2)]))
    assert _short(found) == [("b", 3, 9), ("d", 2, 0), ("a", 6, 5), ("c", 0, 1)]


def test_names_that_repeat_are_told_apart_by_their_order() -> None:
    assert _short(moved(_entry([("a", 5), ("a", 4)]), _entry([("a", 5), ("a", 3)]))) == [("a", 3, 4)]


def test_operators_renumbered_by_one_more_before_them_have_not_moved() -> None:
    found = moved(_entry([("Conv_2", 5), ("Conv_3", 4), ("Conv_1", 3)]), _entry([("Conv_1", 5), ("Conv_2", 4)]))
    assert sum(row.delta for row in found) == 3


def test_an_operator_below_the_dearest_of_a_full_baseline_is_unknown_not_new() -> None:
    full = [(f"o{i}", 100 - i) for i in range(TOP_ROWS)]
    found = moved(_entry([*full, ("late", 7)]), _entry(full))
    assert found == ()
    assert _short(moved(_entry([("late", 700), *full]), _entry(full))) == [("late", None, 700)]


def test_stalls_are_named_where_no_bytes_moved() -> None:
    (row,) = moved(_entry([("a", 5), ("b", 3)], stalls=[7, 2]), _entry([("a", 5), ("b", 3)], stalls=[1, 2]))
    assert (row.name, row.metric, row.before, row.after) == ("a", Metric.LATENCY, 1, 7)


def test_buffers_that_spill_no_longer_are_named() -> None:
    before = Entry(config={}, model_sha256="", totals=TOTALS,
                   buffers=(BufferRow(name="b", size_bytes=4, spill_bytes=8),))  # fmt: skip
    (row,) = moved(_entry([]), before)
    assert (row.kind, row.name, row.before, row.after) == ("buffer", "b", 8, 0)


def test_a_baseline_keeps_the_dearest_rows_and_reads_back_alike() -> None:
    entry = _entry([(f"o{i}", 1000 - i) for i in range(70)])
    text = baseline_text({"m@t": entry})
    (read,) = parse_baseline(text, "b").values()
    assert read.operators == entry.operators[:TOP_ROWS]
    assert baseline_text({"m@t": read}) == text


@pytest.mark.parametrize("name", ["", "\ud800", "\x00\u202e", "a" * 100_000, "é" * 300])
def test_hostile_names_survive_a_baseline(name: str) -> None:
    entry = _entry([(stored_name(name), 1)])
    text = baseline_text({"m@t": entry})
    assert text.isascii()
    assert parse_baseline(text, "b")["m@t"].operators == entry.operators
    assert len(stored_name(name)) <= LONGEST_NAME + 13


def test_endless_names_stay_apart() -> None:
    assert stored_name("a" * 300 + "b") != stored_name("a" * 300 + "c")


def test_a_hundred_thousand_operators_are_compared_in_seconds() -> None:
    now, before = ([(f"o{i}", i + d) for i in range(100_000)] for d in (1, 0))
    assert len(moved(_entry(now), _entry(before))) == 20
