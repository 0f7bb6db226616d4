"""Which of several results counts."""

from collections.abc import Sequence

from spillprof.ir.result import Result


def leading(results: Sequence[Result]) -> Result | None:
    """The feasible result with the least spill time (then spill bytes, then as asked for); None if none is feasible.

    The run without a limit (``none``) leads only where nothing else was asked for.
    """
    feasible = [result for result in results if result.feasible]
    candidates = [result for result in feasible if result.strategy != "none"] or feasible
    return min(candidates, key=lambda result: (result.spill_time_s, result.spill_bytes), default=None)
