"""Steady state: one inference out of many, where weights cached in SRAM outlive the run."""

from collections.abc import Callable, Mapping

from spillprof.ir.plan import Plan
from spillprof.planning.options import Start
from spillprof.planning.placements import PlacementPolicy
from spillprof.planning.run_facts import SimulationSpec
from spillprof.planning.simulator import Simulation
from spillprof.planning.traffic import count_traffic

_NATURAL_RUNS = 8  # inferences after which the resident set must have repeated


def run_to_steady_state(
    spec: SimulationSpec, placement: Callable[[], PlacementPolicy], at_start: Mapping[int, int] | None = None
) -> tuple[Plan, int]:
    """Simulate inferences until the weights resident at the end, with addresses, equal those at the start.

    Returns the plan of the last inference, and how many victims were evicted in all of them. ``at_start`` is a first
    guess of the resident weights. Without cached weights, or cold, one inference is enough.

    Where the resident set never repeats by itself (many strategies alternate between two), only weights resident at
    both ends are kept until it does. That is tried from the starts of two successive inferences, and the plan that
    spills less wins.
    """
    victims = 0
    if not spec.program.weights_persist or spec.options.start is Start.COLD:
        run = Simulation(spec, placement(), {})
        run.play()
        return run.plan(), run.victims
    starts = [dict(at_start or {})]
    while len(starts) <= _NATURAL_RUNS:
        run = Simulation(spec, placement(), starts[-1])
        run.play()
        victims += run.victims
        if run.kept_weights == starts[-1]:
            return run.plan(), victims
        if run.kept_weights in starts:  # a cycle: its inferences need not be simulated again
            circle = starts[starts.index(run.kept_weights) :]
            starts += [circle[k % len(circle)] for k in range(_NATURAL_RUNS + 1 - len(starts))]
        else:
            starts.append(run.kept_weights)
    held = [_keep_both_ends(spec, placement, start) for start in starts[-2:]]
    victims += sum(evicted for _, evicted in held)
    return min((plan for plan, _ in held), key=lambda plan: count_traffic(spec.program, plan).spill_bytes), victims


def _keep_both_ends(
    spec: SimulationSpec, placement: Callable[[], PlacementPolicy], at_start: Mapping[int, int]
) -> tuple[Plan, int]:
    victims = 0
    while True:
        run = Simulation(spec, placement(), at_start, frozenset(at_start))
        run.play()
        victims += run.victims
        kept = {b: a for b, a in run.kept_weights.items() if at_start[b] == a}
        if kept == at_start:
            return run.plan(), victims
        at_start = kept
