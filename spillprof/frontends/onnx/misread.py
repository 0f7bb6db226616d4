"""Nodes that onnx's own inference misreads: they lead it outside of its memory, or take it for ever.

Found by asking it about random nodes of every operator. Whoever asks it checks these first.
"""

from collections.abc import Callable, Mapping, Sequence

from spillprof.frontends.onnx.body import Node
from spillprof.frontends.onnx.elements import Shape, ValueType
from spillprof.ir.errors import ShapeError

_MOST_AXES = 1 << 16
"""Of a tensor that onnx is asked to make. It adds them one by one."""

Types = Sequence[ValueType | None]


def refuse_misread(node: Node, types: Types, where: Callable[[], Sequence[str]]) -> None:
    """``ShapeError`` for a node that must not be asked about."""
    check = _CHECKS.get(node.op_type)
    fault = check and check(node, {a.name: a.i for a in node.attributes}, types)
    if fault:
        raise ShapeError(fault, where=where(), hint="the model contradicts itself: export it again, or mend this node")


def _expand(_: Node, __: Mapping[str, int], types: Types) -> str:
    stated = _shape(types, 1)
    axes = stated[0] if stated is not None and len(stated) == 1 else None
    return "" if axes is None or axes <= _MOST_AXES else f"the shape to expand to has {axes:,} axes"


def _split(node: Node, numbers: Mapping[str, int], _: Types) -> str:
    outputs = len(node.outputs)
    stated = numbers.get("num_outputs", outputs)
    return "" if stated == outputs else f"num_outputs is {stated}, but the node has {outputs} outputs"


def _layer_normalization(_: Node, numbers: Mapping[str, int], types: Types) -> str:
    axis, shape = numbers.get("axis", -1), _shape(types, 0)
    if shape is None or -len(shape) <= axis < len(shape):
        return ""
    return f"axis {axis} of a tensor with {len(shape)} dimensions"


def _gather_nd(_: Node, numbers: Mapping[str, int], types: Types) -> str:
    batch_dims, data, indices = numbers.get("batch_dims", 0), _shape(types, 0), _shape(types, 1)
    if data is None or indices is None:
        return ""
    if not 0 <= batch_dims < min(len(data), len(indices)):
        return f"batch_dims is {batch_dims}, of tensors with {len(data)} and {len(indices)} dimensions"
    named = indices[-1]
    if named is None or 0 < named <= len(data) - batch_dims:
        return ""
    return f"the indices name {named} dimensions of a tensor with {len(data) - batch_dims}"


def _shape(types: Types, operand: int) -> Shape | None:
    known = types[operand] if operand < len(types) else None
    return None if known is None else known.shape


_CHECKS: Mapping[str, Callable[[Node, Mapping[str, int], Types], str]] = {
    "Expand": _expand,
    "GatherND": _gather_nd,
    "LayerNormalization": _layer_normalization,
    "Split": _split,
}
