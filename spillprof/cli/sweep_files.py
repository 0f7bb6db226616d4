"""What a sweep prints, and the files that it writes, by suffix."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spillprof.ir.errors import UsageError

if TYPE_CHECKING:
    from spillprof.studies.sweep.result import Sweep


def writer(path: str) -> Callable[["Sweep"], str | bytes]:
    """What makes the file's content, by suffix. Asked before the work, which may be long."""
    writers: dict[str, Callable[[Sweep], str | bytes]] = {
        ".csv": _as_csv, ".json": as_json, ".parquet": _as_parquet, ".html": _as_html
    }  # fmt: skip
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise UsageError(
            f"'{path}' has no suffix that names a format", hint=f"end it with {', '.join(writers)}; or '-' for JSON"
        )
    if suffix == ".parquet":
        from spillprof.report.sweep.data import require_parquet

        require_parquet()
    return writers[suffix]


def as_text(sweep: "Sweep") -> str:
    """The table and the sentences for a terminal."""
    from spillprof.report.sweep.terminal import WIDTH, render

    return render(sweep, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH)


def as_json(sweep: "Sweep") -> str:
    """JSON, schema ``spillprof-sweep/1``."""
    from spillprof.report.sweep.data import render_json

    return render_json(sweep)


def _as_csv(sweep: "Sweep") -> str:
    from spillprof.report.sweep.data import render_csv

    return render_csv(sweep)


def _as_parquet(sweep: "Sweep") -> bytes:
    from spillprof.report.sweep.data import render_parquet

    return render_parquet(sweep)


def _as_html(sweep: "Sweep") -> str:
    from spillprof.report.sweep.html import render

    return render(sweep)
