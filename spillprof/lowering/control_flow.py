"""What an If, Loop or Scan needs besides its operands: the memory and the weights of its bodies."""

from collections.abc import Iterable

from spillprof.lowering.macs import body_macs
from spillprof.model.graph import Graph, Operator, TensorKind


def executed_bodies(op: Operator) -> tuple[Graph, ...]:
    """The bodies that are costed: of an If the branch with more multiply-accumulates (the first of equals)."""
    if op.op_type == "If" and op.subgraphs:
        return (max(op.subgraphs, key=lambda body: body_macs(body).macs),)
    return op.subgraphs


def body_peak_bytes(op: Operator) -> int:
    """Largest sum of live activations of a body, in file order, payload; bodies inside of it included.

    The inputs of a body are operands of the operator. So are the outputs of an If's branch; those of a Loop's or
    Scan's body exist beside the operator's own outputs.
    """
    return max(
        (_peak(body, skip=body.outputs if op.op_type == "If" else ()) for body in executed_bodies(op)), default=0
    )


def body_weights(op: Operator) -> dict[str, int]:
    """Payload bytes of the weights that belong to the bodies, by a name that tells them apart from outer ones."""
    found: dict[str, int] = {}
    for body in executed_bodies(op):
        outside = set(op.captures)
        for name in _own_reads(body):
            if name not in outside and name in body.tensors and body.tensors[name].kind is TensorKind.WEIGHT:
                found[f"{op.name}/{name}"] = body.tensors[name].nbytes
        for inner in body.operators:
            found.update((f"{op.name}/{name}", nbytes) for name, nbytes in body_weights(inner).items())
    return found


def executed_reads(op: Operator) -> frozenset[str]:
    """Names that the costed bodies read, those of enclosing graphs among them."""
    return frozenset(name for body in executed_bodies(op) for name in _own_reads(body))


def _own_reads(body: Graph) -> Iterable[str]:
    """Tensors that the operators of a body read (captures of inner bodies too), and its outputs; may repeat."""
    for op in body.operators:
        yield from (name for name in (*op.inputs, *op.captures) if name)
    yield from (name for name in body.outputs if name)


def _peak(body: Graph, skip: Iterable[str]) -> int:
    last: dict[str, int] = {}
    for i, op in enumerate(body.operators):
        for name in (*op.inputs, *op.captures):
            last[name] = i
    for name in body.outputs:
        last[name] = len(body.operators)
    skipped = {"", *skip}
    expiring: dict[int, int] = {}  # bytes that are read for the last time by that operator
    live = peak = 0
    for i, op in enumerate(body.operators):
        written = [n for n in op.outputs if n not in skipped and body.tensors[n].kind is TensorKind.ACTIVATION]
        for name in written:
            live += body.tensors[name].nbytes
            expires = last.get(name, i)
            expiring[expires] = expiring.get(expires, 0) + body.tensors[name].nbytes
        peak = max(peak, live + body_peak_bytes(op))
        live -= expiring.pop(i, 0)
    return peak
