"""CSV and Markdown."""

import csv
import io
from dataclasses import replace

import pytest
from profiles import HOSTILE_NAMES, make_profile, without_spills

from spillprof.ir.graph import Assumption
from spillprof.ir.result import OperatorCost
from spillprof.report.exports import tables
from spillprof.report.profile import markdown


def _operator(name: str) -> OperatorCost:
    return OperatorCost(
        step=1, name=name, op_type="Conv", spill_write_bytes=2**60 + 1, spill_read_bytes=0, streamed_bytes=0,
        stall_s=1e-9, stall_buffer=None, cause="capacity", victims=(name, "b"),
    )  # fmt: skip


def _with_operators(*names: str):
    profile = make_profile()
    result = replace(profile.results[0], operators=tuple(_operator(name) for name in names))
    return replace(profile, results=(result,))


def test_csv_has_one_row_for_each_operator_and_strategy():
    profile = make_profile()
    rows = list(csv.DictReader(io.StringIO(tables.render(profile, table="operators"))))
    assert tuple(rows[0]) == tables.TABLES["operators"][0]
    assert len(rows) == sum(len(r.operators) for r in profile.results)
    totals = {s: sum(int(r["spill_bytes"]) for r in rows if r["strategy"] == s) for s in {r["strategy"] for r in rows}}
    assert totals == {r.strategy: r.spill_bytes for r in profile.results if r.feasible}


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", *HOSTILE_NAMES])
def test_csv_cells_are_never_formulas_nor_break_the_row(name):
    text = tables.render(_with_operators(name, "plain"), table="operators")
    assert len(text.splitlines()) == 3
    text.encode("utf-8")
    row = next(csv.DictReader(io.StringIO(text)))
    for column in ("name", "victims"):
        assert not row[column].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert row["spill_bytes"] == str(2**60 + 1)
    assert row["stall_buffer"] == ""


def test_frames_hold_every_row_and_exact_integers():
    profile = make_profile()
    assert len(tables.frame(profile, "buffers")) == sum(len(r.buffers) for r in profile.results)
    results = tables.frame(profile, "results")
    assert list(results["strategy"]) == [r.strategy for r in profile.results]
    assert list(results["spill_bytes"]) == [r.spill_bytes for r in profile.results]
    assert tables.frame(_with_operators("a"), "operators")["spill_bytes"].tolist() == [2**60 + 1]


def test_markdown_shows_verdict_strategies_and_top_operators():
    text = markdown.render(make_profile())
    assert text.startswith("### spill cost of `residual_cnn.onnx`\n")
    assert "| lru | 11.12 ms | 1.12 ms |" in text
    assert "| cost | infeasible: step 41 needs 33.1 MiB at once" in text
    assert "7 more operators have a figure." in text
    assert "Nothing spills at 48 MiB" in markdown.render(without_spills(make_profile()))


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_markdown_rows_keep_their_cells_whatever_the_name_is(name):
    text = markdown.render(_with_operators(name))
    row = next(line for line in text.splitlines() if line.startswith("| #1"))
    assert row.count("|") == 6
    assert "<img" not in row.split("`")[0]
    text.encode("utf-8")


def test_markdown_tells_assumptions_to_the_end():
    profile = make_profile()
    what = f"If 'choose': else ({'many operators, ' * 6}live) is taken, not then (--branch choose=then or else)"
    model = replace(profile.model, assumptions=(Assumption(what=what, count=1),))
    assert f"- assumed, 1 time: `{what}`" in markdown.render(replace(profile, model=model))


def test_markdown_code_wraps_backticks_pipes_and_html():
    assert markdown.code("conv_1") == "`conv_1`"
    assert markdown.code("<b>") == "`<b>`"
    assert markdown.code("a|`b\\") == "<code>a&#124;&#96;b&#92;</code>"
    assert markdown.code("") == "`(unnamed)`"
