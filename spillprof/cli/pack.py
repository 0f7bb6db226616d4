"""``spillprof pack``: place buffers with given lifetimes in one memory."""

import json
import re
import sys
from typing import Any

import click

from spillprof.cli.declaring import examples, option, parsed
from spillprof.cli.invocation import Invocation
from spillprof.cli.options import config_options, verbosity_options
from spillprof.cli.output import print_result, write_file
from spillprof.cli.progress import stages
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.ir.side_files.kinds import BUFFERS
from spillprof.ir.side_files.opening import read_stdin
from spillprof.ir.units import format_size_exact, parse_size


def _seconds(text: str) -> float:
    """Seconds from ``2.5``."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII):
        raise UsageError(f"'{text}' is no number of seconds", hint="write it like 60 or 2.5")
    return float(text)


@click.command(
    "pack",
    epilog=examples(
        "spillprof pack sample_models/blocks.csv --sram 12KiB --align 64 -o blocks.packed.csv",
        "spillprof pack sample_models/blocks.csv --json",
    ),
)
@click.argument("file")
@option("--sram", callback=parsed(parse_size), metavar="SIZE",
        help="Memory that the buffers must fit into. Default: no limit, the search minimizes the peak.")  # fmt: skip
@option("--align", callback=parsed(parse_size), default="1", show_default=True, metavar="SIZE",
        help="Alignment of offsets.")  # fmt: skip
@option("--seconds", callback=parsed(_seconds), metavar="N",
        help="Stop the search after so much processor time, which may not give the same layout again. "
        "Default: its work is counted, about a minute.")  # fmt: skip
@option("-o", "--output", metavar="FILE", help="Write id,lower,upper,size,offset as CSV; '-' for stdout.")
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the summary.")
@config_options(lambda config: {key: config.settings[key] for key in ("sram", "align") if key in config.settings})
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, file: str, **values: Any) -> None:
    """Place the buffers of FILE, a CSV with the columns id, lower, upper and size ('-' for stdin), in one memory.

    A buffer is live in [lower, upper). The format is that of google/minimalloc. The file given by -o is written even if
    the peak exceeds --sram; the exit code is then 2.
    """
    from spillprof.frontends.minimalloc import read_minimalloc, read_minimalloc_bytes
    from spillprof.planning.budget import Budget
    from spillprof.planning.layout.search import LAYOUT_WORK, LayoutEffort, lay_out
    from spillprof.report.packing import render, render_csv, to_json
    from spillprof.verify.layout import layout_faults

    output, sram, align = values["output"], values["sram"], values["align"]
    if output == "-" and values["as_json"]:
        raise UsageError("-o - and --json both want stdout", hint="drop one of the two")
    path = None if output in (None, "-") else invocation.files.writes(output)
    if file != "-":
        problem = read_minimalloc(file, alignment_bytes=align)
    else:
        problem = read_minimalloc_bytes(read_stdin(BUFFERS), name="-", alignment_bytes=align)
    seconds = values["seconds"]
    with stages(sys.stderr, shown=not invocation.quiet) as stage:
        stage(0, 1, "searching, about a minute at most" if seconds is None else f"searching, {seconds:g} s at most")
        layout = lay_out(problem, sram, LayoutEffort(budget=Budget(LAYOUT_WORK, seconds=seconds)))
    faults = layout_faults(problem, layout.offsets)
    if faults:
        raise AssertionError(f"an illegal layout: {faults[0]}")
    if values["as_json"]:
        print_result(json.dumps(to_json(problem, layout, sram_bytes=sram), indent=1))
    elif output == "-":
        print_result(render_csv(problem, layout))
    else:
        print_result(render(problem, layout, name=file, sram_bytes=sram))
    if path is not None:
        sys.stdout.flush()
        write_file(path, render_csv(problem, layout), invocation)
    if sram is not None and layout.peak_bytes > sram:
        bound = layout.lower_bound_bytes
        proven = bound > sram
        raise CapacityError(
            f"the buffers {'cannot fit' if proven else 'were not made to fit'} into {format_size_exact(sram)}",
            where=(f"peak {format_size_exact(layout.peak_bytes)}, lower bound {format_size_exact(bound)}",),
            hint=f"they need at least {format_size_exact(bound)}"
            if proven
            else "let it search longer with --seconds, or give more --sram",
        )
