"""The SVG charts of a comparison: live bytes of both runs, and cumulative difference of spill bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from spillprof.ir.units import format_size, format_size_pair
from spillprof.report.diff.heads import step_of
from spillprof.report.text import label
from spillprof.studies.diff import ProfileDiff, StrategyChange

WIDTH, HEIGHT = 1000, 220
"""Size of a chart in SVG units."""

_MAX_POINTS = 500
"""Maximum points of a line."""

_MARGIN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines over the steps of a run, with points in SVG syntax."""

    lines: tuple[tuple[str, str], ...]  # (class, points)
    levels: tuple[str, ...]  # heights of horizontal lines
    top: str  # the greatest value
    steps: int
    summary: str
    width: int = WIDTH
    height: int = HEIGHT


def live_chart(comparison: ProfileDiff) -> LineChart | None:
    """Draws live bytes of both runs over their steps; None if a run has no steps."""
    runs = comparison.before, comparison.after
    if not all(run.live_bytes for run in runs):
        return None
    steps = max(len(run.live_bytes) for run in runs)
    most = max(*runs[0].live_bytes, *runs[1].live_bytes, *(run.sram_bytes for run in runs))
    stretch = -(-steps // _MAX_POINTS)
    pieces = [
        [(i, min(i + stretch, run.steps), max(run.live_bytes[i : i + stretch])) for i in range(0, run.steps, stretch)]
        for run in runs
    ]
    return LineChart(
        lines=(("before", _staircase(pieces[0], steps, most)), ("after", _staircase(pieces[1], steps, most))),
        levels=tuple(f"{_up(run.sram_bytes, most):.1f}" for run in runs),
        top=format_size(most),
        steps=steps,
        summary=_live_words(comparison, steps),
    )


def delta_chart(comparison: ProfileDiff, change: StrategyChange) -> LineChart | None:
    """Draws the cumulative difference of spill bytes (after minus before); None if there is none."""
    moved = sorted((step_of(o) or 0, o.delta_bytes) for o in change.operators if o.delta_bytes)
    if not moved:
        return None
    steps = max(comparison.before.steps, comparison.after.steps, 1)
    totals = list(accumulate(nbytes for _, nbytes in moved))
    high, low = max(0, *totals), min(0, *totals)
    span = max(high - low, 1)
    stretch = -(-steps // _MAX_POINTS)
    kept = {-1: (0, 0)} | {step // stretch: (step, total) for (step, _), total in zip(moved, totals, strict=True)}
    ends = [*(step for step, _ in kept.values()), steps]
    pieces = [(step, end, total - low) for (step, total), end in zip(kept.values(), ends[1:], strict=True)]
    return LineChart(
        lines=(("after", _staircase(pieces, steps, span)),),
        levels=(f"{_up(-low, span):.1f}",),
        top=f"+{format_size(high)}" if high else "0",
        steps=steps,
        summary=_delta_words(change, moved, totals),
    )


def _delta_words(change: StrategyChange, moved: Sequence[tuple[int, int]], totals: Sequence[int]) -> str:
    end = totals[-1]
    dearest = max(change.operators, key=lambda o: abs(o.delta_bytes))
    how = f"{format_size(abs(dearest.delta_bytes))} {'more' if dearest.delta_bytes > 0 else 'less'}"
    most = f"the operator that differs most is #{step_of(dearest)} {label(dearest.name, 48)}, {how}"
    if not end:
        return f"Operators spill more here and less there, and it cancels out; {most}."
    half = next(step for (step, _), total in zip(moved, totals, strict=True) if 2 * abs(total) >= abs(end))
    whole = f"{format_size(abs(end))} {'more' if end > 0 else 'less'}"
    return f"Added up over the steps, the run after spills {whole}, half of it by step {half:,}; {most}."


def _live_words(comparison: ProfileDiff, steps: int) -> str:
    runs = comparison.before, comparison.after
    sizes = format_size_pair(runs[0].sram_bytes, runs[1].sram_bytes)
    same = sizes[0] == sizes[1]
    memory = f"the memory has {sizes[0]}" if same else f"the memories have {sizes[0]} and {sizes[1]}"
    stretch = -(-steps // _MAX_POINTS)
    coarse = f" Each point is the most of {stretch:,} steps." if stretch > 1 else ""
    peaks = format_size_pair(*(max(run.live_bytes) for run in runs))
    at = [run.live_bytes.index(max(run.live_bytes)) for run in runs]
    if runs[0].live_bytes == runs[1].live_bytes:
        return f"The same is live in both runs, at most {peaks[0]}, at step {at[0]:,}; {memory}.{coarse}"
    return (
        f"At most {peaks[0]} are live before, at step {at[0]:,}, and {peaks[1]} after, at step {at[1]:,}; "
        f"{memory}.{coarse}"
    )


def _staircase(pieces: Sequence[tuple[int, int, int]], steps: int, most: int) -> str:
    """Returns the points of a staircase of (start, end, value) pieces."""
    points = []
    for start, end, value in pieces:
        height = _up(value, most)
        points += [f"{_along(start, steps):.1f},{height:.1f}", f"{_along(end, steps):.1f},{height:.1f}"]
    return " ".join(points)


def _along(step: int, steps: int) -> float:
    return WIDTH * step / steps


def _up(nbytes: int, most: int) -> float:
    return HEIGHT - (HEIGHT - _MARGIN) * nbytes / most
