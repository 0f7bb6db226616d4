"""Options of planning: how a Program becomes a Plan.

To add one, add a field with ``option_field``: flag, help, configuration key and name in results derive from it.
"""

from dataclasses import dataclass
from enum import StrEnum

from spillprof.ir.option_rows import internal_field, option_field
from spillprof.planning.placements import PLACEMENTS


class Inputs(StrEnum):
    """When graph inputs are loaded."""

    ON_DEMAND = "on-demand"  # at their first use
    RESIDENT = "resident"  # on-chip from start to end


class WriteBack(StrEnum):
    """Whether evicting a buffer again writes it again."""

    ONCE = "once"  # no: the DRAM copy is still valid
    ALWAYS = "always"  # yes: for runtimes that do not track valid copies


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
    """The order in which steps run."""

    FILE = "file"  # as the model lists them, sorted topologically if needed
    MEMORY = "memory"  # the order with the least spilling that a search finds for this memory


class Recomputing(StrEnum):
    """Which buffers are recomputed instead of transferred."""

    OFF = "off"  # none
    RULES = "rules"  # those that are clearly cheaper to recompute, by three rules
    JOINT = "joint"  # chosen together with the spills, then by the rules


class Start(StrEnum):
    """Which inference is reported if weights are cached."""

    STEADY = "steady"  # one in steady state
    COLD = "cold"  # the first


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningOptions:
    """All options of planning, in the order in which the help lists them."""

    placement: str = option_field(
        "best-fit",
        "--placement",
        "How addresses are chosen; see 'spillprof info placements'.",
        metavar="NAME",
        names=lambda: PLACEMENTS,
    )
    order: Order = option_field(
        Order.FILE,
        "--order",
        "file: as the model lists its operators; memory: search for the order that spills least.",
    )
    recompute: Recomputing = option_field(
        Recomputing.OFF,
        "--recompute",
        "rules: run an operator again where that is clearly cheaper than to move its result; joint: choose what is "
        "recomputed and what is spilled together, by an integer program.",
    )
    recompute_tensor: tuple[str, ...] = option_field(
        (),
        "--recompute-tensor",
        "Run a tensor's operator again at the end of the tensor's longest gap, whatever that saves. Repeatable.",
        metavar="TENSOR",
        json_if_changed=True,
    )
    inputs: Inputs = option_field(
        Inputs.ON_DEMAND,
        "--inputs",
        "on-demand: graph inputs come on-chip at their first use; resident: they are there from start to end.",
    )
    dma: Dma = option_field(
        Dma.PREFETCH,
        "--dma",
        "prefetch: transfers start as early as space allows; demand: when needed.",
        json_name="prefetch",
        as_json=lambda dma: dma is Dma.PREFETCH,
    )
    writeback: WriteBack = option_field(
        WriteBack.ONCE,
        "--writeback",
        "once: an eviction writes only what DRAM has no valid copy of; always: every eviction writes.",
    )
    release: Release = option_field(Release.LAST_USE, "--release", "When a dead buffer's space is freed.")
    start: Start = option_field(
        Start.STEADY,
        "--cold",
        "With cached weights, report the first inference, not the steady state.",
        switched_on=Start.COLD,
        json_name="start",
    )
    optimize_work: int = internal_field(
        9_000_000,  # of a search of strategy "optimal", about microseconds; most searches end by themselves
        because="users limit a search by time; the work is fixed, so that results can be repeated",
    )
    optimize_seconds: float | None = option_field(
        None,
        "--optimize-seconds",
        "End each search for the optimum after N seconds of processor time. Default: after a fixed amount of work. A "
        "search that time cuts off may end elsewhere next time: results say so, and a gate refuses them.",
        metavar="N",
        most=86_400.0,
        json_if_changed=True,
    )
