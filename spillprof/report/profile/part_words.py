"""Why bytes spilled, in words that are true of the run: whether other orders were searched, and whether runs told."""

from spillprof.ir.result import Result

_MEANINGS = {
    "oversized": "operators too large for the memory, tiled through DRAM",
    "order": "gone in the best order of operators found",
    "policy": "gone under the best plan known for this order",
    "late release": "gone when buffers are freed at their last use",
    "fragmentation": "gone when free bytes need not lie in one piece",
}

_KINDS = {
    "capacity": "more was needed at once than fits",
    "oversized": "operators too large for the memory, tiled through DRAM",
    "lifetime": "dead buffers held the space",
    "fragmentation": "bytes were free, but not in one piece",
}
"""Of a program too long to be simulated again: what stood in the way when it happened."""

_BECAUSE = {
    "oversized": "because of operators too large for it",
    "order": "because of the order of operators",
    "policy": "because of the policy",
    "late release": "because buffers are freed late",
    "fragmentation": "because of fragmentation",
    "lifetime": "because buffers are freed late",
}


def meaning(cause: str, result: Result) -> str:
    """What a cause of spilled bytes means."""
    if result.causes is None:
        return _KINDS[cause]
    if cause != "capacity":
        return _MEANINGS[cause]
    searched = "in the best order found" if result.order_searched else "in this order; no other was searched"
    return f"left with the best policy known {searched}"


def because(cause: str, result: Result) -> str:
    """A cause of spilled bytes as the reason in a sentence."""
    if cause == "capacity":
        in_order = "" if result.order_searched or result.causes is None else " in this order"
        return f"for want of capacity{in_order}"
    return _BECAUSE[cause]
