"""Strategies: which buffers leave SRAM when space is short. One row of ``STRATEGY_TABLE`` registers a strategy whole.

An online strategy is a *rule* that ranks the eviction candidates when an allocation fails; online strategies differ in
nothing else. A rule returns sort keys, most significant first: the candidate with the largest keys is the victim, and
ties go to the buffer that comes first in program order. ``Candidates`` lists the columns that a rule may read.

To add one: write its rule, add its row. Option values, help, completion and checks derive from the table. Nothing here
imports numpy, so that the command line can.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from spillprof.ir.errors import UsageError
from spillprof.ir.nearest import nearest

if TYPE_CHECKING:
    from spillprof.ir.program import Program
    from spillprof.ir.target import Target
    from spillprof.planning.candidates import Candidates
    from spillprof.planning.gaps import GapOption
    from spillprof.planning.options import PlanningOptions

Keys = tuple[Any, ...]
"""Sort keys: one array for all candidates each, or one number each for a single candidate."""

EvictionRule = Callable[[Any], Keys]
"""Ranks ``Candidates``; a standing rule also ranks a single ``Candidate``."""

GapChooser = Callable[["Program", "Target", "PlanningOptions"], "list[tuple[GapOption, int]]"]
"""Chooses the gaps to spend off-chip, each with the step that forces it, in program order."""


def lru(c: "Candidates") -> Keys:
    """Oldest last read or write; ties: the larger."""
    return -c.last_use, c.size_bytes


def size(c: "Candidates") -> Keys:
    """Largest size x distance to the next use."""
    return (c.size_bytes * c.distance,)


def belady(c: "Candidates") -> Keys:
    """Furthest next use (Belady 1966); ties: clean before dirty, then the larger."""
    return c.next_use, -c.dirty, c.size_bytes


def cost(c: "Candidates") -> Keys:
    """Largest min(size, bytes needed) x distance to the next use / seconds of the transfers that eviction causes."""
    return (c.useful_bytes * c.distance / (c.read_cost_s + c.dirty * c.write_cost_s),)


def _interval(program: "Program", target: "Target", options: "PlanningOptions") -> "list[tuple[GapOption, int]]":
    from spillprof.planning.interval import choose_gaps

    return choose_gaps(program, target, options)


class StrategyKind(StrEnum):
    """When a strategy decides."""

    IDEAL = "ideal"  # never: SRAM is infinite
    ONLINE = "online"  # when an allocation fails: ``rule`` picks the victim
    OFFLINE = "offline"  # before any address is given: ``choose_gaps`` says what is off-chip, and when
    SEARCH = "search"  # from the plans of all online and offline strategies, improved


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One strategy, with all that the rest of the package knows of it."""

    name: str
    kind: StrategyKind
    help: str  # one line
    rule: EvictionRule | None = None  # of an online strategy
    standing: bool = False  # the rule reads neither ``now``, ``distance``, costs nor the bytes needed: rank once
    choose_gaps: GapChooser | None = None  # of an offline strategy


IDEAL, INTERVAL, OPTIMAL = "none", "interval", "optimal"

STRATEGY_TABLE = (
    Strategy(
        name=IDEAL,
        kind=StrategyKind.IDEAL,
        help="infinite SRAM: the ideal that the others are compared with; always simulated",
    ),
    Strategy(
        name="lru",
        kind=StrategyKind.ONLINE,
        help="evict the buffer whose last read or write is oldest",
        rule=lru,
        standing=True,
    ),
    Strategy(
        name="size",
        kind=StrategyKind.ONLINE,
        help="evict the largest size x distance to next use",
        rule=size,
    ),
    Strategy(
        name="belady",
        kind=StrategyKind.ONLINE,
        help="evict the buffer whose next use is furthest",
        rule=belady,
        standing=True,
    ),
    Strategy(
        name="cost",
        kind=StrategyKind.ONLINE,
        help="evict the largest min(size, bytes needed) x distance to next use / cost of the transfers",
        rule=cost,
    ),
    Strategy(
        name=INTERVAL,
        kind=StrategyKind.OFFLINE,
        help="plan over the whole run: while a step is over capacity, spill its greatest length x size gap",
        choose_gaps=_interval,
    ),
    Strategy(
        name=OPTIMAL,
        kind=StrategyKind.SEARCH,
        help="the best plan that many searches find, never worse than the others, beside a proven bound",
    ),
)
"""Every strategy, in the order in which reports list them."""

CHEAP_STRATEGIES = tuple(s.name for s in STRATEGY_TABLE if s.kind in (StrategyKind.ONLINE, StrategyKind.OFFLINE))
"""Strategies that plan in one pass or a few."""

STRATEGIES = (*CHEAP_STRATEGIES, *(s.name for s in STRATEGY_TABLE if s.kind is StrategyKind.SEARCH))
"""Strategies that spill; ``none`` (infinite SRAM) is always added as the ideal."""

ONLINE_RULES = {s.name: s.rule for s in STRATEGY_TABLE if s.rule is not None}
"""Eviction rules by strategy name."""

STANDING_RULES = frozenset(s.rule for s in STRATEGY_TABLE if s.standing)
"""Rules whose keys do not change while a buffer waits: each candidate is ranked once, in a heap."""


def check_strategy(name: str) -> Strategy:
    """The row of a strategy. ``UsageError`` if there is none of that name."""
    for row in STRATEGY_TABLE:
        if row.name == name:
            return row
    names = (IDEAL, *STRATEGIES)
    near = nearest(name, names)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise UsageError(f"unknown strategy '{name}'", hint=f"{hint}available: {', '.join(names)}")
