"""Titles and main figures of a comparison, shared by page, text and Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillprof.ir.metric import Metric
from spillprof.ir.units import format_size_pair
from spillprof.report.diff.wording import path_labels, strategy_title
from spillprof.report.gate.wording import figures, growth
from spillprof.report.text import label
from spillprof.studies.diff import Named, OperatorChange, PressureSource, ProfileDiff, StrategyChange
from spillprof.studies.diff.values import RunSummary

_MAX_TARGET = 60
MAX_SOURCES, MAX_DIFFERENCES, MAX_ALONE = 3, 20, 5
"""Sources, settings and unmatched operators that text and Markdown list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """Labels of one of the two runs."""

    which: str  # "before" or "after"
    name: str
    sram: str
    target: str
    run: RunSummary


def run_heads(comparison: ProfileDiff, width: int) -> tuple[RunHead, RunHead]:
    """Labels both runs, names in at most ``width`` characters; different sizes never print alike."""
    runs = comparison.before, comparison.after
    names, sizes = path_labels(comparison, width), format_size_pair(runs[0].sram_bytes, runs[1].sram_bytes)
    before, after = (
        RunHead(which=which, name=name, sram=f"SRAM {sram}", target=label(run.target, _MAX_TARGET), run=run)
        for which, name, sram, run in zip(("before", "after"), names, sizes, runs, strict=True)
    )
    return before, after


def both_run(change: StrategyChange) -> bool:
    """Whether the strategy is feasible in both runs."""
    return change.before.feasible and change.after.feasible


def strategy_figures(change: StrategyChange) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Returns (before, after, change) of spill bytes, then of latency, of a strategy feasible in both runs."""
    spilled = change.before.spill_bytes, change.after.spill_bytes
    times = Metric.LATENCY.whole(change.before.latency_s), Metric.LATENCY.whole(change.after.latency_s)
    return (
        (*figures(Metric.SPILL_BYTES, *spilled), growth(Metric.SPILL_BYTES, *spilled)),
        (*figures(Metric.LATENCY, *times), growth(Metric.LATENCY, *times)),
    )


def source_parts(change: StrategyChange) -> list[tuple[str, int, Sequence[PressureSource]]]:
    """Returns (title, bytes, sources) of bytes newly held and of bytes no longer held, without empty parts."""
    parts = (
        ("Held besides where operators force out more", change.rise_bytes, change.rise_sources),
        ("No longer held where operators force out less", change.fall_bytes, change.fall_sources),
    )
    return [part for part in parts if part[2]]


def operators_title(change: StrategyChange) -> str:
    """Title of the table of operators."""
    return f"Operators that force out or wait for more or less under {strategy_title(change)}"


def buffers_title(change: StrategyChange) -> str:
    """Title of the table of buffers."""
    return f"Buffers that spill more or less under {strategy_title(change)}"


def step_of(change: OperatorChange) -> int | None:
    """Returns the operator's step in the run after, or in the run before if it was removed."""
    return change.step_before if change.step_after is None else change.step_after


def alone(comparison: ProfileDiff) -> list[tuple[str, Sequence[Named]]]:
    """Returns ``added`` and ``removed`` operators, without empty parts."""
    parts = (("added", comparison.matching.added), ("removed", comparison.matching.removed))
    return [part for part in parts if part[1]]
