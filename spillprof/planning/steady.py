"""Steady state: one inference out of many, where weights cached in SRAM outlive the run."""

from collections.abc import Callable, Mapping

from spillprof.model.plan import Plan
from spillprof.planning.options import Start
from spillprof.planning.placement import Placement
from spillprof.planning.simulator import Run, Setting

_NATURAL_RUNS = 8  # inferences after which the resident set must have repeated by itself


def run_to_steady_state(
    setting: Setting, placement: Callable[[], Placement], at_start: Mapping[int, int] | None = None
) -> Plan:
    """Simulate successive inferences until the weights resident at the start, with addresses, are those at the end.

    Should they never repeat by themselves, only weights resident at both ends are kept over, until that holds.
    ``at_start`` is a first guess of them. Without cached weights, or cold, one run is enough.
    """
    if not setting.program.weights_persist or setting.options.start is Start.COLD:
        return Run(setting, placement(), {}).plan()
    at_start = dict(at_start or {})
    for _ in range(_NATURAL_RUNS):
        run = Run(setting, placement(), at_start)
        plan = run.plan()
        if run.kept_weights == at_start:
            return plan
        at_start = run.kept_weights
    while True:
        run = Run(setting, placement(), at_start, frozenset(at_start))
        plan = run.plan()
        kept = {b: a for b, a in run.kept_weights.items() if at_start[b] == a}
        if kept == at_start:
            return plan
        at_start = kept
