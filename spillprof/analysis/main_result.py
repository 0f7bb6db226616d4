"""The result that reports show first, and its spill bytes by cause."""

from collections.abc import Sequence

from spillprof.ir.result import Result


def main_result(results: Sequence[Result]) -> Result | None:
    """The feasible result with the least spill time, then spill bytes, then the first given; None if none is.

    The run without a limit (``none``) is chosen only if there is no other.
    """
    feasible = [result for result in results if result.feasible]
    candidates = [result for result in feasible if result.strategy != "none"] or feasible
    return min(candidates, key=lambda result: (result.spill_time_s, result.spill_bytes), default=None)


def bytes_by_cause(result: Result) -> tuple[tuple[str, int], ...]:
    """(cause, bytes) in the order of reports, adding up to the spill bytes; by kind if causes were not simulated."""
    kinds, causes = result.kinds, result.causes
    if kinds is None:
        return ()
    if causes is None:
        names = ("capacity", "oversized", "lifetime", "fragmentation")
        return tuple((name, int(getattr(kinds, f"{name}_bytes"))) for name in names)
    too_large = min(kinds.oversized_bytes, causes.capacity_bytes)
    return (
        ("capacity", causes.capacity_bytes - too_large),
        *((("oversized", too_large),) if too_large else ()),
        *((("order", causes.order_bytes),) if result.order_searched else ()),
        ("policy", causes.policy_bytes),
        *((("tiling", causes.tiling_bytes),) if causes.tiling_bytes else ()),
        ("late release", causes.late_release_bytes),
        ("fragmentation", causes.fragmentation_bytes),
    )
