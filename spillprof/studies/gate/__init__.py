"""Gate: models on targets against absolute budgets and a committed baseline."""

from spillprof.studies.gate.baseline import baseline_text, merged, parse_baseline, read_baseline
from spillprof.studies.gate.lock import locked
from spillprof.studies.gate.run import GateCase, accept, run_gate
from spillprof.studies.gate.values import GateCheck, GateReport, Policy, Rules, Verdict

__all__ = [
    "GateCase",
    "GateCheck",
    "GateReport",
    "Policy",
    "Rules",
    "Verdict",
    "accept",
    "baseline_text",
    "locked",
    "merged",
    "parse_baseline",
    "read_baseline",
    "run_gate",
]
