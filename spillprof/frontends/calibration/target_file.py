"""The target file of a calibration."""

import json
import os
from pathlib import Path

from spillprof.frontends.calibration.calibration import Calibration
from spillprof.frontends.calibration.copier import Direction
from spillprof.frontends.calibration.fit import Fit
from spillprof.ir.errors import UsageError
from spillprof.ir.target import TransferCurve, builtin_target_names, load_target, parse_target
from spillprof.ir.units import format_size


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


def _direction(way: str, fit: Fit) -> list[str]:
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
