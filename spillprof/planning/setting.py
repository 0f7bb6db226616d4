"""What a simulated run is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillprof.ir.program import Program
from spillprof.planning.candidates import Rule
from spillprof.planning.costs import TransferCosts
from spillprof.planning.gaps import Gap
from spillprof.planning.options import PlanningOptions


@dataclass(frozen=True, slots=True)
class OffChip:
    """Why a gap is spent off-chip."""

    forced_by: int  # step
    fragmentation: bool  # only for want of a hole: the bytes would have fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run is given: everything but the weights that are resident at its start."""

    program: Program
    strategy: str  # name that the plan will carry
    rule: Rule
    costs: TransferCosts
    options: PlanningOptions
    off_chip: Mapping[Gap, OffChip]
    moves: Mapping[int, Mapping[int, int]] = field(default_factory=dict)  # step before which -> buffer -> next address
