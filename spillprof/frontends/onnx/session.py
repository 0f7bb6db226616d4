"""What one reading of a model shares over all its graphs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spillprof.errors import ModelError
from spillprof.frontends.onnx.assumed import Assumed
from spillprof.frontends.onnx.body import Body
from spillprof.frontends.onnx.inference import NodeInference
from spillprof.frontends.onnx.runs import Runs
from spillprof.frontends.onnx.scope import Scope, Tally
from spillprof.model.graph import Graph

MAX_STEPS = 3_000_000
"""Operators visited in all: bodies of loops may be walked several times."""


@dataclass(slots=True)
class Steps:
    """How many operators may still be visited."""

    left: int = MAX_STEPS

    def spend(self) -> None:
        """Counts one visit. ``ModelError`` when there were too many."""
        self.left -= 1
        if self.left < 0:
            raise ModelError(f"control flow expands to more than {MAX_STEPS:,} operators")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Memory, counters and bound symbols."""

    symbols: Mapping[str, int]
    inference: NodeInference = field(default_factory=NodeInference)
    orders: dict[int, Sequence[int]] = field(default_factory=dict)  # topological order by identity of the body
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
