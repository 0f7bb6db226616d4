"""SequenceMap as the standard defines it: a loop over the elements of sequences, that collects what its body gives."""

from collections.abc import Sequence

from spillprof.frontends.onnx.body import Body, Node
from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.kinds import Kinds
from spillprof.frontends.onnx.proto import AttributeProto, TensorProto
from spillprof.frontends.onnx.scope import Scope
from spillprof.ir.errors import ModelError


def is_sequence_map(node: Node) -> bool:
    """Whether an operator applies a body to each element of a sequence."""
    return node.domain == "" and node.op_type == "SequenceMap" and bool(node.bodies)


def as_loop(node: Node, scope: Scope) -> Sequence[Node]:
    """The length of the first sequence, an empty sequence for each output, and the loop that fills them.

    ``ModelError`` if body and operator do not match. Inputs that are no sequences are the same for each element.
    """
    body = node.bodies[0]
    if (
        len(node.bodies) > 1
        or not node.inputs
        or len(body.inputs) != len(node.inputs)
        or len(body.outputs) < len(node.outputs)
    ):
        raise ModelError("the body of a SequenceMap does not match its inputs and outputs", where=(place(node),))
    stem = f"{node.name}/sequence map"
    count = len(node.outputs)
    collected = [f"{stem}/collected {i}" for i in range(count)]
    length = _node(node, f"{stem}/length", "SequenceLength", (node.inputs[0],), (f"{stem}/length",))
    empty = [_empty(node, body, f"{stem}/empty {i}", body.outputs[i]) for i in range(count)]
    trip, going = f"{stem}/trip", f"{stem}/going"
    taken: list[Node] = []
    for (formal, _), source in zip(body.inputs, node.inputs, strict=True):
        known = scope.type_of(source)
        is_sequence = known is not None and known.dtype == "sequence"
        op_type, inputs = ("SequenceAt", (source, trip)) if is_sequence else ("Identity", (source,))
        taken.append(_node(node, f"{stem}/{op_type} {len(taken)}", op_type, inputs, (formal,)))
    grown = [f"{name}, one more" for name in collected]
    kept = [
        _node(node, f"{stem}/SequenceInsert {i}", "SequenceInsert", (collected[i], body.outputs[i]), (grown[i],))
        for i in range(count)
    ]
    inner = Body(
        name=body.name,
        inputs=tuple((name, None) for name in (trip, going, *collected)),
        outputs=(going, *grown),
        nodes=[*taken, *body.nodes, *kept],
        constants=body.constants,
        stored_types=body.stored_types,
        declared_types=body.declared_types,
        free_names=tuple(dict.fromkeys((*node.inputs, *body.free_names))),
    )
    loop = _node(node, node.name, "Loop", (length.outputs[0], "", *(e.outputs[0] for e in empty)), node.outputs)
    loop.bodies, loop.captures = (inner,), inner.free_names
    return (length, *empty, loop)


def _empty(node: Node, body: Body, name: str, output: str) -> Node:
    stated = body.declared_types.get(output)
    element = stated.tensor_type.elem_type if stated is not None else 0
    dtype = AttributeProto(name="dtype", type=AttributeProto.INT, i=element or TensorProto.FLOAT)
    return _node(node, name, "SequenceEmpty", (), (name,), dtype)


def _node(
    node: Node,
    name: str,
    op_type: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *attributes: AttributeProto,
) -> Node:
    kind = Kinds().kind(op_type, "", node.version, attributes)
    return Node(name=name, kind=kind, inputs=inputs, outputs=outputs)
