"""State of one read that all bodies share, and the result of sizing a body."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spillprof.frontends.onnx.assumed import Assumed
from spillprof.frontends.onnx.elements import ValueType, parse_type
from spillprof.frontends.onnx.node import Body, Node
from spillprof.frontends.onnx.outputs import OutputFinder
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.scope import Scope, Tally
from spillprof.ir.errors import ModelError, UsageError
from spillprof.ir.graph import Graph, TensorKind, Trips
from spillprof.ir.nearest import nearest

_LISTED = 8


@dataclass(slots=True, kw_only=True)
class Runs:
    """Branches and trip counts that the user gives by operator, and the operators visited so far."""

    branches: Mapping[str, str] = field(default_factory=dict)  # "then" or "else"
    trips: Mapping[str, int] = field(default_factory=dict)  # "": all loops whose trip count the model leaves open
    ifs: dict[str, None] = field(default_factory=dict)
    loops: dict[str, None] = field(default_factory=dict)

    def branch(self, name: str) -> str | None:
        """The branch of an If that the user chose."""
        self.ifs[name] = None
        return self.branches.get(name)

    def trip_count(self, name: str) -> int | None:
        """The trips of a Loop that the user gave."""
        self.loops[name] = None
        return self.trips.get(name, self.trips.get(""))

    def is_meant(self, name: str) -> bool:
        """Whether the user named this loop."""
        return name in self.trips

    def check(self) -> None:
        """``UsageError`` for names of no visited operator."""
        for option, op_type, given, met in (
            ("--branch", "If", self.branches, self.ifs),
            ("--trips", "Loop", self.trips, self.loops),
        ):
            for name in given:
                if name and name not in met:
                    raise UsageError(
                        f"no {op_type} is called '{name}'", where=(option,), hint=_hint(op_type, name, met)
                    )


def _hint(op_type: str, name: str, met: Mapping[str, None]) -> str:
    if not met:
        return f"the model runs no {op_type}"
    near = nearest(name, list(met)[:1000])
    listed = ", ".join(f"'{known}'" for known in list(met)[:_LISTED])
    listed += f" and {len(met) - _LISTED:,} more" if len(met) > _LISTED else ""
    return f"did you mean '{near[0]}'? There are {listed}" if near else f"there are {listed}"


MAX_VISITED = 3_000_000
"""Limit of visited operators in all: bodies of loops may be walked several times."""

MAX_FOLLOWED = 8_192
"""Limit of visited operators, in all loops that are walked trip by trip."""


@dataclass(slots=True)
class Steps:
    """Budgets of operator visits."""

    left: int = MAX_VISITED
    left_to_follow: int = MAX_FOLLOWED
    left_to_try: int = MAX_FOLLOWED

    def spend(self) -> None:
        """Counts one visit. ``ModelError`` beyond the limit."""
        self.left -= 1
        if self.left < 0:
            raise ModelError(f"control flow expands to more than {MAX_VISITED:,} operators")

    def may_try(self, count: int) -> bool:
        """Counts ``count`` visits in the search for a loop's last trip; False beyond the limit."""
        self.left_to_try -= max(count, 1)
        return self.left_to_try >= 0

    def follow(self, count: int, where: str) -> None:
        """Counts one trip over ``count`` operators. ``ModelError`` beyond the limit."""
        self.left_to_follow -= max(count, 1)
        if self.left_to_follow < 0:
            what = f"loops in which sizes change expand to more than {MAX_FOLLOWED:,} operators"
            raise ModelError(what, where=(where,), hint="export the loops unrolled, or shorter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Memo tables, counters and bound symbols of one read."""

    symbols: Mapping[str, int]
    finder: OutputFinder = field(default_factory=OutputFinder)
    orders: dict[int, Sequence[int]] = field(default_factory=dict)  # topological order by identity of the body
    spelled_out: dict[int, Sequence[Node]] = field(default_factory=dict)  # by identity of an operator with bodies
    faulty: set[str] = field(default_factory=set)  # operators whose contents are impossible
    runs: Runs = field(default_factory=Runs)
    steps: Steps = field(default_factory=Steps)
    tally: Tally = field(default_factory=Tally)
    assumed: Assumed = field(default_factory=Assumed)

    def trial(self) -> "Session":
        """A copy with its own tally, for a walk whose result may be discarded."""
        return replace(self, tally=Tally())


class SizedBody(NamedTuple):
    """A graph with every value sized, and its scope."""

    graph: Graph
    scope: Scope


SizeBody = Callable[[Body, Scope, Session], SizedBody]
"""Callback that sizes a nested body."""

Types = Sequence[ValueType | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyOutcome:
    """Result of an operator with bodies."""

    subgraphs: tuple[Graph, ...]
    names: tuple[str, ...]  # the attribute of each subgraph
    types: Types  # one per output
    values: Sequence[Array | None]
    is_bounded: bool = False  # sizes are upper bounds
    trips: Trips | None = None
    is_decided: bool = False  # of an If: its condition is constant


def inner_scope(node: Node, body: Body, types: Types, scope: Scope) -> Scope:
    """The scope of a loop body, its inputs typed as given; where that is unknown, as declared."""
    inner = Scope(parent=scope)
    is_bounded = any(scope.is_bounded(name) for name in node.inputs if name)
    for (name, declared), known in zip(body.inputs, types, strict=True):
        stated = None if declared is None else parse_type(declared.SerializeToString())
        inner.types[name] = known if known is not None else stated
        inner.kinds[name] = TensorKind.INPUT
        if is_bounded:
            inner.bounded.add(name)
    return inner


def output_types(sized: SizedBody, body: Body) -> list[ValueType | None]:
    """Types of a body's outputs, as far as known."""
    return [sized.scope.type_of(name) for name in body.outputs]
