"""The timeline of spills: write-backs and reloads that steps wait for, and streamed operands."""

from functools import cache

import pytest
from graphs import MACHINE, graph

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.profile import Profile
from spillprof.report.profile.chart_words import chart_sentences
from spillprof.report.profile.step_figures import arcs_figure
from spillprof.report.profile.verdict import verdict

GATED = graph(
    {"x": (64,)},
    [
        "Softmax x -> a",
        "Softmax a -> b",
        "Softmax b -> c",
        "Softmax c -> d",
        "Softmax d -> e",
        "Softmax e -> f",
        "Mul a f -> y",
    ],
    outputs="y",
    tensors={"a": (64,), "b": (300,), "c": (300,), "d": (250,), "e": (250,), "f": (64,), "y": (64,)},
)
"""b and c have 1200 bytes each: in 2100 they pass in tiles; d and e have 1000, beside which a has no room."""


@cache
def profile() -> Profile:
    target = MACHINE.with_overrides(sram_bytes=2100, dram_read_bytes_per_s=1e6, dram_write_bytes_per_s=1e6)
    return analyze(GATED, target, AnalyzeOptions(strategies=("lru",)))


def test_waits_for_write_backs_and_reloads_are_those_that_steps_make() -> None:
    (result,) = profile().results
    assert result.times is not None
    spilling = {"write-back", "reload"}
    waited = sum(
        stall
        for stall, k in zip(result.times.stall_s, result.times.stall_event, strict=True)
        if k >= 0 and result.events[k].kind in spilling
    )
    assert waited > 0
    assert sum(arc.wait_s for arc in result.arcs) == pytest.approx(waited)
    said = chart_sentences(profile(), result)["arcs"]
    assert "waited for, write-back or reload" in said
    assert "of operands are streamed while their operators run" in said


def test_every_stretch_off_chip_is_drawn() -> None:
    (result,) = profile().results
    assert {arc.evicted for arc in result.arcs} == {True, False}
    points = [len(trace["text"]) for trace in arcs_figure(profile(), result).traces if "text" in trace]
    assert sum(points) == len(result.arcs)


def test_no_spills_are_not_said_of_operators_that_fit() -> None:
    p = graph({"x": (64,)}, ["Softmax x -> y"], outputs="y", tensors={"y": (512,)})
    tiled = analyze(p, MACHINE.with_overrides(sram_bytes=1024), AnalyzeOptions(strategies=("lru",)))
    assert tiled.results[0].spill_bytes == 0
    assert "(1 operator runs in tiles, but moves only what must move anyway)" in verdict(tiled)
