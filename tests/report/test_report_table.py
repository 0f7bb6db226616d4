"""Tables as values: widths, alignment, and what gives way where there is little room."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.report.table import Table
from spillprof.report.text import GLUE, display_width, glued, wrapped

TABLE = Table(
    heads=("name", "latency", "hidden", "bytes"),
    cells=[("interval", "1.25 ms", "50 %", "12 MiB")],
    align="lrrr",
    spared=("hidden", "latency"),
)
WIDE = ("lru", "卷积", "e\u0301tage", "한국어/conv")


def test_gaps_give_way_before_columns_and_columns_in_the_order_given() -> None:
    assert TABLE.width() == 8 + 7 + 6 + 6 + 3 * 2
    heads = {33: "name      latency  hidden   bytes", 32: "name     latency hidden  bytes"}
    heads |= {29: "name      latency   bytes", 22: "name       bytes", 3: "name      bytes"}
    assert {width: TABLE.lines(width=width)[0] for width in heads} == heads


def test_where_nothing_is_left_to_drop_names_are_cut_and_numbers_are_whole() -> None:
    table = Table(heads=("name", "bytes"), cells=[("/model.22/cv2/conv/Conv", "12,345 B")], align="lr")
    assert table.lines(width=24) == ["name               bytes", "/model.…nv/Conv 12,345 B"]
    assert table.lines(width=3)[1] == "/mod…/Conv 12,345 B"


def test_a_folded_column_takes_more_lines_and_nothing_else_gives_way() -> None:
    table = Table(heads=("saves", "change"), cells=[("1 ms", "--sram 卷积卷积 --fold")], align="rl", folded=1)
    assert table.blocks(width=17) == [["saves  change"], [" 1 ms  --sram", "       卷积卷积", "       --fold"]]
    assert table.blocks(width=40) == [["saves  change"], [" 1 ms  --sram 卷积卷积 --fold"]]


@pytest.mark.parametrize("align", ["ll", "rl"])
def test_wide_and_combining_characters_align(align: str) -> None:
    lines = Table(heads=("name", "|"), cells=[(name, "|") for name in WIDE], align=align).lines(indent=2)
    assert {display_width(line) for line in lines} == {2 + 11 + 2 + 1}
    assert all(line.endswith("  |") for line in lines)


def test_a_line_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        Table(heads=("a", "b"), cells=[("1",)], align="ll")


def test_markdown_says_how_columns_are_aligned() -> None:
    table = Table(heads=("name", "bytes"), cells=[("`a`", "1"), ("`b`", "")], align="lr")
    assert table.markdown() == ["| name | bytes |", "| --- | --: |", "| `a` | 1 |", "| `b` | |"]


def test_numbers_stay_with_their_units_and_nothing_else_does() -> None:
    assert glued("4.77 MiB in 3.5 MiB").split(" ") == [f"4.77{GLUE}MiB", "in", f"3.5{GLUE}MiB"]
    assert glued("at 60 GB/s, 12 µs, 5 %, opset 17, 9 bytes").count(GLUE) == 4
    assert wrapped("it takes 12 ms", 10, first="> ", others="  ") == ["> it takes", "  12 ms"]


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["12", "MiB", "and", "3.5", "ms", "%", "names"]), min_size=1, max_size=40))
def test_wrapped_text_is_the_text(words: list[str]) -> None:
    text = " ".join(words)
    lines = wrapped(text, 30)
    assert " ".join(lines) == text
    assert not any(line.startswith("MiB") and before[-1].isdigit() for before, line in pairwise(lines))
