"""The spill bytes of a result by cause, as reports list them."""

from spillprof.ir.result import Result


def why_parts(result: Result) -> tuple[tuple[str, int], ...]:
    """(cause, bytes) in the order of reports, adding up to the spill bytes; by kind where causes were not simulated."""
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
        ("late release", causes.late_release_bytes),
        ("fragmentation", causes.fragmentation_bytes),
    )
