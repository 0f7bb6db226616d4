"""``spillprof sweep``: what-if grids, on this computer or on a Dask cluster."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import completing, examples, option, parsed
from spillprof.cli.model_file import read_bindings, read_model
from spillprof.cli.option_texts import dtype_names, nearest
from spillprof.cli.option_values import read_lowering, read_planning, read_target
from spillprof.cli.options import (
    config_options,
    lowering_options,
    machine_options,
    op_times_option,
    session_options,
    shape_options,
    transfer_options,
)
from spillprof.cli.output import print_result, writable_path, write_file
from spillprof.cli.progress import Progress
from spillprof.cli.reproduce import reproduce
from spillprof.cli.session import Session
from spillprof.errors import CapacityError, ModelError, SpillprofError, UsageError
from spillprof.model.dtypes import AS_IN_FILE
from spillprof.planning.options import CHEAP_STRATEGIES, PLACEMENTS, STRATEGIES, PlanningOptions
from spillprof.units import parse_size

if TYPE_CHECKING:
    from spillprof.sweep.result import Sweep
    from spillprof.sweep.rows import Case
    from spillprof.sweep.work import Runner, Study

AUTO = "auto"


def _parse_within(text: str) -> float:
    try:
        share = float(text.strip().removesuffix("%").strip()) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < 1e6:
        raise UsageError(f"'{text}' is no share", hint="write it like --within 5%")
    return share


def _parse_dims(text: str) -> tuple[str, tuple[int, ...]]:
    from spillprof.sweep.axes import parse_axis

    name, separator, sizes = text.rpartition("=")
    if not separator or not name:
        raise UsageError(f"'{text}' binds no dimension", hint="write it like --dim batch=1,2,4 or --dim batch=1..8")
    return name, parse_axis(sizes, _parse_count)


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"'{text}' is no size of a dimension", hint="write it like --dim batch=1,2,4")
    return int(text)


def _parse_sizes(text: str) -> str | tuple[int, ...]:
    from spillprof.sweep.axes import parse_axis

    return AUTO if text.strip().lower() == AUTO else parse_axis(text, parse_size)


def _parse_orders(text: str) -> tuple[str, ...]:
    from spillprof.sweep.axes import parse_orders

    return parse_orders(text)


def _parse_variation(text: str) -> tuple[str, tuple[Any, ...]]:
    from spillprof.sweep.axes import parse_variation

    return parse_variation(text)


def _parse_dtypes(text: str) -> tuple[str, ...]:
    from spillprof.sweep.axes import parse_dtypes

    return parse_dtypes(text)


@click.command(
    "sweep",
    short_help="What-if grids over memories and more.",
    epilog=examples(
        "spillprof sweep sample_models/unet.onnx --sram 1MB..32MB",
        "spillprof sweep sample_models/unet.onnx --sram auto --strategy lru,interval -o unet.csv -o unet.html",
        "spillprof sweep sample_models/unet.onnx sample_models/transformer_blocks.onnx --sram 1MB..4MB/1MB "
        "--vary dram-read=30GB/s,60GB/s --jobs 1 --json",
    ),
)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@option("--sram", default=AUTO, show_default=True, callback=parsed(_parse_sizes), metavar="SIZES",
        help="1MB,2MB; 1MB..32MB (doubling); 1MB..4MB/256KB (step); auto: around the bends of the curves.")  # fmt: skip
@option("--strategy", default=",".join(CHEAP_STRATEGIES), show_default=True, metavar="A,B",
        shell_complete=completing(lambda: (*STRATEGIES, "none")),
        help="Strategies to sweep; optimal searches at every point.")  # fmt: skip
@option("--placement", default="best-fit", show_default=True, metavar="A,B",
        shell_complete=completing(lambda: PLACEMENTS), help="Rules for addresses to sweep.")  # fmt: skip
@option("--vary", "variations", multiple=True, callback=parsed(_parse_variation), metavar="FIELD=A,B",
        help="Values of a target field, named as in its file: --vary dram-read=30GB/s,60GB/s. Repeatable.")  # fmt: skip
@option("--dim", "dims", multiple=True, callback=parsed(_parse_dims), metavar="NAME=A,B",
        help="Sizes of a dimension: --dim batch=1,2,4, 1..8 (doubling) or 1..8/1 (step). Repeatable.")  # fmt: skip
@option("--act-dtype", default=AS_IN_FILE, show_default=True, callback=parsed(_parse_dtypes), metavar="A,B",
        shell_complete=completing(dtype_names),
        help="Element types of float activations to sweep: file,fp16,int8.")  # fmt: skip
@option("--weight-dtype", default=AS_IN_FILE, show_default=True, callback=parsed(_parse_dtypes), metavar="A,B",
        shell_complete=completing(dtype_names),
        help="Element types of float weights to sweep; below 16 bits biases and norms keep theirs.")  # fmt: skip
@option("--order", default=str(PlanningOptions().order), show_default=True, callback=parsed(_parse_orders),
        metavar="A,B", help="Orders of operators to sweep: file,memory. Each search takes seconds.")  # fmt: skip
@option("--within", default="5%", show_default=True, callback=parsed(_parse_within), metavar="SHARE",
        help="Also ask for the smallest SRAM that is at most so much slower than the ideal.")  # fmt: skip
@option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes; 1: this one. Default: one a core.")
@option("--dask", metavar="ADDRESS", help="Let a Dask cluster do the work; ADDRESS of its scheduler.")
@option("--resume", metavar="FILE", help="Keep the points of an earlier sweep, from its .json or .csv.")
@option("-o", "--output", "outputs", multiple=True, metavar="FILE",
        help="Write the result: .csv, .json, .parquet or .html; '-' for JSON on stdout. Repeatable.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the table.")
@machine_options
@shape_options
@transfer_options
@lowering_options
@op_times_option
@config_options()
@session_options
@click.pass_obj
def command(session: Session, /, models: tuple[str, ...], **values: Any) -> int:
    """Simulate each MODEL at many sizes of SRAM, under many strategies, placements, bandwidths and dimensions.

    A table goes to stdout. Knees, cliffs (more memory, worse result) and the smallest memory that is enough are
    found. A point that fails is a row with its error. Ctrl-C keeps what is finished; --resume goes on from there.
    """
    strategies = _names(values["strategy"], (*STRATEGIES, "none"), "strategy")
    placements = _names(values["placement"], PLACEMENTS, "placement")
    writers = [(writable_path(path), _writer(path)) for path in values["outputs"] if path != "-"]
    to_stdout = values["as_json"] or "-" in values["outputs"]
    study, cases = _study(list(dict.fromkeys(models)), values, session)

    from spillprof.sweep.resume import read_rows
    from spillprof.sweep.run import Run

    known = read_rows(values["resume"]) if values["resume"] else {}
    run = Run(cases, list(product(placements, strategies)), known)
    complete = _simulate(run, values, study, session)
    sweep = _conclude(run.rows(), study, cases, values, strategies, placements, complete, session)
    if known:
        session.note(f"{run.reused:,} of {len(sweep.rows):,} points taken from {values['resume']}")
    print_result(_as_json(sweep) if to_stdout else _as_text(sweep))
    contents = [(path, render(sweep)) for path, render in writers]
    sys.stdout.flush()
    for path, content in contents:
        write_file(path, content, session)
    return _exit_code(sweep)


def _simulate(run: Any, values: Mapping[str, Any], study: "Study", session: Session) -> bool:
    """Do the work; whether it came to its end, or the user stopped it."""
    runner = _runner(study, values)
    progress = Progress(sys.stderr, shown=not session.quiet)
    try:
        if values["sram"] == AUTO:
            run.around_the_bends(runner, progress)
        else:
            run.at(values["sram"], runner, progress)
    except KeyboardInterrupt:
        return False
    finally:
        progress.clear()
        runner.close()
    return True


def _runner(study: "Study", values: Mapping[str, Any]) -> "Runner":
    if values["dask"]:
        from spillprof.sweep.cluster import Cluster

        return Cluster(study, values["dask"])
    from spillprof.sweep.local import InProcess, Processes

    jobs = values["jobs"] or os.cpu_count() or 1
    return InProcess(study) if jobs == 1 else Processes(study, jobs)


def _study(models: Sequence[str], values: Mapping[str, Any], session: Session) -> tuple["Study", list["Case"]]:
    """Every model read once for each binding of its dimensions, and all cases. The first error, if none is readable."""
    from spillprof.sweep.axes import OPTION_AXES, settings_of
    from spillprof.sweep.cases import Source, make_study

    target, lowering, planning = _machine(values), _lowering(values), _planning(values)
    bindings = settings_of(values["dims"])
    if "-" in models and len(bindings) > 1:
        raise UsageError("a model on stdin can be read only once", hint="save it to a file to sweep its dimensions")
    sources: list[Source] = []
    errors: list[SpillprofError] = []
    for model in models:
        for dims in bindings:
            fixed = {**values, "dims": list(dims.items())}
            graph, message = None, ""
            try:
                graph = read_model(model, fixed, session)
            except (ModelError, UsageError) as error:
                errors.append(error)
                message = error.message
            swept = {name: dims[name] for name, sizes in values["dims"] if len(sizes) > 1}
            given = read_bindings(fixed)
            binding = {
                "shape": given.shapes,
                "batch": given.batch,
                "dim": dims,
                "assume": given.assume,
                "branch": given.branches,
                "trips": given.trips,
            }
            sources.append(Source(model=model, graph=graph, dims=swept, binding=binding, error=message))
    if len(errors) == len(sources):
        raise errors[0]
    for failed in errors:
        session.note(f"warning: {failed.message}; its points are rows with this error")
    axes = [*values["variations"], *((name, values[name]) for name in OPTION_AXES if len(values[name]) > 1)]
    return make_study(sources, target, settings_of(axes), lowering, planning)


def _lowering(values: Mapping[str, Any]) -> Any:
    """The options of lowering; those that are swept with their first value."""
    from spillprof.sweep.axes import LOWERING_AXES, lowering_with

    firsts = {name: values[name][0] for name in LOWERING_AXES}
    return lowering_with(read_lowering({**values, **firsts}), firsts)


def _planning(values: Mapping[str, Any]) -> PlanningOptions:
    """The options of planning; those that are swept with their first value. Each point brings its own placement."""
    return read_planning({**values, "placement": PlanningOptions().placement, "order": values["order"][0]})


def _machine(values: Mapping[str, Any]) -> Any:
    return read_target({**values, "sram": None})


def _conclude(
    rows: Any, study: "Study", cases: Sequence["Case"], values: Mapping[str, Any],
    strategies: Sequence[str], placements: Sequence[str], complete: bool, session: Session,
) -> "Sweep":  # fmt: skip
    from spillprof.pipeline import AnalyzeOptions, configuration
    from spillprof.sweep.axes import OPTION_AXES
    from spillprof.sweep.result import conclude

    options = AnalyzeOptions(strategies=tuple(strategies), lowering=_lowering(values), planning=_planning(values))
    swept = {name: list(values[name]) for name in OPTION_AXES if len(values[name]) > 1}
    config = {**configuration(options), "placements": list(placements), **swept}
    del config["placement"]
    machine = {key: value for key, value in asdict(_machine(values)).items() if key not in ("sram_bytes", "sources")}
    return conclude(
        study,
        cases,
        rows,
        within=values["within"],
        complete=complete,
        target=machine,
        config=config,
        command=reproduce(session, command, values["config"]),
    )


def _exit_code(sweep: "Sweep") -> int:
    from spillprof.cli.failures import BUG_EXIT_CODE, INTERRUPTED_EXIT_CODE
    from spillprof.sweep.work import BUG

    if not sweep.complete:
        return INTERRUPTED_EXIT_CODE
    if any(row.status.startswith(BUG) for row in sweep.rows):
        return BUG_EXIT_CODE
    if not any(row.ok for row in sweep.rows):
        reasons = list(dict.fromkeys(row.status for row in sweep.rows))
        fits_somewhere = any(case.min_sram_bytes is not None for case in sweep.cases)
        hint = "give larger sizes with --sram" if fits_somewhere else None
        raise CapacityError("no point of the sweep could be simulated", where=reasons[:3], hint=hint)
    return 0


def _names(text: str, known: Sequence[str], kind: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError(f"no {kind} is named", where=(f"--{kind}",), hint=f"there are {', '.join(known)}")
    for name in names:
        if name not in known:
            raise nearest(kind, name, known)
    return names


def _writer(path: str) -> Callable[["Sweep"], str | bytes]:
    """What makes the file's content, by suffix. Asked before the work, which may be long."""
    writers: dict[str, Callable[[Sweep], str | bytes]] = {
        ".csv": _as_csv, ".json": _as_json, ".parquet": _as_parquet, ".html": _as_html
    }  # fmt: skip
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise UsageError(
            f"'{path}' has no suffix that names a format", hint=f"end it with {', '.join(writers)}; or '-' for JSON"
        )
    if suffix == ".parquet":
        from spillprof.report.sweep_data import require_parquet

        require_parquet()
    return writers[suffix]


def _as_text(sweep: "Sweep") -> str:
    from spillprof.report.sweep_text import render

    return render(sweep)


def _as_json(sweep: "Sweep") -> str:
    from spillprof.report.sweep_data import render_json

    return render_json(sweep)


def _as_csv(sweep: "Sweep") -> str:
    from spillprof.report.sweep_data import render_csv

    return render_csv(sweep)


def _as_parquet(sweep: "Sweep") -> bytes:
    from spillprof.report.sweep_data import render_parquet

    return render_parquet(sweep)


def _as_html(sweep: "Sweep") -> str:
    from spillprof.report.sweep_html import render

    return render(sweep)
