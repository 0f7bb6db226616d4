"""Renders a calibration as text and as JSON."""

import math
from collections.abc import Sequence
from typing import Any

from spillprof import __version__
from spillprof.frontends.calibration.calibration import ONE_WAY, Calibration
from spillprof.frontends.calibration.fit import CostFit, Interval, inner_bends
from spillprof.frontends.calibration.measure import Direction
from spillprof.ir.units import format_rate, format_size, format_time
from spillprof.report.table import Table
from spillprof.report.text import label


def render(
    calibration: Calibration, unswept: Calibration | None, *, device: str, method: Sequence[str], caches: str
) -> str:
    """Renders sizes, fitted curves and errors; ``unswept`` is the calibration without cache sweeping."""
    lines = [label(device, 200), *(f"  {label(remark, 200)}" for remark in (*method, caches)), ""]
    lines += _sizes(calibration)
    lines += ["  read, write: the least time measured; * held out: not used by the fit", "", *_fits(calibration), ""]
    lines += [_errors("median relative error on held-out sizes", calibration)]
    if unswept is not None:
        lines += [_errors("the same without sweeping the caches", unswept), *_difference(calibration, unswept)]
    lines += [
        f"the median repetition took {calibration.disturbance:.0%} longer than the fastest: other work, and chance"
    ]
    return "\n".join(lines) + "\n"


def to_json(
    calibration: Calibration,
    unswept: Calibration | None,
    *,
    device: str,
    method: Sequence[str],
    swept_cache_bytes: int | None,
    target: str | None,
) -> dict[str, Any]:
    """The calibration as JSON values. ``swept_cache_bytes`` is null where caches were not swept."""
    return {
        "schema": "spillprof-calibration/1",
        "spillprof_version": __version__,
        "device": device,
        "method": list(method),
        "swept_cache_bytes": swept_cache_bytes,
        "target": target,
        **_figures(calibration),
        "unswept": None
        if unswept is None
        else {**_figures(unswept), "heldout_median_relative_error_swept": unswept.judged_by(calibration)},
    }


def _figures(calibration: Calibration) -> dict[str, Any]:
    return {
        "heldout_median_relative_error": calibration.heldout_median_relative_error(),
        "heldout_median_relative_error_by_direction": {
            str(way): calibration.heldout_median_relative_error(way) for way in ONE_WAY
        },
        "repetitions": calibration.repetitions,
        "disturbance": calibration.disturbance,
        "points": [
            {
                "direction": str(series.direction),
                "size_bytes": series.size_bytes,
                "held_out": series.held_out,
                "repetitions": len(series.seconds),
                "min_s": series.min_s,
                "median_s": series.median_s,
                "fitted_s": calibration.fitted_s(series),
                "relative_error": calibration.relative_error(series),
            }
            for series in calibration.series
        ],
        "fit": {str(direction): _fit_json(fit) for direction, fit in calibration.fits.items()},
        "bus_bytes_per_s": calibration.bus_bytes_per_s,
    }


def _fit_json(fit: CostFit) -> dict[str, Any]:
    return {
        "setup_s": fit.setup_s,
        "setup_interval_s": _ends(fit.setup_interval_s),
        "s_per_byte": fit.s_per_byte,
        "s_per_byte_interval": _ends(fit.slope_interval),
        "bytes_per_s": fit.bytes_per_s,
        "curve": [list(point) for point in fit.curve],
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _sizes(calibration: Calibration) -> list[str]:
    """Tabulates measured and fitted seconds and relative error by size, reads beside writes."""
    reads, writes = (calibration.of(way) for way in ONE_WAY)
    heads = ("size  ", *(head for way in ONE_WAY for head in (str(way), "fitted", "error")))
    rows = [
        (
            f"{format_size(read.size_bytes)} {'*' if read.held_out else ' '}",
            *(
                text
                for each in (read, write)
                for text in (
                    format_time(each.min_s),
                    format_time(calibration.fitted_s(each)),
                    f"{100 * calibration.relative_error(each):+.1f} %",
                )
            ),
        )
        for read, write in zip(reads, writes, strict=True)
    ]
    return Table(heads=heads, cells=rows, align="rrrrrrr").lines(indent=2)


def _fits(calibration: Calibration) -> list[str]:
    rows = []
    for way in ONE_WAY:
        fit = calibration.fits[way]
        slope = fit.slope_interval
        rows.append(
            (
                str(way),
                format_time(fit.setup_s),
                _span(fit.setup_interval_s, format_time),
                format_rate(fit.bytes_per_s),
                _span(slope and Interval(low=1 / slope.high, high=1 / slope.low), format_rate),
                ", ".join(map(format_size, inner_bends(fit.curve))) or "-",
            )
        )
    both = 2 * calibration.fits[Direction.BOTH].bytes_per_s
    limit = "they do not limit each other" if calibration.bus_bytes_per_s is None else "they share the bus"
    heads = ("", "set-up", "95 % interval", "bandwidth", "95 % interval", "bends at")
    lines = Table(heads=heads, cells=rows, align="lrrrrl").lines(indent=2, gap=3)
    return [*lines, f"  both at once   {format_rate(both)} in sum: {limit}"]


def _span(interval: Interval | None, written: Any) -> str:
    return "-" if interval is None else f"{written(interval.low)} .. {written(interval.high)}"


def _errors(what: str, calibration: Calibration) -> str:
    total, read, write = (
        f"{100 * calibration.heldout_median_relative_error(*ways):.1f} %"
        for ways in (ONE_WAY, (Direction.READ,), (Direction.WRITE,))
    )
    return (
        f"{what:<39}   {total:>6}   read {read}, write {write}; the fastest of "
        f"{calibration.repetitions} or more repetitions"
    )


def _difference(swept: Calibration, unswept: Calibration) -> list[str]:
    """States the error of the unswept curve on swept copies, and the size whose time differs most."""
    pairs = [pair for pair in zip(swept.series, unswept.series, strict=True) if pair[0].direction in ONE_WAY]
    cold, warm = max(pairs, key=lambda pair: abs(math.log(pair[0].min_s / pair[1].min_s)))
    rates = [format_rate(each.size_bytes / each.min_s) for each in (cold, warm)]
    way = f"{cold.direction} of {format_size(cold.size_bytes)}"
    return [
        f"  its curves miss the swept copies by {unswept.judged_by(swept):.1%} (median)",
        f"  largest difference: {way}, {rates[0]} with the caches swept, {rates[1]} without",
    ]
