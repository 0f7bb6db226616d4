"""``spillprof calibrate``: measure this machine's transfers, fit their curve, and write a target."""

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import completing, examples, option, parsed
from spillprof.cli.invocation import Invocation
from spillprof.cli.options import config_options, verbosity_options
from spillprof.cli.output import print_result, write_file
from spillprof.cli.progress import ProgressBar
from spillprof.ir.errors import UsageError
from spillprof.ir.target import builtin_target_names
from spillprof.ir.units import format_size, parse_size

if TYPE_CHECKING:
    from spillprof.frontends.calibration.calibration import Calibration
    from spillprof.frontends.calibration.measure import Copier, Prepare, Sizes

_SHARE_UNSWEPT = 0.2  # share of the time for the measurement without sweeping, where both are made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Device:
    """Where copies go: to the CUDA device of that number, or within host memory for None."""

    cuda: int | None


def _parse_device(text: str) -> _Device:
    match = re.fullmatch(r"(?P<cpu>cpu)|cuda(:(?P<number>\d{1,4}))?", text, re.ASCII)
    if match is None:
        raise UsageError(f"there is no device '{text}'", hint="write cpu, cuda or cuda:1")
    return _Device(cuda=None if match["cpu"] else int(match["number"] or 0))


def _parse_span(text: str) -> "Sizes":
    from spillprof.frontends.calibration.measure import copy_sizes

    low, separator, high = text.partition("..")
    if not separator:
        raise UsageError(f"'{text}' is no span of sizes", hint="write it like 256KB..256MB")
    return copy_sizes(parse_size(low), parse_size(high))


def _parse_seconds(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII):
        raise UsageError(f"'{text}' is no number of seconds", hint="write it like 60 or 2.5")
    return float(text)


@click.command(
    "calibrate",
    epilog=examples(
        "spillprof calibrate --sizes 256KB..2MB --seconds 2 --inherit ethos-u85 -o this-machine.toml",
        "spillprof analyze sample_models/unet.onnx --sram 8MB --target this-machine.toml --no-report",
        "spillprof calibrate --sizes 256KB..4MB --seconds 2 --no-sweep",
    ),
)
@option("-o", "--output", metavar="TARGET.toml",
        help="Write a target with the fitted curves; '-' for stdout.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the summary.")
@option("--device", default="cpu", show_default=True, callback=parsed(_parse_device), metavar="NAME",
        help="cpu: this machine's memory; cuda or cuda:N: between host and a CUDA device.")  # fmt: skip
@option("--inherit", metavar="NAME|FILE", shell_complete=completing(builtin_target_names),
        help="Target to inherit everything else from. Default: generic-npu; pcie-gpu for a CUDA device.")  # fmt: skip
@option("--sizes", default="256KB..256MB", show_default=True, callback=parsed(_parse_span), metavar="A..B",
        help="Sizes of copies, doubling; those half-way between are held out to judge the fit.")  # fmt: skip
@option("--seconds", default="60", show_default=True, callback=parsed(_parse_seconds), metavar="N",
        help="Total time. Each copy is measured at least three times even if that takes longer.")  # fmt: skip
@option("--repetitions", default=30, show_default=True, type=click.IntRange(min=3), metavar="N",
        help="Most repetitions of each copy.")  # fmt: skip
@option("--no-sweep", is_flag=True, help="Repeat each copy with warm caches, in place of sweeping them.")
@option("--cache", callback=parsed(parse_size), metavar="SIZE",
        help="Size of the last-level cache to sweep. Default: as the system reports it.")  # fmt: skip
@config_options(lambda config: {})
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, **values: Any) -> None:
    """Measure copies between this machine's memory and its caches, or a CUDA device, and fit time to size.

    The curve is continuous and piecewise linear: a set-up time, then rising pieces. It is judged at held-out sizes.
    --target takes the file that -o writes.
    """
    from spillprof.frontends.calibration.calibration import check_parent, render_target
    from spillprof.report.calibration import render, to_json

    output, device = values["output"], values["device"]
    path = _target_path(output, values["as_json"], invocation)
    parent = values["inherit"] or ("generic-npu" if device.cuda is None else "pcie-gpu")
    check_parent(parent)
    date = _today()
    cache_bytes, caches = _caches(values)
    with _Measured(invocation, values, cache_bytes) as measured:
        calibration, unswept = measured.calibrate()
        device_text, method = measured.copier.device, measured.copier.method
    target = None
    if output is not None:
        conditions = "; ".join((*method, caches))
        target = render_target(
            calibration, device=device_text, conditions=conditions, date=date, parent=parent, path=path
        )
    if values["as_json"]:
        found = to_json(
            calibration, unswept, device=device_text, method=method, swept_cache_bytes=cache_bytes, target=output
        )
        print_result(json.dumps(found, indent=1))
    elif output == "-":
        print_result(target or "")
    else:
        print_result(render(calibration, unswept, device=device_text, method=method, caches=caches))
    if path is not None:
        sys.stdout.flush()
        write_file(path, target or "", invocation)


def _target_path(output: str | None, as_json: bool, invocation: Invocation) -> Path | None:
    if output == "-" and as_json:
        raise UsageError("-o - and --json both want stdout", hint="drop one of the two")
    if output in (None, "-"):
        return None
    if not output.endswith(".toml"):
        raise UsageError(f"'{output}' is no name for a target", hint="end it with .toml, so that --target takes it")
    return invocation.files.writes(output)


def _caches(values: dict[str, Any]) -> tuple[int | None, str]:
    """The size of the cache to sweep, None for no sweeping; and a sentence for the report."""
    from spillprof.frontends.calibration.host_memory import last_level_cache_bytes

    if values["no_sweep"]:
        if values["cache"] is not None:
            raise UsageError("--no-sweep sweeps no --cache", hint="drop one of the two")
        return None, "caches are not swept: each copy is made right before it is timed, and they hold what they can"
    cache_bytes, is_told = (values["cache"], True) if values["cache"] else last_level_cache_bytes()
    assumed = "" if is_told else ", assumed: --cache says another"
    return cache_bytes, f"caches are swept before each copy (last level {format_size(cache_bytes)}{assumed})"


class _Measured:
    """An open copier and its measurements. A context manager that closes the copier."""

    def __init__(self, invocation: Invocation, values: dict[str, Any], cache_bytes: int | None) -> None:
        self._values = values
        self._cache_bytes = cache_bytes
        self._start_s = time.monotonic()
        self._progress = ProgressBar(sys.stderr, shown=not invocation.quiet, counted="seconds")
        self._show_progress()
        self.copier = self._open()

    def __enter__(self) -> "_Measured":
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.clear()
        self.copier.close()

    def calibrate(self) -> "tuple[Calibration, Calibration | None]":
        """The calibration; and a second one without sweeping, if caches were swept."""
        from spillprof.frontends.calibration.host_memory import cache_sweep
        from spillprof.frontends.calibration.measure import same_copy_before

        budget_s = self._values["seconds"]
        if self._cache_bytes is None:
            return self._run(same_copy_before, budget_s), None
        swept = self._run(cache_sweep(self._cache_bytes), budget_s * (1 - _SHARE_UNSWEPT))
        return swept, self._run(same_copy_before, budget_s)

    def _run(self, prepare: "Prepare", until_s: float) -> "Calibration":
        """Measure until ``until_s`` after the start, which includes the time to allocate buffers."""
        from spillprof.frontends.calibration.calibration import calibrate

        return calibrate(
            self.copier,
            self._values["sizes"],
            prepare=prepare,
            budget_s=until_s - (time.monotonic() - self._start_s),
            most_repetitions=self._values["repetitions"],
            progress=self._show_progress,
        )

    def _show_progress(self) -> None:
        total_s = round(self._values["seconds"])
        self._progress(min(round(time.monotonic() - self._start_s), total_s), total_s)

    def _open(self) -> "Copier":
        from spillprof.frontends.calibration.cuda import CudaCopier
        from spillprof.frontends.calibration.host_memory import HostCopier, sweep_bytes

        largest_bytes = self._values["sizes"].fitted[-1]
        number = self._values["device"].cuda
        if number is not None:
            return CudaCopier(number, largest_bytes)
        return HostCopier(largest_bytes, beside_bytes=sweep_bytes(self._cache_bytes or 0))


def _today() -> str:
    """The date in UTC, or that of SOURCE_DATE_EPOCH, for reproducible files."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if not text:
        return datetime.now(UTC).date().isoformat()
    try:
        return datetime.fromtimestamp(int(text), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"SOURCE_DATE_EPOCH: '{text}' is no moment", hint="it is a number of seconds since 1970"
        ) from None
