"""The terminal page, and the text helpers below it."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import CAPACITY, HOSTILE_NAMES, MIB, make_profile, without_spills

from spillprof.ir.units import format_size
from spillprof.report.profile.bound_words import bound_scope
from spillprof.report.profile.terminal import render
from spillprof.report.profile.verdict import above_bound, lead_result, verdict
from spillprof.report.scales import (
    comparison_size_column,
    part_percent,
    percent,
    signed_time,
    size_column,
    time_column,
)
from spillprof.report.text import display_width, label, printable, shorten_middle


@pytest.fixture(scope="module")
def profile():
    return make_profile()


def test_printable_makes_escapes_overrides_and_line_breaks_visible():
    assert printable("\x1b[31mred\r\n") == "\\x1b[31mred\\r\\n"
    assert printable("\u202egnp.exe\u2066") == "\\u202egnp.exe\\u2066"
    assert printable("a\u200bb\u2028\x00\udcff") == "a\\u200bb\\u2028\\x00\\udcff"
    assert printable("/blöck 1/卷积") == "/blöck 1/卷积"


@given(st.text())
def test_printable_leaves_only_characters_with_a_glyph_and_is_stable(name):
    shown = printable(name)
    assert shown.isprintable()
    assert printable(shown) == shown


@given(st.text(max_size=60), st.integers(1, 40))
def test_shorten_middle_keeps_both_ends_within_the_width(name, width):
    short = shorten_middle(name, width)
    assert len(short) <= width
    assert display_width(short) <= width
    assert short == name or display_width(name) > width or len(name) > width
    assert short == name or (name.startswith(short.split("…")[0]) and "…" in short)


def test_shorten_middle_cuts_the_middle():
    assert shorten_middle("/model.22/cv2/conv/Conv", 12) == "/mode…v/Conv"
    assert label("") == "(unnamed)"


def test_size_column_has_one_unit_and_one_precision():
    assert size_column([650 * MIB, 4 * MIB + MIB // 2, 0, None]) == ("650.0 MiB", "4.5 MiB", "0", "-")
    assert size_column([32 * MIB, MIB]) == ("32 MiB", "1 MiB")
    assert size_column([650 * MIB + 1, 1]) == ("650.0 MiB", "<0.1 MiB")
    assert size_column([]) == ()


def test_comparison_goes_to_bytes_where_two_sizes_would_print_alike():
    assert comparison_size_column([MIB * 21, MIB * 21 + 64]) == ("22,020,096 B", "22,020,160 B")
    assert comparison_size_column([0, MIB * 21, MIB * 21]) == ("0", "21 MiB", "21 MiB")


def test_time_column_and_signs():
    assert time_column([10.2e-3, 0.5e-3, 0, -0.1e-3]) == ("10.20 ms", "0.50 ms", "0", "−0.10 ms")
    assert signed_time(-5e-3) == "−5 ms"
    assert (percent(0.004), percent(0.5), percent(None)) == ("0.4 %", "50 %", "-")
    assert (percent(-0.3), percent(-0.01), percent(-1e-6)) == ("−30 %", "−1.0 %", "<0.1 %")
    assert (percent(0.0), percent(1e-16), percent(1e-6), percent(12.34)) == ("0 %", "0 %", "<0.1 %", "1,234 %")


def test_parts_of_a_whole_add_up_as_printed() -> None:
    # As whole percents they would be 25 + 18 + 58 = 101.
    assert [part_percent(share) for share in (0.246, 0.1763, 0.5757, 0.0019, 0.0001, 0.0)] == [
        "24.6 %", "17.6 %", "57.6 %", "0.2 %", "<0.1 %", "0 %",
    ]  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.integers(0, 2**45), max_size=8))
def test_comparison_prints_different_sizes_differently(sizes):
    assert len(set(comparison_size_column(sizes))) == len(set(sizes))


def test_distance_to_the_bound_is_optimal_a_percentage_or_unknown(profile):
    result = next(r for r in profile.results if r.feasible and r.spill_bytes)
    profile = replace(profile, oversized=())
    cases = {0: "optimal", 1: "+<0.1 %", -(-result.spill_bytes // 3): "+50 %", result.spill_bytes: "-"}
    for below, text in cases.items():
        bounds = replace(profile.bounds, spill_bytes_lower=result.spill_bytes - below)
        assert above_bound(replace(profile, bounds=bounds), result) == text
    assert above_bound(replace(profile, bounds=None), result) == "-"


def test_nothing_is_called_optimal_where_operands_are_assumed_to_pass_once(profile):
    result = next(r for r in profile.results if r.feasible and r.spill_bytes)
    bounds = replace(profile.bounds, spill_bytes_lower=result.spill_bytes)
    assert profile.oversized
    assert above_bound(replace(profile, bounds=bounds), result) == "optimal"
    assert "spills less, however each operator is tiled one by one" in bound_scope(profile)
    profile = replace(profile, config={**profile.config, "tiling": "once"})
    assert above_bound(replace(profile, bounds=bounds), result) == "at bound"
    assert "with the same operands tiled through DRAM" in " ".join(render(profile, color=False).split())
    assert "tiled" not in bound_scope(replace(profile, oversized=()))
    pinned = replace(profile, config={**profile.config, "pin": ["a"]})
    assert ", with the same operands tiled through DRAM, the same dedicated slots, spills less" in bound_scope(pinned)


def test_page_shows_header_target_strategies_and_reasons(profile):
    page = render(profile, color=False)
    assert "models/residual_cnn.onnx   221 operators in 200 steps, opset 17, weights 33.4 MiB streamed" in page
    assert "SRAM 32 MiB (33,554,432 B), align 64 B" in page
    rows = {line.split()[0]: line.split() for line in page.splitlines() if line.startswith("  ") and line.split()}
    for result in profile.results:
        if result.feasible:
            bound = above_bound(profile, result).split()
            counts = [str(result.spill_count), str(result.reload_count)]
            assert rows[result.strategy][-2 - len(bound) :] == [*counts, *bound]
    assert rows["lower"][-2:] == ["proven,", "certified"]
    assert "cost is infeasible: step 41 needs 33.1 MiB at once" in page
    assert "why (belady, least spill time): capacity" in page
    assert "lru; pinned: −" in " ".join(page.split())
    assert "the tiles move 30 MiB, 18 MiB of it more than infinite SRAM would, of which 2 MiB" in " ".join(page.split())
    assert "What would help most (each re-simulated under interval, lru, against belady)" in page
    assert "note: assumed, 3 times: operator Foo is elementwise" in page
    assert "note: 12 operators computed from constants alone" in page


def test_page_lists_top_operators_and_says_how_many_are_hidden(profile):
    lead = lead_result(profile)
    page = render(profile, top=4, color=False)
    assert sum(line.startswith("  #") for line in page.splitlines()) == 4
    assert f"... {len(lead.operators) - 4} more (--top {len(lead.operators)})" in page
    assert "more (--top" not in render(profile, top=10_000, color=False)


@pytest.mark.parametrize("width", [20, 60, 80, 100, 200])
def test_no_line_is_wider_than_asked_nor_ends_in_blanks(profile, width):
    for line in render(profile, width=width, color=False).splitlines():
        assert len(line) <= max(width, 60)
        assert line == line.rstrip()


@pytest.mark.parametrize("width", [60, 66, 72, 80, 92])
def test_narrow_tables_lose_columns_and_never_a_digit(profile, width):
    table = render(profile, top=5, width=width, color=False).split("Lower bound")[0].split("\n\n")[1]
    head, *rows = table.splitlines()
    assert "…" not in table
    assert head.split()[-2:] == ["above", "bound"]
    for result in profile.results:
        if result.feasible:
            row = next(line for line in rows if line.split()[0] == result.strategy)
            assert format_size(result.spill_bytes).split()[0] in row
            assert row.endswith(above_bound(profile, result))


@pytest.mark.parametrize("width", range(60, 100, 3))
def test_no_number_parts_from_its_unit(profile, width):
    for line in render(profile, width=width, color=False).splitlines():
        assert not re.match(r"\s*(KiB|MiB|GiB|GB/s|ms|µs|%)(\s|$)", line)


def test_names_of_wide_characters_leave_the_numbers_whole(profile):
    lead = lead_result(profile)
    wide = tuple(replace(o, name="卷积层" * 40, victims=("缓冲区" * 30,)) for o in lead.operators)
    results = tuple(replace(r, operators=wide) if r is lead else r for r in profile.results)
    usual = render(profile, top=5, width=80, color=False)
    page = render(replace(profile, results=results), top=5, width=80, color=False)
    stalls = re.findall(r"[\d.]+ µs", usual)
    assert stalls
    assert re.findall(r"[\d.]+ µs", page) == stalls
    assert all(display_width(line) <= 80 for line in page.splitlines())


def test_plain_page_has_no_control_character_whatever_the_names_are(profile):
    evil = replace(
        profile,
        model=replace(profile.model, path="\x1b]0;pwned\x07.onnx", notes=HOSTILE_NAMES),
        suggestions=tuple(replace(s, argument=f"--pin {HOSTILE_NAMES[1]}") for s in profile.suggestions),
    )
    page = render(evil, top=500, color=False)
    assert page.replace("\n", "").isprintable()
    assert "\\x1b]0;pwned\\x07.onnx" in page
    assert "[red]" not in page


def test_markup_in_names_is_shown_as_it_is(profile):
    lead = lead_result(profile)
    operator = replace(lead.operators[0], name="[bold red]x[/]", victims=(":smile:",))
    results = tuple(replace(r, operators=(operator,)) if r is lead else r for r in profile.results)
    page = render(replace(profile, results=results), color=False)
    assert "[bold red]x[/]" in page
    assert ":smile:" in page


def test_colour_only_decorates(profile):
    coloured = render(profile, color=True)
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == render(profile, color=False).splitlines()


def test_page_does_not_depend_on_the_environment(profile, monkeypatch):
    before = render(profile, color=False)
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "40", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert render(profile, color=False) == before
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[" in render(profile, color=True)


def test_lead_is_the_feasible_strategy_with_least_spill_time(profile):
    assert lead_result(profile).strategy == "belady"
    infeasible = tuple(replace(r, feasible=False, reason="too small") for r in profile.results)
    assert lead_result(replace(profile, results=infeasible)) is None
    unlimited = replace(profile.results[0], strategy="none", spill_time_s=0.0, spill_bytes=0)
    assert lead_result(replace(profile, results=(unlimited, *profile.results))).strategy == "belady"
    assert lead_result(replace(profile, results=(unlimited,))).strategy == "none"


def test_without_spills_one_friendly_sentence_replaces_the_tables(profile):
    page = render(without_spills(profile), color=False)
    assert "Nothing spills at 48 MiB; the smallest SRAM without tiling is 26 MiB." in page
    assert "Top operators" not in page


def test_capacity_that_prints_like_the_smallest_is_set_in_bytes(profile):
    quiet = without_spills(profile)
    tight = replace(quiet, target=replace(quiet.target, sram_bytes=CAPACITY),
                    model=replace(quiet.model, min_sram_bytes=CAPACITY - 64))  # fmt: skip
    assert "Nothing spills at 33,554,432 B; the smallest SRAM without tiling is 33,554,368 B." in verdict(tight)


def test_when_nothing_is_feasible_the_page_says_so(profile):
    results = tuple(replace(profile.results[2], strategy=s) for s in ("lru", "size"))
    page = " ".join(render(replace(profile, results=results), color=False).split())
    assert "No strategy can run this in 32 MiB of SRAM" in page
    assert page.count("infeasible: step 41 needs") == 2


def test_terminal_report_needs_neither_plotly_nor_pandas_nor_numpy():
    code = (
        "import sys; import spillprof.report.profile.terminal, spillprof.report.json_text;"
        "print(*sorted({'plotly', 'pandas', 'numpy', 'onnx', 'jinja2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "\n"


def test_the_best_of_each_kind_of_change_is_shown_before_a_second_one(profile):
    def tried(change, argument, saves_s):
        return replace(profile.suggestions[0], change=change, argument=argument, saves_s=saves_s)

    many = [tried("sram", f"--sram {n}MiB", 1.0 / n) for n in range(1, 6)]
    rest = [tried(kind, f"--{kind} a", 0.1) for kind in ("order", "pin", "fuse-tensor")]
    page = render(replace(profile, suggestions=(*many, *rest)), color=False).split("What would help most")[1]
    arguments = [word for word in page.split() if word.startswith("--")]
    assert arguments[:5] == ["--sram", "--sram", "--order", "--pin", "--fuse-tensor"]
    assert "... 3 more in the report" in page
