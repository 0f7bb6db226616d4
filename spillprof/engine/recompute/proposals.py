"""What both ways of choosing hand over, and what they weigh it with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spillprof.lowering.transforms import Recompute


class Verdict(StrEnum):
    """What the rules say of a gap that a plan spends off-chip."""

    RECOMPUTE = "cheaper to compute again"
    SPILL = "dearer to compute again"  # although its operands are on-chip
    SPILL_CAREFULLY = "dear to compute again, and its operands have left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A buffer that could be computed again before a use, in place of being moved."""

    choice: Recompute
    verdict: Verdict
    saves_s: float  # transfers alone, less the second computing and what its operands cost
    saves_bytes: int  # of the transfers that would not be made


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds that things take alone on a target."""

    step_s: Sequence[float]  # computing of each step
    read_s: Callable[[int], float]  # of a transfer of so many bytes
    write_s: Callable[[int], float]
