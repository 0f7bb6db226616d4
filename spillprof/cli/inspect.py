"""``spillprof inspect``: a model as it is read and lowered."""

import json
import sys
from typing import Any

import click

from spillprof.cli.declaring import examples, option, options_of, read_options
from spillprof.cli.inputs import load_graph, read_target
from spillprof.cli.invocation import Invocation
from spillprof.cli.options import config_options, model_options, target_options, verbosity_options
from spillprof.cli.output import print_result
from spillprof.lowering.options import LoweringOptions


@click.command(
    "inspect",
    epilog=examples(
        "spillprof inspect sample_models/unet.onnx",
        "spillprof inspect sample_models/unet.onnx --sram 1MB --tilings",
        "spillprof inspect sample_models/unet.onnx --fuse none --inplace off --views copy --fold off --json",
    ),
)
@model_options
@options_of(LoweringOptions, without=("op_times",))
@target_options
@option("--top", default=10, show_default=True, type=click.IntRange(min=0), metavar="N", help="Rows of each table.")
@option(
    "--tilings", is_flag=True, help="Each operator alone in the SRAM: its best tiling, what it moves, and the floor."
)
@option("--json", "as_json", is_flag=True, help="Every tensor and operator as JSON.")
@config_options()
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, model: str, **values: Any) -> None:
    """Show MODEL (an ONNX file, '-' for stdin) as it is read and lowered, before any memory is planned.

    Its largest tensors and operators, the peak of live bytes, and the smallest SRAM in which no operator must be
    tiled. With --tilings, also what each operator moves alone in the SRAM, and the least that any execution of it
    moves. With --fuse none --inplace off --views copy --fold off it is plain liveness in file order.
    """
    from spillprof.analysis.inspection import inspect_graph

    target, lowering = read_target(values), read_options(LoweringOptions, values)
    graph = load_graph(model, values, invocation)
    inspection = inspect_graph(graph, target, lowering)
    tilings = None
    if values["tilings"]:
        from spillprof.analysis.tilings import tile_operators

        tilings = tile_operators(graph, target, lowering)
    if values["as_json"]:
        found = inspection.to_json()
        if tilings is not None:
            found["tiling"] = tilings.to_json()
        print_result(json.dumps(found, indent=1))
        return
    from spillprof.report.inspection import render

    print_result(render(inspection, top=values["top"], color=invocation.colored(sys.stdout), tilings=tilings))
