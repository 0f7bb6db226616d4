"""Time of moves inside SRAM when nothing spills: reports show it, and what avoids it."""

from functools import cache

import pytest
from graphs import MACHINE, graph

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.profile import Profile
from spillprof.report.profile import html, markdown, terminal
from spillprof.report.profile.chart_words import chart_sentences
from spillprof.report.profile.story import story_paragraphs
from spillprof.report.profile.verdict import verdict

EXPAND = graph(
    {"x": (64,)},
    ["Softmax x -> e", "Softmax e -> d", "Softmax d -> y"],
    outputs="y",
    tensors={"e": (128,), "d": (128,), "y": (16,)},
)
"""x has 256 bytes, e and d have 512. In 1024, e lies between x and the end: both holes have 256 when d is made."""


@cache
def profile(strategy: str = "lru", sram_bytes: int = 1024) -> Profile:
    target = MACHINE.with_overrides(sram_bytes=sram_bytes, sram_bytes_per_s=1e6)
    return analyze(EXPAND, target, AnalyzeOptions(strategies=(strategy,), what_if=True), why="e")


def test_the_run_moves_one_buffer_and_spills_nothing() -> None:
    (result,) = profile().results
    assert (result.spill_bytes, result.compaction_count, result.compaction_bytes) == (0, 1, 512)
    assert result.breakdown is not None
    assert result.breakdown.fragmentation_s == pytest.approx(2 * 512 / 1e6)  # read and written
    (operator,) = result.operators
    assert (operator.name, operator.cause, operator.stall_s) == ("d", "fragmentation", pytest.approx(1.024e-3))


def test_the_verdict_says_what_moves_and_what_it_takes() -> None:
    said = verdict(profile())
    assert "Nothing spills at 1 KiB under lru, but 1 move inside SRAM, 512 B, for want of one free piece, makes" in said
    assert "1.02 ms slower" in said
    page = " ".join(terminal.render(profile(), color=False).split())
    assert said in page
    assert "fragmentation" in page
    assert said in markdown.render(profile())
    assert said in html.render(profile())
    assert "1 move inside SRAM" in chart_sentences(profile(), profile().results[0])["addresses"]


def test_the_story_of_a_moved_tensor_names_the_step_and_the_remedy() -> None:
    story = profile().why
    assert story is not None
    (tensor,) = story.tensors
    (move,) = tensor.moves
    assert (move.step, move.before, move.from_address, move.took_s) == (1, "d", 256, pytest.approx(1.024e-3))
    _, sentences, _ = next(story_paragraphs(story))
    assert "It stays in SRAM from its first use to its last, but not in one place." in sentences
    assert "It is moved inside SRAM 1 time, before #1 d, for want of one free piece: 1.02 ms." in sentences
    assert tensor.stays is not None
    size = int(tensor.stays.argument.removeprefix("--sram "))
    assert profile(sram_bytes=size).results[0].compaction_count == 0


def test_changes_that_avoid_the_move_are_ranked_by_time() -> None:
    found = profile().suggestions
    assert [s.saves_s for s in found] == sorted((s.saves_s for s in found), reverse=True)
    best = {s.change: s for s in reversed(found)}
    assert best["strategy"].argument == "--strategy interval"
    assert profile("interval").results[0].compaction_count == 0
    assert best["strategy"].saves_s == pytest.approx(profile().results[0].latency_s - best["strategy"].latency_s)
    assert best["sram"].spill_bytes == 0
    size = int(best["sram"].argument.removeprefix("--sram "))
    assert profile(sram_bytes=size).results[0].latency_s == pytest.approx(best["sram"].latency_s)


def test_nothing_is_tried_if_nothing_moves() -> None:
    assert profile("interval").suggestions == ()
    assert verdict(profile("interval")).startswith("Nothing spills at 1 KiB; the smallest")
