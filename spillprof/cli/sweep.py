"""``spillprof sweep``: simulate grids of memories and settings, locally or on a Dask cluster."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import completing, examples, names_of_list, option, options_of, parsed
from spillprof.cli.formats import as_json, completing_suffixes, destinations, suffix_list, write_all
from spillprof.cli.invocation import Invocation, reproduce
from spillprof.cli.options import config_options, machine_options, shape_options, strategy_names, verbosity_options
from spillprof.cli.output import print_result
from spillprof.cli.progress import ProgressBar
from spillprof.cli.sweep_cases import (
    AUTO,
    base_target,
    first_lowering,
    first_planning,
    parse_dims,
    parse_sizes,
    parse_within,
    read_study,
)
from spillprof.ir.dtypes import AS_IN_FILE, dtype_names
from spillprof.ir.errors import CapacityError, SpillprofError
from spillprof.ir.interrupts import EXIT_CODE as INTERRUPTED
from spillprof.ir.interrupts import check, raised
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.planning.placements import PLACEMENTS
from spillprof.planning.strategies import CHEAP_STRATEGIES, IDEAL, OPTIMAL, STRATEGIES
from spillprof.report.exports.registry import Subject
from spillprof.studies.sweep.axes import parse_dtypes, parse_orders, parse_variation

if TYPE_CHECKING:
    from spillprof.studies.sweep.grid import Grid
    from spillprof.studies.sweep.result import Sweep
    from spillprof.studies.sweep.rows import Row, SweepCase
    from spillprof.studies.sweep.work import Runner, Study


@click.command(
    "sweep",
    epilog=examples(
        "spillprof sweep sample_models/unet.onnx --sram 1MB..32MB",
        "spillprof sweep sample_models/unet.onnx --sram auto --strategy lru,interval -o unet.csv -o unet.html",
        "spillprof sweep sample_models/unet.onnx sample_models/transformer_blocks.onnx --sram 1MB..4MB/1MB "
        "--vary dram-read=30GB/s,60GB/s --jobs 1 --json",
    ),
)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@option("--sram", default=AUTO, show_default=True, callback=parsed(parse_sizes), metavar="SIZES",
        help="1MB,2MB; 1MB..32MB (doubling); 1MB..4MB/256KB (step); auto: around the bends of the curves.")  # fmt: skip
@option("--strategy", default=",".join(CHEAP_STRATEGIES), show_default=True, metavar="A,B",
        shell_complete=completing(lambda: (*STRATEGIES, IDEAL)),
        help="Strategies to sweep; optimal searches at every point.")  # fmt: skip
@option("--placement", default="best-fit", show_default=True, metavar="A,B",
        shell_complete=completing(lambda: PLACEMENTS), help="Placements to sweep.")  # fmt: skip
@option("--vary", "variations", multiple=True, callback=parsed(parse_variation), metavar="FIELD=A,B",
        help="Values of a target field, named as in its file: --vary dram-read=30GB/s,60GB/s. Repeatable.")  # fmt: skip
@option("--dim", "dims", multiple=True, callback=parsed(parse_dims), metavar="NAME=A,B",
        help="Sizes of a dimension: --dim batch=1,2,4, 1..8 (doubling) or 1..8/1 (step). Repeatable.")  # fmt: skip
@option("--act-dtype", default=AS_IN_FILE, show_default=True, callback=parsed(parse_dtypes), metavar="A,B",
        shell_complete=completing(dtype_names),
        help="Element types of float activations to sweep: file,fp16,int8.")  # fmt: skip
@option("--weight-dtype", default=AS_IN_FILE, show_default=True, callback=parsed(parse_dtypes), metavar="A,B",
        shell_complete=completing(dtype_names),
        help="Element types of float weights to sweep; below 16 bits biases and norms keep theirs.")  # fmt: skip
@option("--order", default=str(PlanningOptions().order), show_default=True, callback=parsed(parse_orders),
        metavar="A,B", help="Orders of operators to sweep: file,memory. Each search takes seconds.")  # fmt: skip
@option("--within", default="5%", show_default=True, callback=parsed(parse_within), metavar="SHARE",
        help="Also find the smallest SRAM whose latency is at most this share above the ideal.")  # fmt: skip
@option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes. Default: one per core; 1: no other process.",
)
@option("--dask", metavar="ADDRESS", help="Simulate on a Dask cluster, given the ADDRESS of its scheduler.")
@option("--resume", metavar="FILE", help="Keep the points of an earlier sweep, from its .json or .csv.")
@option("-o", "--output", "outputs", multiple=True, metavar="FILE",
        shell_complete=completing_suffixes(Subject.SWEEP),
        help=f"Write the result: {suffix_list(Subject.SWEEP)}; '-' for JSON on stdout. Repeatable.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the table.")
@machine_options
@shape_options
@options_of(PlanningOptions, without=("placement", "order"))
@options_of(LoweringOptions, without=("act_dtype", "weight_dtype"))
@config_options()
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, models: tuple[str, ...], **values: Any) -> int:
    """Simulate each MODEL at many sizes of SRAM, under many strategies, placements, bandwidths and dimensions.

    A table goes to stdout. Knees, cliffs (more memory, worse result) and the smallest memory that is enough are
    found. A point that fails is a row with its error. Ctrl-C keeps finished points; --resume continues from them.
    """
    strategies = strategy_names(values["strategy"])
    placements = names_of_list(values["placement"], PLACEMENTS, "placement")
    targets = destinations(Subject.SWEEP, values["outputs"], invocation)
    to_stdout = values["as_json"] or "-" in values["outputs"]
    if values["resume"]:
        invocation.files.reads(values["resume"])
    study, cases = read_study(list(dict.fromkeys(models)), values, invocation)
    if OPTIMAL in strategies and values["optimize_seconds"] is not None:
        invocation.note("where --optimize-seconds cuts a search off, the figures of optimal depend on this machine")

    from spillprof.studies.sweep.grid import Grid
    from spillprof.studies.sweep.rows import read_rows

    known = read_rows(values["resume"]) if values["resume"] else {}
    grid = Grid(cases, list(product(placements, strategies)), known)
    runner = _runner(study, values)
    try:
        finished = _simulate(grid, values, runner, invocation)
        config = _configuration(values, strategies, placements)
        written = reproduce(invocation, command, values["config"])
        sweep = _conclude(grid.rows(), study, cases, values, config, written, runner, finished)
    finally:
        runner.close()
    if known:
        invocation.note(f"{grid.reused:,} of {len(sweep.rows):,} points taken from {values['resume']}")
    print_result(as_json(Subject.SWEEP, sweep) if to_stdout else _terminal(sweep))
    write_all(targets, sweep, invocation)
    return _exit_code(sweep, finished)


def _simulate(grid: "Grid", values: Mapping[str, Any], runner: "Runner", invocation: Invocation) -> bool:
    """Do the work; whether it came to its end, or the user stopped it."""
    progress = ProgressBar(sys.stderr, shown=not invocation.quiet)
    try:
        with raised():
            if values["sram"] == AUTO:
                grid.around_the_bends(runner, progress)
            else:
                grid.at(values["sram"], runner, progress)
            check()
    except KeyboardInterrupt:
        return False
    finally:
        progress.clear()
    return True


def _runner(study: "Study", values: Mapping[str, Any]) -> "Runner":
    if values["dask"] is not None:
        from spillprof.studies.sweep.cluster import Cluster

        return Cluster(study, values["dask"])
    from spillprof.studies.sweep.local import InProcess, Processes

    jobs = values["jobs"] or os.cpu_count() or 1
    return InProcess(study) if jobs == 1 else Processes(study, jobs)


def _configuration(
    values: Mapping[str, Any], strategies: Sequence[str], placements: Sequence[str]
) -> Mapping[str, Any]:
    """All options as the result names them; a swept option with all of its values."""
    from spillprof.explain.options import AnalyzeOptions, configuration
    from spillprof.studies.sweep.axes import OPTION_AXES

    options = AnalyzeOptions(
        strategies=tuple(strategies), lowering=first_lowering(values), planning=first_planning(values)
    )
    swept = {name: list(values[name]) for name in OPTION_AXES if len(values[name]) > 1}
    config = {**configuration(options), "placements": list(placements), **swept}
    del config["placement"]
    return config


def _conclude(
    rows: Sequence["Row"], study: "Study", cases: Sequence["SweepCase"], values: Mapping[str, Any],
    config: Mapping[str, Any], written: str, runner: "Runner", complete: bool,
) -> "Sweep":  # fmt: skip
    """The sweep's conclusions from its rows. Ctrl-C during the search for the causes of cliffs leaves those out."""
    from spillprof.studies.sweep.result import conclude

    machine = {key: value for key, value in asdict(base_target(values)).items() if key not in ("sram_bytes", "sources")}
    make = partial(
        conclude, study, cases, rows, within=values["within"], target=machine, config=config, command=written,
        runner=runner,
    )  # fmt: skip
    try:
        with raised():
            return make(complete=complete)
    except KeyboardInterrupt:
        return make(complete=False)


def _terminal(sweep: "Sweep") -> str:
    from spillprof.report.sweep.terminal import render

    return render(sweep, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else None)


def _exit_code(sweep: "Sweep", finished: bool) -> int:
    from spillprof.cli.running import BUG_EXIT_CODE
    from spillprof.studies.sweep.work import BUG, LOST

    lost = sum(row.status == LOST for row in sweep.rows)
    if not finished or not (sweep.complete or lost):
        return INTERRUPTED
    if lost:
        what = f"{lost:,} of {len(sweep.rows):,} points are missing: the workers that had them are gone"
        raise SpillprofError(what, hint="write the result with -o, and go on from there with --resume")
    if any(row.status.startswith(BUG) for row in sweep.rows):
        return BUG_EXIT_CODE
    if not any(row.ok for row in sweep.rows):
        reasons = list(dict.fromkeys(row.status for row in sweep.rows))
        fits_somewhere = any(case.min_sram_bytes is not None for case in sweep.cases)
        hint = "give larger sizes with --sram" if fits_somewhere else None
        raise CapacityError("no point of the sweep could be simulated", where=reasons[:3], hint=hint)
    return 0
