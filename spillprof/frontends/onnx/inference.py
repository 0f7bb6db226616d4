"""Output types of one operator by onnx's shape inference, cached by distinct case; refuses nodes that crash it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spillprof.frontends.onnx.elements import ELEMENT_OF_DTYPE, Shape, ValueType, parse_type
from spillprof.frontends.onnx.node import Node, OperatorKind, OperatorKinds
from spillprof.frontends.onnx.proto import (
    Array,
    AttributeProto,
    NodeProto,
    OpSchema,
    inferred_types,
    schema_of,
    tensor_of_array,
)
from spillprof.ir.errors import ModelError, ShapeError

_InputTypes = Sequence[ValueType | None]

_MOST_AXES = 1 << 16
"""Limit of axes of an Expand result: onnx's inference adds them one by one."""


def refuse_misread(node: Node, types: _InputTypes, where: Callable[[], Sequence[str]]) -> None:
    """Refuses nodes whose out-of-range attributes make onnx's C++ inference read out of bounds. ``ShapeError``."""
    check = _MISREAD.get(node.op_type)
    fault = check and check(node, {a.name: a.i for a in node.attributes}, types)
    if fault:
        raise ShapeError(fault, where=where(), hint="the model contradicts itself: export it again, or mend this node")


def _expand(_: Node, __: Mapping[str, int], types: _InputTypes) -> str:
    stated = _shape(types, 1)
    axes = stated[0] if stated is not None and len(stated) == 1 else None
    return "" if axes is None or axes <= _MOST_AXES else f"the shape to expand to has {axes:,} axes"


def _split(node: Node, numbers: Mapping[str, int], _: _InputTypes) -> str:
    outputs = len(node.outputs)
    stated = numbers.get("num_outputs", outputs)
    return "" if stated == outputs else f"num_outputs is {stated}, but the node has {outputs} outputs"


def _layer_normalization(_: Node, numbers: Mapping[str, int], types: _InputTypes) -> str:
    axis, shape = numbers.get("axis", -1), _shape(types, 0)
    if shape is None or -len(shape) <= axis < len(shape):
        return ""
    return f"axis {axis} of a tensor with {len(shape)} dimensions"


def _gather_nd(_: Node, numbers: Mapping[str, int], types: _InputTypes) -> str:
    batch_dims, data, indices = numbers.get("batch_dims", 0), _shape(types, 0), _shape(types, 1)
    if data is None or indices is None:
        return ""
    if not 0 <= batch_dims < min(len(data), len(indices)):
        return f"batch_dims is {batch_dims}, of tensors with {len(data)} and {len(indices)} dimensions"
    named = indices[-1]
    if named is None or 0 < named <= len(data) - batch_dims:
        return ""
    return f"the indices name {named} dimensions of a tensor with {len(data) - batch_dims}"


def _shape(types: _InputTypes, operand: int) -> Shape | None:
    known = types[operand] if operand < len(types) else None
    return None if known is None else known.shape


_MISREAD: Mapping[str, Callable[[Node, Mapping[str, int], _InputTypes], str]] = {
    "Expand": _expand,
    "GatherND": _gather_nd,
    "LayerNormalization": _layer_normalization,
    "Split": _split,
}


_OutputTypes = tuple[ValueType | None, ...]

_FLOATS_MATTER = frozenset({"Resize", "Upsample", "Range"})
"""Operators whose output size depends on floating-point inputs."""

_MISREAD_DEFAULTS = {"STFT": {"onesided": 1}}
"""Defaults that the standard states and onnx's inference ignores when the attribute is absent."""

MISFIT_HINT = "check the sizes given with --dim, --shape, --batch or --assume; if none is, the model contradicts itself"
"""Hint where an operator's inputs do not fit each other."""

_LISTED = 8
"""Limit of inputs, attributes and elements in an error."""

_SIZE_TYPES = frozenset(map(np.dtype, ("int64", "int32", "uint64", "uint32")))


class NodeInference:
    """Memoized per-operator inference of onnx: equal layers are inferred once."""

    def __init__(self) -> None:
        self._known: dict[object, _OutputTypes] = {}
        self._kinds = OperatorKinds()

    def has_schema(self, node: Node) -> bool:
        """Whether onnx has a schema of the operator in its version that is not deprecated."""
        schema = _find_schema(node)
        return schema is not None and not schema.deprecated

    def standard_kind(self, op_type: str, version: int, attributes: Sequence[AttributeProto]) -> OperatorKind:
        """A standard operator with the attributes of its schema; vendor attributes are dropped."""
        schema = schema_of(op_type, version, "")
        assert schema is not None  # rules name operators of the standard
        known = schema.attributes
        return self._kinds.kind(op_type, "", version, tuple(a for a in attributes if a.name in known))

    def outputs(self, node: Node, types: Sequence[ValueType | None], values: Sequence[Array | None]) -> _OutputTypes:
        """One type per output, None where onnx infers nothing.

        ``ShapeError`` if the inputs contradict each other; ``ModelError`` for an unknown standard operator.
        """
        contents = tuple(None if value is None else _content_key(node, value) for value in values)
        if not any(node.outputs):
            return (None,) * len(node.outputs)
        signature = (
            node.kind,
            tuple(None if t is None else t.proto if name else "" for t, name in zip(types, node.inputs, strict=True)),
            contents,
            tuple(bool(name) for name in node.outputs),
        )
        known = self._known.get(signature)
        if known is None:
            known = self._known[signature] = _ask(
                node, types, [v if c else None for v, c in zip(values, contents, strict=True)]
            )
        return known


def _content_key(node: Node, value: Array) -> object:
    if value.dtype not in _SIZE_TYPES and node.op_type not in _FLOATS_MATTER:
        return None
    return (value.dtype.char, value.shape, value.tobytes())


def _ask(node: Node, types: Sequence[ValueType | None], values: Sequence[Array | None]) -> _OutputTypes:
    schema = _find_schema(node)
    if schema is None and node.domain == "":
        what = f"operator set {node.version} has no operator '{node.op_type}'"
        raise ModelError(what, where=(place(node),), hint="if it is a custom operator, its domain must say so")
    if schema is None or any(name and t is None for name, t in zip(node.inputs, types, strict=True)):
        return (None,) * len(node.outputs)
    refuse_misread(node, types, lambda: (place(node), *inputs_written(node, types, values)))
    renamed = NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attributes)
    given = {a.name for a in node.attributes}
    for name, default in _MISREAD_DEFAULTS.get(node.op_type, {}).items():
        if name not in given:
            renamed.attribute.append(AttributeProto(name=name, type=AttributeProto.INT, i=default))
    input_types: dict[str, bytes] = {}
    input_data: dict[str, bytes] = {}
    for i, (name, known, value) in enumerate(zip(node.inputs, types, values, strict=True)):
        renamed.input.append(f"i{i}" if name else "")
        if name and known is not None:
            input_types[f"i{i}"] = known.proto
            if value is not None:
                element = ELEMENT_OF_DTYPE[value.dtype.name]
                input_data[f"i{i}"] = tensor_of_array(value, element).SerializeToString()
    renamed.output.extend(f"o{i}" if name else "" for i, name in enumerate(node.outputs))
    try:
        found = inferred_types(schema, renamed, input_types, input_data, node.version)
        return tuple(_type(found.get(f"o{i}")) for i in range(len(node.outputs)))
    except ModelError as error:
        where = (place(node), *inputs_written(node, types, values))
        raise ShapeError(error.message, where=where, hint=error.hint or MISFIT_HINT) from error
    except Exception as error:  # the C++ side raises many types, each for an invalid operator
        text = (str(error).strip().splitlines() or [""])[0].removeprefix("[ShapeInferenceError] ")
        text = text.removeprefix("[TypeInferenceError] ").rstrip(".")[:300]
        where = (place(node), *inputs_written(node, types, values))
        raise ShapeError(
            f"the shapes do not fit: {text[:1].lower()}{text[1:]}", where=where, hint=MISFIT_HINT
        ) from error


def _find_schema(node: Node) -> OpSchema | None:
    return schema_of(node.op_type, max(min(node.version, (1 << 31) - 1), 0), node.domain)


def _type(found: bytes | None) -> ValueType | None:
    if found is None:
        return None
    known = parse_type(found)
    if known is not None and known.shape is not None and any(dim is not None and dim < 0 for dim in known.shape):
        raise ShapeError(f"the output would have a negative size: {list(known.shape)}")
    return known


def place(node: Node) -> str:
    """The operator as errors show it: name and type."""
    return f"{node.name} ({node.op_type})"


def inputs_written(
    node: Node, types: Sequence[ValueType | None], values: Sequence[Array | None] = ()
) -> tuple[str, ...]:
    """Lines for an error: shapes of the first inputs, contents of short ones, and attributes."""
    lines = []
    for index, (name, known) in enumerate(zip(node.inputs[:_LISTED], types[:_LISTED], strict=True)):
        if name:
            shape = "unknown shape" if known is None or known.shape is None else list(known.shape)
            value = values[index] if index < len(values) else None
            shown = f" = {value.tolist()}" if value is not None and 0 < value.size <= _LISTED else ""
            lines.append(f"{name[:80]}: {shape}{shown}")
    lines += [f"{name[:80]} = {str(value)[:80]}" for name, value in list(node.settings.items())[:_LISTED]]
    return tuple(lines)
