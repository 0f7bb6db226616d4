"""Switches of planning: how a Program becomes a Plan."""

from dataclasses import dataclass
from enum import StrEnum


class Inputs(StrEnum):
    """When graph inputs come on-chip."""

    ON_DEMAND = "on-demand"  # at their first use
    RESIDENT = "resident"  # on-chip from start to end


class WriteBack(StrEnum):
    """What a second eviction of the same buffer costs."""

    ONCE = "once"  # nothing: the DRAM copy is still valid
    ALWAYS = "always"  # another write: runtimes that do not track valid copies


class Release(StrEnum):
    """When a dead buffer's space is freed."""

    LAST_USE = "last-use"
    SCOPE = "scope"  # end of the enclosing scope: the run of steps with the same module path in their names
    END = "end"  # end of the run


class Dma(StrEnum):
    """When transfers are issued."""

    PREFETCH = "prefetch"  # as early as space allows
    DEMAND = "demand"  # at the step that needs them


class Order(StrEnum):
    """In which order the steps run."""

    FILE = "file"  # as the model lists them, made topological where it is not
    MEMORY = "memory"  # the order found that spills least in this memory


class Recomputing(StrEnum):
    """Which buffers are computed again in place of being moved."""

    OFF = "off"  # none: the program is the model's
    RULES = "rules"  # those that are clearly cheaper to compute again, by three rules
    JOINT = "joint"  # chosen together with what is spilled, then by rules


class Start(StrEnum):
    """Which inference is reported where weights are cached."""

    STEADY = "steady"  # one in steady state
    COLD = "cold"  # the first


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningOptions:
    """All switches of planning, with their defaults."""

    placement: str = "best-fit"
    inputs: Inputs = Inputs.ON_DEMAND
    writeback: WriteBack = WriteBack.ONCE
    release: Release = Release.LAST_USE
    dma: Dma = Dma.PREFETCH
    start: Start = Start.STEADY
    order: Order = Order.FILE
    optimize_work: int = 9_000_000  # of a search of strategy "optimal", about microseconds; most end by themselves
    optimize_seconds: float | None = None  # a time in place of the work: then figures may depend on the machine
    recompute: Recomputing = Recomputing.OFF
    recompute_tensor: tuple[str, ...] = ()  # tensors that are computed again whatever that saves
