"""Curve over SRAM sizes, from where operators are tiled to where nothing spills, with most points at its bends.

The number of runs depends on the number of steps alone, never on the speed of the machine.
"""

from collections.abc import Callable, Sequence

from spillprof.analysis.size_grid import coarse_sizes, refining_sizes, sharpest_bends
from spillprof.engine.trials import steps_to_judge
from spillprof.explain.whatif.trial import Trial, runs_in_one
from spillprof.ir.errors import SpillprofError
from spillprof.ir.profile import SizeCurve, SizePoint
from spillprof.ir.program import Program
from spillprof.ir.units import LARGEST_SIZE
from spillprof.lowering.layout import align
from spillprof.planning.bounds.methods import quick_bound
from spillprof.planning.traffic import count_traffic

MOST_CURVE_STEPS = 18_000
"""Most steps to simulate: about this over the program's steps is the number of runs."""
PLENTY_STEPS = 3_500
"""Most steps to simulate for more than the fewest sizes."""
LEAST_SIZES = 9
MOST_SIZES = 18
_FIRST_SIZES = 5
_A_ROUND = 3  # sizes added at once
_ROOM = 1.25  # largest size over the ideal run's peak: fragmentation can take more
_EDGE = 0.85  # smallest size over the one below which operators are tiled: shows the effect of tiling
_FINENESS = 5  # significant binary digits of a size


def size_curve(trial: Trial, program: Program, strategies: Sequence[str]) -> SizeCurve:
    """The curve of as many strategies and sizes as the step budget allows, or the reason why there is none.

    ``program``: the trial's, not fitted.
    """
    steps = max(steps_to_judge(program), 1) * runs_in_one(trial.run.planning, program)
    if LEAST_SIZES * steps > MOST_CURVE_STEPS:
        return SizeCurve(left_out="it would take too long for a model of so many steps run in this way")
    sizes = min(max(LEAST_SIZES, PLENTY_STEPS // steps), MOST_SIZES)
    drawn = strategies[: 2 if 2 * MOST_SIZES * steps <= PLENTY_STEPS else 1]
    return SizeCurve(points=tuple(_points(trial, drawn, sizes)))


def _points(trial: Trial, strategies: Sequence[str], most: int) -> list[SizePoint]:
    """Points by size, then strategy; they include the present size and the smallest one without tiling."""
    here = trial.run.target.sram_bytes
    rounded = _rounding(trial.run.target.alignment_bytes)
    tiles_below, ideal = trial.engine.sram_limits(trial.run)
    found = {sram_bytes: _at(trial.at(sram_bytes), strategies) for sram_bytes in (here, tiles_below)}
    high = max(found)
    low = here // 2 if here < tiles_below else int(_EDGE * tiles_below)
    if any(point.spill_bytes != 0 for point in found[high]):
        high = max(high, ideal)
    sizes = coarse_sizes(max(low, 1), min(int(_ROOM * high), LARGEST_SIZE), _FIRST_SIZES, rounded)
    while sizes:
        found |= {sram_bytes: _at(trial.at(sram_bytes), strategies) for sram_bytes in sizes if sram_bytes not in found}
        room = min(_A_ROUND, most - len(found))
        bends = sharpest_bends(_curve(found, strategy) for strategy in strategies)
        sizes = refining_sizes(sorted(found), bends, room, rounded) if room > 0 else []
    return [point for sram_bytes in sorted(found) for point in found[sram_bytes]]


def _rounding(alignment_bytes: int) -> Callable[[float], int]:
    def rounded(nbytes: float) -> int:
        unit = align(1 << max(0, int(nbytes).bit_length() - _FINENESS), alignment_bytes)
        return align(int(nbytes), unit)

    return rounded


def _at(trial: Trial, strategies: Sequence[str]) -> list[SizePoint]:
    """Points of one size under each strategy."""
    try:
        fitted = trial.fitted()
        lower = quick_bound(fitted, trial.run.planning)
    except SpillprofError as error:
        return [_failed(trial, strategy, error) for strategy in strategies]
    points = []
    for strategy in strategies:
        try:
            played = trial.engine.play(fitted, trial.run, strategy)
        except SpillprofError as error:
            points.append(_failed(trial, strategy, error))
            continue
        points.append(
            SizePoint(
                sram_bytes=trial.run.target.sram_bytes,
                strategy=strategy,
                spill_bytes=count_traffic(fitted, played.plan).spill_bytes,
                latency_s=played.timeline.makespan_s,
                spill_bytes_lower=lower,
            )
        )
    return points


def _failed(trial: Trial, strategy: str, error: SpillprofError) -> SizePoint:
    return SizePoint(
        sram_bytes=trial.run.target.sram_bytes,
        strategy=strategy,
        spill_bytes=None,
        latency_s=None,
        spill_bytes_lower=None,
        reason=error.message,
    )


def _curve(found: dict[int, list[SizePoint]], strategy: str) -> tuple[list[int], list[float]]:
    """(sizes, spill bytes) of a strategy; a size that cannot run counts twice the maximum."""
    points = [p for size in sorted(found) for p in found[size] if p.strategy == strategy]
    worst = max((p.spill_bytes for p in points if p.spill_bytes is not None), default=0)
    values = [2.0 * worst if p.spill_bytes is None else float(p.spill_bytes) for p in points]
    return [p.sram_bytes for p in points], values
