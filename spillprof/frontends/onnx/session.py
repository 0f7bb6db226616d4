"""What one reading of a model shares over all its graphs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spillprof.frontends.onnx.assumed import Assumed
from spillprof.frontends.onnx.body import Body, Node
from spillprof.frontends.onnx.outputs import OutputFinder
from spillprof.frontends.onnx.runs import Runs
from spillprof.frontends.onnx.scope import Scope, Tally
from spillprof.ir.errors import ModelError
from spillprof.ir.graph import Graph

MAX_STEPS = 3_000_000
"""Operators visited in all: bodies of loops may be walked several times."""


MAX_FOLLOWED = 8_192
"""Operators visited in all in loops that are followed trip by trip, each with sizes of its own."""


@dataclass(slots=True)
class Steps:
    """How many operators may still be visited."""

    left: int = MAX_STEPS
    left_to_follow: int = MAX_FOLLOWED
    left_to_try: int = MAX_FOLLOWED

    def spend(self) -> None:
        """Counts one visit. ``ModelError`` when there were too many."""
        self.left -= 1
        if self.left < 0:
            raise ModelError(f"control flow expands to more than {MAX_STEPS:,} operators")

    def may_try(self, count: int) -> bool:
        """Counts so many operators, in loops whose end is sought; whether there may be more of them."""
        self.left_to_try -= max(count, 1)
        return self.left_to_try >= 0

    def follow(self, count: int, where: str) -> None:
        """Counts one trip over so many operators. ``ModelError`` when there were too many."""
        self.left_to_follow -= max(count, 1)
        if self.left_to_follow < 0:
            what = f"loops in which sizes change expand to more than {MAX_FOLLOWED:,} operators"
            raise ModelError(what, where=(where,), hint="export the loops unrolled, or shorter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Memory, counters and bound symbols."""

    symbols: Mapping[str, int]
    finder: OutputFinder = field(default_factory=OutputFinder)
    orders: dict[int, Sequence[int]] = field(default_factory=dict)  # topological order by identity of the body
    spelled_out: dict[int, Sequence[Node]] = field(default_factory=dict)  # by identity of an operator with bodies
    faulty: set[str] = field(default_factory=set)  # operators whose result cannot be
    runs: Runs = field(default_factory=Runs)
    steps: Steps = field(default_factory=Steps)
    tally: Tally = field(default_factory=Tally)
    assumed: Assumed = field(default_factory=Assumed)

    def trial(self) -> "Session":
        """The same, with a tally of its own: for a walk whose result may be thrown away."""
        return replace(self, tally=Tally())


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedBody:
    """A graph with every value sized, and what else is known of the values."""

    graph: Graph
    scope: Scope


SizeBody = Callable[[Body, Scope, Session], SizedBody]
"""The walk over one body, given to what needs to walk bodies inside."""
