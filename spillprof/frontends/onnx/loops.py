"""Sizes a Loop: its trips, and the types of its loop-carried values."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from spillprof.frontends.onnx.elements import ValueType, held_bytes, same_size, tensor_type, without_contents
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.node import Body, Node
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.scope import Scope, Tally
from spillprof.frontends.onnx.sequences import of_any_length
from spillprof.frontends.onnx.session import BodyOutcome, Session, SizeBody, inner_scope, output_types
from spillprof.frontends.onnx.trips import trips_of
from spillprof.ir.errors import ModelError, ShapeError
from spillprof.ir.graph import Graph, TripBasis, Trips

MAX_WALKED_TRIPS = 64
"""Limit of trips that are walked one by one, for a body of any length."""

MAX_WALKED_NODES = 4096
"""Limit of operators over all trips for a trip-by-trip walk of a body without nested bodies."""


def visit_loop(node: Node, scope: Scope, session: Session, size: SizeBody) -> BodyOutcome:
    """Sizes a Loop: one body for all trips if no carried size changes, else one body per trip.

    In a walk trip by trip, the body knows the trip number and the contents of small integers in the state.
    """
    if len(node.bodies) != 1:
        raise ModelError("a Loop needs one body", where=(place(node),))
    body = node.bodies[0]
    n_carried = max(len(node.inputs) - 2, 0)
    n_stacked = len(body.outputs) - 1 - n_carried
    if len(body.inputs) != n_carried + 2 or n_stacked < 0 or len(node.outputs) > n_carried + n_stacked:
        raise ModelError("the body of a Loop does not match its inputs and outputs", where=(place(node),))
    loop = _Loop(node=node, body=body, trips=trips_of(node, body, scope, session), n_carried=n_carried)
    run = None if loop.is_told else _until_it_stops(loop, scope, session, size)
    if run is not None:
        loop = replace(loop, trips=Trips(count=run.trips, basis=TripBasis.KNOWN))
    else:
        run = _walk(loop, scope, session, size)
    session.tally.add(run.tally)
    known_trips = None if loop.trips.basis is TripBasis.ASSUMED else loop.trips.count
    never = known_trips == 0
    final = [scope.type_of(name) for name in node.inputs[2:]] if never else run.state
    stacked = [_stacked(t, known_trips) for t in run.slices]
    may_stop = loop.trips.basis is TripBasis.AT_MOST
    if any(node.outputs[n_carried:]) and may_stop:
        session.tally.assume("a Loop may stop early: its outputs are sized for all its trips")
    n_outputs = len(node.outputs)
    values = [*run.values, *[None] * n_stacked] if loop.is_told and not never else [None] * n_outputs
    return BodyOutcome(
        subgraphs=run.graphs,
        names=("body",) * len(run.graphs),
        types=[*final, *stacked][:n_outputs],
        values=values[:n_outputs],
        is_bounded=may_stop and (any(node.outputs[n_carried:]) or len(run.graphs) > 1),
        trips=loop.trips,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    node: Node
    body: Body
    trips: Trips
    n_carried: int

    @property
    def count(self) -> int | None:
        """The trip count, None if unknown."""
        return None if self.trips.basis is TripBasis.ASSUMED else self.trips.count

    @property
    def is_plain(self) -> bool:
        """Whether the body has no nested bodies."""
        return not any(node.bodies for node in self.body.nodes)

    @property
    def is_told(self) -> bool:
        """Whether the model or the user gives an exact trip count."""
        return self.trips.basis in (TripBasis.KNOWN, TripBasis.GIVEN)

    @property
    def walkable_trips(self) -> int:
        """Limit of trips that are walked one by one."""
        if not self.is_plain:
            return MAX_WALKED_TRIPS
        return max(MAX_WALKED_TRIPS, MAX_WALKED_NODES // max(len(self.body.nodes), 1))

    @property
    def is_short(self) -> bool:
        """Whether a walk trip by trip is cheap."""
        is_few = self.count is not None and self.count * len(self.body.nodes) <= MAX_WALKED_NODES
        return self.is_plain and is_few


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Result of a walk over the body."""

    graphs: tuple[Graph, ...]  # one for all trips, or one per trip
    state: Sequence[ValueType | None]  # after the last trip
    slices: Sequence[ValueType | None]  # what each trip adds to the scan outputs
    values: Sequence[Array | None]  # contents of the state after the last trip
    goes_on: bool | None  # the condition after the last trip; None: unknown
    tally: Tally
    trips: int = 1  # walked


def _walk(loop: _Loop, scope: Scope, session: Session, size: SizeBody) -> _Run:
    """One body for all trips if sizes allow, else trip by trip, else with sequences of unknown members."""
    start, first_values = _start(loop, scope)
    may_walk = loop.count is not None and 0 < loop.count <= loop.walkable_trips
    try:
        once = _one_trip(loop, start, scope, session, size)
    except ShapeError:
        if not may_walk:
            raise
        return _trip_by_trip(loop, start, first_values, scope, session, size)
    is_stable = all(map(same_size, once.state, start)) or loop.count in (0, 1)
    knows_more = loop.is_short and (once.tally.assumptions or any(v is not None for v in first_values))
    if is_stable and not (may_walk and knows_more):
        return once
    if may_walk:
        return _trip_by_trip(loop, start, first_values, scope, session, size)
    for open_state, is_fixed in _with_open_sequences(start, once.state):
        again = _one_trip(loop, open_state, scope, session, size)
        if all(map(is_fixed, again.state, open_state)):
            return again
    known = f"{loop.count:,} times" if loop.count is not None else "an unknown number of times"
    raise ShapeError(
        f"a value that a Loop carries changes its size, and the Loop runs {known}",
        where=(place(loop.node),),
        hint=_growth_hint(loop),
    )


def _growth_hint(loop: _Loop) -> str:
    if loop.trips.basis in (TripBasis.KNOWN, TripBasis.GIVEN):
        return f"up to {loop.walkable_trips} trips are followed one by one: export the loop unrolled, or shorter"
    return f"--trips {loop.node.name}=N says how often, up to {loop.walkable_trips}; or export the loop unrolled"


def _one_trip(
    loop: _Loop,
    state: Sequence[ValueType | None],
    scope: Scope,
    session: Session,
    size: SizeBody,
    known: Iterable[tuple[str, Array | None]] = (),
) -> _Run:
    """Walks the body once; ``known``: contents of its inputs."""
    trial = session.trial()
    fixed = [tensor_type("int64", ()), tensor_type("bool", ())]
    inner = inner_scope(loop.node, loop.body, [*fixed, *state], scope)
    inner.values.update((name, value) for name, value in known if value is not None)
    sized = size(loop.body, inner, trial)
    outputs = output_types(sized, loop.body)[1:]
    carried = loop.body.outputs[1 : 1 + loop.n_carried]
    return _Run(
        graphs=(sized.graph,),
        state=[without_contents(t) for t in outputs[: loop.n_carried]],
        slices=outputs[loop.n_carried :],
        values=[sized.scope.value_of(name) for name in carried],
        goes_on=_truth(sized.scope, loop.body.outputs[0]),
        tally=trial.tally,
    )


def _truth(scope: Scope, name: str) -> bool | None:
    value = scope.value_of(name) if name else None
    if value is None or value.size != 1 or scope.is_bounded(name):
        return None
    return bool(value.reshape(-1)[0])


def _trip_by_trip(
    loop: _Loop,
    state: Sequence[ValueType | None],
    values: Sequence[Array | None],
    scope: Scope,
    session: Session,
    size: SizeBody,
) -> _Run:
    """Walks every trip, with its number known."""
    runs = []
    for run in islice(_trips_in_turn(loop, state, values, scope, session, size), loop.count):
        session.steps.follow(len(loop.body.nodes), place(loop.node))
        runs.append(run)
    return _joined(runs)


def _until_it_stops(loop: _Loop, scope: Scope, session: Session, size: SizeBody) -> _Run | None:
    """Walks trips until the body's condition is false; None if the condition cannot be computed.

    Gives up when the budget for this search, of all loops together, is spent.
    """
    inputs = loop.node.inputs
    if len(inputs) < 2 or not inputs[1] or _truth(scope, inputs[1]) is None:
        return None
    if any(scope.is_bounded(name) for name in (*inputs, *loop.node.captures) if name):
        return None
    limit = loop.walkable_trips if loop.count is None else min(loop.count, loop.walkable_trips)
    state, values = _start(loop, scope)
    runs: list[_Run] = []
    left = session.steps.left
    try:
        for run in islice(_trips_in_turn(loop, state, values, scope, session, size), limit):
            runs.append(run)
            left, visited = session.steps.left, left - session.steps.left
            if run.goes_on is None or not session.steps.may_try(visited):
                return None
            if not run.goes_on or len(runs) == loop.count:
                return _joined(runs)
    except ShapeError:
        return None
    return None


def _start(loop: _Loop, scope: Scope) -> tuple[list[ValueType | None], list[Array | None]]:
    """Types and contents of the state before the first trip."""
    names = loop.node.inputs[2:]
    return [without_contents(scope.type_of(n)) for n in names], [scope.value_of(n) if n else None for n in names]


def _trips_in_turn(
    loop: _Loop,
    state: Sequence[ValueType | None],
    values: Sequence[Array | None],
    scope: Scope,
    session: Session,
    size: SizeBody,
) -> Iterator[_Run]:
    """Walks one trip after the other, without end."""
    names = [name for name, _ in loop.body.inputs]
    for trip in count():
        known = zip((names[0], *names[2:]), (np.array(trip, np.int64), *values), strict=True)
        run = _one_trip(loop, state, scope, session, size, known)
        yield run
        state, values = run.state, run.values


def _joined(runs: Sequence[_Run]) -> _Run:
    """Joins all trips; equal bodies are kept once."""
    tally = Tally()
    for run in runs:
        tally.cover(run.tally)
    graphs = [run.graphs[0] for run in runs]
    is_same = all(graph == graphs[0] for graph in graphs[1:])
    return replace(
        runs[-1],
        graphs=(graphs[0],) if is_same else tuple(graphs),
        slices=[_largest(slices) for slices in zip(*(run.slices for run in runs), strict=True)],
        tally=tally,
        trips=len(runs),
    )


def _largest(found: Sequence[ValueType | None]) -> ValueType | None:
    sized = [t for t in found if t is not None and t.is_sized]
    return max(sized, key=held_bytes) if len(sized) == len(found) else found[0]


_State = Sequence[ValueType | None]


def _with_open_sequences(
    start: _State, after: _State
) -> Iterator[tuple[_State, Callable[[ValueType | None, ValueType | None], bool]]]:
    """States with sequences of open length to try, each with the test that one trip keeps it.

    First, sequences keep the member type after one trip; then, the declared type alone.
    """
    if not any(t is not None and t.members is not None for t in start):
        return
    if all(map(_covers, after, start)):
        pairs = zip(after, start, strict=True)
        yield [of_any_length(a) if b is not None and b.members is not None else b for a, b in pairs], _is_same
    yield [_open(t) for t in start], _is_alike


def _covers(after: ValueType | None, before: ValueType | None) -> bool:
    """Whether a sequence has, after a trip, all kinds of members that it had before."""
    if before is None or not before.members:
        return True
    return after is not None and after.members is not None and set(before.members) <= set(after.members)


def _open(known: ValueType | None) -> ValueType | None:
    return known if known is None or known.members is None else known._replace(members=None)


def _is_alike(after: ValueType | None, before: ValueType | None) -> bool:
    """Whether two values have one type and shape, members of sequences aside."""
    if after is None or before is None:
        return after is before
    return (after.dtype, after.shape) == (before.dtype, before.shape)


def _is_same(after: ValueType | None, before: ValueType | None) -> bool:
    """As ``_is_alike``, and sequences have one declared member type."""
    if not _is_alike(after, before):
        return False
    return before is None or after is None or before.dtype != "sequence" or after.proto == before.proto


def _stacked(known: ValueType | None, trips: int | None) -> ValueType | None:
    return None if known is None or known.shape is None else tensor_type(known.dtype, (trips, *known.shape))
