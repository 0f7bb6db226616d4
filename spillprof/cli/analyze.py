"""``spillprof analyze``: simulate a model on a memory, and explain its spills."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spillprof.cli.declaring import completing, examples, option, switch
from spillprof.cli.formats import completing_suffixes, destination, destinations, suffix_list, write_all
from spillprof.cli.inputs import load_graph, read_simulation, read_target
from spillprof.cli.invocation import Invocation, reproduce
from spillprof.cli.options import (
    config_options,
    model_options,
    simulation_options,
    strategy_names,
    target_options,
    verbosity_options,
)
from spillprof.cli.output import (
    default_report,
    print_profile,
    write_file,
)
from spillprof.cli.progress import stages
from spillprof.ir.errors import CapacityError, UsageError
from spillprof.ir.units import format_size_exact
from spillprof.planning.strategies import OPTIMAL, STRATEGIES
from spillprof.report.exports.registry import Subject

if TYPE_CHECKING:
    from spillprof.explain.whatif.change import SmallerBatch

FEW_STRATEGIES = ((50_000, ("lru",)), (10_000, ("lru", "cost", "interval")))
"""(number of operators above which, strategies simulated by default): each takes seconds on such models."""


@click.command(
    "analyze",
    epilog=examples(
        "spillprof analyze sample_models/residual_cnn.onnx --sram 32MB",
        "spillprof analyze sample_models/unet.onnx --sram 12MB --strategy lru,interval -o unet.json -o unet.html",
        "spillprof analyze sample_models/residual_cnn.onnx --sram 32MB --strategy lru --why f0 --no-report",
    ),
)
@model_options
@target_options
@option(
    "--strategy",
    show_default="all; optimal only up to 2,000 steps",
    metavar="A,B",
    shell_complete=completing(lambda: STRATEGIES),
    help="Strategies to compare (by default above 10,000 operators lru, cost and interval, above 50,000 lru alone); "
    "reports explain the fastest.",
)
@simulation_options
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    shell_complete=completing_suffixes(Subject.PROFILE),
    help=f"Write a report: {suffix_list(Subject.PROFILE)}; '-' for JSON on stdout. Repeatable.",
)
@option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the summary.")
@switch("--what-if", True, "Simulate changes one at a time, and list those that help.")
@option("--why", metavar="TENSOR|OPERATOR", help="Tell the story of one: what evicted it, when, and at what cost.")
@option("--events", is_flag=True, help="Add the times of every step and transfer to the JSON.")
@option("--plan", metavar="FILE", help="Write the plan of the only --strategy, as JSON.")
@option("--save-order", metavar="FILE.onnx", help="Write the model with its nodes in the order of --order memory.")
@option("--no-report", is_flag=True, help="Do not write MODEL.spill.html where no -o is given.")
@option("--top", default=10, show_default=True, type=click.IntRange(min=0), metavar="N", help="Operators to list.")
@config_options()
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, model: str, **values: Any) -> None:
    """Simulate MODEL (an ONNX file, '-' for stdin) on a memory: compare the strategies, say what spills and why.

    The summary goes to stdout, and a report to MODEL.spill.html in this folder unless -o, --json or --no-report
    says otherwise. Sizes are binary (32MB is 33,554,432 bytes), rates decimal (60GB/s is 6e10 bytes per second).
    Every option can be set in the environment: --sram as SPILLPROF_SRAM.
    """
    strategies = _strategies(values["strategy"])
    plan_path = _plan_path(values["plan"], strategies, invocation)
    order_path = _order_path(values, model, invocation)
    to_stdout = values["as_json"] or "-" in values["outputs"]
    targets = destinations(Subject.PROFILE, values["outputs"], invocation)
    wants_default = not (values["outputs"] or values["as_json"] or values["no_report"])
    if wants_default and model != "-":
        targets.append(destination(Subject.PROFILE, default_report(model, ""), invocation))
    target = read_target(values)
    options = read_simulation(values, strategies, what_if=values["what_if"] == "on")
    with stages(sys.stderr, shown=not invocation.quiet) as stage:
        stage(0, 1, "reading the model")
        graph = load_graph(model, values, invocation)

    from spillprof.explain.analyze import analyze, tensor_ranks
    from spillprof.explain.options import run_of
    from spillprof.explain.plan_files import plan_file

    few = next((names for above, names in FEW_STRATEGIES if len(graph.operators) > above), ())
    if few and not strategies:
        invocation.note(
            f"{len(graph.operators):,} operators: only {', '.join(few)} {'is' if len(few) == 1 else 'are'} simulated "
            "unless --strategy names others"
        )
        options = replace(options, strategies=few)
    if wants_default and model == "-":
        targets.append(destination(Subject.PROFILE, default_report(model, graph.name), invocation))
    engine = invocation.engine
    if plan_path is not None:
        import json

        plan = plan_file(engine, run_of(graph, target, options), strategies[0])
        write_file(plan_path, json.dumps(plan, indent=1) + "\n", invocation)
    if order_path is not None:
        from spillprof.frontends.onnx.rewriting import in_node_order

        write_file(order_path, in_node_order(model, tensor_ranks(engine, run_of(graph, target, options))), invocation)
    with stages(sys.stderr, shown=not invocation.quiet) as stage:
        profile = analyze(
            graph,
            target,
            options,
            engine=engine,
            command=reproduce(invocation, command, values["config"]),
            smaller_batch=_smaller_batch(model, values, invocation),
            why=values["why"],
            stage=stage,
        )
    print_profile(profile, invocation, as_json=to_stdout, events=values["events"], top=values["top"])
    write_all(targets, profile, invocation, events=values["events"])
    if not any(result.feasible for result in profile.results):
        raise CapacityError(
            "no strategy can be planned in this memory",
            where=[f"{result.strategy}: {result.reason}" for result in profile.results],
            hint=f"the smallest SRAM without tiling is {format_size_exact(profile.model.min_sram_bytes)}",
        )


def _smaller_batch(model: str, values: Mapping[str, Any], invocation: Invocation) -> "SmallerBatch | None":
    """The model at half of ``--batch``; None without an even batch, or where stdin cannot be read again."""
    from spillprof.explain.whatif.change import SmallerBatch

    batch = values["batch"]
    if batch is None or batch % 2 or model == "-":
        return None
    half = {**values, "batch": batch // 2}
    return SmallerBatch(argument=f"--batch {batch // 2}", runs=2, read=lambda: load_graph(model, half, invocation))


def _strategies(text: str | None) -> tuple[str, ...]:
    """The strategies named; empty: all that are affordable."""
    return () if text is None else strategy_names(text)


def _plan_path(path: str | None, strategies: Sequence[str], invocation: Invocation) -> Path | None:
    if path is None:
        return None
    if len(strategies) != 1:
        raise UsageError(
            f"--plan writes one plan, but {len(strategies) or 'all'} strategies are asked for",
            hint=f"add --strategy {strategies[-1] if strategies else OPTIMAL}",
        )
    return invocation.files.writes(path)


def _order_path(values: Mapping[str, Any], model: str, invocation: Invocation) -> Path | None:
    if values["save_order"] is None:
        return None
    if values["order"] != "memory":
        raise UsageError(
            "--save-order writes the order that was found, but none is searched", hint="add --order memory"
        )
    if model == "-":
        raise UsageError("--save-order reads MODEL again, which came through a pipe", hint="give MODEL as a file")
    return invocation.files.writes(values["save_order"])
