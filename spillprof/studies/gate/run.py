"""Every case measured and judged: a model that breaks is a finding like any other."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spillprof import __version__
from spillprof.ir.errors import SpillprofError
from spillprof.ir.lru_cache import LruCache
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.stages import Stage, unheard
from spillprof.studies.gate.compare import changes, mismatches, moved, verdict
from spillprof.studies.gate.measure import Case, measure
from spillprof.studies.gate.values import Check, Entry, Failure, GateReport, Policy, Rules, Verdict

if TYPE_CHECKING:
    from spillprof.frontends.models import GraphCache


def run_gate(
    cases: Sequence[Case],
    baseline: Mapping[str, Entry],
    rules: Rules,
    *,
    shown_baseline: str,
    policy: Policy = Policy.SUGGEST,
    watched: Sequence[str] | None = None,
    stage: Stage = unheard,
) -> GateReport:
    """Judge the cases. ``watched``: every ``model@target`` of the project, if all are looked at; entries of the
    baseline beyond them are removed ones. ``stage`` is told which case is about to be judged."""
    checks = []
    graphs: GraphCache = LruCache(16)  # a model is judged on several targets
    for done, case in enumerate(cases):
        stage(done, len(cases), case.key)
        checks.append(_check(case, baseline.get(case.key), rules, graphs))
    for key in sorted(set(baseline) - set(watched)) if watched is not None else ():
        model, _, target = key.rpartition("@")
        checks.append(Check(model=model, target=target, verdict=Verdict.REMOVED))
    return GateReport(
        spillprof_version=__version__,
        simulator_revision=SIMULATOR_REVISION,
        baseline=shown_baseline,
        checks=tuple(checks),
        policy=policy,
    )


def accept(report: GateReport, baseline: Mapping[str, Entry]) -> tuple[GateReport, dict[str, Entry]]:
    """The report after an update, and the entries to write.

    Every figure is taken over as it is now; with the policy RATCHET only new entries and improved ones.
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


def _hint(hint: str | None, case: Case) -> str | None:
    """The hint of an error; for a model that a configuration lists, options that bind sizes as keys of the file."""
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


def _check(case: Case, before: Entry | None, rules: Rules, graphs: "GraphCache") -> Check:
    from spillprof.frontends import read_model

    try:
        graph = read_model(case.path, case.bindings, cache=graphs)
        entry, peak_operator = measure(case, graph)
    except SpillprofError as error:
        failure = Failure(message=error.message, where=error.where, hint=_hint(error.hint, case))
        return Check(
            model=case.model, target=case.target.name, verdict=Verdict.ERROR, failure=failure, location=case.location
        )
    differing = mismatches(entry, before) if before is not None else ()
    comparable = None if differing else before
    found = changes(entry, comparable, case.budgets, rules)
    return Check(
        model=case.model,
        target=case.target.name,
        verdict=verdict(found, before, differing),
        changes=found,
        moved=moved(entry, comparable) if comparable is not None else (),
        mismatches=differing,
        model_changed=None if before is None else before.model_sha256 != entry.model_sha256,
        peak_operator=peak_operator,
        entry=entry,
        location=case.location,
    )
