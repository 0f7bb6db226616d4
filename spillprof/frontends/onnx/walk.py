"""Walks a graph in topological order, sizes every value in it, and finishes the Graph."""

from collections.abc import Sequence
from dataclasses import replace

from spillprof.frontends.onnx.assumed import KnownOutput, assume_advice, settle
from spillprof.frontends.onnx.binding import quoted
from spillprof.frontends.onnx.elements import ValueType, leaves
from spillprof.frontends.onnx.folding import can_fold
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.node import Body, Node
from spillprof.frontends.onnx.outputs import Found, Operands
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.sequences import as_loop, is_sequence_map
from spillprof.frontends.onnx.session import BodyOutcome, Session, SizedBody
from spillprof.frontends.onnx.settings import HINT
from spillprof.frontends.onnx.topology import topological_order
from spillprof.frontends.onnx.value_info import agree, check_claims, claimed_type, lies_between, may_be, overrule
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.errors import ShapeError
from spillprof.ir.graph import Graph, Operator, Tensor, TensorKind

_LISTED = 8


def is_sized(scope: Scope, name: str) -> bool:
    """Whether every dimension of a value is known."""
    known = scope.type_of(name)
    return known is not None and known.is_sized


def unsized_error(roots: Sequence[tuple[Node, str]], scope: Scope) -> ShapeError:
    """The error that lists outputs of unknown size and their producers."""
    lines = [f"{output}, the output of {place(node)}" for node, output in roots[:_LISTED]]
    if len(roots) > _LISTED:
        lines.append(f"and {len(roots) - _LISTED} more")
    types = ", ".join(dict.fromkeys(node.op_type for node, _ in roots[:_LISTED]))
    options = " ".join(quoted(assume_advice(output, scope.type_of(output))) for _, output in roots[:_LISTED])
    hint = (
        f"the size depends on run-time data or on an operator without a rule ({types}); give it: {options}; "
        "or export the model with fixed shapes"
    )
    if loop := next((node for node, _ in roots if node.op_type == "Loop"), None):
        hint = f"--trips {loop.name}=N says how often the loop runs; or {hint}"
    count = "a tensor" if len(roots) == 1 else f"{len(roots)} tensors"
    return ShapeError(f"the size of {count} stays unknown", where=lines, hint=hint)


def finished_graph(body: Body, operators: Sequence[Operator], scope: Scope, session: Session) -> Graph:
    """The Graph of a body, with every tensor that it names."""
    inputs = tuple(name for name, _ in body.inputs if name not in body.constants)
    named = dict.fromkeys(inputs)
    for op in operators:
        for names in (op.inputs, op.captures, op.outputs):
            for name in names:
                if name:
                    named[name] = None
    named.update(dict.fromkeys(body.outputs))
    tensors: dict[str, Tensor] = {}
    unknown = []
    for name in named:
        known = scope.type_of(name)
        if known is None or known.shape is None or None in known.shape:
            unknown.append(name)
            continue
        elements = tuple((held.dtype, held.sized_shape) for held in leaves(known)) if known.members else ()
        tensors[name] = Tensor(
            name=name, dtype=known.dtype, shape=known.sized_shape, kind=scope.kind_of(name), elements=elements
        )
        if known.dtype in UNSIZED_DTYPES:
            _tell_of_size(known, elements, session)
    if unknown:
        options = " ".join(quoted(assume_advice(name, scope.type_of(name))) for name in unknown[:_LISTED])
        raise ShapeError("the size of a tensor stays unknown", where=unknown[:_LISTED], hint=f"give it: {options}")
    return Graph(
        name=body.name,
        operators=tuple(operators),
        tensors=tensors,
        inputs=inputs,
        outputs=body.outputs,
        captures=_body_captures(body, operators),
    )


def _body_captures(body: Body, operators: Sequence[Operator]) -> tuple[str, ...]:
    """Names that a body may read from outside: those in the file, without branches that never run."""
    if not body.free_names:
        return ()
    read = {name for op in operators for name in (*op.inputs, *op.captures)} | set(body.outputs)
    return tuple(name for name in body.free_names if name in read)


def _tell_of_size(known: ValueType, elements: Sequence[tuple[str, tuple[int, ...]]], session: Session) -> None:
    """Counts the assumption about the size of a value that is no plain tensor."""
    if known.members is None:
        session.tally.assume(f"a value of type {known.dtype} is counted as 0 bytes")
    elif unsized := next((dtype for dtype, _ in elements if dtype in UNSIZED_DTYPES), None):
        session.tally.assume(f"a value of type {unsized} is counted as 0 bytes")
    elif elements:
        session.tally.assume(
            f"a value of type {known.dtype} is counted as all that it holds, and copied where it changes"
        )


_ELEMENTWISE_BODIES = frozenset({("ai.onnx.preview", "FlexAttention")})
"""Operators whose bodies process single elements: no tensor of such a body is ever in memory."""


def size_body(body: Body, scope: Scope, session: Session) -> SizedBody:
    """The graph of a body whose inputs are in ``scope``. ``ShapeError`` lists outputs of unknown size."""
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
    operators: list[Sequence[Operator]] = [()] * len(body.nodes)
    roots: list[tuple[Node, str]] = []
    for index in order:
        node = body.nodes[index]
        parts = _spelled_out(node, scope, session) if node.bodies else (node,)
        operators[index] = [_sized_operator(part, scope, session, body, roots) for part in parts]
    if roots:
        raise unsized_error(roots, scope)
    return SizedBody(graph=finished_graph(body, [op for made in operators for op in made], scope, session), scope=scope)


def _spelled_out(node: Node, scope: Scope, session: Session) -> Sequence[Node]:
    """Expands a SequenceMap into a loop; any other node does not change."""
    if not is_sequence_map(node):
        return (node,)
    if id(node) not in session.spelled_out:
        session.spelled_out[id(node)] = as_loop(node, scope)
    return session.spelled_out[id(node)]


def _sized_operator(node: Node, scope: Scope, session: Session, body: Body, roots: list[tuple[Node, str]]) -> Operator:
    """Sizes an operator's outputs and bodies; adds to ``roots`` outputs of unknown size whose inputs are all sized."""
    session.steps.spend()
    if node.bodies and (node.domain, node.op_type) in _ELEMENTWISE_BODIES:
        session.tally.assume(f"the bodies of {node.op_type} change scores one by one: their cost is not counted")
        attributes = tuple(a for a in node.attributes if not a.HasField("g"))
        node = replace(node, bodies=(), kind=replace(node.kind, attributes=attributes))
    if node.bodies:
        operator = _with_bodies(node, scope, session, body)
    else:
        found = session.finder.found(node, _operands(node, scope))
        if found.fault or session.faulty:
            _hand_on_fault(node, found, scope, session)
        _set_outputs(node, found, scope, session, body)
        operator = _operator(node)
    unknown = [output for output in node.outputs if output and not is_sized(scope, output)]
    if unknown and all(is_sized(scope, name) for name in (*node.inputs, *node.captures) if name):
        roots.extend((node, output) for output in unknown)
    return operator


def _hand_on_fault(node: Node, found: Found, scope: Scope, session: Session) -> None:
    """Marks outputs whose contents are impossible. ``ShapeError`` where a size depends on them."""
    fault = (place(node), found.fault) if found.fault else None
    fault = fault or next((f for name in node.inputs if name and (f := scope.fault_of(name))), None)
    if fault is None:
        return
    session.faulty.add(fault[0])
    given = session.assumed.shapes
    for name, known, value in zip(node.outputs, found.types, found.values, strict=True):
        if name and name not in given and not (known is not None and known.is_sized):
            where = (fault[0], f"it decides the size of {name}, the output of {place(node)}")
            raise ShapeError(f"a size follows from {fault[1]}", where=where, hint=HINT)
        if name and value is None and node.domain == "" and can_fold(node.op_type):
            scope.faults[name] = fault


def _operands(node: Node, scope: Scope) -> Operands:
    types: list[ValueType | None] = []
    values: list[Array | None] = []
    is_bounded = False
    for name in node.inputs:
        holder = scope.holder(name) if name else None
        if holder is None:
            types.append(None)
            values.append(None)
            continue
        types.append(holder.types[name])
        values.append(holder.values.get(name))
        is_bounded = is_bounded or name in holder.bounded
    return Operands(types, values, is_bounded)


def _with_bodies(node: Node, scope: Scope, session: Session, body: Body) -> Operator:
    from spillprof.frontends.onnx.control_flow import visit_bodies  # few models have bodies

    result = visit_bodies(node, scope, session, size_body)
    is_bounded = result.is_bounded or any(scope.is_bounded(n) for n in (*node.inputs, *node.captures) if n)
    limits = result.types if result.is_bounded else ()
    found = Found(types=result.types, values=result.values, is_bounded=is_bounded, limits=limits)
    _set_outputs(node, found, scope, session, body)
    return replace(
        _operator(node),
        captures=_captures(node, result),
        subgraphs=result.subgraphs,
        subgraph_names=result.names,
        trips=result.trips,
        is_decided=result.is_decided,
    )


def _captures(node: Node, result: BodyOutcome) -> tuple[str, ...]:
    """Names that the bodies may read from outside; of a body that was not sized, all that it names."""
    if len(result.subgraphs) < len(node.bodies) and not result.is_decided:
        return node.captures
    read = {name for body in result.subgraphs for name in body.captures}
    return tuple(name for name in node.captures if name in read)


def _operator(node: Node) -> Operator:
    return Operator(
        name=node.name,
        op_type=node.op_type,
        domain=node.domain,
        inputs=node.inputs,
        outputs=node.outputs,
        attributes=node.settings,
        captures=node.captures,
    )


def _set_outputs(node: Node, found: Found, scope: Scope, session: Session, body: Body) -> None:
    """Records types and contents of the outputs; a shape from the user takes precedence over a bound."""
    given_shapes = session.assumed.shapes
    rests_on_assumption = False
    for i, (name, known, value) in enumerate(zip(node.outputs, found.types, found.values, strict=True)):
        if not name:
            continue
        claimed = claimed_type(name, node, session, body)
        limit, least = (bounds[i] if bounds else None for bounds in (found.limits, found.least))
        is_open = bool(found.limits) and not (known is not None and known.is_sized)
        if name in given_shapes:
            evidence = KnownOutput(
                node=node,
                found=known,
                limit=limit,
                least=least,
                is_exact=not found.is_bounded,
                claimed=claimed,
                inputs=[scope.type_of(source) if source else None for source in node.inputs],
            )
            given = settle(name, session.assumed, evidence, session.tally)
            _set_output(name, given, claimed, is_exact=True, scope=scope, session=session)
            value = value if known == given else None
        elif is_open and not lies_between(claimed, least, limit):
            _set_output(name, limit, claimed, least=least, is_exact=False, scope=scope, session=session)
            scope.bounded.add(name)
            rests_on_assumption = True
        else:
            _set_output(name, known, claimed, is_exact=not found.is_bounded, scope=scope, session=session)
            if found.is_bounded or (found.limits and not is_open):
                scope.bounded.add(name)
            rests_on_assumption = rests_on_assumption or not found.limits
        if value is not None:
            scope.values[name] = value
    if found.assumption is not None and rests_on_assumption:
        session.tally.assume(found.assumption)


def _set_output(
    name: str,
    found: ValueType | None,
    claimed: ValueType | None,
    *,
    is_exact: bool,
    scope: Scope,
    session: Session,
    least: ValueType | None = None,
) -> None:
    """Records the type of an output; value_info fills gaps, and is overruled where it contradicts inference."""
    if claimed is not None and not (agree(found, claimed) if is_exact else may_be(found, claimed, least)):
        overrule(name, found, claimed, session)
    elif claimed is not None and claimed.is_sized and (found is None or not found.is_sized):
        session.tally.assume("a size that cannot be inferred is taken from the file's value_info")
        found = claimed
    scope.types[name] = found
