"""Outputs of an operator without bodies: folded, inferred, by rule or by bound; memoized per distinct case."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spillprof.frontends.onnx.bounds import upper_bound
from spillprof.frontends.onnx.contrib import apply_rule, contrib_rule
from spillprof.frontends.onnx.elements import ValueType, tensor_type
from spillprof.frontends.onnx.folding import can_fold, fold
from spillprof.frontends.onnx.folding_call import Call, Impossible
from spillprof.frontends.onnx.inference import MISFIT_HINT, NodeInference, place
from spillprof.frontends.onnx.node import Node
from spillprof.frontends.onnx.proto import Array
from spillprof.frontends.onnx.rule import OperatorCase, Standard
from spillprof.frontends.onnx.sequences import LARGEST_TAKEN, sequence_found
from spillprof.frontends.onnx.settings import refuse_nonsense
from spillprof.frontends.onnx.standard import OVERRULED
from spillprof.frontends.onnx.stored_tensors import array_constant
from spillprof.ir.dtypes import UNSIZED_DTYPES
from spillprof.ir.errors import ShapeError
from spillprof.ir.graph import AttributeValue


class Operands(NamedTuple):
    """Types and contents of an operator's inputs as far as known; one entry an input."""

    types: Sequence[ValueType | None]
    values: Sequence[Array | None]
    is_bounded: bool  # sizes or contents of some follow from an upper bound


class Found(NamedTuple):
    """Types and contents of an operator's outputs, as far as known; one entry an output."""

    types: Sequence[ValueType | None]
    values: Sequence[Array | None]
    is_bounded: bool = False  # sizes and contents follow from an upper bound
    limits: Sequence[ValueType | None] = ()  # the largest possible types
    least: Sequence[ValueType | None] = ()  # the smallest, where known; a stated type in between can be true
    assumption: str | None = None  # that the sizes rest on, unless the user gives them
    fault: str = ""  # why the contents are impossible


class OutputFinder:
    """Memoized outputs of operators, by operator kind, input types and identity of known contents."""

    def __init__(self) -> None:
        self.inference = NodeInference()
        self._known: dict[object, tuple[Found, Operands]] = {}  # holds operands alive: contents are keyed by identity

    def found(self, node: Node, operands: Operands) -> Found:
        """Outputs of an operator without bodies. ``ShapeError`` if its inputs contradict each other."""
        contents = [id(value) for value in operands.values]
        is_evaluated = contents and _UNKNOWN not in contents  # shape arithmetic: rarely the same twice
        if is_evaluated or "" in node.inputs or "" in node.outputs:
            return _found(node, operands, self.inference)
        case = (node.kind, len(node.outputs), operands.is_bounded, *operands.types, *contents)
        known = self._known.get(case)
        if known is None:
            known = self._known[case] = (_found(node, operands, self.inference), operands)
        return known[0]


_UNKNOWN = id(None)


def _found(node: Node, operands: Operands, inference: NodeInference) -> Found:
    types, values, is_bounded = operands
    refuse_nonsense(node, types, values)
    try:
        contents = _contents(node, types, values)
    except Impossible as error:
        inferred = _types(node, types, values, inference)
        return Found(types=inferred, values=[None] * len(node.outputs), is_bounded=is_bounded, fault=str(error))
    if contents is not None:
        exact = [array_constant(value).type for value in contents]
        return Found(types=exact, values=contents, is_bounded=is_bounded)
    inferred = _types(node, types, values, inference)
    if node.op_type == "Reshape" and node.domain == "" and not is_bounded:
        _check_reshape(node, types[0], inferred[0])
    taken = sequence_found(node, node.settings, types, values, inferred[0] if inferred else None)
    if taken is not None:
        rest = [None] * (len(node.outputs) - 1)
        return Found(
            types=[taken.type, *rest],
            values=[taken.value, *rest],
            is_bounded=is_bounded or taken.is_largest,
            assumption=LARGEST_TAKEN if taken.is_largest else None,
        )
    nothing = [None] * len(node.outputs)
    if not all(t is not None and t.is_sized for t, name in zip(inferred, node.outputs, strict=True) if name):
        bound = upper_bound(node, types, values, inferred)
        if bound is not None:
            return Found(
                types=inferred,
                values=nothing,
                is_bounded=is_bounded,
                limits=bound.types,
                least=bound.least,
                assumption=bound.assumption,
            )
    return Found(types=inferred, values=nothing, is_bounded=is_bounded)


def _check_reshape(node: Node, before: ValueType | None, after: ValueType | None) -> None:
    """``ShapeError`` if a Reshape changes the number of elements, which onnx accepts."""
    if before is None or after is None or not (before.is_sized and after.is_sized):
        return
    old, new = before.sized_shape, after.sized_shape
    if math.prod(old) != math.prod(new):
        what = f"the shapes do not fit: {list(old)} cannot become {list(new)}"
        raise ShapeError(what, where=(place(node),), hint=MISFIT_HINT)


def _contents(
    node: Node, types: Sequence[ValueType | None], values: Sequence[Array | None]
) -> tuple[Array, ...] | None:
    """The outputs' contents if they can be folded. ``Impossible`` if there is no result."""
    if node.domain != "":
        return None
    if node.op_type in ("Shape", "Size") and len(node.outputs) == 1:
        return _shape_contents(node, node.settings, types[0] if types else None)
    if not can_fold(node.op_type) or any(
        value is None for value, name in zip(values, node.inputs, strict=True) if name
    ):
        return None
    call = Call(
        op_type=node.op_type,
        version=node.version,
        attributes=node.settings,
        protos=node.attributes,
        n_outputs=len(node.outputs),
    )
    outputs = fold(call, values)
    return outputs if outputs is not None and len(outputs) == len(node.outputs) else None


def _shape_contents(
    node: Node, settings: Mapping[str, AttributeValue], known: ValueType | None
) -> tuple[Array, ...] | None:
    """Contents of Shape and Size for a sized input."""
    if known is None or not known.is_sized or known.dtype in UNSIZED_DTYPES - {"string"}:
        return None
    shape = known.sized_shape
    if node.op_type == "Size":
        return (np.array(math.prod(shape), np.int64),)
    start, end = settings.get("start", 0), settings.get("end", len(shape))
    return (np.array(shape[start:end], np.int64),) if isinstance(start, int) and isinstance(end, int) else None


def _types(
    node: Node, types: Sequence[ValueType | None], values: Sequence[Array | None], inference: NodeInference
) -> Sequence[ValueType | None]:
    """The outputs' types from onnx's rules, and from ours where it has none."""
    rule = contrib_rule(node)
    found: Sequence[ValueType | None] = (None,) * len(node.outputs)
    if rule is None or inference.has_schema(node):
        found = _inferred(node, types, values, inference)
    if rule is None or all(f is not None and f.is_sized for f, name in zip(found, node.outputs, strict=True) if name):
        return found
    verdict = apply_rule(rule, OperatorCase(node=node, types=types, settings=node.settings, values=values))
    ruled: Sequence[ValueType | None] | None
    ruled = _standard_types(node, verdict, types, values, inference) if isinstance(verdict, Standard) else verdict
    return [r if f is None or not f.is_sized else f for f, r in zip(found, ruled or found, strict=True)]


def _inferred(
    node: Node, types: Sequence[ValueType | None], values: Sequence[Array | None], inference: NodeInference
) -> Sequence[ValueType | None]:
    """The outputs' types from onnx's rules, or from ours in ``OVERRULED``."""
    found = inference.outputs(node, types, values)
    rule = OVERRULED.get(node.op_type) if node.domain == "" else None
    if rule is None:
        return found
    ruled = apply_rule(rule, OperatorCase(node=node, types=types, settings=node.settings, values=values))
    assert not isinstance(ruled, Standard)
    return [f if f is None or r is None else r for f, r in zip(found, ruled or found, strict=True)]


def _standard_types(
    node: Node,
    standard: Standard,
    types: Sequence[ValueType | None],
    values: Sequence[Array | None],
    inference: NodeInference,
) -> Sequence[ValueType | None]:
    alike = replace(
        node,
        kind=inference.standard_kind(standard.op_type, standard.version, node.attributes),
        inputs=tuple(node.inputs[i] for i in standard.inputs),
        outputs=node.outputs[:1],
    )
    operands = [types[i] for i in standard.inputs]
    if standard.dtype is not None:
        operands = _as_float(operands)
    found = _inferred(alike, operands, [values[i] for i in standard.inputs], inference)
    first = found[0]
    if first is not None and standard.dtype is not None:
        first = tensor_type(standard.dtype, first.shape)
    return [first, *[None] * (len(node.outputs) - 1)]


def _as_float(operands: Sequence[ValueType | None]) -> list[ValueType | None]:
    """The operands, those of the first one's type as float32: the standard operator may lack that type."""
    first = operands[0].dtype if operands and operands[0] is not None else None
    return [t if t is None or t.dtype != first else tensor_type("float32", t.shape) for t in operands]
