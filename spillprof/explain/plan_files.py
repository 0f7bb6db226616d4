"""Plan and certificate files: writes plans, and checks and costs those of any planner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spillprof.analysis.attribution import charges
from spillprof.analysis.results import against_ideal, result_of
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run, terms_of
from spillprof.explain.counterfactuals import Counterfactuals
from spillprof.ir.certificate import Certificate
from spillprof.ir.errors import PlanError
from spillprof.ir.plan_json import plan_from_json, plan_to_json
from spillprof.ir.result import Result
from spillprof.ir.tiled import with_modes
from spillprof.planning.strategies import STRATEGIES
from spillprof.planning.traffic import count_traffic
from spillprof.timing.timeline import simulate
from spillprof.verify import Violation, verify
from spillprof.verify.certificate import check_certificate
from spillprof.verify.modes import counted_if_legal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """Whether a plan is legal, and what it costs if it is."""

    violations: tuple[Violation, ...]
    result: Result | None


def plan_file(engine: Engine, run: Run, strategy: str) -> dict[str, Any]:
    """The plan of one strategy as JSON values (see docs/file-formats.md)."""
    played = engine.play(engine.fitted(run), run, strategy)
    return plan_to_json(played.program, played.plan)


def check_plan(engine: Engine, run: Run, plan_json: Mapping[str, Any]) -> PlanCheck:
    """Verify and cost a plan of any planner. ``PlanError`` if it cannot be read as a plan of this model."""
    fitted, terms = engine.fitted(run), terms_of(run.planning)
    plan = plan_from_json(
        fitted,
        plan_json,
        inputs_resident=terms.inputs_resident,
        steady_state=not terms.cold,
        count=counted_if_legal,
    )
    violations = verify(fitted, plan, terms)
    if violations:
        return PlanCheck(violations=violations, result=None)
    tiled = with_modes(fitted, plan.modes)
    strategy = plan.strategy if plan.strategy in STRATEGIES else None
    causes = Counterfactuals(engine=engine, run=run, program=engine.program(run), fitted=fitted, plans=(plan,))
    ladder = causes.ladder(strategy, count_traffic(fitted, plan).spill_bytes)
    charged = charges(tiled, plan, run.planning)
    result = result_of(tiled, run.target, plan, simulate(tiled, plan, run.target), charged, ladder)
    result = replace(result, order_searched=causes.order_is_searched)
    ends_s = engine.infinite(run).timeline.step_end_s.tolist()
    return PlanCheck(violations=(), result=against_ideal(min(engine.ideal_s(run), result.latency_s), result, ends_s))


def check_bound(engine: Engine, run: Run, certificate: Certificate) -> int:
    """The lower bound on spill bytes that a certificate proves. ``PlanError`` if it does not hold."""
    wrong = check_certificate(engine.fitted(run), certificate, terms_of(run.planning))
    if wrong:
        hint = "give the options with which it was made; otherwise its bound is not proven"
        raise PlanError("the certificate does not hold", where=wrong, hint=hint)
    return certificate.spill_bytes_lower
