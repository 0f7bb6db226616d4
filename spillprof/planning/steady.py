"""Steady state: one inference out of many, where weights cached in SRAM outlive the run."""

from collections.abc import Callable, Mapping

from spillprof.ir.plan import Plan
from spillprof.planning.options import Start
from spillprof.planning.placements import PlacementPolicy
from spillprof.planning.run_facts import SimulationSpec
from spillprof.planning.simulator import Simulation
from spillprof.planning.traffic import count_traffic

_NATURAL_RUNS = 8  # inferences after which the resident set must have repeated by itself


def run_to_steady_state(
    setting: SimulationSpec, placement: Callable[[], PlacementPolicy], at_start: Mapping[int, int] | None = None
) -> tuple[Plan, int]:
    """Simulate successive inferences until the weights resident at the start, with addresses, are those at the end.

    Also tells how often a victim was chosen, in all of them.

    Should they never repeat by themselves (strategies like to alternate), only weights resident at both ends are kept
    over, until that holds; tried from the starts of two successive inferences, and the plan that spills less taken.
    ``at_start`` is a first guess of them. Without cached weights, or cold, one run is enough.
    """
    victims = 0
    if not setting.program.weights_persist or setting.options.start is Start.COLD:
        run = Simulation(setting, placement(), {})
        run.play()
        return run.plan(), run.victims
    starts = [dict(at_start or {})]
    while len(starts) <= _NATURAL_RUNS:
        run = Simulation(setting, placement(), starts[-1])
        run.play()
        victims += run.victims
        if run.kept_weights == starts[-1]:
            return run.plan(), victims
        if run.kept_weights in starts:  # it goes in circles from here on: no need to run through them again
            circle = starts[starts.index(run.kept_weights) :]
            starts += [circle[k % len(circle)] for k in range(_NATURAL_RUNS + 1 - len(starts))]
        else:
            starts.append(run.kept_weights)
    held = [_keep_both_ends(setting, placement, start) for start in starts[-2:]]
    victims += sum(asked for _, asked in held)
    return min((plan for plan, _ in held), key=lambda plan: count_traffic(setting.program, plan).spill_bytes), victims


def _keep_both_ends(
    setting: SimulationSpec, placement: Callable[[], PlacementPolicy], at_start: Mapping[int, int]
) -> tuple[Plan, int]:
    victims = 0
    while True:
        run = Simulation(setting, placement(), at_start, frozenset(at_start))
        run.play()
        victims += run.victims
        kept = {b: a for b, a in run.kept_weights.items() if at_start[b] == a}
        if kept == at_start:
            return run.plan(), victims
        at_start = kept
