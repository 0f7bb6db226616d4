"""How long a search may go on: counted work, so that the same input always gives the same result.

A clock ends a search only where a user sets a time, which then takes the place of the work.
"""

import time

from spillprof.ir.plan import BY_CLOCK, BY_WORK
from spillprof.planning.options import PlanningOptions

OPTION = "--optimize-seconds"
"""What gives a time to strategy ``optimal`` and to the joint choice of what to compute again."""


class Budget:
    """What is left to a search: ``work``, in units of about a microsecond, or ``seconds`` of processor time.

    With neither there is no limit.
    """

    def __init__(self, work: int | None = None, *, seconds: float | None = None) -> None:
        self._left = work if seconds is None else None
        self._seconds = seconds
        self._until_s = None if seconds is None else time.process_time() + seconds
        self._whole: Budget | None = None

    def half(self) -> "Budget":
        """A budget of half of what is left; what it spends is spent here too."""
        seconds = self.seconds_left
        part = Budget(None if self._left is None else self._left // 2, seconds=None if seconds is None else seconds / 2)
        part._whole = self
        return part

    def spend(self, work: int) -> None:
        """Take work off the budget."""
        if self._left is not None:
            self._left -= work
        if self._whole is not None:
            self._whole.spend(work)

    @property
    def seconds_left(self) -> float | None:
        """Until the clock ends the search; None if no clock does."""
        return None if self._until_s is None else max(0.0, self._until_s - time.process_time())

    @property
    def is_spent(self) -> bool:
        """Whether the search has to end."""
        return self.seconds_left == 0.0 if self._left is None else self._left <= 0

    def end(self, option: str) -> str:
        """What is said of a search that this budget ended; ``option`` is what sets a time."""
        if self._seconds is None:
            return f"{BY_WORK} ({option} N searches longer)"
        return f"{BY_CLOCK}, {self._seconds:g} s ({option})"


def search_budget(options: PlanningOptions) -> Budget:
    """Of each search for an optimum: the time that the user gives, else counted work."""
    return Budget(options.optimize_work, seconds=options.optimize_seconds)
