"""``spillprof report``: render a saved profile again."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import completing, examples, option
from spillprof.cli.formats import completing_suffixes, destinations, suffix_list, write_all
from spillprof.cli.inputs import read_saved_profile
from spillprof.cli.invocation import Invocation
from spillprof.cli.options import config_options, verbosity_options
from spillprof.cli.output import default_report, print_profile
from spillprof.ir.errors import UsageError
from spillprof.planning.strategies import STRATEGIES
from spillprof.report.exports.registry import Subject

if TYPE_CHECKING:
    from spillprof.ir.profile import Profile


@click.command(
    "report",
    epilog=examples(
        "spillprof analyze sample_models/unet.onnx --sram 12MB --strategy lru,cost --events -o unet.json",
        "spillprof report unet.json -o unet.html -o unet.trace.json",
        "spillprof report unet.json --strategy lru -o unet.events.csv",
    ),
)
@click.argument("profile")
@option("--strategy", metavar="A,B", shell_complete=completing(lambda: STRATEGIES),
        help="Keep only these of the saved strategies. Default: all; reports explain the fastest.")  # fmt: skip
@option("-o", "--output", "outputs", multiple=True, metavar="FILE",
        shell_complete=completing_suffixes(Subject.PROFILE),
        help=f"Write a report: {suffix_list(Subject.PROFILE)}; '-' for JSON on stdout. Repeatable.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the summary.")
@option("--no-report", is_flag=True, help="Do not write PROFILE.spill.html where no -o is given.")
@option("--top", default=10, show_default=True, type=click.IntRange(min=0), metavar="N", help="Operators to list.")
@config_options(lambda config: {})
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, profile: str, **values: Any) -> None:
    """Render PROFILE, a JSON file of 'spillprof analyze', again ('-' for stdin). Nothing is simulated.

    The address map, traces and tables of events need a profile that was saved with --events.
    """
    to_stdout = values["as_json"] or "-" in values["outputs"]
    wants_default = not (values["outputs"] or values["as_json"] or values["no_report"])
    paths = [default_report(profile, "profile")] if wants_default else values["outputs"]
    targets = destinations(Subject.PROFILE, paths, invocation)
    saved = _chosen(read_saved_profile(profile), values["strategy"])
    if saved.model.path != "-":
        invocation.files.reads(saved.model.path)  # .spill.onnx copies it
    print_profile(saved, invocation, as_json=to_stdout, events=None, top=values["top"])
    write_all(targets, saved, invocation, events=None)


def _chosen(profile: "Profile", strategies: str | None) -> "Profile":
    if strategies is None:
        return profile
    saved = [result.strategy for result in profile.results]
    names = [name.strip() for name in strategies.split(",") if name.strip()]
    for name in names:
        if name not in saved:
            raise UsageError(f"the profile has no strategy '{name}'", hint=f"there are {', '.join(saved)}")
    return replace(profile, results=tuple(r for r in profile.results if r.strategy in names))
