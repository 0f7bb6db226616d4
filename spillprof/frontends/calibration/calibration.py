"""Fits a cost curve per direction to measured transfers, and renders the target file."""

import json
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spillprof.frontends.calibration.fit import CostFit, fit_curve
from spillprof.frontends.calibration.measure import Copier, Direction, Prepare, Sizes, TimedCopies, measure_copies
from spillprof.ir.errors import UsageError
from spillprof.ir.target import builtin_target_names, load_target, parse_target
from spillprof.ir.units import format_size

ONE_WAY = (Direction.READ, Direction.WRITE)
_NO_LIMIT = 0.98  # of the sum of both bandwidths: as good as all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Copies measured in one cache state, and the curves fitted to them."""

    series: tuple[TimedCopies, ...]
    fits: dict[Direction, CostFit]

    def of(self, direction: Direction) -> tuple[TimedCopies, ...]:
        """The series of a direction, ascending by size."""
        return tuple(each for each in self.series if each.direction is direction)

    def fitted_s(self, series: TimedCopies) -> float:
        """Seconds of a series' copy by the curve."""
        return float(self.fits[series.direction].seconds(np.array([series.size_bytes], dtype=np.float64))[0])

    def relative_error(self, series: TimedCopies) -> float:
        """Curve / measurement - 1."""
        return self.fitted_s(series) / series.min_s - 1

    def heldout_median_relative_error(self, *directions: Direction) -> float:
        """Median absolute relative error at held-out sizes, by default of reads and writes."""
        wanted = directions or ONE_WAY
        errors = [abs(self.relative_error(each)) for each in self.series if each.held_out and each.direction in wanted]
        return statistics.median(errors)

    def judged_by(self, other: "Calibration") -> float:
        """Median absolute relative error of these curves at the held-out sizes of another calibration."""
        return replace(other, fits=self.fits).heldout_median_relative_error()

    @property
    def repetitions(self) -> int:
        """The smallest number of repetitions of a copy."""
        return min(len(each.seconds) for each in self.series)

    @property
    def disturbance(self) -> float:
        """Median over series of (median / minimum - 1): the share of time lost to other work on the machine."""
        return statistics.median(each.median_s / each.min_s - 1 for each in self.series)

    @property
    def bus_bytes_per_s(self) -> float | None:
        """Bandwidth that both directions share; None if they do not limit each other."""
        read, write = (self.fits[way].bytes_per_s for way in ONE_WAY)
        both = 2 * self.fits[Direction.BOTH].bytes_per_s
        return None if both >= _NO_LIMIT * (read + write) else max(both, read, write)


def calibrate(
    copier: Copier,
    sizes: Sizes,
    *,
    prepare: Prepare,
    budget_s: float,
    most_repetitions: int,
    progress: Callable[[], object] = lambda: None,
) -> Calibration:
    """Measures copies of these sizes, and fits a curve per direction. ``prepare`` runs right before each copy."""
    return fitted(
        measure_copies(
            copier, sizes, prepare=prepare, budget_s=budget_s, most_repetitions=most_repetitions, progress=progress
        )
    )


def fitted(series: tuple[TimedCopies, ...]) -> Calibration:
    """The calibration of these measurements. ``UsageError`` if a copy was too short for the clock."""
    timeless = next((each for each in series if not each.min_s > 0), None)
    if timeless is not None:
        raise UsageError(
            f"a copy of {timeless.size_bytes:,} bytes is too short for the clock of this machine",
            hint="measure larger copies: --sizes 256KB..256MB",
        )
    fits = {}
    for direction in Direction:
        seen = [each for each in series if each.direction is direction and not each.held_out]
        # both at once: a straight line, whose slope is the shared bandwidth
        bends = {} if direction in ONE_WAY else {"most_bends": 0}
        fits[direction] = fit_curve(tuple(s.size_bytes for s in seen), tuple(s.min_s for s in seen), **bends)
    return Calibration(series=series, fits=fits)


def check_parent(parent: str) -> None:
    """``UsageError`` unless a target file can inherit from it: a built-in target or a ``.toml`` file."""
    if parent not in builtin_target_names() and not parent.endswith(".toml"):
        raise UsageError(
            f"a target cannot inherit from '{parent}'", hint="name a built-in one ('spillprof info targets') or a .toml"
        )
    load_target(parent)


def render_target(
    calibration: Calibration, *, device: str, conditions: str, date: str, parent: str, path: Path | None
) -> str:
    """A target in TOML with the fitted curves as transfers; it inherits the rest from ``parent``.

    ``path`` of the target file makes a parent file relative; None makes it absolute. ``device`` and ``conditions``
    describe what was measured and how. The text is parsed once, to make sure that it loads.
    """
    read, write = calibration.fits[Direction.READ], calibration.fits[Direction.WRITE]
    bus = calibration.bus_bytes_per_s
    background = load_target(parent).background_bytes_per_s
    lines = [
        f"# Transfers as measured by 'spillprof calibrate' on {_comment(date)}: {_comment(device)}.",
        f"# Held-out sizes: median relative error {calibration.heldout_median_relative_error():.1%}.",
        f"inherit = {_text(_parent_for(parent, path))}",
        *_direction("read", read),
        *_direction("write", write),
        f"dram_bus_bytes_per_s = {_text('none') if bus is None else repr(bus)}",
        *(["background_bytes_per_s = 0  # what there was, was measured with it"] if background else []),
        "",
        "[sources]",
        *_sources(calibration, f"measured on {date}: {device}; {conditions}"),
    ]
    text = "\n".join(lines) + "\n"
    parse_target(text, name="calibrated", folder=None if path is None else path.parent)
    return text


def _direction(way: str, fit: CostFit) -> list[str]:
    return [
        f"dram_{way}_bytes_per_s = {fit.bytes_per_s!r}",
        f"dram_{way}_setup_s = {fit.setup_s!r}",
        f"dram_{way}_curve = [" + ", ".join(f"[{size}, {seconds!r}]" for size, seconds in fit.curve) + "]",
    ]


def _sources(calibration: Calibration, measured: str) -> list[str]:
    lines = []
    for direction in (Direction.READ, Direction.WRITE):
        series = [each for each in calibration.of(direction) if not each.held_out]
        error = calibration.heldout_median_relative_error(direction)
        how = (
            f"{measured}; {len(series)} sizes from {format_size(series[0].size_bytes)} to "
            f"{format_size(series[-1].size_bytes)}, the least of {calibration.repetitions} or more repetitions; "
            f"median relative error {error:.1%} at sizes in between"
        )
        lines.append(f"dram_{direction}_curve = {_text(how)}")
        lines.append(f"dram_{direction}_bytes_per_s = {_text('the last piece of the curve')}")
        lines.append(f"dram_{direction}_setup_s = {_text('the curve at no bytes')}")
    shared = "do not limit each other" if calibration.bus_bytes_per_s is None else "share this much"
    lines.append(f"dram_bus_bytes_per_s = {_text(f'measured with both directions at once: they {shared}')}")
    return lines


def _parent_for(parent: str, path: Path | None) -> str:
    """The parent's name in the file at ``path``: a file is relative to that file's folder."""
    if parent in builtin_target_names():
        return parent
    if path is None:
        return str(Path(parent).resolve())
    try:
        return Path(os.path.relpath(Path(parent).resolve(), path.parent.resolve())).as_posix()
    except ValueError:  # on another drive
        return str(Path(parent).resolve())


def _text(text: str) -> str:
    """A TOML string: JSON escapes are valid TOML; DEL must be escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    """A text on one line."""
    return "".join(c if c.isprintable() else " " for c in text)
