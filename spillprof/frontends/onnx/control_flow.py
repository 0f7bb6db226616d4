"""If, Loop and Scan: sizes their bodies, and from those their outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spillprof.errors import ModelError, ShapeError, UsageError
from spillprof.frontends.onnx.body import Body, Node
from spillprof.frontends.onnx.constants import Array
from spillprof.frontends.onnx.elements import ValueType, parse_type, tensor_type
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import Session, SizeBody, SizedBody
from spillprof.model.dtypes import tensor_bytes
from spillprof.model.graph import ASSUMED_TRIPS, AttributeValue, Graph, TensorKind, TripBasis, Trips

MAX_GROWTH_TRIPS = 64
"""Trips that are walked one by one when a loop's values change their size."""

Types = Sequence[ValueType | None]
Settings = Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an operator with bodies gives."""

    subgraphs: tuple[Graph, ...]
    names: tuple[str, ...]  # the attribute of each subgraph
    types: Types  # one per output
    values: Sequence[Array | None]
    is_bounded: bool = False  # sizes are upper bounds
    trips: Trips | None = None


def visit_bodies(node: Node, settings: Settings, scope: Scope, session: Session, size: SizeBody) -> Outcome:
    """Sizes the bodies of one operator. ``ModelError`` if it is not If, Loop or Scan."""
    if node.domain == "" and node.op_type == "If":
        return _visit_if(node, scope, session, size)
    if node.domain == "" and node.op_type == "Loop":
        return _visit_loop(node, scope, session, size)
    if node.domain == "" and node.op_type == "Scan":
        return _visit_scan(node, settings, scope, session, size)
    hint = "export the model without it: as If, Loop, Scan or plain operators"
    raise ModelError(f"bodies of '{node.op_type}' are not supported", where=(place(node),), hint=hint)


def _visit_if(node: Node, scope: Scope, session: Session, size: SizeBody) -> Outcome:
    branches = dict(zip(_body_names(node), node.bodies, strict=False))
    if set(branches) != {"then_branch", "else_branch"} or len(node.inputs) != 1:
        raise ModelError("an If needs a condition and two branches", where=(place(node),))
    for branch in branches.values():
        if len(branch.outputs) < len(node.outputs) or branch.inputs:
            raise ModelError("the branches of an If do not match its outputs", where=(place(node),))
    condition = scope.value_of(node.inputs[0])
    told = session.runs.branch(node.name)
    role = None if told is None else f"{told}_branch"
    if condition is not None and condition.size == 1 and not scope.is_bounded(node.inputs[0]):
        known = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
        if role not in (None, known):
            what = f"the condition of the If is constant: only its {known.removesuffix('_branch')} branch runs"
            raise UsageError(what, where=(place(node),), hint=f"drop --branch {node.name}={told}")
        role = known
        session.tally.note("an If has a constant condition: only the branch that runs is analysed")
    elif role is not None:
        session.tally.note(f"If '{node.name}': the {told} branch is taken, as told")
    if role is not None:
        sized = size(branches[role], Scope(parent=scope), session)
        return _branch_outcome(node, {role: sized}, _output_types(sized, branches[role]))
    results: dict[str, SizedBody] = {}
    impossible: list[ShapeError] = []
    for name, branch in branches.items():
        trial = session.trial()
        try:
            results[name] = size(branch, Scope(parent=scope), trial)
        except ShapeError as error:
            impossible.append(error)
            continue
        session.tally.add(trial.tally)
    if not results:
        raise impossible[0]
    if impossible:
        session.tally.assume("a branch of an If does not fit the shapes it would get: the other is taken")
        return _branch_outcome(node, results, [_known(r, n) for r in results.values() for n in r.graph.outputs])
    both = [[_known(r, name) for name in r.graph.outputs] for r in results.values()]
    merged = [_larger(a, b, session) for a, b in zip(*both, strict=False)]
    return _branch_outcome(node, results, merged)


def _branch_outcome(node: Node, branches: Mapping[str, SizedBody], types: Types) -> Outcome:
    results = tuple(branches.values())
    count = len(node.outputs)
    values: list[Array | None] = [None] * count
    is_bounded = any(_known(r, n) != t for r in results for n, t in zip(r.graph.outputs, types, strict=False))
    if len(results) == 1:
        only = results[0]
        values = [only.scope.value_of(name) for name in only.graph.outputs[:count]]
        is_bounded = any(only.scope.is_bounded(name) for name in only.graph.outputs)
    return Outcome(
        subgraphs=tuple(r.graph for r in results),
        names=tuple(branches),
        types=types[:count],
        values=values,
        is_bounded=is_bounded,
    )


def _larger(a: ValueType | None, b: ValueType | None, session: Session) -> ValueType | None:
    if a is None or b is None or a == b or not (a.is_sized and b.is_sized):
        return a if b is None or (a is not None and a.is_sized) else b
    session.tally.assume("the branches of an If give different sizes: the larger is taken")
    return a if tensor_bytes(a.sized_shape, a.dtype) >= tensor_bytes(b.sized_shape, b.dtype) else b


def _visit_loop(node: Node, scope: Scope, session: Session, size: SizeBody) -> Outcome:
    if len(node.bodies) != 1:
        raise ModelError("a Loop needs one body", where=(place(node),))
    body = node.bodies[0]
    n_carried = max(len(node.inputs) - 2, 0)
    n_stacked = len(body.outputs) - 1 - n_carried
    if len(body.inputs) != n_carried + 2 or n_stacked < 0 or len(node.outputs) > n_carried + n_stacked:
        raise ModelError("the body of a Loop does not match its inputs and outputs", where=(place(node),))
    carried: list[ValueType | None] = [scope.type_of(name) for name in node.inputs[2:]]
    runs = _trips(node, body, scope, session)
    trips = None if runs.basis is TripBasis.ASSUMED else runs.count
    fixed = [tensor_type("int64", ()), tensor_type("bool", ())]
    walked: list[Graph] = []  # one for each trip, until sizes stay as they are
    while True:
        trial = session.trial()
        sized = size(body, _inner_scope(node, body, [*fixed, *carried], scope), trial)
        after = _output_types(sized, body)[1 : 1 + n_carried]
        walked.append(sized.graph)
        if _sizes(after) == _sizes(carried) or (trips is not None and len(walked) >= trips):
            break
        if trips is None or trips > MAX_GROWTH_TRIPS:
            known = f"{trips} times" if trips is not None else "an unknown number of times"
            what = f"a value that a Loop carries changes its size, and the Loop runs {known}"
            hint = f"--trips {node.name}=N says how often, up to {MAX_GROWTH_TRIPS}; or export the loop unrolled"
            raise ShapeError(what, where=(place(node),), hint=hint)
        carried = after
    session.tally.add(trial.tally)
    final = after if trips != 0 else [scope.type_of(name) for name in node.inputs[2:]]
    stacked = [_stacked(t, trips) for t in _output_types(sized, body)[1 + n_carried :]]
    uses_stacked = any(node.outputs[n_carried:])
    may_stop = runs.basis is TripBasis.AT_MOST
    if uses_stacked and may_stop:
        session.tally.assume("a Loop may stop early: its outputs are sized for all its trips")
    count = len(node.outputs)
    return Outcome(
        subgraphs=tuple(walked),
        names=("body",) * len(walked),
        types=[*final, *stacked][:count],
        values=[None] * count,
        is_bounded=uses_stacked and may_stop,
        trips=runs,
    )


def _trips(node: Node, body: Body, scope: Scope, session: Session) -> Trips:
    """How often a Loop runs: as the model says, else as the user does, else assumed."""
    count, is_exact = _trip_count(node, body, scope)
    told = session.runs.trip_count(node.name)
    if told is not None and count is not None and (told > count or (is_exact and told != count)):
        if session.runs.is_meant(node.name):
            raise UsageError(
                f"the Loop runs {'exactly' if is_exact else 'at most'} {count:,} times",
                where=(place(node),),
                hint=f"drop --trips {node.name}={told}",
            )
        told = None  # said of loops in general
    if told is not None and not is_exact:
        session.tally.note(f"Loop '{node.name}': {told:,} trips, as told")
        return Trips(count=told, basis=TripBasis.GIVEN)
    if count is None:
        return Trips(count=ASSUMED_TRIPS, basis=TripBasis.ASSUMED)
    return Trips(count=count, basis=TripBasis.KNOWN if is_exact else TripBasis.AT_MOST)


def _trip_count(node: Node, body: Body, scope: Scope) -> tuple[int | None, bool]:
    """How often a Loop runs at most, and whether exactly so often; None where unknown."""
    limit = scope.value_of(node.inputs[0]) if node.inputs and node.inputs[0] else None
    start = scope.value_of(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
    if start is not None and start.size == 1 and not bool(start.reshape(-1)[0]):
        return 0, True
    if limit is None or limit.size != 1:
        return None, False
    has_condition = len(node.inputs) > 1 and bool(node.inputs[1])
    stops = body.outputs[0]
    always = body.constants.get(stops)
    passes_on = any(
        n.op_type == "Identity" and stops in n.outputs and n.inputs == (body.inputs[1][0],) for n in body.nodes
    )
    goes_on = stops == body.inputs[1][0] or passes_on
    if always is not None and always.value is not None:
        goes_on = bool(always.value.reshape(-1)[0])
    is_exact = (not has_condition or start is not None) and (goes_on or not has_condition)
    return max(int(limit.reshape(-1)[0]), 0), is_exact and not scope.is_bounded(node.inputs[0])


def _visit_scan(node: Node, settings: Settings, scope: Scope, session: Session, size: SizeBody) -> Outcome:
    count = settings.get("num_scan_inputs")
    if len(node.bodies) != 1 or not isinstance(count, int) or count < 1:
        raise ModelError("a Scan needs one body and scan inputs", where=(place(node),))
    body = node.bodies[0]
    has_batch = node.version < 9  # the first version carries a batch axis, and optional lengths as input 0
    names = node.inputs[1:] if has_batch else node.inputs
    n_states = len(names) - count
    n_scanned = len(body.outputs) - n_states
    if n_states < 0 or n_scanned < 0 or len(body.inputs) != len(names) or len(node.outputs) > len(body.outputs):
        raise ModelError("the body of a Scan does not match its inputs and outputs", where=(place(node),))
    lead = 1 if has_batch else 0
    types = [scope.type_of(name) for name in names]
    in_axes = _axes(settings.get("scan_input_axes"), count)
    inner: list[ValueType | None] = [_without(t, [0] if has_batch else []) for t in types[:n_states]]
    lengths: set[int | None] = set()
    for known, axis in zip(types[n_states:], in_axes, strict=True):
        if known is None or known.shape is None or not -len(known.shape) <= axis < len(known.shape) - lead:
            inner.append(None)
            lengths.add(None)
            continue
        axis = axis % len(known.shape) if axis < 0 else axis + lead
        lengths.add(known.shape[axis])
        inner.append(_without(known, [0, axis] if has_batch else [axis]))
    if len(lengths) > 1:
        raise ShapeError("the inputs of a Scan have different lengths", where=(place(node),))
    length = lengths.pop()
    sized = size(body, _inner_scope(node, body, inner, scope), session)
    outputs = _output_types(sized, body)
    if _sizes(outputs[:n_states]) != _sizes(inner[:n_states]):
        raise ShapeError("a state of a Scan changes its size", where=(place(node),))
    first = types[n_states]
    batch = first.shape[:1] if has_batch and first is not None and first.shape is not None else ()
    out_axes = _axes(settings.get("scan_output_axes"), n_scanned)
    final: list[ValueType | None] = list(types[:n_states])
    for known, axis in zip(outputs[n_states:], out_axes, strict=True):
        final.append(_inserted(known, axis, length, batch))
    is_known = length is not None
    rows = first.shape[0] if has_batch and first is not None and first.shape else 1
    return Outcome(
        subgraphs=(sized.graph,),
        names=("body",),
        types=final[: len(node.outputs)],
        values=[None] * len(node.outputs),
        trips=Trips(count=(length or 0) * (rows or 1), basis=TripBasis.KNOWN) if is_known else None,
    )


def _axes(given: AttributeValue | None, count: int) -> tuple[int, ...]:
    axes = tuple(int(axis) for axis in given) if isinstance(given, tuple) and given else (0,) * count
    if len(axes) != count:
        raise ModelError("a Scan has a wrong number of axes")
    return axes


def _inner_scope(node: Node, body: Body, types: Types, scope: Scope) -> Scope:
    """The scope of a loop body: its inputs have the given types, or the declared ones where those are unknown."""
    inner = Scope(parent=scope)
    is_bounded = any(scope.is_bounded(name) for name in node.inputs if name)
    for (name, declared), known in zip(body.inputs, types, strict=True):
        stated = None if declared is None else parse_type(declared.SerializeToString())
        inner.types[name] = known if known is not None else stated
        inner.kinds[name] = TensorKind.INPUT
        if is_bounded:
            inner.bounded.add(name)
    return inner


def _sizes(types: Types) -> list[object]:
    return [None if t is None else (t.dtype, t.shape) for t in types]


def _output_types(sized: SizedBody, body: Body) -> list[ValueType | None]:
    return [_known(sized, name) for name in body.outputs]


def _known(sized: SizedBody, name: str) -> ValueType | None:
    return sized.scope.type_of(name)


def _without(known: ValueType | None, axes: Sequence[int]) -> ValueType | None:
    if known is None or known.shape is None:
        return None
    return tensor_type(known.dtype, tuple(dim for i, dim in enumerate(known.shape) if i not in axes))


def _stacked(known: ValueType | None, trips: int | None) -> ValueType | None:
    return None if known is None or known.shape is None else tensor_type(known.dtype, (trips, *known.shape))


def _inserted(
    known: ValueType | None, axis: int, length: int | None, batch: tuple[int | None, ...]
) -> ValueType | None:
    if known is None or known.shape is None:
        return None
    shape = list(known.shape)
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, length)
    return tensor_type(known.dtype, (*batch, *shape))


def _body_names(node: Node) -> list[str]:
    return [a.name for a in node.attributes if a.HasField("g")]
