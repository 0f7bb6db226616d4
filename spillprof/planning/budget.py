"""Search budgets: counted work, so that the same input always gives the same result.

A clock ends a search only where the user sets a time, which replaces the work.
"""

import time

from spillprof.ir.plan import BY_CLOCK, BY_WORK
from spillprof.planning.options import PlanningOptions

OPTION = "--optimize-seconds"
"""The option that gives a time to strategy ``optimal`` and to the joint choice of recomputation."""


class Budget:
    """What a search may still spend: ``work``, in units of about a microsecond, or ``seconds`` of processor time.

    With neither there is no limit.
    """

    def __init__(self, work: int | None = None, *, seconds: float | None = None) -> None:
        self._left = work if seconds is None else None
        self._seconds = seconds
        self._until_s = None if seconds is None else time.process_time() + seconds
        self._whole: Budget | None = None

    def half(self) -> "Budget":
        """A budget of half of what is left; what it spends is charged here too."""
        seconds = self.seconds_left
        part = Budget(None if self._left is None else self._left // 2, seconds=None if seconds is None else seconds / 2)
        part._whole = self
        return part

    def spend(self, work: int) -> None:
        """Charge work to the budget."""
        if self._left is not None:
            self._left -= work
        if self._whole is not None:
            self._whole.spend(work)

    @property
    def seconds_left(self) -> float | None:
        """Processor seconds until the clock ends the search; None without a clock."""
        return None if self._until_s is None else max(0.0, self._until_s - time.process_time())

    @property
    def is_spent(self) -> bool:
        """Whether the search has to end."""
        return self.seconds_left == 0.0 if self._left is None else self._left <= 0

    def end(self, option: str) -> str:
        """How reports say that this budget ended a search; ``option`` is the one that sets a time."""
        if self._seconds is None:
            return f"{BY_WORK} ({option} N searches longer)"
        return f"{BY_CLOCK}, {self._seconds:g} s ({option})"


def search_budget(options: PlanningOptions) -> Budget:
    """The budget of each search for an optimum: the user's time, else counted work."""
    return Budget(options.optimize_work, seconds=options.optimize_seconds)
