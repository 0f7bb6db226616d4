"""Measured transfers fitted to a cost in each direction, and the target file that says so."""

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
from spillprof.ir.target import TransferCurve, builtin_target_names, load_target, parse_target
from spillprof.ir.units import format_size

ONE_WAY = (Direction.READ, Direction.WRITE)
_NO_LIMIT = 0.98  # of the sum of both bandwidths: as good as all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Measured copies under one state of the caches, and the curves fitted to them."""

    series: tuple[TimedCopies, ...]
    fits: dict[Direction, CostFit]

    def of(self, direction: Direction) -> tuple[TimedCopies, ...]:
        """The series of a direction, by size."""
        return tuple(each for each in self.series if each.direction is direction)

    def fitted_s(self, series: TimedCopies) -> float:
        """Seconds that the curve says for the copy of a series."""
        return float(self.fits[series.direction].seconds(np.array([series.size_bytes], dtype=np.float64))[0])

    def relative_error(self, series: TimedCopies) -> float:
        """Curve over measurement, less one."""
        return self.fitted_s(series) / series.min_s - 1

    def heldout_median_relative_error(self, *directions: Direction) -> float:
        """Median size of the relative errors at held-out sizes, of reads and writes unless told."""
        wanted = directions or ONE_WAY
        errors = [abs(self.relative_error(each)) for each in self.series if each.held_out and each.direction in wanted]
        return statistics.median(errors)

    def judged_by(self, other: "Calibration") -> float:
        """Median size of the relative errors of these curves at the held-out sizes of another calibration."""
        return replace(other, fits=self.fits).heldout_median_relative_error()

    @property
    def repetitions(self) -> int:
        """Of each copy, at least."""
        return min(len(each.seconds) for each in self.series)

    @property
    def disturbance(self) -> float:
        """How much longer than the least a middling repetition took: what other work on the machine did. A share."""
        return statistics.median(each.median_s / each.min_s - 1 for each in self.series)

    @property
    def bus_bytes_per_s(self) -> float | None:
        """What both directions at once share; None if they do not limit each other."""
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
    """Measure copies of these sizes, and fit a curve of each direction to the fitted ones.

    ``prepare`` comes right before each copy.
    """
    series = measure_copies(
        copier,
        sizes,
        prepare=prepare,
        budget_s=budget_s,
        most_repetitions=most_repetitions,
        progress=progress,
    )
    return fitted(series)


def fitted(series: tuple[TimedCopies, ...]) -> Calibration:
    """The calibration of these measurements. ``UsageError`` if a copy took no time that the clock could tell."""
    timeless = next((each for each in series if not each.min_s > 0), None)
    if timeless is not None:
        raise UsageError(
            f"a copy of {timeless.size_bytes:,} bytes is too short for the clock of this machine",
            hint="measure larger copies: --sizes 256KB..256MB",
        )
    fits = {}
    for direction in Direction:
        seen = [each for each in series if each.direction is direction and not each.held_out]
        # both at once: a straight line, since only its slope, the shared bandwidth, is wanted
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
    """A target in TOML: its transfers are the fitted curves, the rest is that of ``parent``.

    ``path``: where it will lie, for a parent that is a file; None for nowhere in particular. ``device`` and
    ``conditions`` say in words what was measured and how. It is read back here once: what is given out, loads.
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
        f"dram_{way}_curve = {_points(fit.curve)}",
    ]


def _points(curve: TransferCurve) -> str:
    return "[" + ", ".join(f"[{size}, {seconds!r}]" for size, seconds in curve) + "]"


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
    """The parent as the file at ``path`` has to name it: files are relative to the folder that it lies in."""
    if parent in builtin_target_names():
        return parent
    if path is None:
        return str(Path(parent).resolve())
    try:
        return Path(os.path.relpath(Path(parent).resolve(), path.parent.resolve())).as_posix()
    except ValueError:  # on another drive
        return str(Path(parent).resolve())


def _text(text: str) -> str:
    """A TOML string: JSON escapes are valid there, only DEL is not left bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    """A text that stays on its line."""
    return "".join(c if c.isprintable() else " " for c in text)
