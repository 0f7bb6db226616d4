"""Plans and certificates as files: ours written; anybody's checked, and plans costed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spillprof.analysis.attribution import charges
from spillprof.analysis.results import against_ideal, result_of
from spillprof.engine.case import Case
from spillprof.engine.simulation import on_machine, planned, prepare, terms_of
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.certificate import Certificate
from spillprof.ir.errors import PlanError
from spillprof.ir.graph import Graph
from spillprof.ir.plan_json import plan_from_json, plan_to_json
from spillprof.ir.result import Result
from spillprof.ir.target import Target
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.timeline import simulate
from spillprof.verify import Violation, verify
from spillprof.verify.certificate import check_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """Whether a plan is legal, and what it costs if it is."""

    violations: tuple[Violation, ...]
    result: Result | None


def plan_file(graph: Graph, target: Target, options: AnalyzeOptions, strategy: str) -> dict[str, Any]:
    """The plan of one strategy as JSON values (see docs/file-formats.md)."""
    fitted = on_machine(prepare(graph, target, options.lowering), target, options.planning).fitted
    plan, _ = planned(fitted, target, strategy, options.planning)
    return plan_to_json(fitted, plan)


def check_plan(graph: Graph, target: Target, options: AnalyzeOptions, plan_json: Mapping[str, Any]) -> PlanCheck:
    """Verify a plan, whoever made it, and cost it. ``PlanError`` if it cannot be read as a plan of this model."""
    machine = on_machine(prepare(graph, target, options.lowering), target, options.planning)
    fitted = machine.fitted
    terms = terms_of(options.planning)
    plan = plan_from_json(fitted, plan_json, inputs_resident=terms.inputs_resident, steady_state=not terms.cold)
    violations = verify(fitted, plan, terms)
    if violations:
        return PlanCheck(violations=violations, result=None)
    case = Case(
        program=machine.program, fitted=fitted, target=target, lowering=options.lowering, planning=options.planning
    )
    ours = plan.strategy if plan.strategy in STRATEGIES else None
    causes = Counterfactuals(case=case, plans=(plan,))
    ladder = causes.ladder(ours, count_traffic(fitted, plan).spill_bytes)
    charged = charges(fitted, plan, options.planning)
    result = result_of(fitted, target, plan, simulate(fitted, plan, target), charged, ladder)
    result = replace(result, order_searched=causes.order_is_searched)
    return PlanCheck(violations=(), result=against_ideal(min(machine.ideal_s, result.latency_s), result))


def check_bound(graph: Graph, target: Target, options: AnalyzeOptions, certificate: Certificate) -> int:
    """The lower bound on spill bytes that a certificate proves. ``PlanError`` if it does not prove what it claims."""
    fitted = on_machine(prepare(graph, target, options.lowering), target, options.planning).fitted
    wrong = check_certificate(fitted, certificate, terms_of(options.planning))
    if wrong:
        hint = "give the options with which it was made; otherwise its bound is not proven"
        raise PlanError("the certificate does not hold", where=wrong, hint=hint)
    return certificate.spill_bytes_lower
