"""What a plan is asked to keep to beyond its program."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Switches of planning that decide what is legal. They come from who asks, never from the plan."""

    inputs_resident: bool = False  # graph inputs are on-chip from start to end; else each is loaded
    cold: bool = False  # the first inference: no cached weight is on-chip before it
    rewrites: bool = False  # each eviction of what was computed writes; else only where DRAM has no copy
