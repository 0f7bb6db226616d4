"""The end of a walk over a graph: the graph with all its tensors, or the error that says what stays unknown."""

from collections.abc import Sequence

from spillprof.frontends.onnx.assumed import advice
from spillprof.frontends.onnx.binding import quoted
from spillprof.frontends.onnx.body import Body, Node
from spillprof.frontends.onnx.elements import ValueType, leaves
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import Session
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.errors import ShapeError
from spillprof.ir.graph import Graph, Operator, Tensor

_LISTED = 8


def is_sized(scope: Scope, name: str) -> bool:
    """Whether every dimension of a value is known."""
    known = scope.type_of(name)
    return known is not None and known.is_sized


def unsized_error(roots: Sequence[tuple[Node, str]], scope: Scope) -> ShapeError:
    """The error that lists what stays unknown, by producer."""
    lines = [f"{output}, the output of {place(node)}" for node, output in roots[:_LISTED]]
    if len(roots) > _LISTED:
        lines.append(f"and {len(roots) - _LISTED} more")
    types = ", ".join(dict.fromkeys(node.op_type for node, _ in roots[:_LISTED]))
    options = " ".join(quoted(advice(output, scope.type_of(output))) for _, output in roots[:_LISTED])
    hint = (
        f"the size depends on run-time data or on an operator without a rule ({types}); give it: {options}; "
        "or export the model with fixed shapes"
    )
    if loop := next((node for node, _ in roots if node.op_type == "Loop"), None):
        hint = f"--trips {loop.name}=N says how often the loop runs; or {hint}"
    count = "a tensor" if len(roots) == 1 else f"{len(roots)} tensors"
    return ShapeError(f"the size of {count} stays unknown", where=lines, hint=hint)


def finished_graph(body: Body, operators: Sequence[Operator], scope: Scope, session: Session) -> Graph:
    """The finished graph with all the tensors that it names."""
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
        options = " ".join(quoted(advice(name, scope.type_of(name))) for name in unknown[:_LISTED])
        raise ShapeError("the size of a tensor stays unknown", where=unknown[:_LISTED], hint=f"give it: {options}")
    return Graph(
        name=body.name,
        operators=tuple(operators),
        tensors=tensors,
        inputs=inputs,
        outputs=body.outputs,
        captures=_captures(body, operators),
    )


def _captures(body: Body, operators: Sequence[Operator]) -> tuple[str, ...]:
    """Names that a body may read from outside; less than those in the file where a condition is constant."""
    if not body.free_names:
        return ()
    read = {name for op in operators for name in (*op.inputs, *op.captures)} | set(body.outputs)
    return tuple(name for name in body.free_names if name in read)


def _tell_of_size(known: ValueType, elements: Sequence[tuple[str, tuple[int, ...]]], session: Session) -> None:
    """Counts what is assumed of the size of a value that is no plain tensor."""
    if known.members is None:
        session.tally.assume(f"a value of type {known.dtype} is counted as 0 bytes")
    elif unsized := next((dtype for dtype, _ in elements if dtype in UNSIZED_DTYPES), None):
        session.tally.assume(f"a value of type {unsized} is counted as 0 bytes")
    elif elements:
        session.tally.assume(
            f"a value of type {known.dtype} is counted as all that it holds, and copied where it changes"
        )
