"""Measures and judges every case. A model that fails is a finding like any other."""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spillprof import __version__
from spillprof.engine.engine import Engine
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.errors import CapacityError, SpillprofError, UsageError
from spillprof.ir.graph import Bindings, Graph
from spillprof.ir.metric import Budgets
from spillprof.ir.plan import BY_CLOCK
from spillprof.ir.profile import Profile
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.stages import Stage, unheard
from spillprof.ir.target import Target
from spillprof.ir.units import format_size_exact
from spillprof.studies.fingerprint import fingerprint
from spillprof.studies.gate.compare import changes, judge, mismatches, moved
from spillprof.studies.gate.values import (
    BufferRow,
    Entry,
    Failure,
    GateCheck,
    GateReport,
    Location,
    OperatorRow,
    Policy,
    Rules,
    Verdict,
    entry_key,
    figures_of,
)

LONGEST_NAME = 200
VICTIMS_KEPT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCase:
    """One model on one target, to be measured and judged."""

    path: str
    model: str  # its name in the baseline
    target: Target
    options: AnalyzeOptions  # with one strategy
    bindings: Bindings = field(default_factory=Bindings)
    budgets: Budgets = field(default_factory=Budgets)
    location: Location | None = None

    @property
    def key(self) -> str:
        """Its key in the baseline."""
        return entry_key(self.model, self.target.name)


def measure_entry(case: GateCase, graph: Graph, engine: Engine) -> tuple[Entry, str | None]:
    """(entry with every operator of nonzero cost, operator at the peak of live bytes).

    ``CapacityError`` if the strategy finds no plan; else as ``analyze`` raises.
    """
    profile = analyze(graph, case.target, case.options, engine=engine)
    result = profile.results[0]
    if not result.feasible:
        raise CapacityError(
            f"strategy {result.strategy} finds no plan in this memory",
            where=(result.reason or "",),
            hint=f"the smallest SRAM without tiling is {format_size_exact(profile.model.min_sram_bytes)}",
        )
    _check_repeatable(profile)
    entry = Entry(
        config=fingerprint(case.target, profile.config, case.bindings),
        model_sha256=profile.model.fingerprint,
        totals=figures_of(result.totals, profile.model.peak_live_bytes),
        operators=tuple(
            OperatorRow(
                name=stored_name(cost.name),
                op_type=cost.op_type,
                spill_bytes=cost.spill_bytes,
                stall_ns=round(cost.stall_s * 1e9),
                cause=cost.cause,
                victims=tuple(map(stored_name, cost.victims[:VICTIMS_KEPT])),
            )
            for cost in result.operators
        ),
        buffers=tuple(
            BufferRow(
                name=stored_name(cost.name),
                size_bytes=cost.size_bytes,
                spill_bytes=cost.spill_bytes,
                needed_by=_step_name(profile, cost.end),
            )
            for cost in result.buffers
        ),
    )
    return entry, _step_name(profile, profile.model.peak_step)


def _check_repeatable(profile: Profile) -> None:
    """``UsageError`` if a time limit ended a search: its figures are not reproducible."""
    ends = [profile.bounds.search if profile.bounds else "", profile.recompute.search if profile.recompute else ""]
    timed = tuple(end for end in ends if BY_CLOCK in end)
    if timed:
        raise UsageError(
            "the figures depend on the machine: a time limit cut a search off",
            where=timed,
            hint="leave --optimize-seconds out, and the search counts its work; or give it more time",
        )


def stored_name(name: str) -> str:
    """The name, or for a long name its start and a digest."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _step_name(profile: Profile, step: int) -> str | None:
    return stored_name(profile.steps[step].name) if 0 <= step < len(profile.steps) else None


def run_gate(
    cases: Sequence[GateCase],
    baseline: Mapping[str, Entry],
    rules: Rules,
    *,
    shown_baseline: str,
    engine: Engine | None = None,
    policy: Policy = Policy.SUGGEST,
    watched: Sequence[str] | None = None,
    stage: Stage = unheard,
) -> GateReport:
    """Judges the cases, each simulated on ``engine`` (None: a new one). ``stage`` is told which case comes next.

    ``watched``: every ``model@target`` of the project, if all are judged; other entries count as removed.
    """
    checks = []
    engine = engine or Engine()
    for done, case in enumerate(cases):
        stage(done, len(cases), case.key)
        checks.append(_check(case, baseline.get(case.key), rules, engine))
    for key in sorted(set(baseline) - set(watched)) if watched is not None else ():
        model, _, target = key.rpartition("@")
        checks.append(GateCheck(model=model, target=target, verdict=Verdict.REMOVED))
    return GateReport(
        spillprof_version=__version__,
        simulator_revision=SIMULATOR_REVISION,
        baseline=shown_baseline,
        checks=tuple(checks),
        policy=policy,
    )


def accept(report: GateReport, baseline: Mapping[str, Entry]) -> tuple[GateReport, dict[str, Entry]]:
    """The report of an update, and the entries to write.

    Every entry is accepted; with policy RATCHET only new and improved ones.
    """
    entries = dict(baseline)
    accepted = []
    for check in report.checks:
        taken = check.verdict is not Verdict.ERROR
        if report.policy is Policy.RATCHET:
            taken = check.verdict in (Verdict.NEW, Verdict.IMPROVED, Verdict.REMOVED, Verdict.UNCHANGED) or (
                check.verdict is Verdict.OVER_BUDGET and check.key not in baseline
            )
        if taken and check.verdict is Verdict.REMOVED:
            entries.pop(check.key, None)
        elif taken and check.entry is not None:
            entries[check.key] = check.entry
        accepted.append(replace(check, accepted=taken))
    return replace(report, checks=tuple(accepted), updated=True), entries


def _hint(hint: str | None, case: GateCase) -> str | None:
    """The hint of an error; for a model of a configuration file, with keys of the file instead of options."""
    if hint is None or case.location is None or not hint.startswith(_BIND):
        return hint
    try:
        words = shlex.split(hint.removeprefix(_BIND))
    except ValueError:  # a name with quotes in it
        return hint
    bound: dict[str, list[str]] = {}
    for option, text in zip(words[::2], words[1::2], strict=False):
        name, _, size = text.rpartition("=")
        value = size if option == "--dim" else f"[{size.replace('x', ', ')}]"
        bound.setdefault(f"{option.removeprefix('--')}s", []).append(f"{json.dumps(name)} = {value}")
    keys = "; ".join(f"{key} = {{ {', '.join(values)} }}" for key, values in bound.items())
    return f"{_BIND}{keys} in {case.location.file}"


_BIND = "bind it: "


def _check(case: GateCase, before: Entry | None, rules: Rules, engine: Engine) -> GateCheck:
    from spillprof.frontends import read_model

    try:
        graph = read_model(case.path, case.bindings, cache=engine.graphs)
        entry, peak_operator = measure_entry(case, graph, engine)
    except SpillprofError as error:
        failure = Failure(message=error.message, where=error.where, hint=_hint(error.hint, case))
        return GateCheck(
            model=case.model, target=case.target.name, verdict=Verdict.ERROR, failure=failure, location=case.location
        )
    differing = mismatches(entry, before) if before is not None else ()
    comparable = None if differing else before
    found = changes(entry, comparable, case.budgets, rules)
    return GateCheck(
        model=case.model,
        target=case.target.name,
        verdict=judge(found, before, differing),
        changes=found,
        moved=moved(entry, comparable) if comparable is not None else (),
        mismatches=differing,
        model_changed=None if before is None else before.model_sha256 != entry.model_sha256,
        peak_operator=peak_operator,
        entry=entry,
        location=case.location,
    )
