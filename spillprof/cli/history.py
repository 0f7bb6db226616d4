"""``spillprof history``: recorded figures over commits, and where each changed."""

from pathlib import Path
from typing import Any

import click

from spillprof.cli.config_keys import parse_metrics
from spillprof.cli.declaring import completing, examples, option, parsed
from spillprof.cli.formats import completing_suffixes, destination, suffix_list, write_all
from spillprof.cli.invocation import Invocation
from spillprof.cli.options import config_options, verbosity_options
from spillprof.cli.output import print_result
from spillprof.ir.errors import UsageError
from spillprof.ir.metric import Metric
from spillprof.report.exports.registry import Subject


@click.command(
    "history",
    epilog=examples(
        "spillprof gate sample_models/unet.onnx --sram 12MB --record spill.sqlite --commit v1",
        "spillprof history spill.sqlite",
        "spillprof history spill.sqlite --metrics latency,energy -o history.html",
    ),
)
@click.argument("file")
@option(
    "--metrics",
    default="spill-bytes,latency",
    show_default=True,
    metavar="A,B",
    callback=parsed(parse_metrics),
    shell_complete=completing(lambda: tuple(Metric)),
    help="Shown: spill-bytes, latency, peak, energy.",
)
@option("--model", metavar="TEXT", help="Only models whose name contains this.")
@option(
    "--top",
    default=10,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Changes to list for each figure.",
)
@option("-o", "--output", metavar="FILE", shell_complete=completing_suffixes(Subject.HISTORY),
        help=f"Also write the trend as {suffix_list(Subject.HISTORY)}.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="Every row and change as JSON.")
@config_options()
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, file: str, **values: Any) -> None:
    """Show what 'spillprof gate --record FILE' recorded: each figure over the commits, and where it changed.

    Commits stand in the order in which they were recorded.
    """
    from spillprof.report.gate import history
    from spillprof.studies.history import read_history

    paths = [] if values["output"] is None else [values["output"]]
    targets = [destination(Subject.HISTORY, path, invocation) for path in paths]
    series = [s for s in read_history(Path(file)) if values["model"] is None or values["model"] in s.model]
    if not series:
        raise UsageError("the history holds no such model", where=(file,), hint="leave out --model to see them all")
    if values["as_json"]:
        print_result(history.history_json(series, values["metrics"]))
    else:
        print_result(history.text(series, values["metrics"], top=values["top"]))
    write_all(targets, series, invocation, metrics=values["metrics"])
