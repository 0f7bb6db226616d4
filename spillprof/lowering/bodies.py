"""The bodies of If, Loop and Scan: the cost of each, which of them run, and how reports describe them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spillprof.ir.graph import ASSUMED_TRIPS, Assumption, Graph, Operator, TensorKind, TripBasis, Trips
from spillprof.ir.program import BodyFact, ControlFlow
from spillprof.ir.units import format_size
from spillprof.lowering.operators.table import count_macs, count_vector_ops

UNFOLD_LIMIT = 20_000
"""Most operators that all loops of a model together may unfold to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyCost:
    """One run of a body, or all runs of an operator with bodies."""

    operators: int = 0
    steps: int = 0  # what they unfold to; an operator that is not unfolded is one
    macs: int = 0
    vector_ops: int = 0
    uncosted: int = 0  # operators whose multiplications are not counted
    touched_bytes: int = 0  # payload read and written, weights included
    beside_bytes: int = 0  # largest sum of live activations beside the operands of the operator, payload
    peak_live_bytes: int = 0  # likewise of all that is live for the body: outputs, and captures that are not read later

    def times(self, count: int) -> "BodyCost":
        """The cost of ``count`` runs, one after the other."""
        return replace(
            self,
            operators=self.operators * count,
            steps=self.steps * count,
            macs=self.macs * count,
            vector_ops=self.vector_ops * count,
            uncosted=self.uncosted * count,
            touched_bytes=self.touched_bytes * count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyChoice:
    """How one operator with bodies runs."""

    costs: tuple[BodyCost, ...]  # one run of each subgraph
    taken: tuple[int, ...]  # subgraphs that run; those of a loop in trip order, the last for all further trips
    trips: Trips  # of an If: once
    total: BodyCost
    fits: bool  # this operator by itself can be unfolded

    def subgraph(self, trip: int) -> int:
        """The subgraph that runs in a trip."""
        return self.taken[min(trip, len(self.taken) - 1)]


Choices = Mapping[int, BodyChoice]
"""By identity of the operator."""


def choose(graph: Graph) -> Choices:
    """The choice for every operator with bodies, at any depth, innermost first.

    The branch of an If with the higher peak of live bytes runs; on ties the one with more multiply-accumulates, then
    ``then_branch``. A captured tensor counts for the branch that reads it last, at any depth: it could leave earlier
    if the other branch ran.
    """
    choices: dict[int, BodyChoice] = {}
    order = list(_innermost_first(graph))
    dying = _dying(graph, order)
    for op, around in order:
        costs = tuple(_cost(op, body, choices, dying) for body in op.subgraphs)
        choices[id(op)] = _branch(op, costs) if op.op_type == "If" else _loop(op, around, costs)
    return choices


def _dying(graph: Graph, innermost_first: Sequence[tuple[Operator, Graph]]) -> dict[int, Mapping[str, int]]:
    """By identity of each operator: bytes of the tensors whose live range ends with it as a capture.

    A tensor from further outside dies in a body if it dies in the operator around it. A loop that may run twice keeps
    its captures for the next trip.
    """
    outside: dict[int, Mapping[str, int]] = {id(graph): {}}  # by body: what dies in it of graphs further outside
    positions: dict[int, _Positions] = {}
    found: dict[int, Mapping[str, int]] = {}
    for op, around in reversed(innermost_first):
        if id(around) not in positions:
            positions[id(around)] = _positions(around, outside.get(id(around), {}))
        dies = found[id(op)] = positions[id(around)].dying(op)
        runs_once = op.op_type == "If" or _trips(op, around).count == 1
        for body in op.subgraphs:
            outside[id(body)] = {n: dies[n] for n in body.captures if n in dies} if runs_once else {}
    return found


def _innermost_first(graph: Graph) -> Iterator[tuple[Operator, Graph]]:
    """Every operator with bodies once, after those inside of it, with the graph that contains it."""
    seen: set[int] = set()
    owners: list[tuple[Operator, Graph]] = []
    stack = [iter([(op, graph) for op in graph.operators if op.subgraphs])]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            if owners:
                yield owners.pop()
        elif id(entry[0]) not in seen:
            seen.add(id(entry[0]))
            owners.append(entry)
            stack.append(iter([(op, body) for body in entry[0].subgraphs for op in body.operators if op.subgraphs]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Positions:
    """Positions of the operators of one graph, and of the last reads of its tensors."""

    position: Mapping[int, int]  # by identity of the operator
    last_read: Mapping[str, int]
    die_here: Mapping[str, int]  # bytes of the activations that are dead once this graph has run

    def dying(self, op: Operator) -> dict[str, int]:
        """Bytes of the captured tensors whose last read is in the operator."""
        here, sizes = self.position[id(op)], self.die_here
        return {name: sizes[name] for name in op.captures if name in sizes and self.last_read[name] == here}


def _positions(graph: Graph, outside: Mapping[str, int]) -> _Positions:
    last_read = {name: i for i, op in enumerate(graph.operators) for name in (*op.inputs, *op.captures)}
    own = {*graph.inputs, *(name for op in graph.operators for name in op.outputs if name)}
    sizes = {n: t.nbytes for n in own if (t := graph.tensors[n]).kind is not TensorKind.WEIGHT}
    return _Positions(
        position={id(op): i for i, op in enumerate(graph.operators)},
        last_read=last_read,
        die_here={name: nbytes for name, nbytes in {**outside, **sizes}.items() if name not in set(graph.outputs)},
    )


def _branch(op: Operator, costs: tuple[BodyCost, ...]) -> BodyChoice:
    def weight(index: int) -> tuple[int, int, bool]:
        name = op.subgraph_names[index] if op.subgraph_names else ""
        return costs[index].peak_live_bytes, costs[index].macs, name == "then_branch"

    worse = max(range(len(costs)), key=weight)
    taken = costs[worse]
    total = replace(taken, operators=taken.operators + 1, steps=taken.steps + 1)
    return BodyChoice(costs=costs, taken=(worse,), trips=Trips(count=1, basis=TripBasis.KNOWN), total=total, fits=True)


def _stacked(op: Operator) -> list[str]:
    """Outputs of a Loop that collect a slice from each trip."""
    return [name for name in op.outputs[max(len(op.inputs) - 2, 0) :] if name] if op.op_type == "Loop" else []


def _trips(op: Operator, around: Graph) -> Trips:
    """Trips of a loop, from the model or from the size of what it stacks."""
    trips = op.trips or Trips(count=ASSUMED_TRIPS, basis=TripBasis.ASSUMED)
    stacked = _stacked(op)
    if trips.basis is TripBasis.ASSUMED and stacked and around.tensors[stacked[0]].shape:
        return Trips(count=around.tensors[stacked[0]].shape[0], basis=TripBasis.AT_MOST)
    return trips


def _loop(op: Operator, around: Graph, costs: tuple[BodyCost, ...]) -> BodyChoice:
    trips, stacked = _trips(op, around), _stacked(op)
    if trips.basis is TripBasis.AT_MOST and not stacked and trips.count * max(costs[-1].steps, 1) > UNFOLD_LIMIT:
        trips = Trips(count=ASSUMED_TRIPS, basis=TripBasis.ASSUMED)  # so high a limit is no information
    total = _all_trips(costs, trips.count)
    fits = total.steps <= UNFOLD_LIMIT and _is_regular(op)
    return BodyChoice(
        costs=costs,
        taken=tuple(range(len(costs))),
        trips=trips,
        total=total if fits else replace(total, steps=1),
        fits=fits,
    )


def _all_trips(costs: tuple[BodyCost, ...], count: int) -> BodyCost:
    """The cost of all trips, with one control step each."""
    runs = [*costs[:count], costs[-1].times(max(count - len(costs), 0))]
    return BodyCost(
        operators=sum(c.operators for c in runs) + 1,
        steps=sum(c.steps for c in runs) + count + 1,
        macs=sum(c.macs for c in runs),
        vector_ops=sum(c.vector_ops for c in runs),
        uncosted=sum(c.uncosted for c in costs),
        touched_bytes=sum(c.touched_bytes for c in runs),
        beside_bytes=max((c.beside_bytes for c in costs), default=0),
        peak_live_bytes=max((c.peak_live_bytes for c in costs), default=0),
    )


def _is_regular(op: Operator) -> bool:
    """Whether the inputs of the body match those of the operator; the first version of Scan has a batch input too."""
    extra = 2 - min(len(op.inputs), 2) if op.op_type == "Loop" else 0  # trailing absent inputs are left out
    return all(len(body.inputs) == len(op.inputs) + extra for body in op.subgraphs)


def _cost(owner: Operator, body: Graph, choices: Choices, dying: Mapping[int, Mapping[str, int]]) -> BodyCost:
    """One run of a body. The outputs of an If's branch are those of the If; those of a loop's exist beside them."""
    inner = [choices[id(op)].total for op in body.operators if op.subgraphs]
    plain = [op for op in body.operators if not op.subgraphs]
    counts = [count_macs(op, body) for op in plain]
    return BodyCost(
        operators=len(plain) + sum(c.operators for c in inner),
        steps=len(plain) + sum(c.steps for c in inner),
        macs=sum(c.macs for c in counts) + sum(c.macs for c in inner),
        vector_ops=sum(_vector_ops(op, body) for op in plain) + sum(c.vector_ops for c in inner),
        uncosted=sum(c.uncosted for c in counts) + sum(c.uncosted for c in inner),
        touched_bytes=sum(_touched_bytes(op, body) for op in plain) + sum(c.touched_bytes for c in inner),
        beside_bytes=_peak_beside(body, choices, skip=frozenset(body.outputs if owner.op_type == "If" else ())),
        peak_live_bytes=_peak_live(body, choices, dying, held=dying[id(owner)]),
    )


def _vector_ops(op: Operator, body: Graph) -> int:
    dtype = next((body.tensors[name].dtype for name in (*op.inputs, *op.outputs) if name), "")
    return count_vector_ops(op, body, dtype)


def _touched_bytes(op: Operator, body: Graph) -> int:
    names = (*dict.fromkeys(op.inputs), *op.outputs)
    return sum(body.tensors[name].nbytes for name in names if name)


def _peak_beside(body: Graph, choices: Choices, *, skip: frozenset[str]) -> int:
    """Largest sum of live bytes, in file order, of the activations written here, without those of ``skip``."""
    expiring, sizes = _expiring(body), dict[str, int]()
    live = peak = 0
    for i, op in enumerate(body.operators):
        results = {name: body.tensors[name].nbytes for name in _written(op, body, skip)}
        sizes |= results
        live += sum(results.values())
        inside = choices[id(op)].total.beside_bytes if op.subgraphs else 0
        peak = max(peak, live + inside)
        live -= sum(sizes.get(name, 0) for name in expiring.get(i, ()))
    return peak


def _peak_live(body: Graph, choices: Choices, dying: Mapping[int, Mapping[str, int]], held: Mapping[str, int]) -> int:
    """Largest sum of live bytes, in file order: activations written here, and captures up to their last read.

    ``held``: the captures that die in the owner of this body. Captures of an If inside are live until its condition is
    known; then those that its branch reads last, up to their last read, beside the results.
    """
    expiring = _expiring(body)
    sizes = {name: held[name] for name in body.captures if name in held}
    live, peak = sum(sizes.values()), 0
    for i, op in enumerate(body.operators):
        results = {name: body.tensors[name].nbytes for name in _written(op, body, frozenset())}
        written = sum(results.values())
        sizes |= results
        if op.op_type == "If" and op.subgraphs:
            captured = sum(dying[id(op)].values())
            peak = max(peak, live, live - captured + max(choices[id(op)].total.peak_live_bytes, written))
        else:
            inside = choices[id(op)].total.beside_bytes if op.subgraphs else 0
            peak = max(peak, live + written + inside)
        live += written - sum(sizes.get(name, 0) for name in expiring.get(i, ()))
    return peak


def _expiring(body: Graph) -> dict[int, list[str]]:
    """Names by the operator that uses them last. Outputs are live to the end."""
    last = {name: i for i, op in enumerate(body.operators) for name in (*op.inputs, *op.captures, *op.outputs) if name}
    kept = set(body.outputs)
    expiring: dict[int, list[str]] = {}
    for name, i in last.items():
        if name not in kept:
            expiring.setdefault(i, []).append(name)
    return expiring


def _written(op: Operator, body: Graph, skip: frozenset[str]) -> Iterable[str]:
    return (n for n in op.outputs if n and n not in skip and body.tensors[n].kind is TensorKind.ACTIVATION)


def role_of(op: Operator, index: int) -> str:
    """The role of a subgraph in its operator: "then", "else" or "body"."""
    name = op.subgraph_names[index] if index < len(op.subgraph_names) else ""
    return name.removesuffix("_branch") or f"body {index}"


def fact_of(op: Operator, choice: BodyChoice, prefix: str, *, is_unfolded: bool) -> ControlFlow:
    """Facts of the operator for reports; ``prefix`` is the path of those around it."""
    return ControlFlow(
        name=op.name,
        inside=prefix.removesuffix("/"),
        op_type=op.op_type,
        trips=None if op.op_type == "If" else str(choice.trips.basis),
        is_unfolded=is_unfolded,
        bodies=tuple(
            BodyFact(
                name=role_of(op, index),
                runs=_runs(choice, index),
                operators=cost.operators,
                macs=cost.macs,
                peak_live_bytes=cost.peak_live_bytes,
            )
            for index, cost in enumerate(choice.costs)
        ),
    )


def assumption_of(op: Operator, choice: BodyChoice, *, is_unfolded: bool) -> Assumption | None:
    """The assumption under which the operator is simulated; None if none is needed."""
    if op.op_type == "If":
        words = _branch_words(op, choice) if len(op.subgraphs) > 1 else ""
    else:
        words = _trips_words(op, choice)
        if not is_unfolded and choice.trips.count > 1:
            words += f"{'; ' if words else ''}its {choice.trips.count:,} trips are one step, weights fetched once"
    return Assumption(what=f"{op.op_type} '{op.name}': {words}", count=1) if words else None


def _branch_words(op: Operator, choice: BodyChoice) -> str:
    sizes = [f"{role_of(op, i)} ({_cost_words(cost)})" for i, cost in enumerate(choice.costs)]
    taken = sizes.pop(choice.taken[0])
    return f"{taken} is taken, not {', '.join(sizes)}, which needs no more memory (--branch {op.name}=then or else)"


def _trips_words(op: Operator, choice: BodyChoice) -> str:
    match choice.trips.basis:
        case TripBasis.ASSUMED:
            count = choice.trips.count
            return f"taken to run {count:,} times, for the model does not say how often (--trips {op.name}=N)"
        case TripBasis.AT_MOST:
            count = choice.trips.count
            return f"taken to run all of its {count:,} trips, and may stop earlier (--trips {op.name}=N)"
        case _:
            return ""


def _cost_words(cost: BodyCost) -> str:
    plural = "" if cost.operators == 1 else "s"
    return f"{cost.operators:,} operator{plural}, {cost.macs:,} MACs, {format_size(cost.peak_live_bytes)} live"


def _runs(choice: BodyChoice, index: int) -> int:
    if index not in choice.taken:
        return 0
    if index < choice.taken[-1] or len(choice.taken) > choice.trips.count:
        return int(index < choice.trips.count)
    return choice.trips.count - len(choice.taken) + 1
