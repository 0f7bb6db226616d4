"""Counterfactual plans that show why a strategy spills: no fragmentation, prompt release, a better policy or order."""

from dataclasses import dataclass
from functools import cached_property

from spillprof.analysis.causes import FRAGMENTATION, LATE_RELEASE, ORDER, POLICY, Rung, spill_sites
from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.engine.trials import steps_to_judge
from spillprof.ir.errors import CapacityError
from spillprof.ir.plan import Plan
from spillprof.ir.program import Program
from spillprof.lowering.transforms import reordered
from spillprof.planning.bounds.any_order import any_order_bytes
from spillprof.planning.options import Order, Release
from spillprof.planning.placements import PERFECT
from spillprof.planning.strategies import CHEAP_STRATEGIES
from spillprof.planning.traffic import count_traffic

MOST_EXPLAINED_STEPS = 20_000
"""Longer programs are not re-simulated for causes: every rung is a plan of its own."""

MOST_STEPS_TO_ORDER = 1_200
"""If judging one order takes more steps, a better one is searched for only if the options select that."""

MOST_STEPS_IN_ANY_ORDER = 3_000
"""Longer programs get no lower bound over all orders."""

_POLICIES = tuple(name for name in CHEAP_STRATEGIES if name != "lru")  # which looks at neither size nor next use
_NEVER = 1 << 62  # bytes: more than any plan spills


@dataclass(frozen=True, kw_only=True)
class Counterfactuals:
    """What a fitted program would spill under other conditions; each is planned once, when first read."""

    engine: Engine
    run: Run
    program: Program  # not fitted
    fitted: Program
    plans: tuple[Plan, ...]  # of the fitted program: the best policy is at least as good

    def ladder(self, strategy: str | None, spill_bytes: int) -> tuple[Rung, ...] | None:
        """Rungs below the plan of a strategy (None: of another planner, which cannot be run again).

        Empty if nothing is spilled; None if the program is too long to re-simulate.
        """
        if not spill_bytes:
            return ()
        if len(self.fitted.steps) > MOST_EXPLAINED_STEPS:
            return None
        rungs: list[Rung] = []
        if strategy is not None:
            undisturbed = self.run.planned(placement=PERFECT)
            rungs.append(self._simulated(FRAGMENTATION, self.fitted, strategy, undisturbed))
            if self.run.planning.release is not Release.LAST_USE:
                rungs.append(
                    self._simulated(LATE_RELEASE, self.fitted, strategy, undisturbed.planned(release=Release.LAST_USE))
                )
        rungs.append(self.best_policy)
        if self.best_order is not None:
            rungs.append(self.best_order)
        return tuple(rungs)

    @cached_property
    def best_policy(self) -> Rung:
        """The fewest spill bytes known in this order, without fragmentation and with prompt release."""
        known = [_rung(POLICY, self.fitted, plan) for plan in self.plans]
        return min((*known, *self._policies(POLICY, self.fitted)), key=lambda rung: rung.spill_bytes)

    @cached_property
    def best_order(self) -> Rung | None:
        """The fewest spill bytes known in the best order found; None if that is this order."""
        if self.better_order is None:
            return None
        fitted = self.engine.fit(reordered(self.program, self.better_order), self.run)
        return min(self._policies(ORDER, fitted), key=lambda rung: rung.spill_bytes)

    @cached_property
    def better_order(self) -> tuple[int, ...] | None:
        """Permutation of the steps that spills less; None if none was found or searched for."""
        if not self.order_is_searched or self.run.planning.order is not Order.FILE:
            return None
        if self.best_policy.spill_bytes <= (self.unavoidable_bytes or 0):
            return None
        order = self.engine.best_order(self.program, self.run)
        return None if order == tuple(range(len(order))) else order

    @property
    def order_is_searched(self) -> bool:
        """Whether a better order was searched for, here or for the run itself."""
        return self.run.planning.order is not Order.FILE or steps_to_judge(self.program) <= MOST_STEPS_TO_ORDER

    @cached_property
    def unavoidable_bytes(self) -> int | None:
        """Lower bound on spill bytes over all policies and orders, without streamed operands; None if not computed."""
        if len(self.program.steps) > MOST_STEPS_IN_ANY_ORDER:
            return None
        return any_order_bytes(self.fitted, self.run.planning)

    def _policies(self, cause: str, fitted: Program) -> list[Rung]:
        undisturbed = self.run.planned(placement=PERFECT, release=Release.LAST_USE)
        return [self._simulated(cause, fitted, strategy, undisturbed) for strategy in _POLICIES]

    def _simulated(self, cause: str, fitted: Program, strategy: str, run: Run) -> Rung:
        try:
            return _rung(cause, fitted, self.engine.plans(fitted, run, strategy)[0][0])
        except CapacityError:
            return Rung(cause=cause, spill_bytes=_NEVER, spills=frozenset())


def _rung(cause: str, fitted: Program, plan: Plan) -> Rung:
    return Rung(cause=cause, spill_bytes=count_traffic(fitted, plan).spill_bytes, spills=spill_sites(fitted, plan))
