"""Online strategies: the rule that ranks victims when an allocation fails. They differ in nothing else.

A rule returns sort keys, most important first; the buffer with the largest keys is evicted, and among equals the
one that comes first in program order. The keys of a *standing* rule do not change while a buffer waits.
"""

import numpy as np

from spillprof.planning.candidates import Candidates, Column, Rule


def lru(c: Candidates) -> tuple[Column, ...]:
    """Oldest last read or write; ties: larger."""
    return -c.last_use, c.size_bytes


def size(c: Candidates) -> tuple[Column, ...]:
    """Largest size x distance to the next use."""
    return (c.size_bytes * (c.next_use - c.now),)


def belady(c: Candidates) -> tuple[Column, ...]:
    """Furthest next use; ties: clean before dirty, then larger."""
    return c.next_use, -c.dirty, c.size_bytes


def cost(c: Candidates) -> tuple[Column, ...]:
    """Largest min(size, bytes needed) x distance to the next use / cost of the transfers that eviction causes."""
    gain = np.minimum(c.size_bytes, c.need_bytes) * (c.next_use - c.now)
    return (gain / (c.read_cost_s + c.dirty * c.write_cost_s),)


ONLINE_RULES: dict[str, Rule] = {"lru": lru, "size": size, "belady": belady, "cost": cost}
"""Rules by strategy name."""

STANDING = frozenset((lru, belady))
"""Rules that look neither at the step at hand nor at what it needs."""
