"""``spillprof diff``: two runs side by side."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import completing, examples, option
from spillprof.cli.diff_sides import Side, read_sides
from spillprof.cli.options import (
    binding_options,
    config_options,
    session_options,
    simulation_options,
    target_options,
)
from spillprof.cli.output import print_result, write_file
from spillprof.cli.reproduce import reproduce
from spillprof.cli.session import Session
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.ir.units import format_size_exact
from spillprof.planning.options import STRATEGIES

if TYPE_CHECKING:
    from spillprof.studies.diff import Comparison


@click.command(
    "diff",
    short_help="Two runs side by side.",
    epilog=examples(
        'spillprof diff sample_models/unet.onnx sample_models/unet.onnx --sram 12MB --after "--sram 10MB"',
        "spillprof analyze sample_models/unet.onnx --sram 12MB --strategy lru -o old.json",
        'spillprof diff old.json sample_models/unet.onnx --after "--sram 12MB --order memory" -o unet.diff.html',
    ),
)
@click.argument("before")
@click.argument("after")
@option("--before", "before_options", metavar='"OPTIONS"', help="More options for the run before, in quotes.")
@option("--after", "after_options", metavar='"OPTIONS"', help="More options for the run after, in quotes.")
@binding_options
@target_options
@option(
    "--strategy",
    metavar="A,B",
    shell_complete=completing(lambda: STRATEGIES),
    help="Strategies to compare. Default: those of a saved profile, else interval.",
)
@option(
    "--plan", metavar="FILE", help="A plan (JSON) to cost in place of strategies; for one side in --before, --after."
)
@simulation_options
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write the comparison: .html, .json or .md; '-' for JSON on stdout. Repeatable.",
)
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the page.")
@option("--top", default=10, show_default=True, type=click.IntRange(min=0), metavar="N",
        help="Operators and buffers to list.")  # fmt: skip
@config_options()
@session_options
@click.pass_context
def command(ctx: click.Context, /, before: str, after: str, **values: Any) -> None:
    """Compare the run BEFORE with the run AFTER: figures, operators and buffers that moved and why, settings.

    Each is a model (an ONNX file, '-' for stdin), simulated under the options given, or a profile that was saved with
    'analyze -o NAME.json'. Options count for both; --before and --after hold those that one alone shall have.
    Operators are matched by name, then by their place in the graph. The exit code is 0 whatever the comparison finds:
    'spillprof gate' is what fails.
    """
    session = ctx.ensure_object(Session)
    to_stdout = values["as_json"] or "-" in values["outputs"]
    writers = [(session.files.writes(path), _writer(path)) for path in values["outputs"] if path != "-"]
    if before == "-" and after == "-":
        raise UsageError("both runs cannot be read from stdin", hint="save one of the models to a file")
    old, new = read_sides(
        command,
        session,
        Side(which="before", path=before, extra=values["before_options"] or ""),
        Side(which="after", path=after, extra=values["after_options"] or ""),
    )

    from spillprof.studies.diff import compare

    comparison = compare(old, new, command=reproduce(session, command, values["config"]))
    print_result(_as_json(comparison) if to_stdout else _page(comparison, values["top"]))
    texts = [(path, write(comparison)) for path, write in writers]
    sys.stdout.flush()
    for path, text in texts:
        write_file(path, text, session)
    if not any(result.feasible for profile in (old, new) for result in profile.results):
        raise CapacityError(
            "neither run can be planned in its memory",
            where=[f"{result.strategy}: {result.reason}" for result in new.results],
            hint=f"the smallest SRAM without tiling is {format_size_exact(new.model.min_sram_bytes)}",
        )


def _writer(path: str) -> Callable[["Comparison"], str]:
    """What makes the file's content, by suffix. Asked before the work, which may be long."""
    writers = {".html": _as_html, ".json": _as_json, ".md": _as_markdown}
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise UsageError(
            f"'{path}' has no suffix that names a format", hint=f"end it with {', '.join(writers)}; or '-' for JSON"
        )
    return writers[suffix]


def _page(comparison: "Comparison", top: int) -> str:
    from spillprof.report.diff.terminal import render

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return render(comparison, top=top, width=width)


def _as_json(comparison: "Comparison") -> str:
    from spillprof.report.diff.json_format import render

    return render(comparison)


def _as_markdown(comparison: "Comparison") -> str:
    from spillprof.report.diff.markdown import render

    return render(comparison)


def _as_html(comparison: "Comparison") -> str:
    from spillprof.report.diff.html import render

    return render(comparison)
