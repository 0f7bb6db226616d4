"""``spillprof verify``: whether a plan, whoever made it, is legal, and what it costs."""

import json
from pathlib import Path
from typing import Any

import click

from spillprof.cli.model_file import read_model
from spillprof.cli.options import (
    config_options,
    dtype_options,
    examples,
    lowering_options,
    model_options,
    op_times_option,
    option,
    planning_options,
    read_lowering,
    read_planning,
    read_target,
    session_options,
    target_options,
)
from spillprof.cli.output import print_result
from spillprof.cli.session import Session
from spillprof.errors import PlanError
from spillprof.report.text import label

MAX_VIOLATIONS = 20


@click.command(
    "verify",
    short_help="Check a plan, and cost it.",
    epilog=examples(
        "spillprof analyze sample_models/unet.onnx --sram 12MB --strategy interval --plan unet.plan.json --no-report",
        "spillprof verify sample_models/unet.onnx unet.plan.json --sram 12MB",
    ),
)
@model_options
@click.argument("plan")
@target_options
@planning_options
@lowering_options
@dtype_options
@op_times_option
@option("--json", "as_json", is_flag=True, help="Violations and costs as JSON.")
@config_options()
@session_options
@click.pass_obj
def command(session: Session, /, model: str, plan: str, **values: Any) -> int:
    """Check PLAN, a JSON file, against MODEL, and cost it on a target.

    Give the options with which the plan was made. The exit code is 0 for a legal plan and 2 for one that breaks a
    rule; each breach is listed.
    """
    from spillprof import pipeline

    target = read_target(values)
    options = pipeline.AnalyzeOptions(lowering=read_lowering(values), planning=read_planning(values))
    plan_json = _read_json(plan)
    check = pipeline.check_plan(read_model(model, values, session), target, options, plan_json)
    if values["as_json"]:
        print_result(json.dumps(_as_json(check), indent=1))
    else:
        print_result(_page(check, label(plan)))
    return 2 if check.violations else 0


def _read_json(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise PlanError("cannot read the plan", where=(f"{path}: {error.strerror or error}",)) from None
    except (ValueError, RecursionError) as error:
        raise PlanError("the plan is no JSON", where=(f"{path}: {error}",)) from None


def _page(check: Any, name: str) -> str:
    from spillprof.report.plan_check import render

    return render(check.violations, check.result, name=name, limit=MAX_VIOLATIONS)


def _as_json(check: Any) -> dict[str, Any]:
    from spillprof.report.plan_check import to_json

    return to_json(check.violations, check.result)
