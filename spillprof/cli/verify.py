"""``spillprof verify``: check a plan or a lower bound against a model, and cost the plan."""

import json
from typing import Any

import click

from spillprof.cli.declaring import examples, option
from spillprof.cli.inputs import load_graph, read_json, read_simulation, read_target
from spillprof.cli.invocation import Invocation
from spillprof.cli.options import config_options, model_options, simulation_options, target_options, verbosity_options
from spillprof.cli.output import print_result
from spillprof.ir.certificate import certificate_from_json
from spillprof.ir.errors import UsageError
from spillprof.ir.side_files.kinds import CERTIFICATE, PLAN
from spillprof.report.text import label

_MAX_VIOLATIONS = 20


@click.command(
    "verify",
    epilog=examples(
        "spillprof analyze sample_models/unet.onnx --sram 12MB --strategy interval --plan unet.plan.json -o unet.json",
        "spillprof verify sample_models/unet.onnx unet.plan.json --sram 12MB",
        "spillprof verify sample_models/unet.onnx --certificate unet.json --sram 12MB",
    ),
)
@model_options
@click.argument("plan", required=False)
@option("--certificate", metavar="FILE", help="Check the lower bound in a Profile JSON, or a certificate by itself.")
@target_options
@simulation_options
@option("--json", "as_json", is_flag=True, help="Violations and costs as JSON.")
@config_options()
@verbosity_options
@click.pass_obj
def command(invocation: Invocation, /, model: str, plan: str | None, **values: Any) -> int:
    """Check PLAN, a JSON file, against MODEL, and cost it on a target; or check that a lower bound is proven.

    Give the options with which the plan was made. The exit code is 0 for a legal plan and 2 for one that breaks a
    rule; violations are listed. A certificate is checked in integer arithmetic, without a solver.
    """
    from spillprof.explain.options import run_of
    from spillprof.explain.plan_files import check_bound, check_plan

    if plan is None and values["certificate"] is None:
        raise UsageError("there is nothing to check", hint="give a plan, or --certificate FILE")
    target = read_target(values)
    options = read_simulation(values)
    engine, run = invocation.engine, run_of(load_graph(model, values, invocation), target, options)
    lower = None
    if values["certificate"] is not None:
        certificate = certificate_from_json(read_json(values["certificate"], CERTIFICATE))
        lower = check_bound(engine, run, certificate)
    check = None if plan is None else check_plan(engine, run, read_json(plan, PLAN))
    name = label(values["certificate"] if plan is None else plan)
    if values["as_json"]:
        print_result(json.dumps(_as_json(check, lower), indent=1))
    else:
        print_result(_page(check, lower, name))
    return 2 if check is not None and check.violations else 0


def _page(check: Any, lower: int | None, name: str) -> str:
    from spillprof.report.plan_check import render, render_bound

    plan = "" if check is None else render(check.violations, check.result, name=name, limit=_MAX_VIOLATIONS)
    return plan + ("" if lower is None else render_bound(lower, check and check.result))


def _as_json(check: Any, lower: int | None) -> dict[str, Any]:
    from spillprof.report.plan_check import to_json

    plan = {} if check is None else to_json(check.violations, check.result)
    return plan if lower is None else {**plan, "spill_bytes_lower": lower}
