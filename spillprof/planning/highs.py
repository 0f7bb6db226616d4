"""The HiGHS solver, silent and deterministic: one thread, a fixed seed, and limits that count its work.

HiGHS prints a banner on stdout when it is first constructed, before any option can turn that off.
"""

import errno
import os
import sys
from typing import Any

from spillprof.planning.budget import Budget


def quiet_solver() -> Any:
    """A ``highspy.Highs`` on one thread that prints nothing. Imports highspy on first use."""
    if sys.stdout is not None:
        sys.stdout.flush()
    kept = _duplicate(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        import highspy

        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (("output_flag", False), ("threads", 1), ("parallel", "off"), ("random_seed", 0)):
            solver.setOptionValue(name, value)
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)
        if nowhere != 1:
            os.close(nowhere)
    return solver


def solve_integer(solver: Any, entries: int, budget: Budget) -> bool:
    """Solve the integer program of a solver; False if the budget ended it.

    The budget is charged and checked between the solver's linear programs, whose work grows faster than the
    ``entries`` of the matrix.
    """
    work = 50 + entries // 20 + 6 * entries * entries // 10_000_000

    def ask(event: Any) -> None:
        budget.spend(work)
        if budget.is_spent:
            event.data_in.user_interrupt = True

    import highspy

    seconds = budget.seconds_left
    if seconds is not None:
        solver.setOptionValue("time_limit", seconds)
    budget.spend(work)
    solver.cbMipInterrupt += ask
    try:
        solver.run()
    finally:
        solver.cbMipInterrupt -= ask
    stopped = (highspy.HighsModelStatus.kInterrupt, highspy.HighsModelStatus.kTimeLimit)
    return solver.getModelStatus() not in stopped


def _duplicate(number: int) -> int | None:
    """A duplicate of a file descriptor; None if it is closed."""
    try:
        return os.dup(number)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        return None
