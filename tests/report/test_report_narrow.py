"""What gives way where there is little room."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.report.narrow import GLUE, fitting, glued, least_width, wrapped

TABLE = [("name", "latency", "hidden", "bytes"), ("interval", "1.25 ms", "50 %", "12 MiB")]


def test_gaps_give_way_before_columns_and_columns_in_the_order_given():
    assert least_width(TABLE, gap=2) == 8 + 7 + 6 + 6 + 3 * 2
    assert fitting(TABLE, 33, ("hidden", "latency")) == ([0, 1, 2, 3], 2)
    assert fitting(TABLE, 32, ("hidden", "latency")) == ([0, 1, 2, 3], 1)
    assert fitting(TABLE, 29, ("hidden", "latency")) == ([0, 1, 3], 2)
    assert fitting(TABLE, 22, ("hidden", "latency")) == ([0, 3], 2)
    assert fitting(TABLE, 3, ("hidden", "latency")) == ([0, 3], 1)


def test_columns_are_measured_as_terminals_show_them():
    assert least_width([("卷积", "x")]) == 4 + 1 + 1


def test_numbers_stay_with_their_units_and_nothing_else_does():
    assert glued("4.77 MiB in 3.5 MiB").split(" ") == [f"4.77{GLUE}MiB", "in", f"3.5{GLUE}MiB"]
    assert glued("at 60 GB/s, 12 µs, 5 %, opset 17, 9 bytes").count(GLUE) == 4
    assert wrapped("it takes 12 ms", 10, first="> ", others="  ") == ["> it takes", "  12 ms"]


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["12", "MiB", "and", "3.5", "ms", "%", "names"]), min_size=1, max_size=40))
def test_wrapped_text_is_the_text(words):
    text = " ".join(words)
    lines = wrapped(text, 30)
    assert " ".join(lines) == text
    assert not any(line.startswith("MiB") and before[-1].isdigit() for before, line in pairwise(lines))
