"""Unfolding of control flow: the operators that run, in order, as if the model had been written without it.

All later passes see ordinary operators. The bodies of If, Loop and Scan replace the operator: one branch of an If, one
copy of a loop's body for each trip. State passes from trip to trip by name; stacked outputs are collected in one
buffer, slice by slice. No recursion: bodies may be nested to any depth.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from spillprof.ir.graph import Assumption, Graph, Operator, TensorKind, TripBasis
from spillprof.ir.program import ControlFlow
from spillprof.lowering.bodies import UNFOLD_LIMIT, BodyChoice, Choices, assumption_of, choose, fact_of, role_of
from spillprof.lowering.control_step import ControlStep, control_step
from spillprof.lowering.options import Control, LoweringOptions
from spillprof.lowering.unfolded import UnfoldedGraph

_LISTED = 20
_Frame: TypeAlias = Iterator["_Frame"]
"""A body being unfolded: yields the bodies inside of it, which are unfolded before it continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfolded:
    """A graph whose operators have no bodies, and facts of the control flow that it had."""

    graph: Graph
    control_steps: Mapping[str, ControlStep]  # operators that stay one step, by name
    control_flow: tuple[ControlFlow, ...]
    removed_operators: int = 0  # dead control flow


def unfold(graph: Graph, options: LoweringOptions) -> Unfolded:
    """The graph with its control flow unfolded, or kept as one step where options or the limit require it.

    With folding, dead control flow is left out: its decisions would keep it alive in later passes.
    """
    if not any(op.subgraphs for op in graph.operators):
        return Unfolded(graph=graph, control_steps={}, control_flow=())
    unfolder = _Unfolder(graph, choose(graph), options)
    unfolder.run()
    return Unfolded(
        graph=replace(
            graph,
            operators=tuple(unfolder.made.operators),
            tensors=unfolder.made.tensors,
            assumptions=(*graph.assumptions, *_shortened(tuple(unfolder.assumptions.values()))),
        ),
        control_steps=unfolder.control_steps,
        control_flow=tuple(unfolder.facts.values()),
        removed_operators=unfolder.removed_operators,
    )


def _shortened(assumptions: Sequence[Assumption]) -> Iterator[Assumption]:
    """The first assumptions, and the number of the others."""
    yield from assumptions[:_LISTED]
    if len(assumptions) > _LISTED:
        yield Assumption(what="further control flow is decided by the same rules", count=len(assumptions) - _LISTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """One run of a graph: the names of its tensors in the unfolded graph."""

    names: Mapping[str, str] | None  # None: the same
    prefix: str  # of the names made here
    place: int  # position in the file, the same for all trips: weights are shared by it
    is_repeated: bool  # inside of a loop that is unfolded

    def of(self, name: str) -> str:
        """The name in the unfolded graph; "" for an absent operand."""
        return name if self.names is None or not name else self.names[name]


class _Unfolder:
    def __init__(self, graph: Graph, choices: Choices, options: LoweringOptions) -> None:
        self.made = UnfoldedGraph(graph)
        self.control_steps: dict[str, ControlStep] = {}
        self.facts: dict[int, ControlFlow] = {}
        self.removed_operators = 0
        self.assumptions: dict[int, Assumption] = {}
        self._graph = graph
        self._choices = choices
        self._options = options
        self._left = UNFOLD_LIMIT
        self._places: dict[tuple[int, str, str], int] = {}
        self._weights: dict[tuple[int, str], str] = {}

    def run(self) -> None:
        """Unfolds the whole graph."""
        scope = _Scope(names=None, prefix="", place=0, is_repeated=False)
        stack = [self._operators(self._graph, scope)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)

    def _operators(self, body: Graph, scope: _Scope) -> _Frame:
        dead = _dead_control_flow(body) if self._options.fold else frozenset()
        for op in body.operators:
            if not op.subgraphs:
                self._emit(op, scope)
                continue
            if id(op) in dead:
                self.removed_operators += 1
                continue
            choice = self._choices[id(op)]
            unfolds = self._unfolds(op, choice, scope)
            if id(op) not in self.facts:
                self.facts[id(op)] = fact_of(op, choice, scope.prefix, is_unfolded=unfolds)
                if (assumption := assumption_of(op, choice, is_unfolded=unfolds)) is not None:
                    self.assumptions[id(op)] = assumption
            if not unfolds:
                self._emit_step(op, scope)
            elif op.op_type == "If":
                yield from self._if(op, choice, scope)
            elif op.op_type == "Loop":
                yield from self._loop(op, choice, scope)
            else:
                yield from self._scan(op, choice, scope)

    def _unfolds(self, op: Operator, choice: BodyChoice, scope: _Scope) -> bool:
        if self._options.control is Control.STEP or not choice.fits:
            return False
        if op.op_type == "If" or scope.is_repeated:  # the loop around it has counted its steps
            return True
        if choice.total.steps > self._left:
            return False
        self._left -= choice.total.steps
        return True

    def _if(self, op: Operator, choice: BodyChoice, scope: _Scope) -> _Frame:
        body = op.subgraphs[choice.taken[0]]
        role = role_of(op, choice.taken[0])
        if not op.is_decided:
            held = map(scope.of, op.captures)
            self.made.decide(op, scope.prefix + op.name, map(scope.of, op.inputs), (), held)
        pairs = [(inner, scope.of(outer)) for inner, outer in zip(body.outputs, op.outputs, strict=False) if outer]
        inner = self._enter(op, body, scope, role, None, {}, _assigned(body, pairs))
        yield self._operators(body, inner)
        self.made.pass_on((inner.of(name), outer) for name, outer in pairs)

    def _loop(self, op: Operator, choice: BodyChoice, scope: _Scope) -> _Frame:
        limit, going = (*map(scope.of, op.inputs[:2]), "", "")[:2]
        state = [scope.of(name) for name in op.inputs[2:]]
        results = [scope.of(name) for name in op.outputs]
        decides = choice.trips.basis is not TripBasis.KNOWN
        stacks = [""] * max(len(results) - len(state), 0)
        counter = ""
        for trip in range(choice.trips.count):
            body = op.subgraphs[choice.subgraph(trip)]
            prefix = self.made.prefix(scope.prefix, op.name, str(trip))
            going = going or self.made.constant(prefix, "condition", "bool")
            if decides:
                before, counter = counter, self.made.scalar(prefix, "trip", "int64", TensorKind.ACTIVATION)
                self.made.decide(op, prefix.removesuffix("/"), (limit, going, before), (counter,))
            else:
                counter = self.made.constant(prefix, "trip", "int64")
            given = dict(zip(body.inputs, (counter, going, *state), strict=True))
            is_last = trip == choice.trips.count - 1
            kept = [(n, r) for n, r in zip(body.outputs[1:], results[: len(state)], strict=False) if r and is_last]
            inner = self._enter(op, body, scope, "body", prefix, given, _assigned(body, kept))
            yield self._operators(body, inner)
            going, *after = map(inner.of, body.outputs)
            state = after[: len(state)]
            slices = after[len(state) :]
            stacks = self.made.stack(prefix, slices, stacks, results[len(state) :], is_last=is_last)
        if decides and going:
            end = self.made.prefix(scope.prefix, op.name, "end")
            self.made.decide(op, end.removesuffix("/"), (going, counter), ())
        self._finish(op, choice, state, results)

    def _scan(self, op: Operator, choice: BodyChoice, scope: _Scope) -> _Frame:
        count = op.attributes["num_scan_inputs"]
        n_states = len(op.inputs) - (count if isinstance(count, int) else 0)
        state = [scope.of(name) for name in op.inputs[:n_states]]
        results = [scope.of(name) for name in op.outputs]
        stacks = [""] * max(len(results) - n_states, 0)
        axes = op.attributes.get("scan_input_axes", ())
        for trip in range(choice.trips.count):
            body = op.subgraphs[choice.subgraph(trip)]
            prefix = self.made.prefix(scope.prefix, op.name, str(trip))
            slices = [
                self.made.slice_of(prefix, scope.of(source), body.tensors[name], axes, index)
                for index, (source, name) in enumerate(zip(op.inputs[n_states:], body.inputs[n_states:], strict=True))
            ]
            given = dict(zip(body.inputs, (*state, *slices), strict=True))
            is_last = trip == choice.trips.count - 1
            kept = [(n, r) for n, r in zip(body.outputs, results[:n_states], strict=False) if r and is_last]
            inner = self._enter(op, body, scope, "body", prefix, given, _assigned(body, kept))
            yield self._operators(body, inner)
            after = [inner.of(name) for name in body.outputs]
            state = after[:n_states]
            stacks = self.made.stack(prefix, after[n_states:], stacks, results[n_states:], is_last=is_last)
        self._finish(op, choice, state, results)

    def _finish(self, op: Operator, choice: BodyChoice, state: Sequence[str], results: Sequence[str]) -> None:
        """Adds the operator's results that the last trip did not write under their own names."""
        self.made.pass_on(zip(state, results, strict=False))
        if choice.trips.count == 0:
            for result in filter(None, results[len(state) :]):
                self.made.add(f"{op.name}/stack", "ScanAppend", (), result)

    def _enter(
        self,
        op: Operator,
        body: Graph,
        around: _Scope,
        role: str,
        prefix: str | None,
        given: Mapping[str, str],
        assigned: Mapping[str, str],
    ) -> _Scope:
        """The scope of one run: captures refer to outer tensors, tensors of the body get unique names."""
        place = self._places.setdefault((around.place, op.name, role), len(self._places) + 1)
        stem = self.made.prefix(around.prefix, op.name, role) if prefix is None else prefix
        names = {name: around.of(name) for name in body.captures}
        names |= given
        for inner in body.operators:
            for name in filter(None, inner.outputs):
                names[name] = assigned.get(name) or self.made.tensor(stem, body.tensors[name])
        for name, tensor in body.tensors.items():
            if name and name not in names:
                key = (place, name)
                if key not in self._weights:
                    shared = stem if prefix is None else self.made.prefix(around.prefix, op.name, "")
                    self._weights[key] = self.made.tensor(shared, tensor)
                names[name] = self._weights[key]
        return _Scope(names=names, prefix=stem, place=place, is_repeated=around.is_repeated or prefix is not None)

    def _emit(self, op: Operator, scope: _Scope) -> None:
        if scope.names is None:
            self.made.operators.append(op)
            return
        self.made.operators.append(
            replace(
                op,
                name=self.made.name(scope.prefix + op.name),
                inputs=tuple(map(scope.of, op.inputs)),
                outputs=tuple(map(scope.of, op.outputs)),
                captures=(),
            )
        )

    def _emit_step(self, op: Operator, scope: _Scope) -> None:
        step = control_step(op, self._choices)
        name = op.name if scope.names is None else self.made.name(scope.prefix + op.name)
        self.control_steps[name] = replace(step, weights={f"{name}/{w}": n for w, n in step.weights.items()})
        self.made.operators.append(
            replace(
                op,
                name=name,
                inputs=tuple(map(scope.of, op.inputs)),
                outputs=tuple(map(scope.of, op.outputs)),
                captures=tuple(map(scope.of, step.captures)),
                holds=tuple(scope.of(name) for name in op.captures if name not in step.captures),
                subgraphs=(),
                subgraph_names=(),
            )
        )


def _assigned(body: Graph, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Outer names of the outputs that the body writes itself; a tensor that is two outputs keeps the first."""
    wanted: dict[str, str] = {}
    for inner, outer in pairs:
        wanted.setdefault(inner, outer)
    written = {name for op in body.operators for name in op.outputs}
    return {inner: outer for inner, outer in wanted.items() if inner in written}


def _dead_control_flow(body: Graph) -> frozenset[int]:
    """Identities of dead operators with bodies: those that no output depends on."""
    if not body.outputs or not any(op.subgraphs for op in body.operators):
        return frozenset()
    writers = {name: op for op in body.operators for name in op.outputs if name}
    live: set[int] = set()
    ready = [*body.outputs, *(n for op in body.operators if not any(op.outputs) for n in (*op.inputs, *op.captures))]
    while ready:
        op = writers.get(ready.pop())
        if op is not None and id(op) not in live:
            live.add(id(op))
            ready += (*op.inputs, *op.captures)
    return frozenset(id(op) for op in body.operators if op.subgraphs and any(op.outputs) and id(op) not in live)
