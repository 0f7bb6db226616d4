"""The verdict names the operator and buffer that cause a change."""

from diff_runs import PLAIN_CHAIN, WITH_SKIP, renamed, run

from spillprof.report.diff.wording import diff_verdict
from spillprof.studies.diff import compare


def test_the_skip_that_was_added_is_named() -> None:
    text = diff_verdict(compare(run(PLAIN_CHAIN), run(WITH_SKIP)))
    assert text.startswith("Worse under interval: spill bytes 0 → 2 KiB, +2 KiB, new spill; latency ")
    assert text.endswith("Most of it goes back to this: e (new) reads a (1 KiB), which is kept for 3 more steps.")


def test_an_operator_that_only_takes_time_is_named_too() -> None:
    text = diff_verdict(compare(run(PLAIN_CHAIN, 1 << 20), run(WITH_SKIP, 1 << 20)))
    assert "spill bytes 0, unchanged" in text
    assert text.endswith("What differs: 1 operator added (e), model operators 5 → 6.")


def test_a_memory_that_shrank_is_named() -> None:
    text = diff_verdict(compare(run(WITH_SKIP, 4096), run(WITH_SKIP, 3072)))
    assert "target sram_bytes 4 KiB (4,096 B) → 3 KiB (3,072 B)." in text


def test_other_names_alone_are_no_difference() -> None:
    text = diff_verdict(compare(run(WITH_SKIP), run(renamed(WITH_SKIP))))
    assert text.startswith("No difference under interval: both runs spill 2 KiB")
