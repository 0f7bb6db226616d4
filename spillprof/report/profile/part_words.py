"""Words for the parts of a whole: causes of spilled bytes, parts of the latency, levels of energy."""

from spillprof.ir.result import Breakdown, Energy, Result

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
"""Meanings of kinds, for programs too long to be re-simulated for causes."""

_BECAUSE = {
    "oversized": "because of operators too large for it",
    "order": "because of the order of operators",
    "policy": "because of the policy",
    "late release": "because buffers are freed late",
    "fragmentation": "because of fragmentation",
    "lifetime": "because buffers are freed late",
}

TIME_WORDS = {
    "compute": "a compute unit is at work, whatever else goes on",
    "compulsory": "waits for transfers that infinite SRAM would make too",
    "spill": "waits for write-backs, reloads and streamed operands",
    "sync": "waits for the set-up of transfers",
    "contention": "waits because transfers share the bus",
    "fragmentation": "waits for compaction moves",
    "tail": "last bytes on their way after the last step",
}

ENERGY_WORDS = {"dram_read": "DRAM reads", "dram_write": "DRAM writes", "sram": "SRAM", "mac": "multiply-accumulates"}


def meaning(cause: str, result: Result) -> str:
    """Explains a cause of spilled bytes."""
    if result.causes is None:
        return _KINDS[cause]
    if cause != "capacity":
        return _MEANINGS[cause]
    searched = "in the best order found" if result.order_searched else "in this order; no other was searched"
    return f"left with the best policy known {searched}"


def because(cause: str, result: Result) -> str:
    """Phrases a cause of spilled bytes as a reason."""
    if cause == "capacity":
        in_order = "" if result.order_searched or result.causes is None else " in this order"
        return f"for want of capacity{in_order}"
    return _BECAUSE[cause]


def time_parts(breakdown: Breakdown) -> tuple[tuple[str, float], ...]:
    """Returns (part, seconds); the sum is the latency."""
    return tuple((part, float(getattr(breakdown, f"{part}_s"))) for part in TIME_WORDS)


def energy_parts(energy: Energy) -> tuple[tuple[str, float], ...]:
    """Returns (level in words, joules); the sum is the energy of the run."""
    return tuple((words, float(getattr(energy, f"{part}_j"))) for part, words in ENERGY_WORDS.items())
