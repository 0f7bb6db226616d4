"""Sizes the bodies of If, Loop and Scan, and from these their outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spillprof.frontends.onnx.elements import ValueType, held_bytes, same_size, tensor_type, without_contents
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.loops import visit_loop
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import (
    BodyOutcome,
    Session,
    SizeBody,
    SizedBody,
    Types,
    inner_scope,
    output_types,
)
from spillprof.ir.errors import ModelError, ShapeError, UsageError
from spillprof.ir.graph import AttributeValue, TripBasis, Trips


def visit_bodies(node: Node, scope: Scope, session: Session, size: SizeBody) -> BodyOutcome:
    """Sizes the bodies of one operator. ``ModelError`` if it is not If, Loop or Scan."""
    if node.domain == "" and node.op_type == "If":
        return _visit_if(node, scope, session, size)
    if node.domain == "" and node.op_type == "Loop":
        return visit_loop(node, scope, session, size)
    if node.domain == "" and node.op_type == "Scan":
        return _visit_scan(node, scope, session, size)
    hint = "analyse what it runs, such as its decoder, as a model of its own; or export it as If, Loop or Scan"
    raise ModelError(f"bodies of '{node.op_type}' are not supported", where=(place(node),), hint=hint)


def _visit_if(node: Node, scope: Scope, session: Session, size: SizeBody) -> BodyOutcome:
    names = (a.name for a in node.attributes if a.HasField("g"))
    branches = dict(zip(names, node.bodies, strict=False))
    if set(branches) != {"then_branch", "else_branch"} or len(node.inputs) != 1:
        raise ModelError("an If needs a condition and two branches", where=(place(node),))
    for branch in branches.values():
        if len(branch.outputs) < len(node.outputs) or branch.inputs:
            raise ModelError("the branches of an If do not match its outputs", where=(place(node),))
    condition = scope.value_of(node.inputs[0])
    told = session.runs.branch(node.name)
    role = None if told is None else f"{told}_branch"
    is_decided = False
    if condition is not None and condition.size == 1 and not scope.is_bounded(node.inputs[0]):
        known = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
        if role not in (None, known):
            what = f"the condition of the If is constant: only its {known.removesuffix('_branch')} branch runs"
            raise UsageError(what, where=(place(node),), hint=f"drop --branch {node.name}={told}")
        role, is_decided = known, True
        session.tally.note("an If has a constant condition: only the branch that runs is analysed")
    elif role is not None:
        session.tally.note(f"If '{node.name}': the {told} branch is taken, as told")
    if role is not None:
        sized = size(branches[role], Scope(parent=scope), session)
        outcome = _branch_outcome(node, {role: sized}, output_types(sized, branches[role]))
        return replace(outcome, is_decided=is_decided)
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
        return _branch_outcome(node, results, [r.scope.type_of(n) for r in results.values() for n in r.graph.outputs])
    both = [[r.scope.type_of(name) for name in r.graph.outputs] for r in results.values()]
    merged = [_larger(a, b, session) for a, b in zip(*both, strict=False)]
    return _branch_outcome(node, results, merged)


def _branch_outcome(node: Node, branches: Mapping[str, SizedBody], types: Types) -> BodyOutcome:
    results = tuple(branches.values())
    count = len(node.outputs)
    values: list[Array | None] = [None] * count
    is_bounded = any(
        not same_size(r.scope.type_of(n), t) for r in results for n, t in zip(r.graph.outputs, types, strict=False)
    )
    if len(results) == 1:
        only = results[0]
        values = [only.scope.value_of(name) for name in only.graph.outputs[:count]]
        is_bounded = any(only.scope.is_bounded(name) for name in only.graph.outputs)
    return BodyOutcome(
        subgraphs=tuple(r.graph for r in results),
        names=tuple(branches),
        types=types[:count],
        values=values,
        is_bounded=is_bounded,
    )


def _larger(a: ValueType | None, b: ValueType | None, session: Session) -> ValueType | None:
    if a is None or b is None or a == b or not (a.is_sized and b.is_sized):
        return a if b is None or (a is not None and a.is_sized) else b
    if same_size(a, b):
        return without_contents(a)
    session.tally.assume("the branches of an If give different sizes: the larger is taken")
    return without_contents(a if held_bytes(a) >= held_bytes(b) else b)


def _visit_scan(node: Node, scope: Scope, session: Session, size: SizeBody) -> BodyOutcome:
    count = node.settings.get("num_scan_inputs")
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
    in_axes = _axes(node.settings.get("scan_input_axes"), count)
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
    sized = size(body, inner_scope(node, body, inner, scope), session)
    outputs = output_types(sized, body)
    if not all(map(same_size, outputs[:n_states], inner[:n_states])):
        raise ShapeError("a state of a Scan changes its size", where=(place(node),))
    first = types[n_states]
    batch = first.shape[:1] if has_batch and first is not None and first.shape is not None else ()
    out_axes = _axes(node.settings.get("scan_output_axes"), n_scanned)
    final: list[ValueType | None] = list(types[:n_states])
    for known, axis in zip(outputs[n_states:], out_axes, strict=True):
        final.append(_inserted(known, axis, length, batch))
    is_known = length is not None
    rows = first.shape[0] if has_batch and first is not None and first.shape else 1
    return BodyOutcome(
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


def _without(known: ValueType | None, axes: Sequence[int]) -> ValueType | None:
    if known is None or known.shape is None:
        return None
    return tensor_type(known.dtype, tuple(dim for i, dim in enumerate(known.shape) if i not in axes))


def _inserted(
    known: ValueType | None, axis: int, length: int | None, batch: tuple[int | None, ...]
) -> ValueType | None:
    if known is None or known.shape is None:
        return None
    shape = list(known.shape)
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, length)
    return tensor_type(known.dtype, (*batch, *shape))
