"""Walks a graph in topological order and sizes every value in it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spillprof.errors import ShapeError
from spillprof.frontends.onnx.assumed import Evidence, settle
from spillprof.frontends.onnx.attributes import plain_attributes
from spillprof.frontends.onnx.body import Body, Node
from spillprof.frontends.onnx.bounds import upper_bound
from spillprof.frontends.onnx.claims import agree, check_claims, claimed_type, may_be, overrule
from spillprof.frontends.onnx.constants import Array, array_constant
from spillprof.frontends.onnx.contrib import apply_rule, contrib_rule
from spillprof.frontends.onnx.control_flow import visit_bodies
from spillprof.frontends.onnx.elements import ValueType, tensor_type
from spillprof.frontends.onnx.folding import can_fold, fold
from spillprof.frontends.onnx.folding_call import Call
from spillprof.frontends.onnx.inference import MISFIT_HINT, place
from spillprof.frontends.onnx.rule import Case, Standard
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.sequence_map import as_loop, is_sequence_map
from spillprof.frontends.onnx.sequences import LARGEST_TAKEN, sequence_found
from spillprof.frontends.onnx.session import Session, SizedBody
from spillprof.frontends.onnx.sized import finished_graph, is_sized, unsized_error
from spillprof.frontends.onnx.topology import topological_order
from spillprof.model.dtypes import UNSIZED_DTYPES
from spillprof.model.graph import AttributeValue, Graph, Operator, TensorKind, Trips

_LISTED = 8

_ELEMENTWISE_BODIES = frozenset({("ai.onnx.preview", "FlexAttention")})
"""Operators whose bodies work on single elements inside of them: no tensor of a body is ever in memory."""


def size_body(body: Body, scope: Scope, session: Session) -> SizedBody:
    """The graph of a body whose inputs are in ``scope``. ``ShapeError`` lists what stays unknown."""
    order = session.orders.get(id(body))
    if order is None:
        order = session.orders[id(body)] = topological_order(body)
    for name, constant in body.constants.items():
        scope.types[name] = constant.type
        scope.kinds[name] = TensorKind.WEIGHT
        if constant.value is not None:
            scope.values[name] = constant.value
        if constant.is_sparse:
            session.tally.assume("sparse weights are counted as dense")
    check_claims(body, scope, session)
    operators: list[tuple[Operator, ...]] = [()] * len(body.nodes)
    roots: list[tuple[Node, str]] = []
    for index in order:
        written = []
        for node in _spelled_out(body.nodes[index], scope, session):
            session.steps.spend()
            written.append(_sized_operator(node, scope, session, body))
            unknown = [output for output in node.outputs if output and not is_sized(scope, output)]
            if unknown and all(is_sized(scope, name) for name in (*node.inputs, *node.captures) if name):
                roots.extend((node, output) for output in unknown)
        operators[index] = tuple(written)
    if roots:
        raise unsized_error(roots, scope)
    return SizedBody(graph=finished_graph(body, [op for made in operators for op in made], scope, session), scope=scope)


def _spelled_out(node: Node, scope: Scope, session: Session) -> Sequence[Node]:
    """The operators that one is made of: itself, but for a SequenceMap."""
    if not node.bodies or not is_sequence_map(node):
        return (node,)
    if id(node) not in session.spelled_out:
        session.spelled_out[id(node)] = as_loop(node, scope)
    return session.spelled_out[id(node)]


def _sized_operator(node: Node, scope: Scope, session: Session, body: Body) -> Operator:
    """The operator, its outputs and bodies sized as far as can be."""
    if node.bodies and (node.domain, node.op_type) in _ELEMENTWISE_BODIES:
        session.tally.assume(f"the bodies of {node.op_type} change scores one by one: their cost is not counted")
        node = replace(node, bodies=(), attributes=tuple(a for a in node.attributes if not a.HasField("g")))
    settings = plain_attributes(node.attributes)
    subgraphs: tuple[Graph, ...] = ()
    subgraph_names: tuple[str, ...] = ()
    trips: Trips | None = None
    if node.bodies:
        result = visit_bodies(node, settings, scope, session, size_body)
        subgraphs, subgraph_names, trips = result.subgraphs, result.names, result.trips
        is_bounded = result.is_bounded or any(scope.is_bounded(n) for n in (*node.inputs, *node.captures) if n)
        limits = result.types if result.is_bounded else ()
        found = _Found(types=result.types, values=result.values, is_bounded=is_bounded, limits=limits)
        _set_outputs(node, found, scope, session, body)
    else:
        _visit(node, settings, scope, session, body)
    return Operator(
        name=node.name,
        op_type=node.op_type,
        domain=node.domain,
        inputs=node.inputs,
        outputs=node.outputs,
        attributes=settings,
        captures=node.captures,
        subgraphs=subgraphs,
        subgraph_names=subgraph_names,
        trips=trips,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What an operator's outputs are, as far as inference goes; one entry an output."""

    types: Sequence[ValueType | None]
    values: Sequence[Array | None]
    is_bounded: bool = False  # sizes and contents follow from an upper bound
    limits: Sequence[ValueType | None] = ()  # the largest types there can be


def _set_outputs(node: Node, found: _Found, scope: Scope, session: Session, body: Body) -> None:
    """Records types and contents of the outputs; what the user gives for the size of one comes before any bound."""
    for i, (name, known, value) in enumerate(zip(node.outputs, found.types, found.values, strict=True)):
        if not name:
            continue
        claimed = claimed_type(name, node, session, body)
        if name in session.assumed.shapes:
            evidence = Evidence(
                node=node,
                found=known,
                limit=found.limits[i] if found.limits else None,
                is_exact=not found.is_bounded,
                claimed=claimed,
                inputs=[scope.type_of(source) if source else None for source in node.inputs],
            )
            given = settle(name, session.assumed, evidence, session.tally)
            _set_output(name, given, claimed, is_exact=True, scope=scope, session=session)
            value = value if known == given else None
        elif found.limits and not (known is not None and known.is_sized):
            _set_output(name, found.limits[i], claimed, is_exact=False, scope=scope, session=session)
            scope.bounded.add(name)
        else:
            _set_output(name, known, claimed, is_exact=not found.is_bounded, scope=scope, session=session)
            if found.is_bounded or found.limits:
                scope.bounded.add(name)
        if value is not None:
            scope.values[name] = value


def _set_output(
    name: str, found: ValueType | None, claimed: ValueType | None, *, is_exact: bool, scope: Scope, session: Session
) -> None:
    """Records the type of an output; what the file claims fills gaps, and is overruled where it cannot be true."""
    if claimed is not None and not (agree(found, claimed) if is_exact else may_be(found, claimed)):
        overrule(name, found, claimed, session)
    elif claimed is not None and claimed.is_sized and (found is None or not found.is_sized):
        session.tally.assume("a size that cannot be inferred is taken from the file's value_info")
        found = claimed
    scope.types[name] = found


def _visit(node: Node, settings: Mapping[str, AttributeValue], scope: Scope, session: Session, body: Body) -> None:
    """Sizes the outputs of an operator without bodies: evaluated, inferred, by rule, by bound, or from the file."""
    holders = [scope.holder(name) if name else None for name in node.inputs]
    types = [None if own is None else own.types[name] for own, name in zip(holders, node.inputs, strict=True)]
    values = [None if own is None else own.values.get(name) for own, name in zip(holders, node.inputs, strict=True)]
    is_bounded = any(own is not None and name in own.bounded for own, name in zip(holders, node.inputs, strict=True))
    contents = _contents(node, settings, types, values)
    if contents is not None:
        exact = [array_constant(value).type for value in contents]
        _set_outputs(node, _Found(types=exact, values=contents, is_bounded=is_bounded), scope, session, body)
        return
    inferred = _types(node, settings, types, values, session)
    if node.op_type == "Reshape" and node.domain == "" and not is_bounded:
        _check_reshape(node, types[0], inferred[0])
    taken = sequence_found(node, settings, types, values, inferred[0] if inferred else None)
    if taken is not None:
        if taken.is_largest:
            session.tally.assume(LARGEST_TAKEN)
        rest = [None] * (len(node.outputs) - 1)
        is_bounded = is_bounded or taken.is_largest
        found = _Found(types=[taken.type, *rest], values=[taken.value, *rest], is_bounded=is_bounded)
        _set_outputs(node, found, scope, session, body)
        return
    limits: Sequence[ValueType | None] = ()
    if not all(t is not None and t.is_sized for t, name in zip(inferred, node.outputs, strict=True) if name):
        bound = upper_bound(node, types, values, inferred)
        if bound is not None:
            limits = bound.types
            if any(name and name not in session.assumed.shapes for name in node.outputs):
                session.tally.assume(bound.assumption)
    nothing = [None] * len(node.outputs)
    found = _Found(types=inferred, values=nothing, is_bounded=is_bounded, limits=limits)
    _set_outputs(node, found, scope, session, body)


def _check_reshape(node: Node, before: ValueType | None, after: ValueType | None) -> None:
    """``ShapeError`` if a Reshape changes the number of elements, which onnx lets pass."""
    if before is None or after is None or not (before.is_sized and after.is_sized):
        return
    old, new = before.sized_shape, after.sized_shape
    if math.prod(old) != math.prod(new):
        what = f"the shapes do not fit: {list(old)} cannot become {list(new)}"
        raise ShapeError(what, where=(place(node),), hint=MISFIT_HINT)


def _contents(
    node: Node,
    settings: Mapping[str, AttributeValue],
    types: Sequence[ValueType | None],
    values: Sequence[Array | None],
) -> tuple[Array, ...] | None:
    """The outputs' contents, if they follow from what is known."""
    if node.domain != "":
        return None
    if node.op_type in ("Shape", "Size") and len(node.outputs) == 1:
        return _shape_contents(node, settings, types[0] if types else None)
    if not can_fold(node.op_type) or any(
        value is None for value, name in zip(values, node.inputs, strict=True) if name
    ):
        return None
    call = Call(
        op_type=node.op_type,
        version=node.version,
        attributes=settings,
        protos=node.attributes,
        n_outputs=len(node.outputs),
    )
    outputs = fold(call, values)
    return outputs if outputs is not None and len(outputs) == len(node.outputs) else None


def _shape_contents(
    node: Node, settings: Mapping[str, AttributeValue], known: ValueType | None
) -> tuple[Array, ...] | None:
    """What Shape and Size give for a sized input."""
    if known is None or not known.is_sized or known.dtype in UNSIZED_DTYPES - {"string"}:
        return None
    shape = known.sized_shape
    if node.op_type == "Size":
        return (np.array(math.prod(shape), np.int64),)
    start, end = settings.get("start", 0), settings.get("end", len(shape))
    return (np.array(shape[start:end], np.int64),) if isinstance(start, int) and isinstance(end, int) else None


def _types(
    node: Node,
    settings: Mapping[str, AttributeValue],
    types: Sequence[ValueType | None],
    values: Sequence[Array | None],
    session: Session,
) -> Sequence[ValueType | None]:
    """The outputs' types from onnx's rules, and from ours where it has none."""
    rule = contrib_rule(node)
    found: Sequence[ValueType | None] = (None,) * len(node.outputs)
    if rule is None or session.inference.has_schema(node):
        found = session.inference.outputs(node, types, values)
    if rule is None or all(f is not None and f.is_sized for f, name in zip(found, node.outputs, strict=True) if name):
        return found
    verdict = apply_rule(rule, Case(node=node, types=types, settings=settings, values=values))
    ruled: Sequence[ValueType | None] | None
    ruled = _standard_types(node, verdict, types, values, session) if isinstance(verdict, Standard) else verdict
    return [r if f is None or not f.is_sized else f for f, r in zip(found, ruled or found, strict=True)]


def _standard_types(
    node: Node,
    standard: Standard,
    types: Sequence[ValueType | None],
    values: Sequence[Array | None],
    session: Session,
) -> Sequence[ValueType | None]:
    alike = replace(
        node,
        op_type=standard.op_type,
        domain="",
        version=standard.version,
        inputs=tuple(node.inputs[i] for i in standard.inputs),
        outputs=node.outputs[:1],
        attributes=session.inference.known_attributes(standard.op_type, standard.version, node.attributes),
    )
    operands = [types[i] for i in standard.inputs]
    if standard.dtype is not None:
        operands = _as_float(operands)
    found = session.inference.outputs(alike, operands, [values[i] for i in standard.inputs])
    first = found[0]
    if first is not None and standard.dtype is not None:
        first = tensor_type(standard.dtype, first.shape)
    return [first, *[None] * (len(node.outputs) - 1)]


def _as_float(operands: Sequence[ValueType | None]) -> list[ValueType | None]:
    """The operands, those of the first one's type as float: the standard operator may not exist for that type."""
    first = operands[0].dtype if operands and operands[0] is not None else None
    return [t if t is None or t.dtype != first else tensor_type("float32", t.shape) for t in operands]
